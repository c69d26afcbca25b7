//! `featherload bench`: runs the loader and reports rate, start time and memory.
//!
//! - `args`: the arguments;
//! - `run`: one pass over the epochs;
//! - `counts`: counts of batches and rows;
//! - `pace`: the rate of the run and of its parts;
//! - `bar`: the progress bar;
//! - `worker_scaling`: one run for each number of workers, as a table;
//! - `against_ceiling`: loader and bare decoder in alternating windows;
//! - `replay`: the device stage alone;
//! - `device`: what a run measures on its device;
//! - `report`: the result, as plain data;
//! - `subject`: source, recipe and batch of the run;
//! - `limit`: what limits a run, and what would make it faster;
//! - `scaled_gain`: the gain of scaled decoding;
//! - `column_cost`: the time for columns, and what makes them faster;
//! - `failures`: failed samples, grouped and listed;
//! - `text`: the printed report;
//! - `chart`: the report as SVG.

mod against_ceiling;
mod args;
mod bar;
mod chart;
mod column_cost;
mod counts;
mod device;
mod failures;
mod limit;
mod pace;
mod replay;
mod report;
mod run;
mod scaled_gain;
mod subject;
mod text;
mod worker_scaling;

use std::time::Instant;

use featherload::cache::VerifyOptions;
use featherload::{DecodeOn, Error, Result};

pub use self::args::BenchArgs;
use crate::cache::{print_verified, verified};
use crate::outcome::CommandOutcome;
use crate::output;
use crate::setup::RunSetup;

pub fn run(args: BenchArgs) -> Result<CommandOutcome> {
    CommandOutcome::or_interrupted(measure(&args, Instant::now()))
}

fn measure(args: &BenchArgs, began: Instant) -> Result<CommandOutcome> {
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
        return Err(Error::config("--limit is 0: use at least 1"));
    }
    let mut setup = RunSetup::new(&args.run.loader, &args.source)?;
    setup.warn();
    if args.verify && !is_good(args)? {
        return Ok(CommandOutcome::CheckFailed);
    }
    if args.replay.is_some() && setup.options.loader.decode_on.unwrap_or_default() == DecodeOn::Auto
    {
        setup.options.loader.decode_on = Some(DecodeOn::Cpu);
    }
    match (args.ceiling, args.replay) {
        (Some(part), _) => against_ceiling::run(args, &setup, part),
        (None, Some(rounds)) => replay::run(args, &setup, rounds),
        (None, None) if args.run.counts().len() > 1 => worker_scaling::run(args, &setup),
        (None, None) => run::run(args, &setup, began),
    }
}

/// Whether every byte of the cache matches its checksums. Prints the findings.
fn is_good(args: &BenchArgs) -> Result<bool> {
    let Some(folder) = args.source.path.as_deref() else {
        return Err(Error::config("--verify needs SRC: the folder of a cache"));
    };
    let report = verified(folder, &VerifyOptions::default(), args.json)?;
    if !report.checksums {
        return Err(Error::config(format!(
            "--verify needs a cache, but {} has no checksums: remove the option",
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
