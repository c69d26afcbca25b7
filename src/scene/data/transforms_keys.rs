//! Parses `transforms.json`: every key that is used, with its type. Errors name file, line and key.
//!
//! Runs in the consumer. Does not interpret images, cameras or poses. Memory is bounded for hostile
//! files: by the file's length, which has a limit, and by [`MOST_ENTRIES`]. serde_json limits the
//! nesting.

use std::fmt;
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{self, Error, Result};
use crate::scene::data::json_values::{self, JsonNumber, JsonText};
use crate::sys::regular_file;
use crate::sys::text_file::{self, TextReadError};

/// Most frames, and most names in a list.
pub(super) const MOST_ENTRIES: usize = 1 << 20;

/// Content of a file.
#[derive(Debug, Default)]
pub(super) struct TransformsFile {
    pub(super) lens: LensKeys,
    pub(super) frames: Option<Vec<FrameKeys>>,
    pub(super) test_frames: Option<Vec<FrameKeys>>,
    pub(super) has_mask: Option<bool>,
    pub(super) applied_transform: Option<TransformMatrix>,
    pub(super) applied_scale: Option<f64>,
    pub(super) ply_file_path: Option<String>,
    pub(super) train_filenames: Option<Vec<String>>,
    pub(super) val_filenames: Option<Vec<String>>,
    pub(super) test_filenames: Option<Vec<String>>,
    pub(super) orientation_override: Option<String>,
    pub(super) integer_depth_scale: Option<f64>,
}

/// One entry of `frames`.
#[derive(Debug, Default)]
pub(super) struct FrameKeys {
    pub(super) file_path: Option<String>,
    pub(super) transform_matrix: Option<TransformMatrix>,
    pub(super) transform_matrix_start: Option<TransformMatrix>,
    pub(super) transform_matrix_end: Option<TransformMatrix>,
    pub(super) mask_path: Option<String>,
    pub(super) depth_file_path: Option<String>,
    pub(super) depth_path: Option<String>,
    pub(super) time: Option<f64>,
    pub(super) lens: LensKeys,
}

/// Numeric camera keys, at the top level or in a frame.
const NUMBERS: &[&str] = &[
    "fl_x",
    "fl_y",
    "x_fov",
    "y_fov",
    "camera_angle_x",
    "camera_angle_y",
    "cx",
    "cy",
    "w",
    "h",
    "k1",
    "k2",
    "k3",
    "k4",
    "k5",
    "k6",
    "p1",
    "p2",
    "s1",
    "s2",
    "s3",
    "s4",
    "fisheye_crop_radius",
];

/// Boolean camera keys: instant-ngp's lens models.
const FLAGS: &[&str] = &["is_fisheye", "equirectangular", "latlong", "orthographic"];

/// The camera keys of a frame or of the top level.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct LensKeys {
    numbers: Vec<(u8, f64)>,
    flags: u8,
    pub(super) camera_model: Option<String>,
    pub(super) distortion_params: Option<Vec<f64>>,
    pub(super) rolling_shutter: Option<[f64; 4]>,
    /// Whether there is instant-ngp's F-theta lens.
    pub(super) has_ftheta: bool,
}

impl LensKeys {
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        let found = self
            .numbers
            .iter()
            .rev()
            .find(|(at, _)| NUMBERS.get(usize::from(*at)) == Some(&key));
        found.map(|(_, value)| *value)
    }

    pub(super) fn flag(&self, key: &str) -> bool {
        let at = FLAGS.iter().position(|flag| *flag == key);
        at.is_some_and(|at| self.flags & (1 << at) != 0)
    }

    /// Whether this key is present, of any type.
    pub(super) fn has(&self, key: &str) -> bool {
        match key {
            "camera_model" => self.camera_model.is_some(),
            "distortion_params" => self.distortion_params.is_some(),
            "rolling_shutter" => self.rolling_shutter.is_some(),
            "ftheta_p0" => self.has_ftheta,
            _ => self.flag(key) || self.number(key).is_some(),
        }
    }

    pub(super) fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.number(key).is_some())
    }

    /// Reads the value of a key if it is a camera key. Returns whether it is one.
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        if let Some(at) = NUMBERS.iter().position(|number| *number == key) {
            if let Some(JsonNumber(value)) = map.next_value()? {
                self.numbers.push((at as u8, value));
            }
            return Ok(true);
        }
        if let Some(at) = FLAGS.iter().position(|flag| *flag == key) {
            if map.next_value::<Option<bool>>()? == Some(true) {
                self.flags |= 1 << at;
            }
            return Ok(true);
        }
        match key {
            "camera_model" => self.camera_model = text(map)?,
            "distortion_params" => {
                self.distortion_params = map.next_value::<Option<Few>>()?.map(|few| few.0);
            }
            "rolling_shutter" => {
                let timing = map.next_value::<Option<[JsonNumber; 4]>>()?;
                self.rolling_shutter = timing.map(|timing| timing.map(|number| number.0));
            }
            "ftheta_p0" => {
                map.next_value::<IgnoredAny>()?;
                self.has_ftheta = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Largest deviation of a matrix's last row from 0 0 0 1: the error of inverting in `f32`.
const LAST_ROW: f64 = 1e-3;

/// Three rows of four numbers. A fourth row must be 0 0 0 1, within [`LAST_ROW`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TransformMatrix(pub(super) [[f64; 4]; 3]);

/// A short list of numbers.
struct Few(Vec<f64>);

/// A list of limited length whose errors name the entry.
struct Entries<T>(Vec<T>);

/// Reads and parses the file.
pub(super) fn read(path: &Path, max_bytes: u64) -> Result<TransformsFile> {
    let (file, len) = regular_file::open(path).map_err(|e| open_error(path, &e))?;
    let too_long = |len: u64| {
        Error::dataset(
            path,
            format!(
                "it has {}, over max_json_bytes ({}): is this a transforms file?",
                error::size_rounded_up(len),
                error::size_rounded_down(max_bytes)
            ),
        )
    };
    if len > max_bytes {
        return Err(too_long(len));
    }
    let mut text = text_file::read(file, max_bytes).map_err(|refused| match refused {
        TextReadError::Read(e) => Error::io_at("read", path, e),
        // The file has grown since its length was read.
        TextReadError::TooLong(most) => too_long(most.saturating_add(1)),
        // UTF-16 has a zero byte beside each ASCII letter.
        zero @ TextReadError::Zero(at) => Error::dataset(
            path,
            match at < 4 {
                true => format!("{zero}, as UTF-16 has: save it as UTF-8"),
                false => format!("{zero}: write it again"),
            },
        ),
    })?;
    json_values::quote_words(&mut text);
    let json = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    serde_json::from_slice(json).map_err(|e| json_error(path, &e))
}

/// The error for a file of a scene that cannot be opened.
pub(super) fn open_error(path: &Path, e: &std::io::Error) -> Error {
    let what = match e.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => e.to_string(),
    };
    Error::dataset(path, what)
}

fn json_error(path: &Path, e: &serde_json::Error) -> Error {
    let text = Error::words_of_json(e);
    let place = format!(" at line {} column {}", e.line(), e.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    // A marked word in place of a list or an object.
    let what = match what.split_once(json_values::MARKED) {
        Some((key, _)) => format!("{key}{}", json_values::NOT_FINITE),
        None => what.to_owned(),
    };
    // A custom error loses serde_json's category, so check the text.
    let hint = match what.contains("EOF while") {
        true => ": the file is cut off",
        false => "",
    };
    Error::dataset_line(
        path,
        e.line() as u64,
        format!("{what}{hint} (column {})", e.column()),
    )
}

/// Adds the place to an error.
fn at<E: de::Error>(place: impl fmt::Display, e: &E) -> E {
    E::custom(format!("{place}: {e}"))
}

impl<'de> Deserialize<'de> for TransformsFile {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Top;
        impl<'de> Visitor<'de> for Top {
            type Value = TransformsFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with frames")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TransformsFile, A::Error> {
                let mut all = TransformsFile::default();
                while let Some(key) = map.next_key::<String>()? {
                    all.take(&key, &mut map).map_err(|e| at(&key, &e))?;
                }
                Ok(all)
            }
        }
        d.deserialize_map(Top)
    }
}

impl TransformsFile {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "frames" => self.frames = Some(map.next_value::<Entries<_>>()?.0),
            "test_frames" => {
                self.test_frames = map.next_value::<Option<Entries<_>>>()?.map(|e| e.0);
            }
            "has_mask" => self.has_mask = map.next_value()?,
            "applied_transform" => self.applied_transform = map.next_value()?,
            "applied_scale" => self.applied_scale = number(map)?,
            "ply_file_path" => self.ply_file_path = text(map)?,
            "train_filenames" => self.train_filenames = names(map)?,
            "val_filenames" => self.val_filenames = names(map)?,
            "test_filenames" => self.test_filenames = names(map)?,
            "orientation_override" => self.orientation_override = text(map)?,
            "integer_depth_scale" => self.integer_depth_scale = number(map)?,
            _ => {
                if !self.lens.take(key, map)? {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

fn names<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Vec<String>>, A::Error> {
    let list = map.next_value::<Option<Entries<JsonText>>>()?;
    Ok(list.map(|list| list.0.into_iter().map(|name| name.0).collect()))
}

fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<String>, A::Error> {
    Ok(map.next_value::<Option<JsonText>>()?.map(|text| text.0))
}

fn number<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<f64>, A::Error> {
    Ok(map
        .next_value::<Option<JsonNumber>>()?
        .map(|number| number.0))
}

impl<'de> Deserialize<'de> for FrameKeys {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Frame;
        impl<'de> Visitor<'de> for Frame {
            type Value = FrameKeys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with file_path and transform_matrix")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FrameKeys, A::Error> {
                let mut all = FrameKeys::default();
                while let Some(key) = map.next_key::<String>()? {
                    all.take(&key, &mut map).map_err(|e| at(&key, &e))?;
                }
                // Check here and not after parsing: a million empty frames take three bytes each.
                let pose = all.transform_matrix.or(all.transform_matrix_start);
                match (all.file_path.is_some(), pose.is_some()) {
                    (true, true) => Ok(all),
                    (false, _) => Err(de::Error::custom("file_path: missing")),
                    (true, false) => Err(de::Error::custom("transform_matrix: missing")),
                }
            }
        }
        d.deserialize_map(Frame)
    }
}

impl FrameKeys {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "file_path" => self.file_path = text(map)?,
            "transform_matrix" => self.transform_matrix = map.next_value()?,
            "transform_matrix_start" => self.transform_matrix_start = map.next_value()?,
            "transform_matrix_end" => self.transform_matrix_end = map.next_value()?,
            "mask_path" => self.mask_path = text(map)?,
            "depth_file_path" => self.depth_file_path = text(map)?,
            "depth_path" => self.depth_path = text(map)?,
            "time" => self.time = number(map)?,
            _ => {
                if !self.lens.take(key, map)? {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for TransformMatrix {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = TransformMatrix;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("3 or 4 rows of 4 numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut rows: A,
            ) -> Result<TransformMatrix, A::Error> {
                let mut matrix = [[0.0; 4]; 3];
                for (i, row) in matrix.iter_mut().enumerate() {
                    let next = rows.next_element::<[JsonNumber; 4]>()?;
                    let next = next.ok_or_else(|| de::Error::invalid_length(i, &self))?;
                    *row = next.map(|number| number.0);
                }
                if let Some(last) = rows.next_element::<[JsonNumber; 4]>()? {
                    let last = last.map(|number| number.0);
                    let expected = [0.0, 0.0, 0.0, 1.0];
                    let is_due =
                        |(value, expected): (f64, f64)| (value - expected).abs() <= LAST_ROW;
                    if !last.into_iter().zip(expected).all(is_due) {
                        return Err(de::Error::custom(format!(
                            "the last row is {last:?}: use [0, 0, 0, 1]"
                        )));
                    }
                }
                match rows.next_element::<IgnoredAny>()? {
                    Some(_) => Err(de::Error::invalid_length(5, &self)),
                    None => Ok(TransformMatrix(matrix)),
                }
            }
        }
        d.deserialize_seq(Rows)
    }
}

impl<'de> Deserialize<'de> for Few {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Few;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("up to 16 numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Few, A::Error> {
                let mut few = Vec::new();
                while let Some(JsonNumber(value)) = seq.next_element()? {
                    if few.len() == 16 {
                        return Err(de::Error::invalid_length(17, &self));
                    }
                    few.push(value);
                }
                Ok(Few(few))
            }
        }
        d.deserialize_seq(Numbers)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct List<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Entries<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MOST_ENTRIES} entries")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entries<T>, A::Error> {
                let mut all = Vec::new();
                loop {
                    let next = seq
                        .next_element()
                        .map_err(|e| at(format!("[{}]", all.len()), &e))?;
                    let Some(entry) = next else {
                        return Ok(Entries(all));
                    };
                    if all.len() == MOST_ENTRIES {
                        return Err(de::Error::invalid_length(all.len() + 1, &self));
                    }
                    all.push(entry);
                }
            }
        }
        d.deserialize_seq(List(std::marker::PhantomData))
    }
}
