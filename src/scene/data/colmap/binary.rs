//! COLMAP's binary models: `cameras.bin`, `images.bin`, `points3D.bin`.
//!
//! Runs in the consumer. COLMAP's `scene/reconstruction_io_binary.cc` defines the format.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::Result;
use crate::scene::data::bounds;
use crate::scene::data::colmap::binary_reader::BinaryReader;
use crate::scene::data::colmap::models::{
    self, MOST_IMAGES, MOST_PARAMETERS, ModelCamera, ModelImage,
};
use crate::scene::data::point_cloud::{MOST_POINTS, PointCloud, check_memory};

/// Minimum bytes of an image: number, pose, camera, end of a name, count.
const LEAST_IMAGE: u64 = 4 + 56 + 4 + 1 + 8;

pub(super) fn cameras(path: &Path) -> Result<HashMap<u32, ModelCamera>> {
    let mut file = BinaryReader::open(path)?;
    let count = file.count("cameras", 24)?;
    if count > MOST_IMAGES {
        return Err(file.error(format!("{count} cameras, more than {MOST_IMAGES}")));
    }
    let mut cameras = HashMap::new();
    for number in 0..count {
        let what = format!("camera {number} of {count}");
        let id = file.u32(&what)?;
        let model = file.i32(&what)?;
        let Some((name, parameters)) = models::by_number(model) else {
            return Err(file.error(format!(
                "{what} (id {id}): COLMAP camera model {model} is unknown: undistort the images \
                 (colmap image_undistorter)"
            )));
        };
        let size = [file.u64(&what)?, file.u64(&what)?].map(u32::try_from);
        let [Ok(width), Ok(height)] = size else {
            return Err(file.error(format!("{what} (id {id}): its size is impossible")));
        };
        let mut values = Vec::with_capacity(MOST_PARAMETERS);
        for _ in 0..parameters {
            let [value] = file.f64s(&what)?;
            values.push(value);
        }
        let camera = ModelCamera {
            file: path.to_owned(),
            id,
            model: name,
            width,
            height,
            parameters: values,
        };
        if cameras.insert(id, camera).is_some() {
            return Err(file.error(format!("{what}: a second camera with the id {id}")));
        }
    }
    Ok(cameras)
}

/// Number of images according to the file's header.
pub(super) fn count_images(path: &Path) -> Result<u64> {
    BinaryReader::open(path)?.count("images", LEAST_IMAGE)
}

pub(super) fn images(path: &Path) -> Result<Vec<ModelImage>> {
    let mut file = BinaryReader::open(path)?;
    let count = file.count("images", LEAST_IMAGE)?;
    if count > MOST_IMAGES {
        return Err(file.error(format!("{count} images, more than {MOST_IMAGES}")));
    }
    let mut images = Vec::with_capacity(count as usize);
    let mut ids = HashSet::with_capacity(count as usize);
    for number in 0..count {
        let at = format!("image {number} of {count}");
        let id = file.u32(&at)?;
        if !ids.insert(id) {
            return Err(file.error(format!("{at}: a second image with the id {id}")));
        }
        let quaternion = file.f64s(&at)?;
        let translation = file.f64s(&at)?;
        let camera = file.u32(&at)?;
        let name = file.name(&at)?;
        let points = file.u64(&at)?;
        // x, y and the id of a 3D point.
        file.skip(points, 24, &format!("2D points of {at}"))?;
        images.push(ModelImage {
            id,
            quaternion,
            translation,
            camera,
            name,
            at,
        });
    }
    Ok(images)
}

pub(super) fn points(path: &Path) -> Result<PointCloud> {
    let mut file = BinaryReader::open(path)?;
    // Id, coordinates, colour, error, count.
    let count = file.count("points", 8 + 24 + 3 + 8 + 8)?;
    if count > MOST_POINTS {
        return Err(file.error(format!("{count} points, more than {MOST_POINTS}")));
    }
    check_memory(path, count)?;
    let mut points = PointCloud::default();
    for number in 0..count {
        let what = "a point";
        file.u64(what)?;
        let place = file.f64s::<3>(what)?;
        let colour = file.u8s::<3>(what)?;
        file.f64s::<1>(what)?;
        let track = file.u64(what)?;
        file.skip(track, 8, "images in the track of a point")?;
        if !bounds::is_place(place) {
            let at = file.at();
            return Err(file.error(format!(
                "point {number} of {count}, before byte {at}: its coordinates {place:?} do not fit \
                 float32"
            )));
        }
        points.push(count, place, Some(colour));
    }
    Ok(points)
}
