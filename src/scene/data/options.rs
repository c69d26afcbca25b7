//! How a scene is read: format, image folder, placement of the poses, split.
//!
//! In the consumer. Plain values, without files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The forms in which scenes are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SceneFormat {
    /// `transforms.json` as nerfstudio writes it.
    Nerfstudio,
    /// `transforms.json` as instant-ngp reads it: angles in place of focal lengths,
    /// names without extension, rolling shutter.
    InstantNgp,
    /// `transforms_{train,val,test}.json`, of NeRF's synthetic scenes and D-NeRF.
    Blender,
    /// A scene of ScanNet++: `dslr/nerfstudio/transforms.json`.
    ScannetPp,
    /// A COLMAP model, binary or text.
    Colmap,
    /// LLFF's `poses_bounds.npy`, with NeRF's axes.
    Llff,
}

impl SceneFormat {
    pub const ALL: [Self; 6] = [
        Self::Nerfstudio,
        Self::InstantNgp,
        Self::Blender,
        Self::ScannetPp,
        Self::Colmap,
        Self::Llff,
    ];

    /// The name that reports print and options take.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nerfstudio => "nerfstudio",
            Self::InstantNgp => "instant-ngp",
            Self::Blender => "blender",
            Self::ScannetPp => "scannet-pp",
            Self::Colmap => "colmap",
            Self::Llff => "llff",
        }
    }
}

impl fmt::Display for SceneFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the world is turned, as nerfstudio's `orientation_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Orientation {
    /// The mean of the cameras' up vectors becomes +z.
    Up,
    /// The direction that is vertical in most images becomes +z.
    Vertical,
    /// The principal axes of the camera centres become the axes.
    Pca,
    /// As in the file.
    None,
}

/// Where the origin lies, as nerfstudio's `center_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Center {
    /// The mean of the camera centres.
    Poses,
    /// The point that the cameras look at.
    Focus,
    /// As in the file.
    None,
}

/// Which frames are for training and which for evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SplitBy {
    /// This part of the frames trains, evenly spread; the others evaluate. 0 to 1.
    Fraction(f64),
    /// Every n-th frame evaluates, from the first on.
    Interval(u64),
    /// By `train` or `eval` in the file's name.
    Filename,
    /// By `train_filenames`, `val_filenames` and `test_filenames`, by `test_frames`, by
    /// `train_list.txt`, `validation_list.txt` and `test_list.txt`, or by the file that a frame
    /// stands in.
    Listed,
    /// Every frame trains, and evaluates.
    All,
}

/// In which order images follow each other. It decides how they are split, and their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageOrder {
    /// By the names of the files.
    Name,
    /// As nerfstudio's parser of the format: COLMAP's images by their numbers in the model,
    /// frames of Blender and instant-ngp as the file has them, others by name.
    Nerfstudio,
}

impl ImageOrder {
    pub const ALL: [Self; 2] = [Self::Name, Self::Nerfstudio];

    /// The name that options take.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Nerfstudio => "nerfstudio",
        }
    }
}

/// How a scene is read. The default of each field is what nerfstudio's parser of the
/// format does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SceneOptions {
    /// None = what the files show. Where several descriptions are there: `transforms.json`,
    /// `transforms_train.json`, ScanNet++, COLMAP, in this order, unless a later one has more
    /// images that are there; `poses_bounds.npy` where no other one has any.
    pub format: Option<SceneFormat>,
    /// Which folder of images: 1 = the originals, n = `images_n`. None = as nerfstudio:
    /// halves while the larger side is over 1600 pixels and a folder has the image.
    pub downscale_folder: Option<u32>,
    /// None = `nerfstudio`; for COLMAP `name`, as gsplat.
    pub image_order: Option<ImageOrder>,
    /// None = `up`; for Blender, instant-ngp and LLFF `none`.
    pub orientation: Option<Orientation>,
    /// None = `poses`; for Blender, instant-ngp and LLFF `none`.
    pub center: Option<Center>,
    /// Whether camera centres are scaled into -1 to 1. None = yes; for Blender and
    /// instant-ngp no. Scenes of LLFF are scaled so that their nearest depth is 4/3.
    pub auto_scale: Option<bool>,
    /// The scale, or the factor on the automatic one. Above 0.
    pub scale_factor: f64,
    /// None = listed where the files list it; else every 8th evaluates (COLMAP, LLFF), or
    /// a tenth (the others).
    pub split: Option<SplitBy>,
    /// Whether masks are looked for by name where the files name none. Default true.
    pub find_masks: bool,
    /// Whether depths that are found by name are read, where the files name none. Default
    /// false.
    pub find_depths: bool,
    /// What 1 in a depth's file means, in units of the file's world: of integers and of floats,
    /// as nerfstudio's `depth_unit_scale_factor`. None = `integer_depth_scale` where there is
    /// one, else 0.001.
    pub depth_unit: Option<f64>,
    /// Refuse a scene of which an image is missing or cannot be read.
    pub strict: bool,
    /// Largest `transforms.json` that is read, bytes.
    pub max_json_bytes: u64,
    /// Most pixels that an image may have.
    pub max_pixels: u64,
}

impl Default for SceneOptions {
    fn default() -> Self {
        Self {
            format: None,
            downscale_folder: None,
            image_order: None,
            orientation: None,
            center: None,
            auto_scale: None,
            scale_factor: 1.0,
            split: None,
            find_masks: true,
            find_depths: false,
            depth_unit: None,
            strict: false,
            max_json_bytes: 256 << 20,
            max_pixels: 178_956_970,
        }
    }
}
