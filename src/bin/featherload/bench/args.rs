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
    /// The last batch may be cut: only its rows up to N are counted and hashed. --save-state then
    /// saves the position before that batch.
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    pub limit: Option<u64>,

    /// Before the run, compare every byte of the cache SRC with its checksums. Damage is reported
    /// and ends the command with exit code 1.
    #[arg(long, help_heading = cli::MEASURE)]
    pub verify: bool,

    /// Hash every row: equal digests mean equal bytes.
    #[arg(long, help_heading = cli::MEASURE)]
    pub digest: bool,

    /// Measure the CPU decoder alone too, in turns with the loader: `full` decodes whole images,
    /// `crop` only the crops of the recipe. Neither resizes. For raw images `copy` measures memcpy
    /// from populated maps into memory as large as the ring.
    ///
    /// With `--device cuda` the loader uses the same decoder under `--decode-on cpu`.
    #[arg(
        long,
        value_enum,
        conflicts_with_all = ["digest", "limit", "save_state", "failures"], help_heading = cli::MEASURE)]
    pub ceiling: Option<LoaderPart>,

    /// Number of window pairs for `--ceiling`.
    #[arg(
        long,
        default_value_t = 7,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::MEASURE)]
    pub pairs: u32,

    /// Length of each window of `--ceiling`.
    #[arg(
        long,
        default_value_t = 3.0,
        value_name = "SECONDS",
        value_parser = parse_window,
        allow_negative_numbers = true, help_heading = cli::MEASURE)]
    pub window: f64,

    /// Measure the device alone: fill each slot of the ring once, then copy it to the device N
    /// times. Workers decode: `--decode-on auto` means `cpu` here.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["ceiling", "digest", "limit", "save_state", "failures"], help_heading = cli::MEASURE)]
    pub replay: Option<u32>,

    /// Write the position at the end of the run, for `--resume`.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub save_state: Option<PathBuf>,

    /// Write every failed sample, one JSON object a line, as in `failures` of --json.
    ///
    /// --json lists the first 1,000 failures and counts all of them.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    pub failures: Option<PathBuf>,

    /// Draw throughput over time and the time shares of the stages, as SVG.
    ///
    /// Stalls and worker deaths are marked. Needs exactly one --num-workers value.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ceiling", "replay"], help_heading = cli::OUTPUT)]
    pub svg: Option<PathBuf>,

    /// Print all figures.
    ///
    /// Start, CPU time, PSS, sandbox, profile, and each failure.
    #[arg(long, short, help_heading = cli::OUTPUT)]
    pub verbose: bool,

    /// Print one JSON object on stdout.
    ///
    /// With several --num-workers values it has `runs`, one object for each value, and `verdict`.
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
    // NaN lies in no range.
    if !(0.05..=600.0).contains(&seconds) {
        return Err("it must be 0.05 to 600 seconds".into());
    }
    Ok(seconds)
}
