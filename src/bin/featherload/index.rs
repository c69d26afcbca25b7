//! `featherload index`: which samples a data set has, and what their headers
//! say; keeps the index.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use featherload::index::{DamagedShard, Index, Label, ScanReport};
use featherload::survey::{PictureSize, SizeStatistics, Survey, SurveyOptions};
use featherload::{Error, Result, Source};
use serde::Serialize;
use serde_json::json;

use crate::Outcome;
use crate::output;
use crate::source_args::SourceArgs;

/// Counts the samples of a data set, its classes, formats, sizes and the files
/// that cannot be read; keeps the index.
///
/// Opens every file and reads its header, never a pixel.
#[derive(Args)]
#[command(mut_arg("path", |path| path.required_unless_present("list")))]
pub struct IndexArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// Open no file: names and classes only.
    #[arg(long)]
    no_headers: bool,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N", conflicts_with = "no_headers")]
    max_pixels: Option<u64>,

    /// Keep the index: give FILE as SRC to later runs.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Write the class names, one a line, for `--classes` of other data sets.
    #[arg(long, value_name = "FILE")]
    save_classes: Option<PathBuf>,

    /// Write DALI's index, SHARD.idx, beside each tar shard.
    #[arg(long)]
    write_idx: bool,

    /// One JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Unreadable files, or damaged shards, that are named to people; `--json` has
/// more.
const NAMED: usize = 20;

pub fn run(args: IndexArgs) -> Result<Outcome> {
    let source = args.source.source(None)?;
    let shards = args.write_idx.then(|| shards_of(&source)).transpose()?;
    // First: the index of the shards is kept with what lies beside them, and a run
    // that goes on is over shards that have theirs.
    let written = shards
        .map(|shards| Index::write_dali_indexes(&shards))
        .transpose()?;
    let (index, scan) = source.open()?;
    // Kept first: reading headers may take long, and takes nothing from it.
    if let Some(file) = &args.save {
        index.save(file)?;
    }
    if let Some(file) = &args.save_classes {
        index.classes().write(file)?;
    }
    let classes = ClassSizes::of(&index);
    let survey = if args.no_headers {
        None
    } else {
        let bar = output::progress(index.len(), !args.json);
        let mut options = SurveyOptions::default();
        if let Some(pixels) = args.max_pixels {
            options.max_pixels = pixels;
        }
        let survey = Survey::with(&index, &options, &|n| bar.inc(n));
        bar.finish_and_clear();
        Some(survey?)
    };
    if args.json {
        output::json(&json!({
            "root": index.root().to_string_lossy(),
            "samples": index.len(),
            "classes": index.classes().len(),
            "smallest_class": classes.as_ref().map(|c| &c.smallest),
            "largest_class": classes.as_ref().map(|c| &c.largest),
            "label_width": index.label_width(),
            "shared_bytes": index.bytes(),
            "hash": format!("{:032x}", index.hash()),
            "shards": index.shards(),
            "dali_indexes": written.as_ref().map(Vec::len),
            "skipped": scan.as_ref().map_or(0, ScanReport::skipped_total),
            "damaged": scan.as_ref().map_or_else(Vec::new, damaged),
            "headers": survey,
        }))?;
        return Ok(Outcome::Done);
    }
    if let Some(written) = &written {
        output::line(&format!("written    {} indexes for DALI", written.len()))?;
    }
    output::line(&format!(
        "{} samples, {} classes under {}; {:.1} MiB shared",
        index.len(),
        index.classes().len(),
        index.root().display(),
        output::mib(index.bytes())
    ))?;
    if let Some(c) = &classes {
        output::line(&format!(
            "classes    smallest {}, largest {}",
            c.smallest.text(),
            c.largest.text()
        ))?;
    }
    if let Some(survey) = &survey {
        print_survey(&index, survey)?;
    }
    print_skipped(scan.as_ref());
    Ok(Outcome::Done)
}

/// The shards that get an index.
fn shards_of(source: &Source) -> Result<Vec<PathBuf>> {
    match source {
        Source::Shards(shards, _) => Ok(shards.clone()),
        _ => Err(Error::config(
            "--write-idx is for tar shards, and SRC is none: leave the option out",
        )),
    }
}

/// Damaged shards, as `--json` has them.
fn damaged(scan: &ScanReport) -> Vec<serde_json::Value> {
    let shard = |d: &DamagedShard| {
        json!({
            "path": d.path.to_string_lossy(),
            "at": d.at,
            "what": d.what,
            "places": d.places,
            "bytes_lost": d.bytes_lost,
            "samples_incomplete": d.samples_incomplete,
            "samples_missing": d.samples_missing,
        })
    };
    scan.damaged.iter().map(shard).collect()
}

/// A class and how many samples it has.
#[derive(Serialize)]
struct ClassSize {
    number: i64,
    /// None for labels out of a list file.
    name: Option<String>,
    samples: u64,
}

impl ClassSize {
    fn text(&self) -> String {
        let samples = self.samples;
        match &self.name {
            Some(name) => format!("'{name}' with {samples}"),
            None => format!("{} with {samples}", self.number),
        }
    }
}

struct ClassSizes {
    smallest: ClassSize,
    largest: ClassSize,
}

impl ClassSizes {
    /// None where samples have no classes.
    fn of(index: &Index) -> Option<Self> {
        let names = index.classes();
        // A class folder may be empty.
        let mut counts: BTreeMap<i64, u64> = (0..).take(names.len()).map(|n| (n, 0)).collect();
        for id in 0..index.len() {
            if let Label::Class(number @ 0..) = index.label(id) {
                *counts.entry(number).or_default() += 1;
            }
        }
        let size = |(&number, &samples): (&i64, &u64)| ClassSize {
            number,
            name: names.name(number).map(|n| n.to_string_lossy().into_owned()),
            samples,
        };
        // Of several the first.
        Some(Self {
            smallest: counts.iter().min_by_key(|(n, s)| (**s, **n)).map(size)?,
            largest: counts
                .iter()
                .min_by_key(|(n, s)| (std::cmp::Reverse(**s), **n))
                .map(size)?,
        })
    }
}

fn print_survey(index: &Index, survey: &Survey) -> Result<()> {
    let formats: Vec<String> = survey
        .formats
        .iter()
        .map(|(format, n)| format!("{n} {format}"))
        .collect();
    if !formats.is_empty() {
        output::line(&format!("formats    {}", formats.join(", ")))?;
    }
    if let Some(sizes) = &survey.sizes {
        print_sizes(index, survey, sizes)?;
    }
    let turned: u64 = survey.orientations.values().sum();
    if turned > 0 {
        let tags: Vec<String> = survey
            .orientations
            .iter()
            .map(|(tag, n)| format!("{n} x {tag}"))
            .collect();
        output::line(&format!(
            "turned     {turned} by EXIF orientation ({})",
            tags.join(", ")
        ))?;
    }
    if survey.unreadable > 0 {
        print_unreadable(survey)?;
    }
    Ok(())
}

fn print_sizes(index: &Index, survey: &Survey, s: &SizeStatistics) -> Result<()> {
    let picture = |p: &PictureSize| {
        let path = index.relative_path(p.id).display();
        format!("{} x {} ({path})", p.height, p.width)
    };
    output::line(&format!(
        "sizes      smallest {}, largest {}",
        picture(&s.smallest),
        picture(&s.largest)
    ))?;
    output::line(&format!(
        "           height {} to {}, median {}; width {} to {}, median {}",
        s.height.min, s.height.max, s.height.median, s.width.min, s.width.max, s.width.median
    ))?;
    let megapixels = |pixels: u64| pixels as f64 * 1e-6;
    output::line(&format!(
        "           megapixels: mean {:.3}, median {:.3}, 10% below {:.3}, 90% below {:.3}, 99% below {:.3}",
        s.mean_megapixels,
        s.median_megapixels,
        megapixels(s.pixels.p10),
        megapixels(s.pixels.p90),
        megapixels(s.pixels.p99),
    ))?;
    let decoded = u64::try_from(s.decoded_bytes).unwrap_or(u64::MAX);
    output::line(&format!(
        "bytes      {:.1} MiB of files, {:.1} MiB as RGB",
        output::mib(survey.encoded_bytes),
        output::mib(decoded)
    ))
}

fn print_unreadable(survey: &Survey) -> Result<()> {
    output::line(&format!(
        "unreadable {} of {}: a run stops at the first of them; with --on-error skip their rows \
         are masked, with --on-error substitute other samples take them",
        survey.unreadable, survey.samples
    ))?;
    for fault in survey.faults.iter().take(NAMED) {
        output::line(&format!(
            "           {}: {}: {}",
            fault.path.display(),
            fault.kind.name(),
            fault.reason
        ))?;
    }
    let more = survey.unreadable.saturating_sub(NAMED as u64);
    if more > 0 {
        output::line(&format!("           and {more} more (--json lists them)"))?;
    }
    output::line(
        "           pixels were not looked at: a run may find others whose data are cut off or \
         broken",
    )?;
    Ok(())
}

/// Says what the scan left out, on stderr: never silent.
pub fn print_skipped(scan: Option<&ScanReport>) {
    let Some(scan) = scan else { return };
    for damaged in scan.damaged.iter().take(NAMED) {
        output::complain(&format!("warning: {damaged}"));
    }
    if let Some(more @ 1..) = scan.damaged.len().checked_sub(NAMED) {
        output::complain(&format!(
            "warning: and {more} more shards are damaged (`featherload index --json` lists them)"
        ));
    }
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
