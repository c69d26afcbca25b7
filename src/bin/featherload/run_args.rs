//! Arguments that describe a loader and a run of it, shared by the sub-commands
//! that make one.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use featherload::forecast::RunShape;
use featherload::options::{LoaderOptions, units};
use featherload::recipe::{Truncated, Upright};
use featherload::{
    Background, DecodeMode, DecodeOn, Device, Dtype, Error, LoaderBuilder, MemoryLayout, OnError,
    Position, Rank, Reorder, Result, Sandbox, State, Tail, Upload,
};

use crate::rss::{Counts, parse_counts};
use crate::sampler_args::SamplerArgs;
use crate::setup::Setup;
use crate::short_text;

/// What is done to each sample, and by what kind of pool.
#[derive(Args)]
pub struct LoaderArgs {
    /// train224, eval224, full, or a recipe file: .yaml, .toml, .json.
    ///
    /// `full` gives whole pictures, each row of its own size. A PaddleClas config (.yaml
    /// with `DataLoader`) is taken too: its values hold where no flag says otherwise, and
    /// its data set where there is no SRC.
    #[arg(long, default_value = "train224")]
    pub recipe: String,

    /// Of a PaddleClas config: train, eval, eval.query, ... [train].
    #[arg(long, value_name = "TREE")]
    mode: Option<String>,

    /// Of a PaddleClas config: leave out operations that are not served.
    #[arg(long)]
    skip_unknown_ops: bool,

    /// Rows of a batch [64].
    #[arg(long, value_name = "N")]
    pub batch_size: Option<u32>,

    /// Slots of the ring [default: 3, or as many as --memory-limit leaves].
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,

    /// Most memory of all processes together: 2G or 1500M.
    ///
    /// Headers are read first; the run gets fewer slots, or is refused.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub memory_limit: Option<u64>,

    /// Which operations may change places: none and each by itself, where no bit
    /// changes, or also where values do (default: the recipe's). See `plan`.
    #[arg(long, value_enum)]
    reorder: Option<Moves>,

    /// Element type (default: the recipe's).
    #[arg(long, value_parser = dtypes())]
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

    /// Turn pictures as EXIF says, or leave them as Pillow's `open`, torchvision's
    /// ImageFolder and camera intrinsics (COLMAP, transforms.json) have them: as stored,
    /// but for TIFF, which Pillow turns (default: the recipe's, exif).
    #[arg(long, value_enum)]
    orientation: Option<Orientation>,

    /// Refuse JPEG and PNG that end too early, or keep what is there of them, as Pillow's
    /// LOAD_TRUNCATED_IMAGES: the rest is grey or black, and such samples are counted
    /// (default: the recipe's, refuse).
    #[arg(long, value_enum)]
    truncated: Option<CutOff>,

    /// Where batches end: cpu, cuda, or cuda:N.
    #[arg(long, default_value_t = Device::Cpu)]
    pub device: Device,

    /// How a device gets at pixels: over the bus while its kernel runs, or copied
    /// first into memory of its own. auto: copied where the kernel reads them twice or
    /// copies fit --gpu-memory-limit, else in-place.
    #[arg(long, value_enum, default_value_t = Way::Auto)]
    pub upload: Way,

    /// Most memory of the device that the run may take, its context apart, such as
    /// 256M. The run gets fewer slots, or is refused.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub gpu_memory_limit: Option<u64>,

    /// Which decoders make the pixels of JPEGs: auto, gpu, or cpu.
    ///
    /// On a device `auto` and `gpu` let the GPU decode every JPEG that its kernels take, and
    /// workers all other files. Where the recipe leaves rows to workers, or --gpu-memory-limit
    /// leaves no room, `auto` lets workers decode all, and `gpu` is an error. Pixels are the same.
    #[arg(long, value_name = "WHERE", default_value_t = DecodeOn::Auto)]
    pub decode_on: DecodeOn,

    /// Of order and random parameters [0].
    #[arg(long)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub sampler: SamplerArgs,

    /// Leave out a last batch that is not full.
    #[arg(long, conflicts_with = "pad_last")]
    drop_last: bool,

    /// Fill a last batch with masked rows.
    #[arg(long)]
    pad_last: bool,

    #[command(flatten)]
    pub place: RankArgs,

    /// What a failed sample does [stop].
    ///
    /// It ends the run (stop), masks its row (skip), or gives its row to the next sample
    /// that gives pixels, of at most 8 (substitute; the default with a PaddleClas config).
    #[arg(long, value_enum)]
    on_error: Option<Policy>,

    /// How the coordinator is made.
    #[arg(long, value_enum, default_value_t = How::Exec)]
    pub launch: How,

    /// Kill a worker that often, as a test of the recovery.
    #[arg(long, value_name = "MS")]
    pub kill_workers_every: Option<u64>,

    /// What workers are kept from, beside their work: all system calls and files but those
    /// that they need (auto, as far as the system allows it; require), or nothing (off).
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub sandbox: Sandbox,

    /// Most time that one sample may take.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = units::seconds)]
    pub row_limit: Duration,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N")]
    pub max_pixels: Option<u64>,

    /// Most memory that decoding one image may take, such as 256M (default: 512M). A worker
    /// may have 128 MiB beside it.
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub max_scratch: Option<u64>,
}

/// A run of one pool, from where to where.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Worker processes; several numbers, as in 1,2,4, are compared [the usable CPUs].
    ///
    /// 0 decodes in this process. Of several numbers each has a fresh pool.
    #[arg(long, value_name = "N[,N...]", value_parser = parse_counts)]
    num_workers: Option<Counts>,

    /// Epochs of the whole run.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub epochs: u64,

    /// Begin at batch B of epoch E.
    #[arg(long, value_name = "E:B", value_parser = parse_start)]
    start: Option<Position>,

    /// Go on from a state that `--save-state` wrote.
    ///
    /// Ranks and batch size may be others: each further sample of the epoch comes once.
    #[arg(long, value_name = "FILE", conflicts_with = "start")]
    resume: Option<PathBuf>,
}

/// This process among those that train together.
#[derive(Args)]
pub struct RankArgs {
    /// This process's number among those that train together, from 0; with --world-size.
    #[arg(long, value_name = "R", requires = "world_size")]
    rank: Option<u32>,

    /// How many processes train together; with --rank.
    #[arg(long, value_name = "W", requires = "rank")]
    world_size: Option<u32>,
}

impl RankArgs {
    /// None where no flag names a place.
    pub fn rank(&self) -> Option<Rank> {
        Some(Rank::new(self.rank?, self.world_size?))
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Way {
    Auto,
    InPlace,
    Copied,
}

impl Way {
    /// None leaves it to the library.
    pub fn asked(self) -> Option<Upload> {
        match self {
            Self::Auto => None,
            Self::InPlace => Some(Upload::InPlace),
            Self::Copied => Some(Upload::Copied),
        }
    }
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
enum CutOff {
    Refuse,
    Keep,
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
pub enum How {
    Exec,
    Fork,
}

impl LoaderArgs {
    /// What they say, as the library takes it; the order comes with the config.
    pub fn options(&self) -> LoaderOptions {
        LoaderOptions {
            recipe: Some(self.recipe.clone()),
            mode: self.mode.clone(),
            skip_unknown_ops: self.skip_unknown_ops,
            dtype: self.dtype,
            layout: self.layout,
            decode: self.decode.map(|mode| match mode {
                Decode::Full => DecodeMode::Full,
                Decode::Scaled => DecodeMode::Scaled,
            }),
            reorder: self.reorder.map(|moves| match moves {
                Moves::Off => Reorder::Off,
                Moves::Exact => Reorder::Exact,
                Moves::Fast => Reorder::Fast,
            }),
            background: self.background,
            orientation: self.orientation.map(|orientation| match orientation {
                Orientation::Exif => Upright::Exif,
                Orientation::Stored => Upright::Stored,
            }),
            truncated: self.truncated.map(|truncated| match truncated {
                CutOff::Refuse => Truncated::Refuse,
                CutOff::Keep => Truncated::Keep,
            }),
            batch_size: self.batch_size,
            depth: self.depth,
            memory_limit: self.memory_limit,
            device: self.device,
            upload: self.upload.asked(),
            gpu_memory_limit: self.gpu_memory_limit,
            decode_on: Some(self.decode_on),
            seed: self.seed,
            tail: match (self.drop_last, self.pad_last) {
                (true, _) => Some(Tail::Drop),
                (_, true) => Some(Tail::Pad),
                _ => None,
            },
            rank: self.place.rank(),
            on_error: self.on_error.map(|policy| match policy {
                Policy::Stop => OnError::Stop,
                Policy::Skip => OnError::Skip,
                Policy::Substitute => OnError::Substitute,
            }),
            sandbox: Some(self.sandbox),
            row_limit: Some(self.row_limit),
            max_pixels: self.max_pixels,
            max_scratch: self.max_scratch,
            ..LoaderOptions::default()
        }
    }

    /// Slots of the ring, where no memory limit makes them fewer.
    pub fn depth(&self) -> u32 {
        self.depth.unwrap_or(LoaderBuilder::DEFAULT_DEPTH)
    }

    /// What a forecast without data goes by.
    pub fn run_shape(&self, workers: usize, batch: u32) -> Result<RunShape> {
        let workers = u32::try_from(workers)
            .map_err(|_| Error::config(format!("{workers} workers are too many")))?;
        Ok(RunShape {
            workers,
            batch,
            depth: self.depth,
            memory_limit: self.memory_limit,
        })
    }
}

impl RunArgs {
    /// The numbers of workers that were named.
    pub fn counts(&self) -> &[usize] {
        self.num_workers.as_ref().map_or(&[], |counts| &counts.0)
    }

    /// The number of workers, where one was named.
    ///
    /// # Errors
    /// When several were.
    pub fn one_count(&self) -> Result<Option<usize>> {
        match self.counts() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => Err(Error::config(
                "--ceiling and --replay take one number of --num-workers",
            )),
        }
    }

    /// The loader that the arguments describe.
    pub fn builder(&self, setup: &Setup<'_>, workers: Option<usize>) -> Result<LoaderBuilder> {
        let mut b = setup.builder(setup.source()?)?.epochs(self.epochs);
        if let Some(n) = setup.num_workers(workers) {
            b = b.num_workers(n);
        }
        if let Some(at) = self.start {
            b = b.start(at);
        }
        if let Some(file) = &self.resume {
            b = b.resume(read_state(file)?);
        }
        Ok(b)
    }
}

fn read_state(file: &PathBuf) -> Result<State> {
    let opened = std::fs::File::open(file)
        .map_err(|e| Error::dataset(file, format!("cannot be read: {e}")))?;
    let text = short_text::read(opened, file, "state that --save-state wrote")?;
    serde_json::from_str(&text).map_err(|e| {
        let version = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|state| state.get("version")?.as_u64());
        let what = match version {
            Some(n) if n != u64::from(State::VERSION) => format!(
                "is a state of version {n}, and this featherload reads version {}: use the \
                 featherload that wrote it, or start without a state",
                State::VERSION
            ),
            _ => format!(
                "is not a state that --save-state wrote: {}",
                e.to_string().replace('`', "'")
            ),
        };
        Error::dataset(file, what)
    })
}

fn dtypes() -> impl TypedValueParser<Value = Dtype> {
    PossibleValuesParser::new(Dtype::ALL.map(Dtype::name)).try_map(|name| name.parse::<Dtype>())
}

fn parse_start(text: &str) -> std::result::Result<Position, String> {
    let (epoch, batch) = text
        .split_once(':')
        .ok_or("use EPOCH:BATCH, such as 3:17")?;
    let number = |s: &str| s.parse::<u64>().map_err(|e| format!("'{s}': {e}"));
    Ok(Position::new(number(epoch)?, number(batch)?))
}
