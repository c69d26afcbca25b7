//! The scene type: images with their cameras and poses.
//!
//! Runs in the consumer. Numbers and paths: no open file, no pixels.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::error::{Error, Result};
use crate::scene::data::colmap::ModelFolder;
use crate::scene::data::missing_files::MissingFiles;
use crate::scene::data::options::SceneFormat;
use crate::scene::data::point_cloud::PointsFile;

/// The images of a scene, with camera and pose.
///
/// Axes of a camera are OpenCV's: x right, y down, z forward. A pose transforms from the camera to
/// the scene's world, which is the file's world transformed by [`Scene::to_scene`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scene {
    /// Folder that paths in the files are relative to.
    pub root: PathBuf,
    pub format: SceneFormat,
    /// Without duplicates, for the size of the images. Lengths of parallel rays
    /// ([`Lens::Orthographic`](crate::camera::Lens::Orthographic)) are in the scene's units.
    pub cameras: Vec<Camera>,
    pub frames: Vec<Frame>,
    /// Transform from the file's world to the scene's.
    pub to_scene: WorldTransform,
    /// Transform that a program applied before it wrote the file, as the file states it
    /// (`applied_transform`, `applied_scale`).
    pub applied: WorldTransform,
    /// Length of one depth unit, in units of the world before [`applied`](Self::applied).
    /// Multiplied by the scales of `applied` and `to_scene`, it is in the scene's units.
    pub depth_unit: f64,
    /// Folder of images in use. 1: the originals; n: `images_n`.
    pub downscale_folder: u32,
    /// Whether every frame is for both training and evaluation.
    pub evaluates_all: bool,
    /// Decisions and omissions of the reader, as sentences.
    pub notes: Vec<String>,
    /// The file that marks depths beside the images as inverse depths.
    pub(super) inverse_depths: Option<PathBuf>,
    /// All COLMAP models of the scene, if one is used.
    pub models: Vec<ModelFolder>,
    /// Files that the scene names but that are missing or unreadable.
    pub missing: MissingFiles,
    pub(super) points_file: Option<PointsFile>,
}

/// One image.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// Name in the scene's file.
    pub name: String,
    pub image: PathBuf,
    pub mask: Option<PathBuf>,
    /// The depth that the scene's file names. With
    /// [`SceneOptions::find_depths`](crate::scene::SceneOptions::find_depths) also one found by
    /// name.
    pub depth: Option<PathBuf>,
    /// The depth found by name, if the file names none.
    pub(super) found_depth: Option<PathBuf>,
    /// Whether the mask has the original size, while a smaller image is used.
    pub mask_is_full_size: bool,
    /// Whether nonzero pixels are masked out, as in instant-ngp's `dynamic_mask_*`. In other masks,
    /// zero pixels are.
    pub mask_is_inverted: bool,
    /// Whether the depth has the original size, while a smaller image is used.
    pub depth_is_full_size: bool,
    /// Index in [`Scene::cameras`].
    pub camera: u32,
    /// From the camera to the scene's world; with a rolling shutter, at its start.
    pub pose: Pose,
    /// 0 to 1, in dynamic scenes.
    pub time: Option<f64>,
    pub split: SceneSplit,
    pub rolling_shutter: Option<RollingShutter>,
    /// Only pixels within this distance of the image's middle are used, in pixels. Of fisheye
    /// images only.
    pub fisheye_crop_radius: Option<f64>,
}

/// The split of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SceneSplit {
    Train,
    Eval,
    Test,
}

impl SceneSplit {
    pub const ALL: [Self; 3] = [Self::Train, Self::Eval, Self::Test];

    /// The name in reports and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Eval => "eval",
            Self::Test => "test",
        }
    }
}

/// Camera-to-world: a rotation and the camera's centre.
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

/// Allowed deviation of squared lengths and products of axes in a scaled rotation.
const SCALED: f64 = 1e-3;

/// Largest deviation of a squared length that counts as 1.
const EXACT: f64 = 1e-6;

impl Pose {
    /// Separates the scale from the rotation, if the axes have equal length and are orthogonal.
    /// Otherwise returns the pose unchanged, with scale 1.
    pub(super) fn without_scale(&self) -> (Self, f64) {
        let axes = [0, 1, 2].map(|column| self.axis(column));
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let square = axes.iter().map(|axis| dot(*axis, *axis)).sum::<f64>() / 3.0;
        let is_scaled = (0..3).all(|i| {
            (0..3).all(|j| {
                let expected = if i == j { square } else { 0.0 };
                (dot(axes[i], axes[j]) - expected).abs() < SCALED * square
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

    /// Whether the axes are orthonormal and right-handed, within 1e-3.
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

/// Rows of the rotation of a unit quaternion w, x, y, z.
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

/// Motion of the camera while an image is exposed. At (u, v), both 0 to 1 over the image, the pose
/// is at the time `timing[0] + timing[1] u + timing[2] v + timing[3] random` between start (0) and
/// end (1). instant-ngp's `rolling_shutter`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RollingShutter {
    pub timing: [f64; 4],
    /// Pose at the end; [`Frame::pose`] is at the start.
    pub end: Pose,
}

/// Transform from one world to another: `scale * (R x + t)`.
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
    /// Transforms a point.
    pub fn point(&self, x: [f64; 3]) -> [f64; 3] {
        self.transform
            .map(|[a, b, c, t]| self.scale * (a * x[0] + b * x[1] + c * x[2] + t))
    }

    /// Transforms a camera's pose. The lengths of its axes stay the same.
    pub fn pose(&self, pose: &Pose) -> Pose {
        let [x, y, z] = [0, 1, 2].map(|column| {
            let axis = pose.axis(column);
            self.transform
                .map(|[a, b, c, _]| a * axis[0] + b * axis[1] + c * axis[2])
        });
        let centre = self.point(pose.centre());
        Pose([0, 1, 2].map(|row| [x[row], y[row], z[row], centre[row]]))
    }

    /// This transform after the transform `first`, both without scales, as 3 x 4.
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
    /// The depth file of the frame. `requested` is the option `depth`. Without it only a file that the
    /// scene's own file names is used. With `true`, also a file that has the name of the image. With
    /// `false`, none.
    pub(crate) fn depth_file(&self, requested: Option<bool>) -> Option<&PathBuf> {
        match requested {
            Some(false) => None,
            None => self.depth.as_ref(),
            Some(true) => self.depth.as_ref().or(self.found_depth.as_ref()),
        }
    }
}

impl Scene {
    /// Length of one depth unit, in the scene's units.
    pub fn depth_scale(&self) -> f64 {
        self.depth_unit * self.applied.scale * self.to_scene.scale
    }

    /// # Errors
    /// Depths are requested, and the ones that were found are inverse depths.
    pub(crate) fn check_depths(&self, requested: Option<bool>) -> Result<()> {
        let is_read = |frame: &Frame| {
            let found = frame.found_depth.as_ref();
            found.is_some() && frame.depth_file(requested) == found
        };
        match &self.inverse_depths {
            Some(file) if self.frames.iter().any(is_read) => Err(Error::dataset(
                file,
                "this file marks the depths beside the images as inverse depths: write depths \
                 along the camera's axis and name them with depth_file_path, or do not request \
                 depths",
            )),
            _ => Ok(()),
        }
    }

    /// Numbers of the frames of a split, in order. If a scene has no test frames, the evaluation
    /// frames are used, as in nerfstudio.
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

    /// The 3 x 4 transform and the scale of nerfstudio's `dataparser_transforms.json`: from the
    /// world before `applied_transform` to the scene's.
    pub fn dataparser_transforms(&self) -> ([[f64; 4]; 3], f64) {
        (
            self.to_scene.after(&self.applied.transform),
            self.to_scene.scale * self.applied.scale,
        )
    }
}
