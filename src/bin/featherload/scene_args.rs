//! Arguments of the commands over a scene.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use featherload::rays::{SceneBuilder, SceneKind, SceneSource};
use featherload::scenes::{ImageOrder, SceneFormat, SceneOptions, Split};
use featherload::{Device, Error, Sandbox};

use crate::run_args::parse_bytes;

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
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub format: Option<SceneFormat>,
    /// The order of the images, which decides how they are split: by name, or as nerfstudio's
    /// parser of the format has it (default: nerfstudio; for COLMAP name, as gsplat).
    #[arg(long, value_name = "ORDER", value_parser = orders())]
    pub image_order: Option<ImageOrder>,
}

impl SceneReading {
    pub fn source(&self, scene: &Path) -> SceneSource {
        let mut options = SceneOptions::default();
        options.format = self.format;
        options.image_order = self.image_order;
        SceneSource::Path(scene.to_owned(), options)
    }
}

/// What every run over a scene has.
#[derive(Args)]
pub struct SceneRunArgs {
    /// Steps.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub steps: u64,

    /// The first step: to go on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    start: u64,

    /// Which frames are used.
    #[arg(long, value_enum, default_value_t = SplitArg::Train)]
    split: SplitArg,

    /// Leave masks out: rays are drawn from masked pixels too, and views have no mask.
    #[arg(long)]
    no_masks: bool,

    /// Give depths, also those that the scene's file does not name: by the names of the images,
    /// in `depths` or `depth`.
    #[arg(long)]
    depths: bool,

    /// Leave depths out.
    #[arg(long, conflicts_with = "depths")]
    no_depths: bool,

    /// Keep alpha as a fourth channel, instead of showing the background through.
    #[arg(long)]
    alpha: bool,

    /// Read images at 1/N of their width and height.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    downscale: u32,

    /// Worker processes; 0 makes the batches in this one (default: the CPUs).
    #[arg(long, value_name = "N")]
    workers: Option<usize>,

    /// Batches that are made ahead (default: the workers and 2; of views at most 8); on a device
    /// those that may be held at a time (default: 4).
    #[arg(long, value_name = "N")]
    depth: Option<u32>,

    /// Where batches are made: cpu, cuda, or cuda:N. On a device workers only decode images.
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,

    /// Most memory of the device that the run may take, its context apart. Images that do not
    /// fit are read from the host's memory.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    gpu_memory_limit: Option<u64>,

    /// Most memory that all processes may take together, such as 2G, 1500M or bytes.
    /// Images that do not fit are kept in a file.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<u64>,

    /// Where that file goes (default: TMPDIR, or /tmp; /var/tmp where that lies in memory).
    #[arg(long, value_name = "DIR")]
    store_folder: Option<PathBuf>,

    /// Decode images for this run alone, though another one may have them.
    #[arg(long)]
    own_store: bool,

    /// What workers are kept from, beside their work: all system calls and files but those
    /// that they need (auto, as far as the system allows it; require), or nothing (off).
    #[arg(long, value_name = "HOW", default_value = "auto")]
    sandbox: Sandbox,

    /// Most time that one step may take (default: 600000).
    #[arg(long, value_name = "MS")]
    row_limit: Option<u64>,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N")]
    max_pixels: Option<u64>,

    /// Most memory that decoding one image may take (default: 512).
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(..=u64::MAX >> 20))]
    max_scratch: Option<u64>,

    /// Seed of draws and orders.
    #[arg(long, default_value_t = 0)]
    seed: u64,

    /// Hash every batch: the same digests mean the same batches.
    #[arg(long)]
    pub digest: bool,

    /// Kill a worker that often, as 200 (milliseconds): the batches stay the same.
    #[arg(long, value_name = "MS")]
    kill_workers_every: Option<u64>,
}

impl SceneRunArgs {
    /// The builder with these options set.
    pub fn apply<K: SceneKind>(&self, builder: SceneBuilder<K>) -> SceneBuilder<K> {
        let mut builder = builder
            .start(self.start)
            .split(self.split.into())
            .masks(!self.no_masks)
            .alpha(self.alpha)
            .downscale(self.downscale)
            .share_store(!self.own_store)
            .device(self.device)
            .sandbox(self.sandbox)
            .seed(self.seed);
        if self.depths || self.no_depths {
            builder = builder.depths(self.depths);
        }
        if let Some(workers) = self.workers {
            builder = builder.workers(workers);
        }
        if let Some(depth) = self.depth {
            builder = builder.depth(depth);
        }
        if let Some(bytes) = self.gpu_memory_limit {
            builder = builder.gpu_memory_limit(bytes);
        }
        if let Some(bytes) = self.memory_limit {
            builder = builder.memory_limit(bytes);
        }
        if let Some(folder) = &self.store_folder {
            builder = builder.store_folder(folder);
        }
        if let Some(ms) = self.row_limit {
            builder = builder.row_limit(Duration::from_millis(ms));
        }
        if let Some(pixels) = self.max_pixels {
            builder = builder.max_pixels(pixels);
        }
        if let Some(mib) = self.max_scratch {
            builder = builder.max_scratch(mib << 20);
        }
        if let Some(every) = self.kill_workers_every {
            use featherload::internals::Drilled;
            builder = builder.kill_workers_every(Duration::from_millis(every.max(1)));
        }
        builder
    }
}

fn formats() -> impl TypedValueParser<Value = SceneFormat> {
    let names = SceneFormat::ALL.map(SceneFormat::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let format = SceneFormat::ALL.into_iter().find(|f| f.name() == name);
        format.ok_or_else(|| Error::config(format!("{name:?} is no format of scenes")))
    })
}

fn orders() -> impl TypedValueParser<Value = ImageOrder> {
    let names = ImageOrder::ALL.map(ImageOrder::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let order = ImageOrder::ALL.into_iter().find(|o| o.name() == name);
        order.ok_or_else(|| Error::config(format!("{name:?} is no order of images")))
    })
}
