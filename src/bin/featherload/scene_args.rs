//! Arguments of the commands over a scene.

use std::path::Path;

use clap::{Args, ValueEnum};
use featherload::Result;
use featherload::options::{cli, units};
use featherload::rays::SceneSource;
use featherload::scenes::{
    Center, ImageOrder, Orientation, SceneFormat, SceneOptions, Split, SplitBy,
};

use crate::output;

/// Frames of a scene.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SplitArg {
    Train,
    Eval,
    Test,
}

impl From<SplitArg> for Split {
    fn from(said: SplitArg) -> Self {
        match said {
            SplitArg::Train => Self::Train,
            SplitArg::Eval => Self::Eval,
            SplitArg::Test => Self::Test,
        }
    }
}

/// How a scene is read.
#[derive(Debug, Args)]
pub struct SceneReading {
    /// Read this description of the scene, where there are several (default: the one with the
    /// most images that are there).
    #[arg(long, value_name = "FORMAT", value_parser = cli::one_of::<SceneFormat>(&SceneFormat::ALL.map(SceneFormat::name)), help_heading = cli::SOURCE)]
    format: Option<SceneFormat>,

    /// The order of the images, which decides how they are split: by name, or as nerfstudio's
    /// parser of the format has it (default: nerfstudio; for COLMAP name, as gsplat).
    #[arg(long, value_name = "ORDER", value_parser = cli::one_of::<ImageOrder>(&ImageOrder::ALL.map(ImageOrder::name)), help_heading = cli::SOURCE)]
    image_order: Option<ImageOrder>,

    /// How the world is turned, as nerfstudio's parsers do (default: up; none for Blender,
    /// instant-ngp and LLFF).
    #[arg(long, value_name = "METHOD", value_parser = cli::one_of::<Orientation>(&["up", "vertical", "pca", "none"]), help_heading = cli::SOURCE)]
    orientation: Option<Orientation>,

    /// Where the world's origin lies (default: poses; none for Blender, instant-ngp and LLFF).
    #[arg(long, value_name = "METHOD", value_parser = cli::one_of::<Center>(&["poses", "focus", "none"]), help_heading = cli::SOURCE)]
    center: Option<Center>,

    /// Whether camera centres are scaled into -1 to 1 (default: true; false for Blender and
    /// instant-ngp).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE)]
    auto_scale: Option<bool>,

    /// A factor on top of that scale (default: 1).
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = cli::SOURCE)]
    scale_factor: Option<f64>,

    /// Read the images of images_N; 1 reads the originals (default: as nerfstudio chooses).
    #[arg(long, value_name = "N", help_heading = cli::SOURCE)]
    downscale_folder: Option<u32>,

    /// Which frames train: a fraction (0.9), every N-th evaluates (8), filename, listed or all
    /// (default: as the files list it; else every 8th of COLMAP and LLFF and a tenth of the
    /// others evaluate).
    #[arg(long, value_name = "RULE", value_parser = split_by, help_heading = cli::SOURCE)]
    split_by: Option<SplitBy>,

    /// Whether masks are looked for by name where the files name none (default: true).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE)]
    find_masks: Option<bool>,

    /// Whether depths that are found by name are read where the files name none (default:
    /// false).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = cli::SOURCE)]
    find_depths: Option<bool>,

    /// What 1 in a depth's file means, in units of the file's world (default: as the file says,
    /// else 0.001).
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = cli::SOURCE)]
    depth_unit: Option<f64>,

    /// Refuse a scene of which an image is missing or cannot be read.
    #[arg(long, help_heading = cli::SOURCE)]
    strict: bool,

    /// The largest transforms.json that is read (default: 256M).
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::SOURCE)]
    max_json_bytes: Option<u64>,
}

impl SceneReading {
    pub fn source(&self, scene: &Path) -> SceneSource {
        SceneSource::Path(scene.to_owned(), self.options())
    }

    /// Whether a flag is given.
    pub fn is_given(&self) -> bool {
        self.options() != SceneOptions::default()
    }

    /// What they say, as the library takes it.
    pub fn options(&self) -> SceneOptions {
        let mut options = SceneOptions::default();
        options.format = self.format;
        options.image_order = self.image_order;
        options.orientation = self.orientation;
        options.center = self.center;
        options.auto_scale = self.auto_scale;
        options.scale_factor = self.scale_factor.unwrap_or(options.scale_factor);
        options.downscale_folder = self.downscale_folder;
        options.split = self.split_by;
        options.find_masks = self.find_masks.unwrap_or(options.find_masks);
        options.find_depths = self.find_depths.unwrap_or(options.find_depths);
        options.depth_unit = self.depth_unit;
        options.strict = self.strict;
        options.max_json_bytes = self.max_json_bytes.unwrap_or(options.max_json_bytes);
        options
    }
}

/// A rule of `--split-by`: whole numbers are intervals, as in Python.
fn split_by(text: &str) -> std::result::Result<SplitBy, String> {
    let wrong = || "use a fraction (0.9), a whole number (8), filename, listed or all".to_owned();
    match text {
        "filename" => Ok(SplitBy::Filename),
        "listed" => Ok(SplitBy::Listed),
        "all" => Ok(SplitBy::All),
        _ => match text.parse::<u64>() {
            Ok(0) => Err("every 0th frame is none: use at least 1".to_owned()),
            Ok(n) => Ok(SplitBy::Interval(n)),
            Err(_) => match text.parse::<f64>() {
                Ok(part) if (0.0..=1.0).contains(&part) => Ok(SplitBy::Fraction(part)),
                _ => Err(wrong()),
            },
        },
    }
}

/// Prints what the scene's files name and is not there.
pub fn print_missing(lines: &[String]) -> Result<()> {
    lines
        .iter()
        .try_for_each(|line| output::line(&format!("  missing        {line}")))
}
