//! `featherload index`: which samples a data set has; keeps the answer.

use std::path::PathBuf;

use clap::Args;
use featherload::index::{Index, ScanReport};
use featherload::{Result, Source};
use serde_json::json;

use crate::Outcome;
use crate::output;
use crate::source_args::SourceArgs;

/// Counts the samples of a data set, by their names alone, and keeps the index.
#[derive(Args)]
pub struct IndexArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Keep the index: give FILE as SRC to later runs.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Write the class names, one a line, for `--classes` of other data sets.
    #[arg(long, value_name = "FILE")]
    save_classes: Option<PathBuf>,

    #[arg(long)]
    json: bool,
}

pub fn run(args: IndexArgs) -> Result<Outcome> {
    let (index, scan) = open(args.source.source()?)?;
    if let Some(file) = &args.save {
        index.save(file)?;
    }
    if let Some(file) = &args.save_classes {
        index.classes().write(file)?;
    }
    if args.json {
        output::json(&json!({
            "root": index.root().to_string_lossy(),
            "samples": index.len(),
            "classes": index.classes().len(),
            "label_width": index.label_width(),
            "shared_bytes": index.bytes(),
            "hash": format!("{:032x}", index.hash()),
            "skipped": scan.as_ref().map_or(0, ScanReport::skipped_total),
        }))?;
        return Ok(Outcome::Done);
    }
    output::line(&format!(
        "{} samples, {} classes under {}; {:.1} MiB shared",
        index.len(),
        index.classes().len(),
        index.root().display(),
        output::mib(index.bytes())
    ))?;
    print_skipped(scan.as_ref());
    Ok(Outcome::Done)
}

fn open(source: Source) -> Result<(Index, Option<ScanReport>)> {
    source.open()
}

/// Says what the scan left out, on stderr: never silent.
pub fn print_skipped(scan: Option<&ScanReport>) {
    let Some(scan) = scan else { return };
    for (reason, skipped) in &scan.skipped {
        output::complain(&format!(
            "left out: {} x {reason} (such as {})",
            skipped.count,
            skipped
                .examples
                .first()
                .map_or_else(String::new, |p| p.display().to_string())
        ));
    }
}
