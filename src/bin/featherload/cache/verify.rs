//! `featherload cache verify`: compares all bytes of a cache with its checksums.

use std::path::{Path, PathBuf};

use clap::Args;
use featherload::cache::{self, VerifyFinding, VerifyOptions, VerifyReport};
use featherload::{Result, error};
use serde_json::json;

use crate::outcome::CommandOutcome;
use crate::output;

/// Compare every byte of a cache with its checksums, and report damage.
///
/// Exits with 0 if all is good, and with 1 on damage, a missing shard or an unfinished build. Exits
/// with 2 if SRC is neither cache nor tar, or a cache with the manifest of another featherload
/// version. Foreign tars have no checksums: only headers and bounds are checked, and `good` of
/// --json is null if these are valid.
#[derive(Args)]
pub struct VerifyArgs {
    /// The cache's folder, or one of its shards. Or a folder of tars, or a tar.
    #[arg(value_name = "DST")]
    dst: PathBuf,

    /// Threads that read. Default: the usable CPUs.
    #[arg(long, value_name = "N")]
    num_workers: Option<usize>,

    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Findings that are printed; `--json` lists more.
const NAMED: usize = 100;

pub fn run(args: VerifyArgs) -> Result<CommandOutcome> {
    let mut options = VerifyOptions::default();
    options.num_workers = args.num_workers;
    let report = verified(&args.dst, &options, args.json)?;
    // An unfinished cache fails, even if its shards are good.
    let passed = report.is_good() && report.complete;
    if args.json {
        let folder = args.dst.to_string_lossy();
        // Unknown: foreign tars have no checksums of their contents.
        let good = (report.checksums || !passed).then_some(passed);
        output::json(&json!({ "folder": folder, "good": good, "report": report }))?;
    } else {
        print(&args.dst, &report)?;
    }
    Ok(CommandOutcome::of_check(passed))
}

/// The damage in `folder`. Shows a progress bar, unless JSON is printed.
pub fn verified(folder: &Path, options: &VerifyOptions, json: bool) -> Result<VerifyReport> {
    let bar = output::bytes(!json);
    let report = cache::verify(folder, options, &|progress| {
        bar.set_length(progress.of);
        bar.set_position(progress.bytes);
    });
    bar.finish_and_clear();
    report
}

/// Prints the findings and a verdict.
pub fn print(folder: &Path, report: &VerifyReport) -> Result<()> {
    for finding in report.findings.iter().take(NAMED) {
        output::line(&text(finding))?;
    }
    let printed = report.findings.len().min(NAMED) as u64;
    if report.found > printed {
        output::line(&format!("and {} more findings", report.found - printed))?;
    }
    let verdict = match report.found {
        0 if !report.complete => "NOT COMPLETE: the shards that are there are good; run the build \
                                  again"
            .to_owned(),
        0 if report.checksums => "good".to_owned(),
        0 => "headers are good; there are no checksums to compare contents with".to_owned(),
        1 => "DAMAGED: 1 finding".to_owned(),
        n => format!("DAMAGED: {n} findings"),
    };
    output::line(&format!(
        "{}: {verdict}; {} samples in {} shards, {} read in {:.1} s",
        folder.display(),
        report.samples,
        report.shards,
        error::size(report.bytes),
        report.seconds
    ))?;
    if !report.checksums && !report.is_good() {
        output::line(
            "no cache: headers and bounds were checked; there are no checksums to compare contents \
             with",
        )?;
    }
    if !report.complete && !report.is_good() {
        output::line("NOT COMPLETE: the shards that are there were checked; run the build again")?;
    }
    Ok(())
}

fn text(finding: &VerifyFinding) -> String {
    let at = finding
        .offset
        .map_or(String::new(), |at| format!(" at byte {at}"));
    let sample = match &finding.sample {
        Some(sample) => match sample.id {
            Some(id) => format!(" (sample {id}, {})", sample.key),
            None => format!(" (sample {})", sample.key),
        },
        None => String::new(),
    };
    format!(
        "{}{at}: {}: {}{sample}",
        finding.file.display(),
        finding.kind.name(),
        finding.message
    )
}
