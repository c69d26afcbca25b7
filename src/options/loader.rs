//! The options of a run: how samples become batches, and in which processes.
//!
//! This struct defines each option: its name, type, group, default and help. The command line's
//! flags, Python's keywords and docs/options.md are made from it.
//!
//! In the consumer. Never in here: what an option does; the builder does that.

use std::path::PathBuf;
#[cfg(feature = "cli")]
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use crate::device::{DecodeOn, Device, UploadMode};
use crate::error::{Error, Result};
use crate::jobs::caption_rule::CaptionRule;
use crate::jobs::images::on_error::OnError;
use crate::loader::{MaskOptions, ObjectOptions, RasterList};
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

/// Options of a run. An option that is not set has the value of the PaddleClas config, if the
/// recipe is one, otherwise [`LoaderBuilder`](crate::LoaderBuilder)'s default.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct LoaderOptions {
    /// train224, eval224, full, or a recipe file: .yaml, .toml, .json (default: train224).
    ///
    /// `full` returns whole images, each row with its own size. A PaddleClas config (.yaml with
    /// `DataLoader`) works too: its values hold unless a flag sets another, and its data set is
    /// used if there is no SRC.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::RECIPE))]
    pub recipe: Option<String>,

    /// A recipe as JSON text, instead of `recipe`.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub recipe_text: Option<String>,

    /// Part of a PaddleClas config: train, eval, eval.query, ... (default: train).
    #[cfg_attr(feature = "cli", arg(long, value_name = "TREE", help_heading = cli::RECIPE))]
    pub mode: Option<String>,

    /// Leave out operations of a PaddleClas config that featherload does not support.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::RECIPE))]
    pub skip_unknown_ops: bool,

    /// Further columns of a table, of Parquet or Arrow files, of tar shards or of a cache that batches have.
    ///
    /// Of tar shards: extensions (txt), keys of `json`, or JSON pointers (/a/b). Of folders: text
    /// files beside the images, by their extension with its dot (.txt). They are read from the files,
    /// batch by batch.
    #[cfg_attr(feature = "cli", arg(long, value_name = "NAME,..", value_delimiter = ',', action = clap::ArgAction::Set, help_heading = cli::SOURCE))]
    pub columns: Option<Vec<String>>,

    /// Captions that batches have: a column of texts.
    ///
    /// Or a JSON object with `column` and the fields of a rule: choose (first, random), lines, missing
    /// (error, empty), prefix, suffix, drop, wildcards, shuffle, keep, tag_drop, separator,
    /// keep_separator, secondary_separator.
    #[cfg_attr(feature = "cli", arg(long, value_name = "COLUMN", value_parser = CaptionRule::from_str, help_heading = cli::SOURCE))]
    pub captions: Option<CaptionRule>,

    /// Read no images: batches have labels, columns and captions, in the same order.
    #[cfg_attr(feature = "cli", arg(long = "no-images", action = clap::ArgAction::SetFalse, help_heading = cli::SOURCE))]
    pub images: Option<bool>,

    /// Masks of the images: a pattern of paths such as ../masks/{stem}.png, a column of a table, of
    /// Parquet or of Arrow files, or `cache`: those that a cache was built with.
    ///
    /// Placeholders: {stem}, {name}, {dir}, {parent}. Relative paths start from the data set. Or a
    /// JSON object with `files`, or with `member` (an extension in tar shards, such as seg.png), and
    /// the fields of a rule: ignore, reduce_zero_label, map, fill,
    /// filter (floor, center, pillow), form (numbers, colors), dtype (uint8, int32, int64).
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILES", value_parser = MaskOptions::from_str, help_heading = cli::SOURCE))]
    pub masks: Option<MaskOptions>,

    /// A raster of each image, as NAME=FILES: depths, a flow, another image. May be given several
    /// times, with different names.
    ///
    /// FILES are as those of masks; `cache`: those that a cache was built with. Or a JSON object with `files`, `kind` (depth, alpha, flow, image,
    /// mask; default: the name) and the fields of a rule: divide, missing, fill, filter (floor,
    /// center, pillow, bilinear), dtype (float32, float16); of a flow valid; of an image colors (same,
    /// none), scale, swap; of a mask those of `masks`.
    #[cfg_attr(feature = "cli", arg(long = "raster", value_name = "NAME=FILES", value_parser = RasterList::from_str, help_heading = cli::SOURCE))]
    #[serde(deserialize_with = "read_rasters")]
    pub rasters: Vec<RasterList>,

    /// Objects in the images: a COCO file, a table of boxes (.csv), a pattern of paths of YOLO's
    /// or Pascal VOC's files, such as ../labels/{stem}.txt or ../Annotations/{stem}.xml, or `cache`:
    /// those that a cache was built with.
    ///
    /// With a COCO file and a folder, the images are those of the file. Or a JSON object with
    /// `files`, `column` or `member` and the fields of a rule: style (torchvision, albumentations, detectron2,
    /// ultralytics, hf), min_size, min_area, min_visibility, max_objects, overflow (first, largest,
    /// error), keypoint_swap, labels (contiguous, ids), masks (full, quarter), any_size; and of files
    /// strict, crowds (keep, drop), names, obb, split, box_format (xywh, xyxy, cxcywh), normalized.
    #[cfg_attr(feature = "cli", arg(long, value_name = "FILES", value_parser = ObjectOptions::from_str, help_heading = cli::SOURCE))]
    pub objects: Option<ObjectOptions>,

    /// Rows per batch (default: 64; 256 in Python).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
    pub batch_size: Option<u32>,

    /// Worker processes (default: the usable CPUs).
    #[cfg_attr(feature = "cli", arg(skip))]
    pub num_workers: Option<usize>,

    /// Slots of the ring: batches that are held, ready or being filled (default: 3, or as many as
    /// --memory-limit leaves; 4 in Python).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
    pub depth: Option<u32>,

    /// Most memory of all processes together: 2G or 1500M.
    ///
    /// Reads all headers first. The run gets fewer slots, or is rejected.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
    pub memory_limit: Option<u64>,

    /// Which operations may be reordered: none, each runs by itself (off); moves that change no bit
    /// (exact); also moves that change values (fast) (default: the recipe's). See `plan`.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<ReorderMode>(&["off", "exact", "fast"]), help_heading = cli::RECIPE))]
    pub reorder: Option<ReorderMode>,

    /// Element type (default: the recipe's).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<DataType>(&DataType::ALL.map(DataType::name)), help_heading = cli::RECIPE))]
    pub dtype: Option<DataType>,

    /// Order of a batch's axes (default: the recipe's).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<MemoryLayout>(&["nchw", "nhwc"]), help_heading = cli::RECIPE))]
    pub layout: Option<MemoryLayout>,

    /// Decode JPEGs at full size only, or at 1/2, 1/4 or 1/8 if the output is that much smaller
    /// (default: the recipe's).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<DecodeMode>(&["full", "scaled"]), help_heading = cli::RECIPE))]
    pub decode: Option<DecodeMode>,

    /// Colour behind transparent images: white, black or RRGGBB (default: the recipe's, white).
    #[cfg_attr(feature = "cli", arg(long, value_name = "COLOUR", help_heading = cli::RECIPE))]
    pub background: Option<BackgroundColor>,

    /// Turn images upright by EXIF (exif), or leave them as stored (default: the recipe's, exif).
    ///
    /// Pillow's `open`, torchvision's ImageFolder and camera intrinsics (COLMAP, transforms.json)
    /// use images as stored, except TIFF, which Pillow turns.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<OrientationMode>(&["exif", "stored"]), help_heading = cli::RECIPE))]
    pub orientation: Option<OrientationMode>,

    /// Reject JPEG and PNG files that end too early, or keep what they contain (default: the
    /// recipe's, refuse).
    ///
    /// `keep` works like Pillow's LOAD_TRUNCATED_IMAGES: the rest is grey or black. Such samples
    /// are counted.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<TruncationPolicy>(&["refuse", "keep"]), help_heading = cli::RECIPE))]
    pub truncated: Option<TruncationPolicy>,

    /// Where batches are delivered: cpu, cuda, or cuda:N.
    #[cfg_attr(feature = "cli", arg(long, default_value_t, help_heading = cli::DEVICE))]
    pub device: Device,

    /// How a device reads pixels: over the bus while its kernel runs (in-place), or from a copy in
    /// its own memory (copied). auto: copied if the kernel reads pixels twice or copies fit
    /// --gpu-memory-limit, otherwise in-place.
    #[cfg_attr(feature = "cli", arg(long, default_value = "auto", value_parser = one_of::<UploadOption>(&["auto", "in-place", "copied"]), help_heading = cli::DEVICE))]
    pub upload: UploadOption,

    /// Most device memory that the run may use, without the device's context, such as 256M. The run
    /// gets fewer slots, or is rejected.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::DEVICE))]
    pub gpu_memory_limit: Option<u64>,

    /// Which decoders decode JPEGs (default: auto).
    ///
    /// On a device, `auto` and `gpu` let the GPU decode every JPEG that its kernels support, and
    /// workers decode all other files. If workers finish the rows of the recipe, if
    /// --gpu-memory-limit leaves no room, or if images have objects, masks or rasters under
    /// --on-error substitute, `auto` lets workers decode all, and `gpu` is an error. Pixels are the
    /// same.
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<DecodeOn>(&["auto", "gpu", "cpu"]), help_heading = cli::DEVICE))]
    pub decode_on: Option<DecodeOn>,

    /// Seed of the order and of random parameters (default: 0).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::ORDER))]
    pub seed: Option<u64>,

    /// The order of an epoch. The command line has flags of its own for it.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub sampler: Option<Sampler>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub sample_weights: Option<Vec<f64>>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub multi_scale: Option<MultiScale>,

    /// Drop the last batch if it is not full.
    #[cfg_attr(feature = "cli", arg(long, conflicts_with = "pad_last", help_heading = cli::ORDER))]
    pub drop_last: bool,

    /// Fill the last batch with masked rows.
    #[cfg_attr(feature = "cli", arg(long, help_heading = cli::ORDER))]
    pub pad_last: bool,

    /// Rank of this process among the processes that train together, from 0; with --world-size
    /// (default: 0).
    #[cfg_attr(feature = "cli", arg(long, value_name = "R", requires = "world_size", help_heading = cli::ORDER))]
    pub rank: Option<u32>,

    /// Number of processes that train together; with --rank (default: 1).
    #[cfg_attr(feature = "cli", arg(long, value_name = "W", requires = "rank", help_heading = cli::ORDER))]
    pub world_size: Option<u32>,

    /// What happens when a sample fails (default: stop).
    ///
    /// The run ends (stop), the row is masked (skip), or the row gets the next usable sample of at
    /// most 8 (substitute; the default with a PaddleClas config).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<OnError>(&["stop", "skip", "substitute"]), help_heading = cli::LIMITS))]
    pub on_error: Option<OnError>,

    /// Block system calls and files that workers do not need: as far as the system allows (auto),
    /// always (require), never (off) (default: auto).
    #[cfg_attr(feature = "cli", arg(long, value_parser = one_of::<Sandbox>(&["auto", "require", "off"]), help_heading = cli::LIMITS))]
    pub sandbox: Option<Sandbox>,

    /// Time limit for one sample, in seconds (default: 60).
    #[cfg_attr(feature = "cli", arg(long, value_name = "SECONDS", value_parser = units::seconds, help_heading = cli::LIMITS))]
    #[serde(deserialize_with = "read_seconds")]
    pub row_limit: Option<Duration>,

    /// How long `next` waits for a batch to be dropped, in seconds. Commands hold no batches.
    #[cfg_attr(feature = "cli", arg(skip))]
    #[serde(deserialize_with = "read_seconds")]
    pub hold_timeout: Option<Duration>,

    /// Most pixels that an image may have (default: 178956970).
    #[cfg_attr(feature = "cli", arg(long, value_name = "N", help_heading = cli::LIMITS))]
    pub max_pixels: Option<u64>,

    /// Most memory for decoding one image, such as 256M (default: 512M). A worker may use 128 MiB
    /// in addition.
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = cli::LIMITS))]
    pub max_scratch: Option<u64>,

    /// Number of epochs. Only commands that run several have this flag.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub epochs: Option<u64>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub start: Option<Position>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub resume: Option<State>,

    #[cfg_attr(feature = "cli", arg(skip))]
    pub helper: Option<PathBuf>,
}

/// How a device reads pixels, or that the library chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UploadOption {
    #[default]
    Auto,
    InPlace,
    Copied,
}

impl UploadOption {
    /// None if the library chooses.
    pub fn upload(self) -> Option<UploadMode> {
        match self {
            Self::Auto => None,
            Self::InPlace => Some(UploadMode::InPlace),
            Self::Copied => Some(UploadMode::Copied),
        }
    }
}

/// Rasters of a JSON object: one list. Null: none.
fn read_rasters<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Vec<RasterList>, D::Error> {
    Option::deserialize(from).map(|list| list.into_iter().collect())
}

impl LoaderOptions {
    /// Name of the recipe for people.
    pub fn recipe_name(&self) -> &str {
        match (&self.recipe_text, &self.recipe) {
            (Some(_), _) => "the recipe",
            (None, Some(name)) => name,
            (None, None) => "train224",
        }
    }

    /// The rank of this process, if it is set.
    ///
    /// # Errors
    /// Only one of `rank` and `world_size` is set.
    pub fn given_rank(&self) -> Result<Option<Rank>> {
        read_rank(self.rank, self.world_size)
    }

    /// What happens to a last batch that is not full, if an option says so.
    ///
    /// # Errors
    /// Both options are set.
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

    /// The recipe, if it is not a config.
    pub(super) fn recipe(&self) -> Result<Recipe> {
        match &self.recipe_text {
            Some(text) => Recipe::from_text(text, RecipeFormat::Json, self.recipe_name()),
            None => Recipe::load(self.recipe_name()),
        }
    }

    /// The recipe with the values of the options instead of its own.
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
