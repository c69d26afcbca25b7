//! The arguments of `featherload bench`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use featherload::options::{SourceOptions, cli};

use crate::run_args::RunArgs;

/// Run the loader over a data set. Reports images per second, memory, and what limits
/// them.
#[derive(Args)]
pub struct BenchArgs {
    #[command(flatten)]
    pub source: SourceOptions,

    #[command(flatten)]
    pub run: RunArgs,

    /// Stop after N samples.
    ///
    /// Of the last batch only the rows up to there are counted and hashed; --save-state
    /// then stands before that batch.
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    pub limit: Option<u64>,

    /// Before the run, compare every byte of the cache SRC with its checksums. Damage is
    /// named and ends the command with 1.
    #[arg(long, help_heading = cli::MEASURE)]
    pub verify: bool,

    /// Hash every row: the same digests mean the same bytes.
    #[arg(long, help_heading = cli::MEASURE)]
    pub digest: bool,

    /// Measure the CPU decoder alone too, in turns with the loader: `full` decodes
    /// whole pictures, `crop` what the recipe's boxes need; neither resizes. For raw
    /// pictures `copy`: memcpy from populated maps into memory as large as the ring.
    ///
    /// With `--device cuda` the loader has the same decoder under `--decode-on cpu`.
    #[arg(
        long,
        value_enum,
        conflicts_with_all = ["digest", "limit", "save_state", "failures"], help_heading = cli::MEASURE)]
    pub ceiling: Option<LoaderPart>,

    /// Pairs of windows of `--ceiling`.
    #[arg(
        long,
        default_value_t = 7,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::MEASURE)]
    pub pairs: u32,

    /// Length of a window of `--ceiling`.
    #[arg(
        long,
        default_value_t = 3.0,
        value_name = "SECONDS",
        value_parser = parse_window,
        allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub window: f64,

    /// Measure the device alone: fill each slot of the ring once and put it on the
    /// device N times. Workers decode: `--decode-on auto` is `cpu` here.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["ceiling", "digest", "limit", "save_state", "failures"], help_heading = cli::MEASURE)]
    pub replay: Option<u32>,

    /// Write where the run stands when it ends, for `--resume`.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub save_state: Option<PathBuf>,

    /// Write every failed sample: a JSON object a line, as in `failures` of --json.
    ///
    /// --json has the first 1,000 failures, and counts all.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub failures: Option<PathBuf>,

    /// Draw throughput by time and the shares of stages, as SVG.
    ///
    /// Stalls and deaths of workers are marked. For one number of --num-workers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ceiling", "replay"], help_heading = cli::OUTPUT)]
    pub svg: Option<PathBuf>,

    /// Print all figures.
    ///
    /// Start, CPU time, PSS, sandbox, profile, and each failure.
    #[arg(long, short, help_heading = cli::OUTPUT)]
    pub verbose: bool,

    /// One JSON object on stdout.
    ///
    /// With several --num-workers it has `runs`, an object for each number, and `verdict`.
    #[arg(long, help_heading = cli::OUTPUT)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum LoaderPart {
    Full,
    Crop,
    Copy,
}

fn parse_window(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    // Not a number is in no range.
    if !(0.05..=600.0).contains(&seconds) {
        return Err("it must be 0.05 to 600 seconds".into());
    }
    Ok(seconds)
}
