//! A scene: which images there are, and where each was taken with what.
//!
//! In the consumer. Numbers and paths: no file is open, no pixel is held.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::error::{Error, Result};
use crate::scene::data::colmap::ModelFolder;
use crate::scene::data::missing_files::MissingFiles;
use crate::scene::data::options::SceneFormat;
use crate::scene::data::point_cloud::PointsFile;

/// The images of a scene, with camera and pose each.
///
/// Axes of a camera are OpenCV's: x right, y down, z forward. A pose leads from the
/// camera to the world of the scene, which is the file's world behind
/// [`Scene::to_scene`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scene {
    /// The folder that paths in the files start from.
    pub root: PathBuf,
    pub format: SceneFormat,
    /// Each once; of the size that the images have. Lengths of parallel rays
    /// ([`Lens::Orthographic`](crate::camera::Lens::Orthographic)) are the scene's.
    pub cameras: Vec<Camera>,
    pub frames: Vec<Frame>,
    /// From the file's world to the scene's.
    pub to_scene: WorldTransform,
    /// What was done to the world before the file was written, as it says
    /// (`applied_transform`, `applied_scale`).
    pub applied: WorldTransform,
    /// What 1 in a depth's file means, in units of the world before
    /// [`applied`](Self::applied): times the scales of `applied` and `to_scene` it is a
    /// length of the scene's.
    pub depth_unit: f64,
    /// The folder of images that is read: 1 = the originals, n = `images_n`.
    pub downscale_folder: u32,
    /// Whether every frame trains and evaluates.
    pub evaluates_all: bool,
    /// What the reader decided or left out, in sentences.
    pub notes: Vec<String>,
    /// The file by which depths beside the images are inverse ones.
    pub(super) inverse_depths: Option<PathBuf>,
    /// All COLMAP models of the scene, where one of them is read.
    pub models: Vec<ModelFolder>,
    /// What the files name and is not there.
    pub missing: MissingFiles,
    pub(super) points_file: Option<PointsFile>,
}

/// One image.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// As the file names it.
    pub name: String,
    pub image: PathBuf,
    pub mask: Option<PathBuf>,
    /// Of those that the scene's file names; with
    /// [`SceneOptions::find_depths`](crate::scene::SceneOptions::find_depths) also of those
    /// that are found by name.
    pub depth: Option<PathBuf>,
    /// The depth that was found by name, where the file names none.
    pub(super) found_depth: Option<PathBuf>,
    /// Whether the mask is of the original images, where smaller ones are read.
    pub mask_is_full_size: bool,
    /// Whether pixels of the mask that are not zero are left out, as in instant-ngp's
    /// `dynamic_mask_*`. In other masks they count.
    pub mask_is_inverted: bool,
    /// Whether the depth is of the original images, where smaller ones are read.
    pub depth_is_full_size: bool,
    /// A number in [`Scene::cameras`].
    pub camera: u32,
    /// From the camera to the scene; with a rolling shutter, at its start.
    pub pose: Pose,
    /// 0 to 1, in scenes that move.
    pub time: Option<f64>,
    pub split: SceneSplit,
    pub rolling_shutter: Option<RollingShutter>,
    /// Only pixels this near to the middle count, in pixels of the image; of fisheye
    /// images alone.
    pub fisheye_crop_radius: Option<f64>,
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SceneSplit {
    Train,
    Eval,
    Test,
}

impl SceneSplit {
    pub const ALL: [Self; 3] = [Self::Train, Self::Eval, Self::Test];

    /// The name that reports print and options take.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Eval => "eval",
            Self::Test => "test",
        }
    }
}

/// From camera to world: a rotation and the camera's centre.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pose(pub [[f64; 4]; 3]);

impl Pose {
    /// The camera's centre.
    #[inline]
    pub fn centre(&self) -> [f64; 3] {
        let [x, y, z] = &self.0;
        [x[3], y[3], z[3]]
    }

    /// A column of the rotation: 0 right, 1 down, 2 forward.
    pub fn axis(&self, column: usize) -> [f64; 3] {
        self.0.map(|row| row[column])
    }
}

/// Of what squares of lengths, and products of axes, may be off in a rotation that is scaled.
const SCALED: f64 = 1e-3;

/// By less than this the square of a length is 1.
const EXACT: f64 = 1e-6;

impl Pose {
    /// The pose without the scale of its rotation, and that scale, where its axes are equally
    /// long and at right angles. Others have no one scale: they stay as they are, with scale 1.
    pub(super) fn without_scale(&self) -> (Self, f64) {
        let axes = [0, 1, 2].map(|column| self.axis(column));
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let square = axes.iter().map(|axis| dot(*axis, *axis)).sum::<f64>() / 3.0;
        let is_scaled = (0..3).all(|i| {
            (0..3).all(|j| {
                let due = if i == j { square } else { 0.0 };
                (dot(axes[i], axes[j]) - due).abs() < SCALED * square
            })
        });
        if !is_scaled || (square - 1.0).abs() <= EXACT {
            return (*self, 1.0);
        }
        let scale = square.sqrt();
        let rows = self
            .0
            .map(|[x, y, z, t]| [x / scale, y / scale, z / scale, t]);
        (Self(rows), scale)
    }

    /// Whether axes are at right angles, 1 long and right-handed, up to a thousandth.
    pub(super) fn is_rotation(&self) -> bool {
        let [x, y, z] = [0, 1, 2].map(|column| self.axis(column));
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let across = [
            x[1] * y[2] - x[2] * y[1],
            x[2] * y[0] - x[0] * y[2],
            x[0] * y[1] - x[1] * y[0],
        ];
        let lengths = [dot(x, x), dot(y, y), dot(z, z), dot(across, z)];
        let angles = [dot(x, y), dot(y, z), dot(z, x)];
        lengths.iter().all(|v| (v - 1.0).abs() < SCALED) && angles.iter().all(|v| v.abs() < SCALED)
    }
}

/// The rows of the rotation of a quaternion w, x, y, z of length 1.
pub(super) fn rotation([w, x, y, z]: [f64; 4]) -> [[f64; 3]; 3] {
    [
        [
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y - w * z),
            2.0 * (x * z + w * y),
        ],
        [
            2.0 * (x * y + w * z),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z - w * x),
        ],
        [
            2.0 * (x * z - w * y),
            2.0 * (y * z + w * x),
            1.0 - 2.0 * (x * x + y * y),
        ],
    ]
}

/// How image rows follow each other in time: at (u, v), both 0 to 1 over the image,
/// the pose is the one at `timing[0] + timing[1] u + timing[2] v + timing[3] random`
/// between start (0) and end (1). instant-ngp's `rolling_shutter`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RollingShutter {
    pub timing: [f64; 4],
    /// At the end; [`Frame::pose`] is at the start.
    pub end: Pose,
}

/// From one world to another: `scale * (R x + t)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WorldTransform {
    /// R and t.
    pub transform: [[f64; 4]; 3],
    pub scale: f64,
}

impl Default for WorldTransform {
    fn default() -> Self {
        Self {
            transform: [
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 1.0, 0.0, 0.0],
                [0.0, 0.0, 1.0, 0.0],
            ],
            scale: 1.0,
        }
    }
}

impl WorldTransform {
    /// Where a point lies afterwards.
    pub fn point(&self, x: [f64; 3]) -> [f64; 3] {
        self.transform
            .map(|[a, b, c, t]| self.scale * (a * x[0] + b * x[1] + c * x[2] + t))
    }

    /// The pose of a camera afterwards. Axes stay as long as they were.
    pub fn pose(&self, pose: &Pose) -> Pose {
        let [x, y, z] = [0, 1, 2].map(|column| {
            let axis = pose.axis(column);
            self.transform
                .map(|[a, b, c, _]| a * axis[0] + b * axis[1] + c * axis[2])
        });
        let centre = self.point(pose.centre());
        Pose([0, 1, 2].map(|row| [x[row], y[row], z[row], centre[row]]))
    }

    /// This transform behind another one, both without scales, as 3 x 4.
    pub(super) fn after(&self, first: &[[f64; 4]; 3]) -> [[f64; 4]; 3] {
        self.transform.map(|row| {
            let mut product = [0, 1, 2, 3].map(|column| {
                row[0] * first[0][column] + row[1] * first[1][column] + row[2] * first[2][column]
            });
            product[3] += row[3];
            product
        })
    }
}

impl Frame {
    /// The file of the frame's depths. `asked`: none = those that are named, true = also those
    /// that were found, false = none at all.
    pub(crate) fn depth_file(&self, asked: Option<bool>) -> Option<&PathBuf> {
        match asked {
            Some(false) => None,
            None => self.depth.as_ref(),
            Some(true) => self.depth.as_ref().or(self.found_depth.as_ref()),
        }
    }
}

impl Scene {
    /// What a 1 in a depth's file is in the scene's units.
    pub fn depth_scale(&self) -> f64 {
        self.depth_unit * self.applied.scale * self.to_scene.scale
    }

    /// # Errors
    /// Inverse depths that were found, and are to be read.
    pub(crate) fn check_depths(&self, asked: Option<bool>) -> Result<()> {
        let is_read = |frame: &Frame| {
            let found = frame.found_depth.as_ref();
            found.is_some() && frame.depth_file(asked) == found
        };
        match &self.inverse_depths {
            Some(file) if self.frames.iter().any(is_read) => Err(Error::dataset(
                file,
                "the depths beside the images are inverse ones, whose scales this file has: \
                 write depths along the camera's axis and name them with depth_file_path, or do \
                 not ask for depths",
            )),
            _ => Ok(()),
        }
    }

    /// The numbers of the frames of a split, in their order. Where a scene has no frames
    /// for tests those for evaluation stand for them, as in nerfstudio.
    pub fn frames_of(&self, split: SceneSplit) -> Vec<u32> {
        let of = |wanted: SceneSplit| -> Vec<u32> {
            let numbered = (0u32..).zip(&self.frames);
            let chosen = numbered.filter(|(_, frame)| self.evaluates_all || frame.split == wanted);
            chosen.map(|(number, _)| number).collect()
        };
        let chosen = of(split);
        if chosen.is_empty() && split == SceneSplit::Test {
            return of(SceneSplit::Eval);
        }
        chosen
    }

    /// The 3 x 4 transform and the scale of nerfstudio's `dataparser_transforms.json`:
    /// from the world before `applied_transform` to the scene's.
    pub fn dataparser_transforms(&self) -> ([[f64; 4]; 3], f64) {
        (
            self.to_scene.after(&self.applied.transform),
            self.to_scene.scale * self.applied.scale,
        )
    }
}
