//! `featherload cache build`: a data set as shards.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use featherload::cache::{
    BuildOptions, BuildPart, BuildPhase, BuildProgress, BuildReport, CacheBuilder, CacheEncoding,
};
use featherload::index::ScanReport;
use featherload::internals::DrillBuilder;
use featherload::options::{SourceOptions, cli, units};
use featherload::{LaunchMethod, MaskOptions, ObjectOptions, RasterList, Result, Sandbox, error};
use serde_json::json;

use super::progress::{self, ProgressForm, ProgressPrinter};
use crate::index::print_skipped;
use crate::interrupt;
use crate::outcome::CommandOutcome;
use crate::output;

/// Write a data set as shards: WebDataset tars with DALI's index, checksums, and an index that
/// later runs open at once.
///
/// The same source and options give the same bytes, whatever the number of workers. An interrupted
/// build (Ctrl-C, a kill, a full disk) leaves complete shards, and the same command continues after
/// them.
///
/// Only the image and the label of samples in tar shards are written, and what --objects, --masks
/// and --raster name. Other fields (txt, json, seg.png) are copied only as --columns; they are listed before the
/// build starts.
#[derive(Args)]
#[command(mut_arg("path", |path| path.required(true).index(1).long_help(src_help())))]
#[command(mut_arg("list", |list| list.help(LIST).long_help(LIST)))]
pub struct BuildArgs {
    #[command(flatten)]
    source: SourceOptions,

    /// The cache's folder, created if it is missing. Or an address, such as s3://BUCKET/PREFIX.
    ///
    /// Files of a folder that do not belong to a cache are not touched. At an address (s3://,
    /// gs://, az://, file://) each shard is uploaded as soon as it is complete, then index and
    /// manifest. Existing objects are compared, and replaced only with --force.
    #[arg(value_name = "DST", index = 2)]
    dst: PathBuf,

    #[command(flatten)]
    options: BuildOptions,

    /// Columns of SRC that the cache keeps, such as caption,score. Runs of the cache read them by
    /// the same names.
    ///
    /// Of tables: names of columns. Of tar shards: extensions, keys of the member json, or JSON
    /// pointers. They are written behind the samples of each shard, as an Arrow file.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = cli::SOURCE)]
    columns: Vec<String>,

    /// Objects of the images that the cache keeps: as --objects of bench. Runs of the cache read
    /// them with --objects cache.
    ///
    /// The fields of its rule become those of the cache. Outlines are kept with the field masks. With
    /// --resize coordinates are multiplied by new / old side in float64. They are written beside the
    /// images as JSON (.objects.json), and as one table for all runs.
    #[arg(long, value_name = "FILES", value_parser = ObjectOptions::from_str, help_heading = cli::SOURCE)]
    objects: Option<ObjectOptions>,

    /// Masks of the images that the cache keeps: as --masks of bench. Runs of the cache read them
    /// with --masks cache.
    ///
    /// Files are copied as they are (.mask.png). With --resize labels are resized by the field filter,
    /// and written as PNG.
    #[arg(long, value_name = "FILES", value_parser = MaskOptions::from_str, help_heading = cli::SOURCE)]
    masks: Option<MaskOptions>,

    /// A raster of the images that the cache keeps, as NAME=FILES: as --raster of bench. May be given
    /// several times. Runs of the cache read it with --raster NAME=cache.
    ///
    /// The fields of its rule become those of the cache. Files are copied as they are (.NAME.png).
    /// With --resize, numbers are resized by the field filter, and stored without rounding: as PNG if
    /// they are whole, else as NumPy arrays or .flo.
    #[arg(long = "raster", value_name = "NAME=FILES", value_parser = RasterList::from_str, help_heading = cli::SOURCE)]
    rasters: Vec<RasterList>,

    /// Worker processes; 0 decodes in this process. Default: the usable CPUs.
    #[arg(long, value_name = "N", help_heading = cli::LIMITS)]
    num_workers: Option<usize>,

    /// Which system calls and files workers are denied: all that they do not need (auto, as far as
    /// the system supports it; require), or none (off).
    #[arg(long, default_value = "auto", value_parser = cli::one_of::<Sandbox>(&["auto", "require", "off"]), help_heading = cli::LIMITS)]
    sandbox: Sandbox,

    /// Most time that one sample may take.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = units::seconds, help_heading = cli::LIMITS)]
    row_limit: Duration,

    /// Kill a worker at this interval, such as 200 (milliseconds), to test the recovery.
    #[arg(long, value_name = "MS", help_heading = cli::LIMITS)]
    kill_workers_every: Option<u64>,

    /// Make only share K of N of the shards, K from 0; needs --shard-samples.
    ///
    /// Any number of processes and machines with access to DST may make shares at the same time,
    /// even the same share. Existing shards are kept. With as many shares as shards, share K is
    /// shard K. --finish completes the cache.
    #[arg(long, value_name = "K/N", value_parser = parse_share, conflicts_with = "finish", help_heading = cli::ORDER)]
    shard: Option<BuildPart>,

    /// Write index and manifest of a cache whose shards all exist; makes no shard.
    #[arg(long, help_heading = cli::OUTPUT)]
    finish: bool,

    /// Replace a cache in DST that has other options, or whose source has changed.
    ///
    /// A cache with the same options and source is read, and made again from the first damaged
    /// shard on. Without --force only file lengths decide what is complete; `cache verify` checks
    /// contents. In an object store all shards are made and uploaded again.
    #[arg(long, help_heading = cli::OUTPUT)]
    force: bool,

    /// Where shards for an address are built: a new folder in this one.
    ///
    /// It holds a few shards at a time, and is removed at the end. An interrupted build keeps it,
    /// and the same command continues with it. [~/.cache/featherload/building]
    #[arg(long, value_name = "DIR", help_heading = cli::OUTPUT)]
    stage_dir: Option<PathBuf>,

    /// Progress on stderr: `text` (a bar on a terminal, otherwise one line every 30 s), or `json`
    /// (one object a line, at most every 0.2 s).
    #[arg(long, value_enum, value_name = "FORM", default_value_t = ProgressForm::Text, help_heading = cli::OUTPUT)]
    progress: ProgressForm,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    json: bool,
}

/// The help of SRC, which is required here, and which `--list` does not replace.
fn src_help() -> String {
    format!(
        "{}; with --list the folder that its paths are relative to",
        cli::source_long_help()
    )
}

const LIST: &str = "A list file whose paths are relative to SRC";

impl BuildArgs {
    fn part(&self) -> BuildPart {
        match self.finish {
            true => BuildPart::Finish,
            false => self.shard.unwrap_or_default(),
        }
    }

    fn builder(&self) -> Result<CacheBuilder> {
        let source = self.source.source(None)?;
        let mut builder = CacheBuilder::new(source, &self.dst, self.options)
            .columns(&self.columns)
            .force(self.force)
            .part(self.part())
            .launch(LaunchMethod::Exec)
            .sandbox(self.sandbox)
            .row_limit(self.row_limit);
        if let Some(objects) = &self.objects {
            builder = builder.objects(objects.clone());
        }
        if let Some(masks) = &self.masks {
            builder = builder.masks(masks.clone());
        }
        builder = builder.rasters(RasterList::joined(self.rasters.iter().cloned()));
        if let Some(stage) = &self.stage_dir {
            builder = builder.stage_dir(stage);
        }
        if let Some(workers) = self.num_workers {
            builder = builder.num_workers(workers);
        }
        if let Some(every) = self.kill_workers_every {
            builder = builder.kill_workers_every(Duration::from_millis(every));
        }
        Ok(builder)
    }
}

pub fn run(args: BuildArgs) -> Result<CommandOutcome> {
    // A signal to the whole process group ends the workers first: their error is an interruption.
    CommandOutcome::or_interrupted(build(&args))
}

fn build(args: &BuildArgs) -> Result<CommandOutcome> {
    let builder = args.builder()?;
    let mut printer = ProgressPrinter::new(!args.json, args.progress);
    let (mut begun, mut announced, mut failed) = (false, None, None);
    let built = builder.build_watched(&mut |progress| {
        if !begun {
            begun = true;
            // The coordinator runs already, so a thread may start.
            failed = interrupt::end_the_run().err();
            print_skipped(progress.scan);
            let objects = args.objects.as_ref().and_then(|of| of.member_extension());
            let masks = args.masks.as_ref().and_then(|of| of.member_extension());
            let mut kept = args.columns.clone();
            let rasters = args.rasters.iter().flat_map(RasterList::member_extensions);
            let members = [objects, masks].into_iter().flatten().chain(rasters);
            kept.extend(members.map(str::to_owned));
            print_fields(progress.scan, &kept);
        }
        if progress.phase == BuildPhase::Writing && announced != Some(progress.share) {
            announced = Some(progress.share);
            if args.progress == ProgressForm::Text {
                printer.print_between(|| announce(args, progress));
            }
        }
        printer.update(progress);
        match failed.is_some() || interrupt::received_signal().is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    printer.finish();
    if let Some(e) = failed {
        return Err(e);
    }
    let report = built?;
    let folder = &args.dst;
    if args.json {
        output::json(&json!({ "folder": folder.to_string_lossy(), "report": report }))?;
    } else {
        match report.complete || announced.is_some() {
            true => print(folder, &report, args.part())?,
            // Not every entry of the folder was checked.
            false => output::line(&format!(
                "{}: ended early, before any shard was written or removed",
                folder.display()
            ))?,
        }
    }
    match (report.complete, interrupt::received_signal()) {
        (false, Some(signal)) => Ok(CommandOutcome::Interrupted(signal)),
        _ => Ok(CommandOutcome::Done),
    }
}

fn parse_share(text: &str) -> std::result::Result<BuildPart, String> {
    let (number, of) = text.split_once('/').ok_or("use K/N, such as 0/8")?;
    let parse = |s: &str| s.parse::<u64>().map_err(|e| format!("'{s}': {e}"));
    let (number, of) = (parse(number)?, parse(of)?);
    Ok(BuildPart::Share { number, of })
}

/// Fields of the samples that a cache does not keep, before anything is written.
fn print_fields(scan: Option<&ScanReport>, kept: &[String]) {
    let mut fields = scan.map_or_else(Default::default, |scan| scan.other_fields.clone());
    fields.retain(|field, _| !kept.iter().any(|name| name.eq_ignore_ascii_case(field)));
    if let Some(fields) = progress::fields(&fields) {
        output::print_to_stderr(&format!(
            "left out: {fields}: a cache has image and label, other fields are not copied unless \
             --columns, --objects, --masks or --raster name them"
        ));
    }
}

/// Prints the estimate of the build on stderr, before anything is written.
fn announce(args: &BuildArgs, progress: &BuildProgress<'_>) {
    let about = match args.options.encode {
        CacheEncoding::Jpeg { .. } => "about ",
        _ => "",
    };
    output::print_to_stderr(&format!(
        "{}: {}{about}{} will be written, for {} of {} samples",
        args.dst.display(),
        progress::part(progress),
        error::size_rounded_up(progress.needed_bytes),
        progress.samples - progress.done,
        progress.samples
    ));
}

/// Text for the number of dead helpers of one kind. Empty if there are none.
fn died(deaths: u64, what: &str) -> String {
    match deaths {
        0 => String::new(),
        n => format!("; {n} {what} died and were replaced"),
    }
}

fn print(folder: &Path, report: &BuildReport, part: BuildPart) -> Result<()> {
    let state = match (report.complete, report.kept_samples) {
        (false, _) => "ended early: the same command continues after these",
        (true, kept) if kept == report.samples && kept > 0 => "all of them existed already",
        (true, _) => "complete",
    };
    let share = match part {
        BuildPart::Share { number, of } => format!("share {number}/{of}: "),
        _ => String::new(),
    };
    output::line(&format!(
        "{}: {share}{} samples in {} shards, {}; {state}",
        folder.display(),
        report.samples,
        report.shards,
        error::size(report.bytes),
    ))?;
    let made = report.samples - report.kept_samples;
    // In a shorter time, starting the workers dominates.
    let rate = match report.seconds >= 1.0 {
        true => format!(", {:.0} a second", made as f64 / report.seconds),
        false => String::new(),
    };
    output::line(&format!(
        "made       {made} samples in {:.1} s{rate}; {} existed already",
        report.seconds, report.kept_samples
    ))?;
    if let Some(fetched) = &report.fetched {
        output::line(&format!(
            "fetched    {} in {} shards, {} requests repeated{}",
            error::size(fetched.bytes),
            fetched.shards,
            fetched.retries,
            died(fetched.deaths, "fetchers")
        ))?;
    }
    if let Some(sent) = &report.sent {
        output::line(&format!(
            "sent       {} in {} objects, {} requests repeated; {} shards are there{}",
            error::size(sent.bytes),
            sent.objects,
            sent.retries,
            sent.shards_up,
            died(sent.deaths, "senders")
        ))?;
    }
    if report.worker_deaths > 0 {
        output::line(&format!(
            "workers    {} died and were replaced",
            report.worker_deaths
        ))?;
    }
    output::dropped_lines(report.stderr_lost)?;
    if report.damaged_shards > 0 {
        output::line(&format!(
            "lost       {} samples or more in {} damaged shards of the source",
            report.damaged_samples, report.damaged_shards
        ))?;
    }
    if report.skipped > 0 {
        output::line(&format!(
            "left out   {} samples without a usable image",
            report.skipped
        ))?;
        for s in &report.skipped_examples {
            output::line(&format!("           {}: {}", s.path.display(), s.reason))?;
        }
        // The report lists a bounded number of them.
        let named = report.skipped_examples.len() as u64;
        if let Some(more @ 1..) = report.skipped.checked_sub(named) {
            output::line(&format!(
                "           and {} more: `skipped` in the shards' .json files lists all",
                output::grouped(more)
            ))?;
        }
    }
    Ok(())
}
