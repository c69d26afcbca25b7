//! The arguments of `featherload demo`.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Write a small, reproducible set of images in class folders, or scenes (`--scene`).
#[derive(Debug, Clone, clap::Args)]
pub struct DemoArgs {
    /// Folder to write. Created if missing; must be empty or hold this same set
    pub dir: PathBuf,
    /// Kind of the images
    #[arg(long, value_enum, default_value_t)]
    pub kind: DemoKind,
    /// Number of images, about 90 kB each (large: 2.5 MB, mixed: 350 kB)
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub images: u32,
    /// Number of class folders
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub classes: u32,
    /// Another seed gives other images
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Add files that cannot be loaded, named `broken_...`: truncated, empty, damaged, with headers
    /// of 60,000 x 60,000, a FIFO, a dangling link and more. The images stay the same.
    /// `.featherload-demo.json` lists the defect of each file
    #[arg(long)]
    pub broken: bool,
    /// Write scenes with cameras and poses instead of class folders: a room with coloured walls,
    /// seen through every camera model. Some have masks, depths, transparency, times, intrinsics
    /// for each frame, a rolling shutter, a crop radius, or 300 tiny images. One folder each, for
    /// `rays` and `index`; about 950 kB in all. `.featherload-demo.json` has the formula of the
    /// colours
    #[arg(long, conflicts_with_all = ["kind", "images", "classes", "broken"])]
    pub scene: bool,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub json: bool,
}

/// The kind of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DemoKind {
    /// JPEGs with the sizes and statistics of ImageNet's photos
    #[default]
    Photos,
    /// JPEGs of 3840 x 2160 or 2160 x 3840, as cameras and drones make them
    Large,
    /// 8 to 3840 pixels a side: JPEG in all its forms, PNG, WebP, GIF, BMP, TIFF, PPM, QOI
    Mixed,
}

impl DemoKind {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for DemoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Photos => "photos",
            Self::Large => "large",
            Self::Mixed => "mixed",
        })
    }
}
