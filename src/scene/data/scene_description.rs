//! Content of a scene's files, for all formats: before images are searched, poses are transformed
//! and frames are split.
//!
//! Runs in the consumer. Plain values.

use std::path::PathBuf;

use crate::scene::data::camera_description::CameraDescription;
use crate::scene::data::colmap::ModelFolder;
use crate::scene::data::options::SceneFormat;
use crate::scene::data::point_cloud::PointsFile;
use crate::scene::data::scene::{Pose, RollingShutter, SceneSplit, WorldTransform};

/// A scene as its files describe it.
#[derive(Debug)]
pub(super) struct SceneDescription {
    pub(super) format: SceneFormat,
    pub(super) root: PathBuf,
    /// Folder that names of images are relative to.
    pub(super) base: PathBuf,
    /// The file with the description, for errors.
    pub(super) file: PathBuf,
    pub(super) frames: Vec<FrameDescription>,
    /// Rotation of the file's world before poses are oriented. Not applied if the orientation is
    /// none.
    pub(super) before_orientation: Option<[[f64; 4]; 3]>,
    /// `orientation_override`.
    pub(super) orientation: Option<crate::scene::data::options::OrientationMethod>,
    pub(super) applied: WorldTransform,
    /// Factor of automatic scaling, if the format has its own rule.
    pub(super) scale: Option<f64>,
    pub(super) depth_unit: Option<f64>,
    pub(super) points: Option<PointsFile>,
    /// Whether the files list the split of frames.
    pub(super) is_listed: bool,
    pub(super) notes: Vec<String>,
    /// All COLMAP models of the scene, if one is used.
    pub(super) models: Vec<ModelFolder>,
}

#[derive(Debug, Clone)]
pub(super) struct FrameDescription {
    /// Name in the file, for the user.
    pub(super) name: String,
    /// Location in the file, for errors.
    pub(super) at: String,
    /// Number of the image in a COLMAP model, otherwise 0.
    pub(super) number: u32,
    /// Folder of the original images.
    pub(super) folder: PathBuf,
    /// Path of the image in that folder.
    pub(super) path: PathBuf,
    /// Original mask and depth that the file names.
    pub(super) mask: Option<PathBuf>,
    pub(super) depth: Option<PathBuf>,
    pub(super) declared: CameraDescription,
    /// In OpenCV's axes and the file's world.
    pub(super) pose: Pose,
    pub(super) time: Option<f64>,
    /// `None`: in no list.
    pub(super) split: Option<SceneSplit>,
    pub(super) rolling_shutter: Option<RollingShutter>,
    pub(super) fisheye_crop_radius: Option<f64>,
}

impl FrameDescription {
    pub(super) fn original(&self) -> PathBuf {
        self.folder.join(&self.path)
    }
}

/// Counts frames that name the image of an earlier frame.
#[derive(Debug, Default)]
pub(super) struct DuplicateImages {
    count: u64,
    first: String,
}

impl DuplicateImages {
    /// `at`: location of the frame in the file.
    pub(super) fn add(&mut self, at: &str) {
        if self.count == 0 {
            at.clone_into(&mut self.first);
        }
        self.count += 1;
    }

    pub(super) fn note(&self) -> Option<String> {
        (self.count > 0).then(|| {
            format!(
                "frames with the image of an earlier frame: {}, first at {}. All are kept, as in \
                 nerfstudio",
                self.count, self.first
            )
        })
    }
}
