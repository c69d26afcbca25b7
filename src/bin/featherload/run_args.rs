//! Arguments that describe a run of a loader.

use std::path::PathBuf;

use clap::Args;
use featherload::options::cli;
use featherload::{Error, LoaderBuilder, Position, Result, State};

use crate::loader_args::LoaderArgs;
use crate::setup::RunSetup;
use crate::short_text;
use crate::worker_counts::{WorkerCounts, parse_counts};

/// The range of a run of one pool.
#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub loader: LoaderArgs,

    /// Worker processes. Several numbers, such as 1,2,4, are compared [the usable CPUs].
    ///
    /// 0 decodes in this process. With several numbers each gets a fresh pool.
    #[arg(long, value_name = "N[,N...]", value_parser = parse_counts, help_heading = cli::LIMITS)]
    num_workers: Option<WorkerCounts>,

    /// Epochs of the whole run.
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = cli::ORDER)]
    pub epochs: u64,

    /// Begin at batch B of epoch E.
    #[arg(long, value_name = "E:B", value_parser = parse_start, help_heading = cli::ORDER)]
    start: Option<Position>,

    /// Continue from a state that `--save-state` wrote.
    ///
    /// Ranks and batch size may differ: each remaining sample of the epoch comes once.
    #[arg(long, value_name = "FILE", conflicts_with = "start", help_heading = cli::ORDER)]
    resume: Option<PathBuf>,
}

impl RunArgs {
    /// The given numbers of workers.
    pub fn counts(&self) -> &[usize] {
        self.num_workers.as_ref().map_or(&[], |counts| &counts.0)
    }

    /// The number of workers, if one was given.
    ///
    /// # Errors
    /// Several were given.
    pub fn one_count(&self) -> Result<Option<usize>> {
        match self.counts() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => Err(Error::config(
                "--ceiling and --replay measure one number of workers: give --num-workers one number",
            )),
        }
    }

    /// The loader of the arguments.
    pub fn builder(&self, setup: &RunSetup<'_>, workers: Option<usize>) -> Result<LoaderBuilder> {
        let mut b = setup.builder(setup.options.data()?)?.epochs(self.epochs);
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
                "is a state of version {n}, but this featherload reads version {}: use the \
                 featherload that wrote it, or start without a state",
                State::VERSION
            ),
            _ => format!(
                "is not a state that --save-state wrote: {}: name another file",
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
