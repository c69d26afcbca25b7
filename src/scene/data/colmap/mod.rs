//! COLMAP models, binary and text: cameras, images and points.
//!
//! Runs in the consumer. Files are read, not mapped. A count in a file is checked against the
//! file's length before it is used. 2D points of images and tracks of 3D points are skipped. Rigs
//! and frames (`rigs.bin`, `frames.bin`) are ignored: images have their own poses.
//!
//! - `folders`: finds models and images;
//! - `models`: camera models by number and name, and their lenses; cameras and images;
//! - `binary`, `text`: the two formats; `binary_reader`: fields of a binary file; `text_lines`:
//!   lines of a text file.

mod binary;
mod binary_reader;
mod folders;
mod models;
mod text;
mod text_lines;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::scene::data::bounds;
use crate::scene::data::camera_description::CameraDescription;
use crate::scene::data::foreign_names;
use crate::scene::data::options::SceneFormat;
use crate::scene::data::point_cloud::{PointCloud, PointsFile};
use crate::scene::data::scene::{Pose, SceneSplit, WorldTransform, rotation};
use crate::scene::data::scene_description::{DuplicateImages, FrameDescription, SceneDescription};

pub use folders::ModelFolder;
pub(super) use folders::model_folder;
use models::{ModelCamera, ModelImage};

/// Lists in a scene's folder that state the split of frames.
const LISTS: [(&str, SceneSplit); 3] = [
    ("test_list.txt", SceneSplit::Test),
    ("validation_list.txt", SceneSplit::Eval),
    ("train_list.txt", SceneSplit::Train),
];

/// Reads the scene whose folder, or whose model's folder, is `root`.
pub(super) fn open(root: &Path) -> Result<SceneDescription> {
    let model = model_folder(root).ok_or_else(|| {
        Error::dataset(
            root,
            "no COLMAP model: no cameras.bin or cameras.txt in sparse/0, sparse, \
             colmap/sparse/0, colmap/sparse, colmap_text, or here",
        )
    })?;
    let binary = model.join("cameras.bin").exists();
    let text = model.join("cameras.txt").exists();
    let mut notes = Vec::new();
    if binary && text {
        notes.push("the model is there as binary and as text: the binary one is read".into());
    }
    let ignored: Vec<&str> = ["rigs.bin", "frames.bin", "rigs.txt", "frames.txt"]
        .into_iter()
        .filter(|name| model.join(name).exists())
        .collect();
    if !ignored.is_empty() {
        notes.push(format!(
            "{}: not read, because each image has its own pose",
            ignored.join(", ")
        ));
    }
    let (file, cameras, images, points) = match binary {
        true => {
            let file = model.join("images.bin");
            let cameras = binary::cameras(&model.join("cameras.bin"))?;
            (
                file.clone(),
                cameras,
                binary::images(&file)?,
                "points3D.bin",
            )
        }
        false => {
            let file = model.join("images.txt");
            let cameras = text::cameras(&model.join("cameras.txt"))?;
            let (images, more) = text::images(&file)?;
            notes.extend(more);
            (file.clone(), cameras, images, "points3D.txt")
        }
    };
    if images.is_empty() {
        return Err(Error::dataset(file, "no images: the model is empty"));
    }
    // The user may have given the model's folder.
    let is_named = model.components().eq(root.components());
    let root = match is_named {
        true => folders::scene_of_model(&model, &images),
        false => root.to_owned(),
    };
    let models = folders::count_models(&root, &model);
    notes.extend(folders::larger_model(&models).filter(|_| !is_named));
    let folder = folders::images_folder(&root, &images).ok_or_else(|| {
        let what = "no folder images, input or rgb beside the COLMAP model: put its images there";
        Error::dataset(&root, what)
    })?;
    let (mut frames, repeated) = frames(&file, &cameras, images, &folder)?;
    notes.extend(repeated);
    let is_listed = read_lists(&root, &mut frames)?;
    let points = model.join(points);
    Ok(SceneDescription {
        format: SceneFormat::Colmap,
        root,
        base: folder,
        file,
        frames,
        // Like nerfstudio's parser: turns -y, which COLMAP takes for up, into +z.
        before_orientation: Some([
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 1.0, 0.0],
            [0.0, -1.0, 0.0, 0.0],
        ]),
        orientation: None,
        applied: WorldTransform::default(),
        scale: None,
        depth_unit: None,
        points: Some(PointsFile::Colmap(points)),
        is_listed,
        notes,
        models,
    })
}

/// The points of a model, in the model's world.
pub(super) fn points(file: &Path) -> Result<PointCloud> {
    match file.extension().is_some_and(|extension| extension == "txt") {
        true => text::points(file),
        false => binary::points(file),
    }
}

fn frames(
    file: &Path,
    cameras: &HashMap<u32, ModelCamera>,
    images: Vec<ModelImage>,
    folder: &Path,
) -> Result<(Vec<FrameDescription>, Option<String>)> {
    let mut repeated = DuplicateImages::default();
    let mut declared: HashMap<u32, CameraDescription> = HashMap::new();
    let mut seen = HashSet::with_capacity(images.len());
    let mut frames = Vec::with_capacity(images.len());
    for image in images {
        let error =
            |what: String| Error::dataset(file, format!("{} ({:?}): {what}", image.at, image.name));
        let camera = match declared.get(&image.camera) {
            Some(known) => *known,
            None => {
                let camera = cameras
                    .get(&image.camera)
                    .ok_or_else(|| error(format!("camera {} is not in the model", image.camera)))?;
                let new = camera.description()?;
                declared.insert(image.camera, new);
                new
            }
        };
        let pose = pose(image.quaternion, image.translation).map_err(&error)?;
        if image.name.is_empty() {
            return Err(error("an image without a name".into()));
        }
        if !seen.insert(image.name.clone()) {
            repeated.add(&image.at);
        }
        frames.push(FrameDescription {
            at: image.at,
            number: image.id,
            folder: folder.to_owned(),
            path: PathBuf::from(&image.name),
            name: image.name,
            mask: None,
            depth: None,
            declared: camera,
            pose,
            time: None,
            split: None,
            rolling_shutter: None,
            fisheye_crop_radius: None,
        });
    }
    Ok((frames, repeated.note()))
}

/// Converts COLMAP's world-to-camera to camera-to-world.
fn pose(quaternion: [f64; 4], t: [f64; 3]) -> Result<Pose, String> {
    let bad = quaternion.iter().chain(&t).find(|value| !value.is_finite());
    if let Some(value) = bad {
        return Err(format!("{value} in its pose is not a number"));
    }
    let norm = quaternion.iter().map(|q| q * q).sum::<f64>().sqrt();
    if !(norm > 1e-9 && norm.is_finite()) {
        return Err(format!(
            "its quaternion has length {}, which is not a rotation",
            bounds::shown_number(norm)
        ));
    }
    // Rows of the world-to-camera rotation are columns of its inverse.
    let rows = rotation(quaternion.map(|q| q / norm));
    let pose = Pose([0, 1, 2].map(|i| {
        let [a, b, c] = [rows[0][i], rows[1][i], rows[2][i]];
        [a, b, c, -(a * t[0] + b * t[1] + c * t[2])]
    }));
    bounds::check_pose(&pose.0)?;
    Ok(pose)
}

/// Sets the split of frames from `train_list.txt` and similar lists. False if there are none.
fn read_lists(root: &Path, frames: &mut [FrameDescription]) -> Result<bool> {
    let numbers = foreign_names::by_name(frames);
    let mut any = false;
    for (name, split) in LISTS {
        let path = root.join(name);
        if !path.exists() {
            continue;
        }
        any = true;
        text::each_name(&path, &mut |line, number| {
            let Some(named) = numbers.get(&foreign_names::key(line)) else {
                let what = format!("{} is not an image of the model", bounds::quoted(line));
                return Err(Error::dataset_line(&path, number, what));
            };
            for frame in named {
                frames[*frame].split = Some(split);
            }
            Ok(())
        })?;
    }
    Ok(any)
}
