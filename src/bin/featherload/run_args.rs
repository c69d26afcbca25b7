//! Arguments that describe a loader and a run of it, shared by the sub-commands
//! that make one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use featherload::forecast::RunShape;
use featherload::options::{LoaderOptions, cli};
use featherload::{Error, LoaderBuilder, Position, Rank, Result, State};

use crate::rss::{Counts, parse_counts};
use crate::sampler_args::SamplerArgs;
use crate::setup::Setup;
use crate::short_text;

/// What is done to each sample, and by what kind of pool.
#[derive(Args)]
pub struct LoaderArgs {
    #[command(flatten)]
    pub options: LoaderOptions,

    #[command(flatten)]
    pub sampler: SamplerArgs,

    /// How the coordinator is made.
    #[arg(long, value_enum, default_value_t = How::Exec, help_heading = cli::LIMITS)]
    pub launch: How,

    /// Kill a worker that often, as a test of the recovery.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    pub kill_workers_every: Option<u64>,
}

/// A run of one pool, from where to where.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Worker processes; several numbers, as in 1,2,4, are compared [the usable CPUs].
    ///
    /// 0 decodes in this process. Of several numbers each has a fresh pool.
    #[arg(long, value_name = "N[,N...]", value_parser = parse_counts, help_heading = cli::LIMITS)]
    num_workers: Option<Counts>,

    /// Epochs of the whole run.
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = cli::ORDER)]
    pub epochs: u64,

    /// Begin at batch B of epoch E.
    #[arg(long, value_name = "E:B", value_parser = parse_start, help_heading = cli::ORDER)]
    start: Option<Position>,

    /// Go on from a state that `--save-state` wrote.
    ///
    /// Ranks and batch size may be others: each further sample of the epoch comes once.
    #[arg(long, value_name = "FILE", conflicts_with = "start", help_heading = cli::ORDER)]
    resume: Option<PathBuf>,
}

/// This process among those that train together.
#[derive(Args)]
pub struct RankArgs {
    /// This process's number among those that train together, from 0; with --world-size.
    #[arg(long, value_name = "R", requires = "world_size", help_heading = cli::ORDER)]
    rank: Option<u32>,

    /// How many processes train together; with --rank.
    #[arg(long, value_name = "W", requires = "rank", help_heading = cli::ORDER)]
    world_size: Option<u32>,
}

impl RankArgs {
    /// None where no flag names a place.
    pub fn rank(&self) -> Option<Rank> {
        Some(Rank::new(self.rank?, self.world_size?))
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub enum How {
    Exec,
    Fork,
}

impl LoaderArgs {
    /// Slots of the ring, where no memory limit makes them fewer.
    pub fn depth(&self) -> u32 {
        self.options.depth.unwrap_or(LoaderBuilder::DEFAULT_DEPTH)
    }

    /// What a forecast without data goes by.
    pub fn run_shape(&self, workers: usize, batch: u32) -> Result<RunShape> {
        let workers = u32::try_from(workers)
            .map_err(|_| Error::config(format!("{workers} workers are too many")))?;
        Ok(RunShape {
            workers,
            batch,
            depth: self.options.depth,
            memory_limit: self.options.memory_limit,
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

fn parse_start(text: &str) -> std::result::Result<Position, String> {
    let (epoch, batch) = text
        .split_once(':')
        .ok_or("use EPOCH:BATCH, such as 3:17")?;
    let number = |s: &str| s.parse::<u64>().map_err(|e| format!("'{s}': {e}"));
    Ok(Position::new(number(epoch)?, number(batch)?))
}
