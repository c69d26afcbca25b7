//! `transforms.json` as text: every key of it that means something here, with its type,
//! and errors that name file, line and key.
//!
//! In the consumer. Knows nothing of images, cameras or poses. What a hostile file can
//! make it hold is bounded by the file's length, which has a limit, and by
//! [`MOST_ENTRIES`]; how deep it nests, by serde_json.

use std::fmt;
use std::path::Path;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{self, Error, Result};
use crate::sys::regular;
use crate::sys::text_file::{self, Refused};

/// Most frames, and names in a list.
pub(super) const MOST_ENTRIES: usize = 1 << 20;

/// A whole file.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) lens: LensKeys,
    pub(super) frames: Option<Vec<FrameKeys>>,
    pub(super) test_frames: Option<Vec<FrameKeys>>,
    pub(super) has_mask: Option<bool>,
    pub(super) applied_transform: Option<Matrix>,
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
    pub(super) transform_matrix: Option<Matrix>,
    pub(super) transform_matrix_start: Option<Matrix>,
    pub(super) transform_matrix_end: Option<Matrix>,
    pub(super) mask_path: Option<String>,
    pub(super) depth_file_path: Option<String>,
    pub(super) depth_path: Option<String>,
    pub(super) time: Option<f64>,
    pub(super) lens: LensKeys,
}

/// Keys of a camera that are numbers; at the top or in a frame.
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

/// Keys of a camera that are true or false: instant-ngp's lens models.
const FLAGS: &[&str] = &["is_fisheye", "equirectangular", "latlong", "orthographic"];

/// What is known of a camera.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct LensKeys {
    numbers: Vec<(u8, f64)>,
    flags: u8,
    pub(super) camera_model: Option<String>,
    pub(super) distortion_params: Option<Vec<f64>>,
    pub(super) rolling_shutter: Option<[f64; 4]>,
    /// instant-ngp's F-theta lens.
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

    pub(super) fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.number(key).is_some())
    }

    /// Takes the value of a key, if it is one of a camera.
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        if let Some(at) = NUMBERS.iter().position(|number| *number == key) {
            if let Some(value) = map.next_value::<Option<f64>>()? {
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
            "camera_model" => self.camera_model = map.next_value()?,
            "distortion_params" => {
                self.distortion_params = map.next_value::<Option<Few>>()?.map(|few| few.0);
            }
            "rolling_shutter" => self.rolling_shutter = map.next_value()?,
            "ftheta_p0" => {
                map.next_value::<IgnoredAny>()?;
                self.has_ftheta = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Three rows of four numbers; a fourth row must be 0 0 0 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix(pub(super) [[f64; 4]; 3]);

/// A short list of numbers.
struct Few(Vec<f64>);

/// A list of limited length whose errors name the entry.
struct Entries<T>(Vec<T>);

/// Reads and parses the file.
pub(super) fn read(path: &Path, max_bytes: u64) -> Result<Document> {
    let (file, len) = regular::open(path).map_err(|e| unopened(path, &e))?;
    let too_long = |len: u64| {
        Error::dataset(
            path,
            format!(
                "it has {}, over max_json_bytes ({}): is this a transforms file?",
                error::needed(len),
                error::room(max_bytes)
            ),
        )
    };
    if len > max_bytes {
        return Err(too_long(len));
    }
    let text = text_file::read(file, max_bytes).map_err(|refused| match refused {
        Refused::Read(e) => Error::io_at("read", path, e),
        // It has grown since.
        Refused::TooLong(most) => too_long(most.saturating_add(1)),
        zero @ Refused::Zero(_) => Error::dataset(path, format!("{zero}: write it again")),
    })?;
    let json = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    serde_json::from_slice(json).map_err(|e| malformed(path, json, &e))
}

/// A file of a scene that cannot be opened.
pub(super) fn unopened(path: &Path, e: &std::io::Error) -> Error {
    let what = match e.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => e.to_string(),
    };
    Error::dataset(path, what)
}

fn malformed(path: &Path, json: &[u8], e: &serde_json::Error) -> Error {
    let text = e.to_string();
    let place = format!(" at line {} column {}", e.line(), e.column());
    let what = text.strip_suffix(&place).unwrap_or(&text);
    let line = json.split(|&b| b == b'\n').nth(e.line().saturating_sub(1));
    let near = line.map_or(&[][..], |line| {
        let from = e.column().saturating_sub(10).min(line.len());
        &line[from..e.column().saturating_add(10).min(line.len())]
    });
    let near = String::from_utf8_lossy(near);
    let hint = match near.contains("NaN") || near.contains("Infinity") {
        true => {
            ": NaN and Infinity are not JSON. The pose of this frame is unknown: remove the frame"
        }
        // An error that was given a name is no longer one of its kind.
        false if what.contains("EOF while") => ": the file is cut off",
        false => "",
    };
    Error::dataset_line(
        path,
        e.line() as u64,
        format!("{what}{hint} (column {})", e.column()),
    )
}

/// The same error behind the name of where it was met.
fn at<E: de::Error>(place: impl fmt::Display, e: &E) -> E {
    E::custom(format!("{place}: {e}"))
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Top;
        impl<'de> Visitor<'de> for Top {
            type Value = Document;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with frames")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut all = Document::default();
                while let Some(key) = map.next_key::<String>()? {
                    all.take(&key, &mut map).map_err(|e| at(&key, &e))?;
                }
                Ok(all)
            }
        }
        d.deserialize_map(Top)
    }
}

impl Document {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "frames" => self.frames = Some(map.next_value::<Entries<_>>()?.0),
            "test_frames" => {
                self.test_frames = map.next_value::<Option<Entries<_>>>()?.map(|e| e.0);
            }
            "has_mask" => self.has_mask = map.next_value()?,
            "applied_transform" => self.applied_transform = map.next_value()?,
            "applied_scale" => self.applied_scale = map.next_value()?,
            "ply_file_path" => self.ply_file_path = map.next_value()?,
            "train_filenames" => self.train_filenames = names(map)?,
            "val_filenames" => self.val_filenames = names(map)?,
            "test_filenames" => self.test_filenames = names(map)?,
            "orientation_override" => self.orientation_override = map.next_value()?,
            "integer_depth_scale" => self.integer_depth_scale = map.next_value()?,
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
    Ok(map.next_value::<Option<Entries<String>>>()?.map(|e| e.0))
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
                Ok(all)
            }
        }
        d.deserialize_map(Frame)
    }
}

impl FrameKeys {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "file_path" => self.file_path = map.next_value()?,
            "transform_matrix" => self.transform_matrix = map.next_value()?,
            "transform_matrix_start" => self.transform_matrix_start = map.next_value()?,
            "transform_matrix_end" => self.transform_matrix_end = map.next_value()?,
            "mask_path" => self.mask_path = map.next_value()?,
            "depth_file_path" => self.depth_file_path = map.next_value()?,
            "depth_path" => self.depth_path = map.next_value()?,
            "time" => self.time = map.next_value()?,
            _ => {
                if !self.lens.take(key, map)? {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Matrix {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Rows;
        impl<'de> Visitor<'de> for Rows {
            type Value = Matrix;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("3 or 4 rows of 4 numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Matrix, A::Error> {
                let mut matrix = [[0.0; 4]; 3];
                for (i, row) in matrix.iter_mut().enumerate() {
                    let next = rows.next_element()?;
                    *row = next.ok_or_else(|| de::Error::invalid_length(i, &self))?;
                }
                if let Some(last) = rows.next_element::<[f64; 4]>()?
                    && last != [0.0, 0.0, 0.0, 1.0]
                {
                    return Err(de::Error::custom(format!(
                        "the last row is {last:?}: use [0, 0, 0, 1]"
                    )));
                }
                match rows.next_element::<IgnoredAny>()? {
                    Some(_) => Err(de::Error::invalid_length(5, &self)),
                    None => Ok(Matrix(matrix)),
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
                while let Some(value) = seq.next_element()? {
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
