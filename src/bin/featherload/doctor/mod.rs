//! `featherload doctor`: what this machine has, and what follows from it.
//!
//! Each finding begins a line: a verdict, a name, what was seen, and what that
//! means for a run. Where it is cheap and harmless a thing is tried, not looked
//! up by version. Changes nothing, and what it makes is gone when it ends; but the
//! index of tar shards is kept, as by every command that opens them.
//!
//! - `finding`: one of them; `cpu`, `data`, `gpu`, `kernel`, `limits`, `memory`, `pool`: what
//!   is looked at, a file a subject.

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
use crate::output::fields::beside;
use finding::DoctorFinding;

/// Say what this machine has, and what follows from it for a run.
///
/// Exit code 0 when everything that a run needs is there, 1 when a promise
/// falls; the last lines say which.
#[derive(Args)]
pub struct DoctorArgs {
    #[arg(value_name = "SRC", help = source_help())]
    path: Option<PathBuf>,

    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

fn source_help() -> String {
    format!(
        "Look at a data set too: where it lies, whether it can be read, what of it is damaged or \
         left out. It is {}",
        Source::KINDS
    )
}

#[derive(Serialize)]
struct Report {
    findings: Vec<DoctorFinding>,
    /// The promises of findings that break one.
    broken_promises: Vec<&'static str>,
}

pub fn run(args: DoctorArgs) -> Result<CommandOutcome> {
    // First, so that a wrong SRC is known at once.
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
        beside("not kept here: ", promise)?;
    }
    Ok(())
}
