//! `featherload bench`: runs the loader and reports rate, start, memory.
//!
//! - `run`: one pass over the epochs; `counts` and `pace`: what is counted meanwhile;
//!   `bar`: how far it is;
//! - `several`: a pass for each number of workers, as a table;
//! - `against_ceiling`: windows of loader and bare decoder in turns;
//! - `replay`: the device stage alone;
//! - `device`: what a run has seen of its device;
//! - `report`: the result, as plain data; `subject`: what ran; `limit`: what limits a run,
//!   and what would be faster; `scaled_gain`: what scaled decoding would bring; `failures`: grouped
//!   and listed; `text`: how a report is printed; `chart`: how it is drawn.

mod against_ceiling;
mod bar;
mod chart;
mod counts;
mod device;
mod failures;
mod limit;
mod pace;
mod replay;
mod report;
mod run;
mod scaled_gain;
mod several;
mod subject;
mod text;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use featherload::cache::{self, VerifyOptions};
use featherload::options::{SourceOptions, cli};
use featherload::{DecodeOn, Error, Result};

use crate::cache::print_verified;
use crate::run_args::RunArgs;
use crate::setup::Setup;
use crate::{Outcome, interrupt, output};

/// Run the loader over a data set. Reports images per second, memory, and what limits
/// them.
#[derive(Args)]
pub struct BenchArgs {
    #[command(flatten)]
    source: SourceOptions,

    #[command(flatten)]
    run: RunArgs,

    /// Stop after N samples.
    ///
    /// Of the last batch only the rows up to there are counted and hashed; --save-state
    /// then stands before that batch.
    #[arg(long, value_name = "N", help_heading = cli::ORDER)]
    limit: Option<u64>,

    /// Before the run, compare every byte of the cache SRC with its checksums. Damage is
    /// named and ends the command with 1.
    #[arg(long, help_heading = cli::MEASURE)]
    verify: bool,

    /// Hash every row: the same digests mean the same bytes.
    #[arg(long, help_heading = cli::MEASURE)]
    digest: bool,

    /// Measure the CPU decoder alone too, in turns with the loader: `full` decodes
    /// whole pictures, `crop` what the recipe's boxes need; neither resizes. For raw
    /// pictures `copy`: memcpy from populated maps into memory as large as the ring.
    ///
    /// With `--device cuda` the loader has the same decoder under `--decode-on cpu`.
    #[arg(
        long,
        value_enum,
        conflicts_with_all = ["digest", "limit", "save_state", "failures"], help_heading = cli::MEASURE)]
    ceiling: Option<Part>,

    /// Pairs of windows of `--ceiling`.
    #[arg(
        long,
        default_value_t = 7,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..), help_heading = cli::MEASURE)]
    pairs: u32,

    /// Length of a window of `--ceiling`.
    #[arg(
        long,
        default_value_t = 3.0,
        value_name = "SECONDS",
        value_parser = parse_window,
        allow_negative_numbers = true, help_heading = cli::MEASURE)]
    window: f64,

    /// Measure the device alone: fill each slot of the ring once and put it on the
    /// device N times. Workers decode: `--decode-on auto` is `cpu` here.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["ceiling", "digest", "limit", "save_state", "failures"], help_heading = cli::MEASURE)]
    replay: Option<u32>,

    /// Write where the run stands when it ends, for `--resume`.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    save_state: Option<PathBuf>,

    /// Write every failed sample: a JSON object a line, as in `failures` of --json.
    ///
    /// --json has the first 1,000 failures, and counts all.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    failures: Option<PathBuf>,

    /// Draw throughput by time and the shares of stages, as SVG.
    ///
    /// Stalls and deaths of workers are marked. For one number of --num-workers.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ceiling", "replay"], help_heading = cli::OUTPUT)]
    svg: Option<PathBuf>,

    /// Print all figures.
    ///
    /// Start, CPU time, PSS, sandbox, profile, and each failure.
    #[arg(long, short, help_heading = cli::OUTPUT)]
    verbose: bool,

    /// One JSON object on stdout.
    ///
    /// With several --num-workers it has `runs`, an object for each number, and `verdict`.
    #[arg(long, help_heading = cli::OUTPUT)]
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
    match measure(&args, began) {
        // A Ctrl-C reaches the whole group, and may end a process of the run
        // before this one: then it is what happened.
        Err(e) if !e.is_usage() && !e.is_sample() => match interrupt::caught_behind_failure() {
            Some(signal) => Ok(Outcome::Interrupted(signal)),
            None => Err(e),
        },
        other => other,
    }
}

fn measure(args: &BenchArgs, began: Instant) -> Result<Outcome> {
    for (option, file) in [
        ("--save-state", &args.save_state),
        ("--failures", &args.failures),
        ("--svg", &args.svg),
    ] {
        if let Some(file) = file {
            output::check_text_writable(option, file)?;
        }
    }
    if args.limit == Some(0) {
        return Err(Error::config("--limit is 0, it must be at least 1"));
    }
    let mut setup = Setup::new(&args.run.loader, &args.source)?;
    setup.warn();
    if args.verify && !is_good(args)? {
        return Ok(Outcome::CheckFailed);
    }
    if args.replay.is_some() && setup.decode_on() == DecodeOn::Auto {
        setup.options().decode_on = Some(DecodeOn::Cpu);
    }
    match (args.ceiling, args.replay) {
        (Some(part), _) => against_ceiling::run(args, &setup, part),
        (None, Some(rounds)) => replay::run(args, &setup, rounds),
        (None, None) if args.run.counts().len() > 1 => several::run(args, &setup),
        (None, None) => run::run(args, &setup, began),
    }
}

/// Whether every byte of the cache is what its checksums say. Findings are printed.
fn is_good(args: &BenchArgs) -> Result<bool> {
    let Some(folder) = args.source.path.as_deref() else {
        return Err(Error::config("--verify needs SRC: the folder of a cache"));
    };
    let bar = output::bytes(!args.json);
    let verified = cache::verify(folder, &VerifyOptions::default(), &|progress| {
        bar.set_length(progress.of);
        bar.set_position(progress.bytes);
    });
    bar.finish_and_clear();
    let report = verified?;
    if !report.checksums {
        return Err(Error::config(format!(
            "--verify needs a cache, and {} has no checksums: leave the option out",
            folder.display()
        )));
    }
    let is_good = report.is_good() && report.complete;
    if !is_good && args.json {
        output::json(&serde_json::json!({ "good": false, "report": report }))?;
    } else if !args.json {
        print_verified(folder, &report)?;
    }
    Ok(is_good)
}

fn parse_window(text: &str) -> std::result::Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    // Not a number is in no range.
    if !(0.05..=600.0).contains(&seconds) {
        return Err("it must be 0.05 to 600 seconds".into());
    }
    Ok(seconds)
}
