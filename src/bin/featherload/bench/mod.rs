//! `featherload bench`: runs the loader and reports rate, start, memory.
//!
//! - `run`: one pass over the epochs, with digests and failures;
//! - `against_ceiling`: windows of loader and bare decoder in turns;
//! - `replay`: the device stage alone;
//! - `device`: what a run has seen of its device;
//! - `report`: the result struct and how it is printed; `chart`: how it is drawn.

mod against_ceiling;
mod chart;
mod device;
mod replay;
mod report;
mod run;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use featherload::Result;

use crate::Outcome;
use crate::interrupt;
use crate::run_args::RunArgs;
use crate::source_args::SourceArgs;

/// Runs the loader over a data set and reports images per second, start-up
/// times and memory.
#[derive(Args)]
pub struct BenchArgs {
    #[command(flatten)]
    source: SourceArgs,

    #[command(flatten)]
    run: RunArgs,

    /// Stop after N samples.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,

    /// Hash every row: the same digests mean the same bytes.
    #[arg(long)]
    digest: bool,

    /// Measure the decoder alone too, in turns with the loader: `full` decodes
    /// whole pictures, `crop` what the recipe's boxes need; neither resizes. For raw
    /// pictures `copy`: memcpy from populated maps into memory as large as the ring.
    #[arg(long, value_enum, conflicts_with_all = ["digest", "limit", "save_state"])]
    ceiling: Option<Part>,

    /// Pairs of windows of `--ceiling`.
    #[arg(long, default_value_t = 7, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,

    /// Length of a window of `--ceiling`.
    #[arg(
        long,
        default_value_t = 3.0,
        value_name = "SECONDS",
        value_parser = parse_window,
        allow_negative_numbers = true
    )]
    window: f64,

    /// Measure the device alone: fill each slot of the ring once and put it on the
    /// device N times.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["ceiling", "digest", "limit", "save_state"]
    )]
    replay: Option<u32>,

    /// Write where the run stands when it ends, for `--resume`.
    #[arg(long, value_name = "FILE")]
    save_state: Option<PathBuf>,

    /// Draw throughput by time, with stalls and deaths of workers, and the shares of stages,
    /// as SVG.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ceiling", "replay"])]
    svg: Option<PathBuf>,

    /// One JSON object on stdout.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    Full,
    Crop,
    Copy,
}

pub fn run(args: BenchArgs) -> Result<Outcome> {
    let began = Instant::now();
    interrupt::end_the_process()?;
    let ended = match (args.ceiling, args.replay) {
        (Some(part), _) => against_ceiling::run(&args, part),
        (None, Some(rounds)) => replay::run(&args, rounds),
        (None, None) => run::run(&args, began),
    };
    match ended {
        // A Ctrl-C reaches the whole group, and may end a process of the run
        // before this one: then it is what happened.
        Err(e) if !e.is_usage() && !e.is_sample() => match interrupt::caught_behind_failure() {
            Some(signal) => Ok(Outcome::Interrupted(signal)),
            None => Err(e),
        },
        other => other,
    }
}

fn parse_window(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    // Not a number is in no range.
    if !(0.05..=600.0).contains(&seconds) {
        return Err("it must be 0.05 to 600 seconds".into());
    }
    Ok(seconds)
}
