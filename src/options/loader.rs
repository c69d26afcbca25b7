//! How samples are made into batches, and by which processes: the options of a run.
//!
//! This struct is the definition of each option: its name, type, group, default and help. The
//! command line's flags, Python's keywords and docs/options.md follow from it.
//!
//! In the consumer. Never in here: what an option does; that is the builder's.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::device::{DecodeOn, Device, UploadMode};
use crate::error::{Error, Result};
use crate::jobs::images::on_error::OnError;
#[cfg(feature = "cli")]
use crate::options::cli::{self, one_of};
use crate::options::rank::read_rank;
#[cfg(feature = "cli")]
use crate::options::units;
use crate::options::units::read_seconds;
use crate::order::{EpochTail, MultiScale, Position, Rank, Sampler, State};
use crate::pool::sandbox::Sandbox;
use crate::recipe::{
    BackgroundColor, DataType, DecodeMode, MemoryLayout, OrientationMode, Recipe, RecipeFormat,
    ReorderMode, TruncationPolicy,
};

/// Options of a run. What is left out is the PaddleClas config's, where the recipe is
/// one, or has [`LoaderBuilder`](crate::LoaderBuilder)'s default.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct LoaderOptions {
    /// train224, eval224, full, or a recipe file: .yaml, .toml, .json (default: train224).
    ///
    /// `full` gives whole pictures, each row of its own size. A PaddleClas config (.yaml
    /// with `DataLoader`) is taken too: its values hold where no flag says otherwise, and
    /// its data set where there is no SRC.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::RECIPE))]
    pub recipe: Option<String>,

    /// A recipe as JSON text, in the place of `recipe`.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub recipe_text: Option<String>,

    /// Of a PaddleClas config: train, eval, eval.query, ... (default: train).
    #[cfg_attr(feature = "cli", arg(long, value_name = "TREE", help_heading = cli::RECIPE))]
    pub mode: Option<String>,

    /// Of a PaddleClas config: leave out operations that are not served.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::RECIPE))]
    pub skip_unknown_ops: bool,

    /// Rows of a batch (default: 64; 256 in Python).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
    pub batch_size: Option<u32>,

    /// Worker processes (default: the usable CPUs).
    #[cfg_attr(feature = "cli", arg(skip))]
    pub num_workers: Option<usize>,

    /// Slots of the ring: batches that are held, ready or being filled (default: 3, or
    /// as many as --memory-limit leaves; 4 in Python).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
    pub depth: Option<u32>,

    /// Most memory of all processes together: 2G or 1500M.
    ///
    /// Headers are read first; the run gets fewer slots, or is refused.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
    pub memory_limit: Option<u64>,

    /// Which operations may change places: none and each by itself, where no bit
    /// changes, or also where values do (default: the recipe's). See `plan`.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<ReorderMode>(&["off", "exact", "fast"]), help_heading = cli::RECIPE))]
    pub reorder: Option<ReorderMode>,

    /// Element type (default: the recipe's).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<DataType>(&DataType::ALL.map(DataType::name)), help_heading = cli::RECIPE))]
    pub dtype: Option<DataType>,

    /// Order of a batch's axes (default: the recipe's).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<MemoryLayout>(&["nchw", "nhwc"]), help_heading = cli::RECIPE))]
    pub layout: Option<MemoryLayout>,

    /// Decode JPEG data at full size only, or at 1/2, 1/4, 1/8 where the target
    /// is that much smaller (default: the recipe's).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<DecodeMode>(&["full", "scaled"]), help_heading = cli::RECIPE))]
    pub decode: Option<DecodeMode>,

    /// Colour behind transparent pictures: white, black or RRGGBB (default: the recipe's, white).
    #[cfg_attr(feature = "cli", arg(long, value_name = "COLOUR", help_heading = cli::RECIPE))]
    pub background: Option<BackgroundColor>,

    /// Turn pictures as EXIF says, or leave them as Pillow's `open`, torchvision's
    /// ImageFolder and camera intrinsics (COLMAP, transforms.json) have them: as stored,
    /// but for TIFF, which Pillow turns (default: the recipe's, exif).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<OrientationMode>(&["exif", "stored"]), help_heading = cli::RECIPE))]
    pub orientation: Option<OrientationMode>,

    /// Refuse JPEG and PNG that end too early, or keep what is there of them, as Pillow's
    /// LOAD_TRUNCATED_IMAGES: the rest is grey or black, and such samples are counted
    /// (default: the recipe's, refuse).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<TruncationPolicy>(&["refuse", "keep"]), help_heading = cli::RECIPE))]
    pub truncated: Option<TruncationPolicy>,

    /// Where batches end: cpu, cuda, or cuda:N.
    #[cfg_attr(feature = "cli", arg(long, default_value_t, help_heading = cli::DEVICE))]
    pub device: Device,

    /// How a device gets at pixels: over the bus while its kernel runs, or copied
    /// first into memory of its own. auto: copied where the kernel reads them twice or
    /// copies fit --gpu-memory-limit, else in-place.
    #[cfg_attr(feature = "cli", arg(long, default_value = "auto", value_parser = one_of::<UploadOption>(&["auto", "in-place", "copied"]), help_heading = cli::DEVICE))]
    pub upload: UploadOption,

    /// Most memory of the device that the run may take, its context apart, such as
    /// 256M. The run gets fewer slots, or is refused.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE))]
    pub gpu_memory_limit: Option<u64>,

    /// Which decoders make the pixels of JPEGs (default: auto).
    ///
    /// On a device `auto` and `gpu` let the GPU decode every JPEG that its kernels take, and
    /// workers all other files. Where the recipe leaves rows to workers, or --gpu-memory-limit
    /// leaves no room, `auto` lets workers decode all, and `gpu` is an error. Pixels are the same.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<DecodeOn>(&["auto", "gpu", "cpu"]), help_heading = cli::DEVICE))]
    pub decode_on: Option<DecodeOn>,

    /// Of order and random parameters (default: 0).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
    pub seed: Option<u64>,

    /// The order of an epoch; flags of its own on the command line.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub sampler: Option<Sampler>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub sample_weights: Option<Vec<f64>>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub multi_scale: Option<MultiScale>,

    /// Leave out a last batch that is not full.
    #[cfg_attr(feature = "cli", arg(long, conflicts_with = "pad_last", help_heading = cli::ORDER))]
    pub drop_last: bool,

    /// Fill a last batch with masked rows.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::ORDER))]
    pub pad_last: bool,

    /// This process's number among those that train together, from 0; with --world-size
    /// (default: 0).
    #[cfg_attr(feature = "cli", arg(long, value_name = "R", requires = "world_size", help_heading = cli::ORDER))]
    pub rank: Option<u32>,

    /// How many processes train together; with --rank (default: 1).
    #[cfg_attr(feature = "cli", arg(long, value_name = "W", requires = "rank", help_heading = cli::ORDER))]
    pub world_size: Option<u32>,

    /// What a failed sample does (default: stop).
    ///
    /// It ends the run (stop), masks its row (skip), or gives its row to the next sample
    /// that gives pixels, of at most 8 (substitute; the default with a PaddleClas config).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<OnError>(&["stop", "skip", "substitute"]), help_heading = cli::LIMITS))]
    pub on_error: Option<OnError>,

    /// What workers are kept from, beside their work: all system calls and files but those
    /// that they need (auto, as far as the system allows it; require), or nothing (off)
    /// (default: auto).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<Sandbox>(&["auto", "require", "off"]), help_heading = cli::LIMITS))]
    pub sandbox: Option<Sandbox>,

    /// Most time that one sample may take (default: 60).
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS))]
    #[serde(deserialize_with = "read_seconds")]
    pub row_limit: Option<Duration>,

    /// Most time that `next` waits for a batch to be dropped, in seconds. Commands hold none.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(deserialize_with = "read_seconds")]
    pub hold_timeout: Option<Duration>,

    /// Most pixels that an image may have (default: 178956970).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
    pub max_pixels: Option<u64>,

    /// Most memory that decoding one image may take, such as 256M (default: 512M). A worker may
    /// have 128 MiB beside it.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
    pub max_scratch: Option<u64>,

    /// Epochs of the run; a flag of the commands that run some.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub epochs: Option<u64>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub start: Option<Position>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub resume: Option<State>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub helper: Option<PathBuf>,
}

/// How a device gets at pixels, or that the library chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UploadOption {
    #[default]
    Auto,
    InPlace,
    Copied,
}

impl UploadOption {
    /// None leaves it to the library.
    pub fn upload(self) -> Option<UploadMode> {
        match self {
            Self::Auto => None,
            Self::InPlace => Some(UploadMode::InPlace),
            Self::Copied => Some(UploadMode::Copied),
        }
    }
}

impl LoaderOptions {
    /// What people call the recipe.
    pub fn recipe_name(&self) -> &str {
        match (&self.recipe_text, &self.recipe) {
            (Some(_), _) => "the recipe",
            (None, Some(name)) => name,
            (None, None) => "train224",
        }
    }

    /// The rank of this process, where it is named.
    ///
    /// # Errors
    /// One of `rank` and `world_size` alone.
    pub fn given_rank(&self) -> Result<Option<Rank>> {
        read_rank(self.rank, self.world_size)
    }

    /// What becomes of a last batch that is not full, where an option says it.
    ///
    /// # Errors
    /// Both options.
    pub(super) fn tail(&self) -> Result<Option<EpochTail>> {
        match (self.drop_last, self.pad_last) {
            (true, true) => Err(Error::option(
                "pad_last",
                "drop_last and pad_last exclude each other: give one",
            )),
            (true, false) => Ok(Some(EpochTail::Drop)),
            (false, true) => Ok(Some(EpochTail::Pad)),
            (false, false) => Ok(None),
        }
    }

    /// The recipe, where it is no config.
    pub(super) fn recipe(&self) -> Result<Recipe> {
        match &self.recipe_text {
            Some(text) => Recipe::from_text(text, RecipeFormat::Json, self.recipe_name()),
            None => Recipe::load(self.recipe_name()),
        }
    }

    /// A recipe with what is said here in the place of its own.
    pub(super) fn overridden(&self, mut recipe: Recipe) -> Recipe {
        if let Some(dtype) = self.dtype {
            recipe = recipe.with_dtype(dtype);
        }
        if let Some(layout) = self.layout {
            recipe = recipe.with_layout(layout);
        }
        if let Some(colour) = self.background {
            recipe = recipe.with_background(colour);
        }
        if let Some(orientation) = self.orientation {
            recipe = recipe.with_orientation(orientation);
        }
        if let Some(truncated) = self.truncated {
            recipe = recipe.with_truncated(truncated);
        }
        if let Some(reorder) = self.reorder {
            recipe = recipe.with_reorder(reorder);
        }
        if let Some(mode) = self.decode {
            recipe = recipe.with_decode(mode);
        }
        recipe
    }
}
