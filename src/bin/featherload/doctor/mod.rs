//! `featherload doctor`: what this machine offers, and its consequences for a run.
//!
//! Each finding begins a line: a verdict, a name, what was found, and its consequence. A feature is
//! tried rather than looked up by version, if that is cheap and harmless. Changes nothing and
//! leaves nothing, except that the index of tar shards is kept, as by every command that opens
//! them.
//!
//! - `finding`: one finding;
//! - `cpu`, `data`, `gpu`, `kernel`, `limits`, `memory`, `pool`: one file for each subject.

mod cpu;
mod data;
mod finding;
mod gpu;
mod kernel;
mod limits;
mod memory;
mod pool;

use std::path::PathBuf;

use clap::Args;
use featherload::{Result, Source};
use serde::Serialize;

use crate::outcome::CommandOutcome;
use crate::output;
use crate::output::fields::print_beside;
use finding::DoctorFinding;

/// Check this machine, and report the consequences for a run.
///
/// Exits with 0 if everything that a run needs is there, and with 1 if a promise is broken. The
/// last lines name the broken promises.
#[derive(Args)]
pub struct DoctorArgs {
    #[arg(value_name = "SRC", help = source_help())]
    path: Option<PathBuf>,

    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

fn source_help() -> String {
    format!(
        "Also check a data set: where it is stored, whether it can be read, what is damaged or \
         left out. SRC is {}",
        Source::KINDS
    )
}

#[derive(Serialize)]
struct Report {
    findings: Vec<DoctorFinding>,
    /// The broken promises of the findings.
    broken_promises: Vec<&'static str>,
}

pub fn run(args: DoctorArgs) -> Result<CommandOutcome> {
    // First, so that a wrong SRC is reported at once.
    let samples = args
        .path
        .as_deref()
        .map(data::CheckedSamples::open)
        .transpose()?;
    let mut findings = kernel::findings();
    findings.extend(cpu::findings());
    findings.extend(memory::findings());
    findings.extend(limits::findings());
    findings.extend(pool::findings());
    findings.extend(gpu::findings());
    if let Some(samples) = samples {
        findings.extend(samples.findings());
    }
    let mut broken_promises = Vec::new();
    for promise in findings.iter().filter_map(|f| f.promise) {
        if !broken_promises.contains(&promise) {
            broken_promises.push(promise);
        }
    }
    let report = Report {
        findings,
        broken_promises,
    };
    output::report(&report, args.json, print)?;
    Ok(CommandOutcome::of_check(report.broken_promises.is_empty()))
}

fn print(report: &Report) -> Result<()> {
    for finding in &report.findings {
        output::lines(&finding.to_string())?;
    }
    if report.broken_promises.is_empty() {
        return output::line("everything that a run needs is there");
    }
    for promise in &report.broken_promises {
        print_beside("not kept here: ", promise)?;
    }
    Ok(())
}
