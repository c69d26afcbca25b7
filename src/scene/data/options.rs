//! Options for reading a scene: format, image folder, transform of the world, split.
//!
//! Runs in the consumer. Plain values, no file access.

use std::fmt;

use serde::{Deserialize, Serialize};

#[cfg(feature = "cli")]
use crate::options::cli::{self, one_of};
#[cfg(feature = "cli")]
use crate::options::units;
use crate::picture::PictureLimits;

/// File format of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SceneFormat {
    /// `transforms.json` as nerfstudio writes it.
    Nerfstudio,
    /// `transforms.json` as instant-ngp reads it: angles instead of focal lengths, names without
    /// extension, rolling shutter.
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

    /// The name in reports and options.
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

/// Orientation of the world, like nerfstudio's `orientation_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OrientationMethod {
    /// The mean of the cameras' up vectors becomes +z.
    Up,
    /// The direction that is vertical in most images becomes +z.
    Vertical,
    /// The principal axes of the camera centres become the world's axes.
    Pca,
    /// Unchanged.
    None,
}

/// Origin of the world, like nerfstudio's `center_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CenterMethod {
    /// The mean of the camera centres.
    Poses,
    /// The point that the cameras look at.
    Focus,
    /// Unchanged.
    None,
}

/// The rule that splits frames into training and evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SplitBy {
    /// This fraction of the frames, evenly spaced, is for training; the rest for evaluation. 0 to
    /// 1.
    Fraction(f64),
    /// Every n-th frame, starting with the first, is for evaluation.
    Interval(u64),
    /// By `train` or `eval` in the file's name.
    Filename,
    /// By `train_filenames`, `val_filenames` and `test_filenames`, by `test_frames`, by
    /// `train_list.txt`, `validation_list.txt` and `test_list.txt`, or by the file that contains
    /// the frame.
    Listed,
    /// Every frame is for both training and evaluation.
    All,
}

#[cfg(feature = "cli")]
impl SplitBy {
    /// Parses a rule of the command line. Whole numbers are intervals, as in Python.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let wrong = "use a fraction (0.9), a whole number (8), filename, listed or all";
        match text {
            "filename" => Ok(Self::Filename),
            "listed" => Ok(Self::Listed),
            "all" => Ok(Self::All),
            _ => match text.parse::<u64>() {
                Ok(0) => Err("an interval of 0 is impossible: use at least 1".to_owned()),
                Ok(n) => Ok(Self::Interval(n)),
                Err(_) => match text.parse::<f64>() {
                    Ok(part) if (0.0..=1.0).contains(&part) => Ok(Self::Fraction(part)),
                    _ => Err(wrong.to_owned()),
                },
            },
        }
    }
}

/// The order of the images. It determines their numbers and how they are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageOrder {
    /// By file name.
    Name,
    /// Like nerfstudio's parser of the format: COLMAP's images by their numbers in the model,
    /// frames of Blender and instant-ngp in file order, others by name.
    Nerfstudio,
}

impl ImageOrder {
    pub const ALL: [Self; 2] = [Self::Name, Self::Nerfstudio];

    /// The name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Nerfstudio => "nerfstudio",
        }
    }
}

/// Options for reading a scene, defined once for flags and keywords, like
/// [`LoaderOptions`](crate::options::LoaderOptions). Defaults are those of nerfstudio's parser of
/// the format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SceneOptions {
    /// Format of the scene, if the folder has several descriptions (default: the one with the most
    /// existing images).
    ///
    /// If several have equally many: `transforms.json`, `transforms_train.json`, ScanNet++, COLMAP,
    /// in this order. `poses_bounds.npy` is used only if no other one has images.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<SceneFormat>(&SceneFormat::ALL.map(SceneFormat::name)), help_heading = cli::SOURCE))]
    pub format: Option<SceneFormat>,

    /// Order of the images, which decides how they are split: name, or nerfstudio for that of its
    /// parser (default: nerfstudio; for COLMAP name, as in gsplat).
    #[cfg_attr(feature = "cli", arg(long, value_name = "ORDER", value_parser = one_of::<ImageOrder>(&ImageOrder::ALL.map(ImageOrder::name)), help_heading = cli::SOURCE))]
    pub image_order: Option<ImageOrder>,

    /// Orientation of the world, as in nerfstudio's parsers (default: up; none for Blender,
    /// instant-ngp and LLFF).
    #[cfg_attr(feature = "cli", arg(long, value_name = "METHOD", value_parser = one_of::<OrientationMethod>(&["up", "vertical", "pca", "none"]), help_heading = cli::SOURCE))]
    pub orientation: Option<OrientationMethod>,

    /// Origin of the world (default: poses; none for Blender, instant-ngp and LLFF).
    #[cfg_attr(feature = "cli", arg(long, value_name = "METHOD", value_parser = one_of::<CenterMethod>(&["poses", "focus", "none"]), help_heading = cli::SOURCE))]
    pub center: Option<CenterMethod>,

    /// Scale camera centres into -1 to 1 (default: true; false for Blender and instant-ngp).
    ///
    /// LLFF scenes are scaled so that their nearest depth is 4/3.
    #[cfg_attr(feature = "cli", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE))]
    pub auto_scale: Option<bool>,

    /// Additional scale factor, above 0.
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true, help_heading = cli::SOURCE))]
    pub scale_factor: f64,

    /// Read the images of images_N; 1 reads the originals (default: chosen as in nerfstudio).
    ///
    /// nerfstudio halves the size while the larger side is over 1,600 pixels and a folder has the
    /// image.
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::SOURCE))]
    pub downscale_folder: Option<u32>,

    /// Frames for training: a fraction (0.9), all but every N-th (8), filename, listed or all
    /// (default: as the files list them; otherwise every 8th of COLMAP and LLFF and a tenth of
    /// other scenes is for evaluation).
    #[cfg_attr(feature = "cli", arg(long, value_name = "RULE", value_parser = SplitBy::parse, help_heading = cli::SOURCE))]
    pub split_by: Option<SplitBy>,

    /// Find masks by name if the files name none.
    #[cfg_attr(feature = "cli", arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", help_heading = cli::SOURCE))]
    pub find_masks: bool,

    /// Use depths that are found by name if the files name none.
    #[cfg_attr(feature = "cli", arg(long, value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true", help_heading = cli::SOURCE))]
    pub find_depths: bool,

    /// Value of one depth unit, in units of the file's world (default: as the file states,
    /// otherwise 0.001).
    ///
    /// Applies to integers and floats, like nerfstudio's `depth_unit_scale_factor`. A file states
    /// it with `integer_depth_scale`.
    #[cfg_attr(feature = "cli", arg(long, value_name = "X", allow_negative_numbers = true, help_heading = cli::SOURCE))]
    pub depth_unit: Option<f64>,

    /// Reject a scene with an image that is missing or cannot be read.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::SOURCE))]
    pub strict: bool,

    /// Largest transforms.json that is read, in bytes.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", default_value = "256M", value_parser = units::bytes, help_heading = cli::SOURCE))]
    pub max_json_bytes: u64,

    /// Most pixels that an image may have. The commands have a separate flag for it.
    #[cfg_attr(feature = "cli", arg(skip = PictureLimits::default().max_pixels))]
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
            split_by: None,
            find_masks: true,
            find_depths: false,
            depth_unit: None,
            strict: false,
            max_json_bytes: 256 << 20,
            max_pixels: PictureLimits::default().max_pixels,
        }
    }
}
