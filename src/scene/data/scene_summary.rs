//! A summary of a scene in numbers.
//!
//! Runs in the consumer. All commands print the same JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::camera::Camera;
use crate::data::index::lossy;
use crate::scene::data::colmap::ModelFolder;
use crate::scene::data::missing_files::MissingFiles;
use crate::scene::data::options::SceneFormat;
use crate::scene::data::scene::{Frame, Scene, SceneSplit, WorldTransform};

/// Summary of a scene. The field names are the JSON keys of `index SCENE --json` and must not
/// change.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct SceneSummary {
    #[serde(serialize_with = "lossy")]
    pub root: PathBuf,
    pub format: SceneFormat,
    pub frames: u64,
    /// Number of frames of each split.
    pub splits: BTreeMap<SceneSplit, u64>,
    /// Whether every frame is for both training and evaluation.
    pub evaluates_all: bool,
    /// In descending order of use.
    pub cameras: Vec<CameraCount>,
    /// Frames with a mask or with a depth.
    pub masks: u64,
    pub depths: u64,
    /// Frames with a depth that was found by name. It is read if depths are requested.
    pub found_depths: u64,
    /// Frames with a mask or depth of the original size, while smaller images are used.
    pub full_size_masks: u64,
    pub full_size_depths: u64,
    pub times: u64,
    pub rolling_shutters: u64,
    /// 1: the originals; n: `images_n`.
    pub downscale_folder: u32,
    #[serde(flatten)]
    pub missing: MissingFiles,
    /// All COLMAP models of the scene, if one is used.
    pub models: Vec<ModelFolder>,
    /// Whether there is a point cloud.
    pub has_points: bool,
    /// Pixels of all frames.
    pub pixels: u64,
    /// Minimum and maximum coordinates of all camera centres, in the scene's world.
    pub bounds: [[f64; 3]; 2],
    pub to_scene: WorldTransform,
    pub depth_unit: f64,
    pub notes: Vec<String>,
}

/// A camera, and the number of its frames.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CameraCount {
    #[serde(flatten)]
    pub camera: Camera,
    pub frames: u64,
}

impl Scene {
    /// Returns a summary of the scene.
    pub fn report(&self) -> SceneSummary {
        let count = |is: &dyn Fn(&Frame) -> bool| {
            self.frames.iter().filter(|frame| is(frame)).count() as u64
        };
        let mut splits = BTreeMap::new();
        let mut taken = vec![0u64; self.cameras.len()];
        for frame in &self.frames {
            *splits.entry(frame.split).or_default() += 1;
            if let Some(taken) = taken.get_mut(frame.camera as usize) {
                *taken += 1;
            }
        }
        let counted = self.cameras.iter().zip(&taken);
        let mut cameras: Vec<CameraCount> = counted
            .clone()
            .filter(|(_, frames)| **frames > 0)
            .map(|(camera, frames)| CameraCount {
                camera: *camera,
                frames: *frames,
            })
            .collect();
        cameras.sort_by_key(|camera| std::cmp::Reverse(camera.frames));
        let pixels = counted
            .map(|(camera, frames)| u64::from(camera.width) * u64::from(camera.height) * frames)
            .sum();
        SceneSummary {
            root: self.root.clone(),
            format: self.format,
            frames: self.frames.len() as u64,
            splits,
            evaluates_all: self.evaluates_all,
            cameras,
            masks: count(&|frame| frame.mask.is_some()),
            depths: count(&|frame| frame.depth.is_some()),
            found_depths: count(&|frame| frame.depth.is_none() && frame.found_depth.is_some()),
            full_size_masks: count(&|frame| frame.mask_is_full_size),
            full_size_depths: count(&|frame| frame.depth.is_some() && frame.depth_is_full_size),
            times: count(&|frame| frame.time.is_some()),
            rolling_shutters: count(&|frame| frame.rolling_shutter.is_some()),
            downscale_folder: self.downscale_folder,
            missing: self.missing.clone(),
            models: self.models.clone(),
            has_points: self.points_file.is_some(),
            pixels,
            bounds: self.bounds(),
            to_scene: self.to_scene,
            depth_unit: self.depth_unit,
            notes: self.notes.clone(),
        }
    }

    /// Minimum and maximum coordinates of all camera centres.
    pub(super) fn bounds(&self) -> [[f64; 3]; 2] {
        let empty = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
        self.frames.iter().fold(empty, |[low, high], frame| {
            let centre = frame.pose.centre();
            [
                [0, 1, 2].map(|i| low[i].min(centre[i])),
                [0, 1, 2].map(|i| high[i].max(centre[i])),
            ]
        })
    }
}
