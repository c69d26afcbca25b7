//! LLFF's `poses_bounds.npy`: a row of 17 numbers for each image of the folder `images`, in the
//! order of their names.
//!
//! Runs in the consumer. Poses are those of NeRF's reference code (`load_llff.py`) before it
//! recentres them. The first 15 numbers are 3 rows of 5, with the columns down, right, backwards,
//! centre, and (height, width, focal length). The last two are the nearest and the farthest depth.
//! Automatic scaling is its `bd_factor`: the nearest depth of all images becomes 4/3.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::camera::Lens;
use crate::error::{Error, Result};
use crate::scene::data::bounds::shown_number;
use crate::scene::data::camera_description::{CameraDescription, FocalLength};
use crate::scene::data::options::{SceneFormat, SceneOptions};
use crate::scene::data::scene::WorldTransform;
use crate::scene::data::scene_description::{FrameDescription, SceneDescription};
use crate::scene::data::transforms::{check_matrix, from_opengl};
use crate::scene::data::transforms_keys::open_error;
use crate::sys::regular_file;

pub(super) const FILE: &str = "poses_bounds.npy";

/// Numbers per image.
const WIDTH: usize = 17;

/// Most images.
const MOST: usize = 1 << 20;

/// Extensions of the image files.
const EXTENSIONS: [&str; 3] = ["jpg", "png", "jpeg"];

pub(super) fn open(root: &Path, options: &SceneOptions) -> Result<SceneDescription> {
    let file = root.join(FILE);
    let rows = read(&file)?;
    let images = images(root, rows.len(), options)?;
    let error = |number: usize, what: String| {
        Error::dataset(&file, format!("row {number} of {}: {what}", rows.len()))
    };
    let folder = root.join("images");
    let mut frames = Vec::with_capacity(rows.len());
    let mut bounds = [f64::INFINITY, f64::NEG_INFINITY];
    for (number, (row, name)) in rows.iter().zip(images).enumerate() {
        if let Some(value) = row.iter().find(|value| !value.is_finite()) {
            return Err(error(number, format!("{value} is not a number")));
        }
        let at = |line: usize, column: usize| row[5 * line + column];
        let matrix = [0, 1, 2].map(|i| [at(i, 1), -at(i, 0), at(i, 2), at(i, 3)]);
        check_matrix(&matrix).map_err(|what| error(number, what))?;
        let [height, width, focal] = [0, 1, 2].map(|line| at(line, 4));
        let side = |value: f64| match value {
            1.0..=2_147_483_647.0 => Ok(value.round() as u32),
            _ => {
                let value = shown_number(value);
                Err(error(
                    number,
                    format!("{value} is not a valid number of pixels"),
                ))
            }
        };
        let declared = CameraDescription {
            size: Some((side(width)?, side(height)?)),
            focal: [FocalLength::Pixels(focal), FocalLength::AsOther],
            centre: [None; 2],
            lens: Lens::Pinhole,
        };
        declared.check().map_err(|fault| {
            // One number of a row is the focal length of both axes.
            error(number, format!("the focal length {}", fault.reason))
        })?;
        let [near, far] = [row[15], row[16]];
        bounds = [bounds[0].min(near), bounds[1].max(far)];
        frames.push(FrameDescription {
            at: format!("row {number}"),
            number: 0,
            folder: folder.clone(),
            path: PathBuf::from(&name),
            name,
            mask: None,
            depth: None,
            declared,
            pose: from_opengl(&matrix),
            time: None,
            split: None,
            rolling_shutter: None,
            fisheye_crop_radius: None,
        });
    }
    let [near, far] = bounds;
    Ok(SceneDescription {
        format: SceneFormat::Llff,
        root: root.to_owned(),
        base: folder,
        file,
        frames,
        before_orientation: None,
        orientation: None,
        applied: WorldTransform::default(),
        scale: (near > 0.0).then(|| 1.0 / (near * 0.75)),
        depth_unit: None,
        points: None,
        is_listed: false,
        notes: vec![format!(
            "depths in the file's world are {near} to {far}. Poses are not recentred"
        )],
        models: Vec::new(),
    })
}

/// Names of the images in order, from `images` or from a folder of smaller ones.
fn images(root: &Path, count: usize, options: &SceneOptions) -> Result<Vec<String>> {
    let factors = options.downscale_folder.into_iter().chain([2, 4, 8, 16]);
    let smaller = factors.map(|factor| format!("images_{factor}"));
    let mut first = None;
    for name in std::iter::once("images".to_owned()).chain(smaller) {
        let entries = std::fs::read_dir(root.join(&name)).into_iter().flatten();
        let names = entries
            .flatten()
            .filter_map(|e| e.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_image(name)).collect();
        names.sort();
        if names.len() == count {
            return Ok(names);
        }
        if !names.is_empty() {
            first.get_or_insert((name, names.len()));
        }
    }
    let what = match first {
        Some((folder, found)) => format!(
            "{FILE} has {count} poses, and {folder} has {found} images: poses and images are \
             matched by order, so the folder must contain exactly its images"
        ),
        None => format!("{FILE} has {count} poses, and no folder images or images_N has images"),
    };
    Err(Error::dataset(root, what))
}

fn is_image(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|e| e.to_str());
    let is_known = |e: &str| EXTENSIONS.iter().any(|known| e.eq_ignore_ascii_case(known));
    extension.is_some_and(is_known) && !name.starts_with('.')
}

/// The rows of the array.
fn read(path: &Path) -> Result<Vec<[f64; WIDTH]>> {
    let (mut file, _) = regular_file::open(path).map_err(|e| open_error(path, &e))?;
    let error = |what: String| Error::dataset(path, what);
    let header = header(&mut file).ok_or_else(|| error("not an array of NumPy's".into()))?;
    let is_f64 = match field(&header, "descr") {
        Some("'<f8'") => true,
        Some("'<f4'") => false,
        other => {
            let other = other.unwrap_or("unknown");
            return Err(error(format!(
                "numbers of type {other}: save it as float64"
            )));
        }
    };
    let shape = header.split_once("'shape':").and_then(|(_, rest)| {
        let (shape, _) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
        let (rows, columns) = shape.split_once(',')?;
        Some((
            rows.trim().parse::<usize>().ok()?,
            columns.trim().parse::<usize>().ok()?,
        ))
    });
    let rows = match shape {
        Some((rows @ 1..=MOST, WIDTH)) => rows,
        _ => {
            let what = format!("its shape is not N x {WIDTH}, with N up to {MOST}: {header:?}");
            return Err(error(what));
        }
    };
    let each = if is_f64 { 8 } else { 4 };
    let mut bytes = Vec::new();
    let expected = rows * WIDTH * each;
    file.take(expected as u64)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::io_at("read", path, e))?;
    if bytes.len() < expected {
        let found = bytes.len();
        return Err(error(format!(
            "cut off: {found} bytes of numbers, but {expected} are expected"
        )));
    }
    let number = |at: usize| {
        let bytes = &bytes[at * each..(at + 1) * each];
        match is_f64 {
            true => bytes.try_into().map(f64::from_le_bytes).unwrap_or(f64::NAN),
            false => bytes
                .try_into()
                .map_or(f64::NAN, |b| f64::from(f32::from_le_bytes(b))),
        }
    };
    let by_columns = field(&header, "fortran_order") == Some("True");
    let place = |row: usize, column: usize| match by_columns {
        true => column * rows + row,
        false => row * WIDTH + column,
    };
    Ok((0..rows)
        .map(|row| std::array::from_fn(|column| number(place(row, column))))
        .collect())
}

/// The text of a NumPy array's header; `None` if there is none.
fn header(file: &mut File) -> Option<String> {
    let mut magic = [0; 8];
    file.read_exact(&mut magic).ok()?;
    let len = match magic {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _] => {
            let mut len = [0; 2];
            file.read_exact(&mut len).ok()?;
            u64::from(u16::from_le_bytes(len))
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _] => {
            let mut len = [0; 4];
            file.read_exact(&mut len).ok()?;
            u64::from(u32::from_le_bytes(len))
        }
        _ => return None,
    };
    let mut text = Vec::new();
    file.take(len.min(1 << 16)).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// The value of a key of the header, up to the next comma.
fn field<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    rest.split([',', '}']).next().map(str::trim)
}
