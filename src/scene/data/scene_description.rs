//! What the files say of a scene, whatever their format: before images are looked
//! for, poses are placed and frames are split.
//!
//! In the consumer. Plain values.

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
    /// The folder that names of images start from.
    pub(super) base: PathBuf,
    /// The file that says it, for errors.
    pub(super) file: PathBuf,
    pub(super) frames: Vec<FrameDescription>,
    /// Turned behind the file's world before poses are oriented, unless they are not.
    pub(super) before_orientation: Option<[[f64; 4]; 3]>,
    /// `orientation_override`.
    pub(super) orientation: Option<crate::scene::data::options::OrientationMethod>,
    pub(super) applied: WorldTransform,
    /// What automatic scaling multiplies by, where the format has a rule of its own.
    pub(super) scale: Option<f64>,
    pub(super) depth_unit: Option<f64>,
    pub(super) points: Option<PointsFile>,
    /// Whether the files say which frames are for what.
    pub(super) is_listed: bool,
    pub(super) notes: Vec<String>,
    /// The COLMAP models of the scene, where one of them is read.
    pub(super) models: Vec<ModelFolder>,
}

#[derive(Debug, Clone)]
pub(super) struct FrameDescription {
    /// As the file names it, for people.
    pub(super) name: String,
    /// Where in the file it stands, for errors.
    pub(super) at: String,
    /// Of an image of a COLMAP model: its number there. 0 of others.
    pub(super) number: u32,
    /// The folder of the original images.
    pub(super) folder: PathBuf,
    /// The image, from that folder on.
    pub(super) path: PathBuf,
    /// Original ones that the file names.
    pub(super) mask: Option<PathBuf>,
    pub(super) depth: Option<PathBuf>,
    pub(super) declared: CameraDescription,
    /// OpenCV's axes, in the file's world.
    pub(super) pose: Pose,
    pub(super) time: Option<f64>,
    /// None = listed for nothing.
    pub(super) split: Option<SceneSplit>,
    pub(super) rolling_shutter: Option<RollingShutter>,
    pub(super) fisheye_crop_radius: Option<f64>,
}

impl FrameDescription {
    pub(super) fn original(&self) -> PathBuf {
        self.folder.join(&self.path)
    }
}

/// Counts frames that name an image which an earlier frame names too.
#[derive(Debug, Default)]
pub(super) struct DuplicateImages {
    count: u64,
    first: String,
}

impl DuplicateImages {
    /// `at`: where in the file the frame stands.
    pub(super) fn add(&mut self, at: &str) {
        if self.count == 0 {
            at.clone_into(&mut self.first);
        }
        self.count += 1;
    }

    pub(super) fn note(&self) -> Option<String> {
        (self.count > 0).then(|| {
            format!(
                "frames that name an image of an earlier frame: {}, first at {}. All are kept, \
                 as in nerfstudio",
                self.count, self.first
            )
        })
    }
}
