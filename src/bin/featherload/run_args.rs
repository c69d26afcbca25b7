//! Arguments that describe a loader and a run of it, shared by the sub-commands
//! that make one.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use featherload::forecast::RunShape;
use featherload::measure::system::default_workers;
use featherload::recipe::Upright;
use featherload::{
    Background, DecodeMode, Dtype, Error, Launch, Loader, LoaderBuilder, MemoryLayout, OnError,
    Recipe, Reorder, Result, Source, State, Tail,
};

use crate::sampler_args::SamplerArgs;

/// What is done to each sample, and by what kind of pool.
#[derive(Args)]
pub struct LoaderArgs {
    /// train224, eval224, full (whole pictures, each row of its own size), or a
    /// recipe file: .yaml, .toml, .json.
    #[arg(long, default_value = "train224")]
    pub recipe: String,

    /// Rows of a batch.
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub batch: u32,

    /// Slots of the ring [default: 3, or as many as --memory-limit leaves].
    #[arg(long, value_name = "N")]
    depth: Option<u32>,

    /// Most memory that all processes may take together, such as 2G, 1500M or
    /// bytes. Headers are read first; the run gets fewer slots, or is refused.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory_limit: Option<u64>,

    /// Which operations may change places: none and each by itself, where no bit
    /// changes, or also where values do (default: the recipe's). See `plan`.
    #[arg(long, value_enum)]
    reorder: Option<Moves>,

    /// Element type: u8, f16 or f32 (default: the recipe's).
    #[arg(long)]
    dtype: Option<Dtype>,

    /// nchw or nhwc (default: the recipe's).
    #[arg(long)]
    layout: Option<MemoryLayout>,

    /// Decode JPEG data at full size only, or at 1/2, 1/4, 1/8 where the target
    /// is that much smaller (default: the recipe's).
    #[arg(long, value_enum)]
    decode: Option<Decode>,

    /// Colour behind transparent pictures: white, black or RRGGBB (default: the
    /// recipe's, white).
    #[arg(long, value_name = "COLOUR")]
    background: Option<Background>,

    /// Turn pictures as EXIF says, or leave them as stored, as Pillow's `open`,
    /// torchvision's ImageFolder and camera intrinsics (COLMAP, transforms.json)
    /// have them (default: the recipe's, exif).
    #[arg(long, value_enum)]
    orientation: Option<Orientation>,

    #[arg(long, default_value_t = 0)]
    pub seed: u64,

    #[command(flatten)]
    sampler: SamplerArgs,

    /// Leave out a last batch that is not full.
    #[arg(long, conflicts_with = "pad_last")]
    drop_last: bool,

    /// Fill a last batch with masked rows.
    #[arg(long)]
    pad_last: bool,

    /// This process's place among those that train together, as RANK/WORLD.
    #[arg(long, value_name = "RANK/WORLD", value_parser = parse_rank, default_value = "0/1")]
    rank: (u32, u32),

    /// What a failed sample does: ends the run, masks its row, or gives its row
    /// to the next sample that gives pixels (of at most 8).
    #[arg(long, value_enum, default_value_t = Policy::Stop)]
    on_error: Policy,

    /// How the coordinator is made.
    #[arg(long, value_enum, default_value_t = How::Exec)]
    launch: How,

    /// Kill a worker that often, as a test of the recovery.
    #[arg(long, value_name = "MS")]
    kill_workers_every: Option<u64>,

    /// Most time that one sample may take.
    #[arg(long, value_name = "MS", default_value_t = 60_000)]
    row_limit: u64,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N")]
    max_pixels: Option<u64>,

    /// Most memory that decoding one image may take (default: 512). A worker may
    /// have 128 MiB beside it.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(..=u64::MAX >> 20))]
    max_scratch: Option<u64>,
}

/// A run of one pool, from where to where.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Worker processes; 0 decodes in this process. Default: the usable CPUs.
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,

    /// Epochs of the whole run.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub epochs: u64,

    /// Begin at batch B of epoch E.
    #[arg(long, value_name = "E:B", value_parser = parse_start)]
    start: Option<(u64, u64)>,

    /// Go on from a state that `--save-state` wrote.
    #[arg(long, value_name = "FILE", conflicts_with = "start")]
    resume: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Decode {
    Full,
    Scaled,
}

#[derive(Clone, Copy, ValueEnum)]
enum Orientation {
    Exif,
    Stored,
}

#[derive(Clone, Copy, ValueEnum)]
enum Moves {
    Off,
    Exact,
    Fast,
}

#[derive(Clone, Copy, ValueEnum)]
enum Policy {
    Stop,
    Skip,
    Substitute,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    Exec,
    Fork,
}

impl LoaderArgs {
    pub fn recipe(&self) -> Result<Recipe> {
        let mut recipe = Recipe::load(&self.recipe)?;
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
            recipe = recipe.with_orientation(match orientation {
                Orientation::Exif => Upright::Exif,
                Orientation::Stored => Upright::Stored,
            });
        }
        if let Some(reorder) = self.reorder {
            recipe = recipe.with_reorder(match reorder {
                Moves::Off => Reorder::Off,
                Moves::Exact => Reorder::Exact,
                Moves::Fast => Reorder::Fast,
            });
        }
        Ok(match self.decode {
            None => recipe,
            Some(Decode::Full) => recipe.with_decode(DecodeMode::Full),
            Some(Decode::Scaled) => recipe.with_decode(DecodeMode::Scaled),
        })
    }

    /// Slots of the ring, where no memory limit makes them fewer.
    pub fn depth(&self) -> u32 {
        self.depth.unwrap_or(LoaderBuilder::DEFAULT_DEPTH)
    }

    /// What a forecast without data goes by.
    pub fn run_shape(&self, workers: usize) -> Result<RunShape> {
        let workers = u32::try_from(workers)
            .map_err(|_| Error::config(format!("{workers} workers are too many")))?;
        Ok(RunShape {
            workers,
            batch: self.batch,
            depth: self.depth,
            memory_limit: self.memory_limit,
        })
    }

    /// The loader that the arguments describe; workers and epochs are open.
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        let tail = match (self.drop_last, self.pad_last) {
            (true, _) => Tail::Drop,
            (_, true) => Tail::Pad,
            _ => Tail::Short,
        };
        let mut b = Loader::builder(source)
            .recipe(self.recipe()?)
            .batch_size(self.batch)
            .seed(self.seed)
            .sampler(self.sampler.sampler()?)
            .tail(tail)
            .rank(self.rank.0, self.rank.1)
            .row_limit(Duration::from_millis(self.row_limit))
            .on_error(match self.on_error {
                Policy::Stop => OnError::Stop,
                Policy::Skip => OnError::Skip,
                Policy::Substitute => OnError::Substitute,
            })
            .launch(match self.launch {
                How::Exec => Launch::Exec,
                How::Fork => Launch::Fork,
            });
        if let Some(slots) = self.depth {
            b = b.depth(slots);
        }
        if let Some(bytes) = self.memory_limit {
            b = b.memory_limit(bytes);
        }
        // This executable is the helper, whatever its name and place.
        if let Ok(me) = std::env::current_exe() {
            b = b.helper(me);
        }
        if let Some(scales) = self.sampler.multi_scale()? {
            b = b.multi_scale(scales);
        }
        if let Some(pixels) = self.max_pixels {
            b = b.max_pixels(pixels);
        }
        if let Some(mib) = self.max_scratch {
            b = b.max_scratch(mib << 20);
        }
        if let Some(ms) = self.kill_workers_every {
            b = b.kill_workers_every(Duration::from_millis(ms));
        }
        Ok(b)
    }
}

impl RunArgs {
    /// How many workers the run has, those included that are being replaced.
    pub fn worker_count(&self) -> usize {
        self.workers.unwrap_or_else(default_workers)
    }

    /// The loader that the arguments describe.
    pub fn builder(&self, source: Source) -> Result<LoaderBuilder> {
        let mut b = self.loader.builder(source)?.epochs(self.epochs);
        if let Some(n) = self.workers {
            b = b.workers(n);
        }
        if let Some((epoch, batch)) = self.start {
            b = b.start(epoch, batch);
        }
        if let Some(file) = &self.resume {
            b = b.resume(read_state(file)?);
        }
        Ok(b)
    }
}

fn read_state(file: &PathBuf) -> Result<State> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::dataset(file, format!("cannot be read: {e}")))?;
    serde_json::from_str(&text).map_err(|e| {
        let version = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|state| state.get("version")?.as_u64());
        let what = match version {
            Some(n) if n != u64::from(State::VERSION) => format!(
                "is a state of version {n} and this is version {}: go on with the featherload \
                 that wrote it, or start without a state",
                State::VERSION
            ),
            _ => format!("is no state that --save-state wrote: {e}"),
        };
        Error::dataset(file, what)
    })
}

/// Bytes, or a number with K, M, G or T (of 1,024), as in 2G, 1.5GiB.
fn parse_bytes(text: &str) -> std::result::Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(format!("'{unit}' is none of K, M, G and T")),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "it must be a size, as in 2G".to_owned())?;
    let bytes = number * (1u64 << shift) as f64;
    if !(1.0..=(1u64 << 60) as f64).contains(&bytes) {
        return Err(format!("{bytes} bytes are not between 1 and 2^60"));
    }
    Ok(bytes as u64)
}

fn parse_start(text: &str) -> std::result::Result<(u64, u64), String> {
    let (epoch, batch) = text.split_once(':').ok_or("it must be E:B, as in 3:17")?;
    let number = |s: &str| s.parse::<u64>().map_err(|e| format!("'{s}': {e}"));
    Ok((number(epoch)?, number(batch)?))
}

fn parse_rank(text: &str) -> std::result::Result<(u32, u32), String> {
    let (rank, world) = text
        .split_once('/')
        .ok_or("it must be RANK/WORLD, as in 0/8")?;
    let number = |s: &str| s.parse::<u32>().map_err(|e| format!("'{s}': {e}"));
    Ok((number(rank)?, number(world)?))
}
