//! The arguments of `featherload rays`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};
use featherload::options::cli;
use featherload::rays::{RaySampler, RaysBuilder};
use featherload::scene::{RaysOptions, SceneOptions, SceneSource};
use featherload::{Error, Result};

use crate::run_length::parse_seconds;
use crate::scene::args::SceneRunArgs;
use crate::worker_counts::{WorkerCounts, parse_counts};

/// Draw batches of rays from a scene. Reports rays per second, start and memory.
#[derive(Args)]
pub struct RaysArgs {
    /// A folder with transforms.json, a COLMAP model, transforms_train.json or poses_bounds.npy;
    /// or one such file; or a model's folder, such as sparse/1.
    #[arg(help_heading = cli::SOURCE)]
    scene: PathBuf,

    #[command(flatten)]
    reading: SceneOptions,

    #[command(flatten)]
    options: RaysOptions,

    #[command(flatten)]
    pub run: SceneRunArgs,

    /// How rays are spread over the images: uniform over all pixels, or uniform over the images.
    #[arg(long, value_enum, default_value_t = Spread::Uniform, conflicts_with_all = ["patches", "pairs"], help_heading = cli::ORDER)]
    sampler: Spread,

    /// Patches of N x N pixels.
    #[arg(long, value_name = "N", conflicts_with = "pairs", help_heading = cli::RECIPE)]
    patches: Option<u32>,

    /// Distance in pixels between neighbours of a patch.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "patches", help_heading = cli::RECIPE)]
    dilation: u32,

    /// Pairs of pixels, at most N rows and columns apart.
    #[arg(long, value_name = "N", help_heading = cli::RECIPE)]
    pairs: Option<u32>,

    /// Draw the scene, and the rays of one more step as dots in their colours.
    #[arg(long, value_name = "FILE", conflicts_with = "rss", help_heading = cli::OUTPUT)]
    pub svg: Option<PathBuf>,

    /// Instead of rates, measure the memory of all processes with these numbers of workers, after
    /// every image is decoded: steady PSS, as in `featherload rss`.
    #[arg(long, value_name = "N,N,...", value_parser = parse_counts, conflicts_with_all = ["num_workers", "digest", "kill_workers_every", "steps"], help_heading = cli::MEASURE)]
    pub rss: Option<WorkerCounts>,

    /// Seconds for which `--rss` samples each number of workers, 0.5 to 600.
    #[arg(long, default_value_t = 5.0, value_parser = parse_seconds, requires = "rss", help_heading = cli::MEASURE)]
    pub seconds: f64,

    /// Print the memory plan of the run and end: the memory of each part, and whether images are
    /// kept in memory or in a file. Reads headers; decodes and starts nothing.
    #[arg(long, conflicts_with_all = ["rss", "svg", "digest", "kill_workers_every", "steps"], help_heading = cli::MEASURE)]
    pub plan: bool,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Spread {
    Uniform,
    ByImage,
}

/// For parsing from a list of words.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    args: RaysArgs,
}

impl RaysArgs {
    /// Parses the words after `rays`.
    pub fn parsed(words: impl Iterator<Item = OsString>) -> Result<Self> {
        let words = std::iter::once(OsString::from("rays")).chain(words);
        let alone = Alone::try_parse_from(words).map_err(|e| Error::config(e.to_string()))?;
        Ok(alone.args)
    }

    pub fn scene(&self) -> &Path {
        &self.scene
    }

    /// Rays of a step.
    pub fn rays(&self) -> u64 {
        self.options.rays.unwrap_or(RaysBuilder::DEFAULT_RAYS)
    }

    pub fn builder(&self) -> Result<RaysBuilder> {
        let mut options = self.options.clone();
        options.depths = self.run.depths(options.depths);
        options.sampler = Some(match (self.patches, self.pairs, self.sampler) {
            (Some(size), ..) => RaySampler::Patches {
                size,
                dilation: self.dilation,
            },
            (None, Some(radius), _) => RaySampler::Pairs { radius },
            (None, None, Spread::Uniform) => RaySampler::Uniform,
            (None, None, Spread::ByImage) => RaySampler::ByImage,
        });
        let scene = SceneSource::Path(self.scene.clone(), self.reading.clone());
        Ok(self.run.apply(options.builder(scene)?))
    }
}
