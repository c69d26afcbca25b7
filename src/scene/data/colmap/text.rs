//! COLMAP's text models: `cameras.txt`, `images.txt`, `points3D.txt`.
//!
//! Runs in the consumer. Lines that are not needed, such as 2D points of an image, are skipped
//! without being kept.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::{Error, Result};
use crate::scene::data::bounds;
use crate::scene::data::colmap::models::{self, MOST_IMAGES, ModelCamera, ModelImage};
use crate::scene::data::colmap::text_lines::{ColmapLines, LineFields};
use crate::scene::data::point_cloud::{MOST_POINTS, PointCloud};

/// Calls `with` for every line that is neither a comment nor empty, with its number.
fn each_line(path: &Path, with: &mut dyn FnMut(&str, u64) -> Result<()>) -> Result<()> {
    let mut lines = ColmapLines::open(path)?;
    while let Some((line, number)) = lines.next()? {
        with(line, number)?;
    }
    Ok(())
}

/// Calls `with` for every line of a list that is not empty, with its number. A list has no
/// comments: names may start with `#`.
pub(super) fn each_name(path: &Path, with: &mut dyn FnMut(&str, u64) -> Result<()>) -> Result<()> {
    let mut lines = ColmapLines::open(path)?;
    while let Some((line, number)) = lines.any()? {
        if !line.is_empty() {
            with(line, number)?;
        }
    }
    Ok(())
}

pub(super) fn cameras(path: &Path) -> Result<HashMap<u32, ModelCamera>> {
    let mut cameras = HashMap::new();
    each_line(path, &mut |line, number| {
        let mut fields = LineFields {
            path,
            number,
            rest: line,
        };
        let id = fields.number("CAMERA_ID")?;
        let model = fields.word("MODEL")?;
        let (model, count) = models::by_name(model).ok_or_else(|| {
            fields.error(format!(
                "MODEL: COLMAP camera model {model:?} is unknown: undistort the images (colmap \
                 image_undistorter)"
            ))
        })?;
        let width = fields.number("WIDTH")?;
        let height = fields.number("HEIGHT")?;
        let mut parameters = Vec::with_capacity(count);
        for _ in 0..count {
            parameters.push(fields.number("PARAMS[]")?);
        }
        let camera = ModelCamera {
            file: path.to_owned(),
            id,
            model,
            width,
            height,
            parameters,
        };
        match cameras.insert(id, camera) {
            None => Ok(()),
            Some(_) => Err(fields.error(format!("CAMERA_ID: a second camera {id}"))),
        }
    })?;
    Ok(cameras)
}

/// Reads the images. Also returns notes on irregularities.
pub(super) fn images(path: &Path) -> Result<(Vec<ModelImage>, Vec<String>)> {
    let mut lines = ColmapLines::open(path)?;
    let mut images = Vec::new();
    let mut ids = HashSet::new();
    let stated = stated_images(path)?;
    let mut without_points = 0u64;
    while let Some((line, number)) = lines.next()? {
        let mut fields = LineFields {
            path,
            number,
            rest: line,
        };
        let id: u32 = fields.number("IMAGE_ID")?;
        let quaternion = fields.numbers(["QW", "QX", "QY", "QZ"])?;
        let translation = fields.numbers(["TX", "TY", "TZ"])?;
        let camera = fields.number("CAMERA_ID")?;
        // Names may contain spaces.
        let name = fields.rest.trim().to_owned();
        if name.is_empty() {
            return Err(fields.error("NAME: missing; the line is cut off"));
        }
        if images.len() as u64 == MOST_IMAGES {
            return Err(fields.error(format!("more than {MOST_IMAGES} images")));
        }
        if !ids.insert(id) {
            return Err(fields.error(format!("IMAGE_ID: a second image {id}")));
        }
        let at = format!("line {number}");
        without_points += u64::from(!skip_points(path, &mut lines, &name)?);
        images.push(ModelImage {
            id,
            quaternion,
            translation,
            camera,
            name,
            at,
        });
    }
    let mut notes = Vec::new();
    if without_points > 0 {
        notes.push(format!(
            "images.txt: {without_points} images have no line of 2D points. The next line is read \
             as the next image"
        ));
    }
    if let Some(stated) = stated.filter(|&stated| stated != images.len() as u64) {
        notes.push(format!(
            "images.txt announces {stated} images and has {}: it was cut off or edited",
            images.len()
        ));
    }
    Ok((images, notes))
}

/// Skips the line of 2D points after an image, which may be empty. Returns false if the next image
/// follows instead, because an editor removed empty lines.
fn skip_points(path: &Path, lines: &mut ColmapLines<'_>, name: &str) -> Result<bool> {
    while let Some((line, number)) = lines.any()? {
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() || is_points(line) {
            return Ok(true);
        }
        if is_image(line) {
            lines.put_back();
            return Ok(false);
        }
        let what = format!("neither the 2D points of {name:?} nor an image: the line is cut off");
        return Err(Error::dataset_line(path, number, what));
    }
    // At the end of the file, an empty line may be missing.
    Ok(true)
}

/// Number of bytes of a line that decide what it is.
const HEAD: usize = 4096;

/// Whether the start of a line looks like a list of X, Y, POINT3D_ID.
fn is_points(line: &str) -> bool {
    let head = line.get(..HEAD).and_then(|head| head.rsplit_once(' '));
    let (words, is_whole) = match head {
        Some((head, _)) => (head, false),
        None => (line, true),
    };
    let mut count = 0;
    for word in words.split_ascii_whitespace() {
        let value = word.parse::<f64>();
        let is_due = value.is_ok_and(|value| count % 3 != 2 || value.fract() == 0.0);
        if !is_due {
            return false;
        }
        count += 1;
    }
    count % 3 == 0 || !is_whole
}

/// Whether a line has the fields of an image: IMAGE_ID, 7 numbers of a pose, CAMERA_ID, NAME.
fn is_image(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let mut is_next = |is: fn(&str) -> bool| words.next().is_some_and(is);
    let is_id = |word: &str| word.parse::<u32>().is_ok();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    is_next(is_id) && (0..7).all(|_| is_next(is_number)) && is_next(is_id) && is_next(|_| true)
}

/// Number of images according to the comment before them.
fn stated_images(path: &Path) -> Result<Option<u64>> {
    let mut lines = ColmapLines::open(path)?;
    while let Some((line, _)) = lines.any()? {
        if !line.is_empty() && !line.starts_with('#') {
            break;
        }
        if let Some((_, count)) = line.split_once("Number of images:") {
            let count = count.split(',').next().unwrap_or_default();
            return Ok(count.trim().parse().ok());
        }
    }
    Ok(None)
}

pub(super) fn points(path: &Path) -> Result<PointCloud> {
    let mut points = PointCloud::default();
    each_line(path, &mut |line, number| {
        let mut fields = LineFields {
            path,
            number,
            rest: line,
        };
        let _id: u64 = fields.number("POINT3D_ID")?;
        let place = fields.numbers(["X", "Y", "Z"])?;
        if !bounds::is_place(place) {
            return Err(fields.error("X, Y, Z: do not fit float32"));
        }
        let colour = [
            fields.number("R")?,
            fields.number("G")?,
            fields.number("B")?,
        ];
        if points.xyz.len() as u64 == MOST_POINTS {
            return Err(fields.error(format!("more than {MOST_POINTS} points")));
        }
        points.xyz.push(place.map(|value| value as f32));
        points.rgb.push(colour);
        Ok(())
    })?;
    Ok(points)
}
