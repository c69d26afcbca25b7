//! `featherload index`: lists the samples of a data set and their headers, and saves the index.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use featherload::index::{ClassCount, Index, Label, ScanReport};
use featherload::options::{SourceOptions, cli};
use featherload::survey::{HeaderSurvey, PictureSize, SizeStatistics, SurveyOptions};
use featherload::{Error, ObjectOptions, ObjectSurvey, Result, Source, error};
use serde::Serialize;

use crate::flags;
use crate::object_report::print_objects;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::output::fields::print_beside;
use crate::scene::{SceneArgs, index_scene};

/// Count samples, classes, formats, sizes and unreadable files of a data set.
///
/// Saves the index with --save. Opens every image and reads its header, never a pixel.
///
/// Tar shards in an object store are downloaded once each, within --fetch-limit, and their index is
/// kept in --fetch-dir. Single images there are listed, and not downloaded. Images there are not
/// opened.
///
/// For a scene (transforms.json, a COLMAP model) it reports frames, splits, cameras, masks, depths,
/// points, all models and missing files. For an unsupported layout it names a converter.
#[derive(Args)]
#[command(mut_arg("path", |path| path.required_unless_present("list")))]
pub struct IndexArgs {
    #[command(flatten)]
    source: SourceOptions,

    /// Open no image: report names and classes only. Headers and labels of tar shards are read all
    /// the same.
    #[arg(long, help_heading = cli::SOURCE)]
    no_headers: bool,

    /// Most pixels that an image may have (default: 178956970).
    #[arg(long, value_name = "N", conflicts_with = "no_headers", help_heading = cli::LIMITS)]
    max_pixels: Option<u64>,

    /// Count objects per category and by size, and name images without objects: annotations as of
    /// the other commands, such as instances.json.
    ///
    /// Images are those that a run with these objects has.
    #[arg(long, value_name = "FILES", value_parser = ObjectOptions::from_str, help_heading = cli::SOURCE)]
    objects: Option<ObjectOptions>,

    /// Save the index: later runs take FILE as SRC. Replaces a saved index, and no other file.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    save: Option<PathBuf>,

    /// Upload the index of tar shards in an object store beside them, for other machines.
    ///
    /// Other machines find it automatically, as long as the shards do not change.
    #[arg(long, conflicts_with = "save", help_heading = cli::OUTPUT)]
    share: bool,

    /// Write the class names, one a line, for `--classes` of other data sets.
    #[arg(long, value_name = "FILE", help_heading = cli::OUTPUT)]
    save_classes: Option<PathBuf>,

    /// Write DALI's index, SHARD.idx, beside each intact tar shard. Damaged shards are named, and
    /// the exit code is 2.
    #[arg(long, help_heading = cli::OUTPUT)]
    write_idx: bool,

    #[command(flatten)]
    scene: SceneArgs,

    /// Print one JSON object on stdout.
    #[arg(long, help_heading = cli::OUTPUT)]
    json: bool,
}

impl IndexArgs {
    /// Options for samples only, which exclude a scene.
    fn asks_of_samples(&self) -> bool {
        let keeps = self.save.is_some() || self.save_classes.is_some() || self.share;
        keeps
            || self.no_headers
            || self.write_idx
            || self.objects.is_some()
            || self.source.list.is_some()
            || self.source.has_options()
    }
}

/// Field names are part of the `--json` format.
#[derive(Serialize)]
struct IndexReport<'a> {
    root: String,
    samples: u64,
    classes: usize,
    /// None if samples have no classes.
    smallest_class: Option<&'a ClassCount>,
    largest_class: Option<&'a ClassCount>,
    label_width: usize,
    shared_bytes: u64,
    hash: String,
    shards: u64,
    /// Files that `--write-idx` wrote.
    dali_indexes: Option<usize>,
    /// Empty if nothing was scanned: a saved index, a cache.
    #[serde(flatten)]
    scan: ScanReport,
    headers: Option<HeaderSurvey>,
    /// None without `--objects`.
    objects: Option<ObjectSurvey>,
}

/// Unreadable files or damaged shards that are printed; `--json` lists more.
pub const NAMED: usize = 20;

/// Whether a file is JSON without frames, such as annotations. Then it is no scene, despite its
/// name.
fn is_other_json(src: &Path) -> bool {
    let is_json = src.extension().is_some_and(|end| end == "json") && src.is_file();
    // A file that cannot be read has no frames.
    is_json && !File::open(src).and_then(has_frames).unwrap_or(false)
}

/// Whether a text has frames. It may be long, and is read in pieces.
fn has_frames(mut text: impl Read) -> std::io::Result<bool> {
    const FRAMES: &[u8] = b"\"frames\"";
    let mut piece = vec![0; 1 << 20];
    let mut kept = 0;
    loop {
        let n = match text.read(&mut piece[kept..]) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        let there = kept + n;
        if piece[..there]
            .windows(FRAMES.len())
            .any(|window| window == FRAMES)
        {
            return Ok(true);
        }
        if n == 0 {
            return Ok(false);
        }
        // The word may continue in the next piece.
        kept = there.min(FRAMES.len() - 1);
        piece.copy_within(there - kept..there, 0);
    }
}

pub fn run(args: IndexArgs) -> Result<CommandOutcome> {
    if !args.asks_of_samples()
        && let Some(src) = args.source.path.as_deref()
        && args.scene.is_scene(src)
        && !is_other_json(src)
    {
        return index_scene(&args.scene, src, args.max_pixels, args.json);
    }
    let source = args.source.source(None)?;
    let in_store = matches!(source, Source::Store(..));
    if in_store && args.save.is_some() {
        return Err(Error::config(
            "--save has no effect on shards in an object store, whose index is kept in --fetch-dir: \
             remove --save",
        ));
    }
    if args.share && !in_store {
        return Err(Error::config(
            "--share needs tar shards in an object store: save other indexes with --save",
        ));
    }
    let (index, mut scan, dali) = open(source, &args)?;
    let in_store = in_store || index.is_remote();
    if in_store && args.save.is_some() {
        return Err(Error::config(
            "--save has no effect on a list of addresses, whose index is kept in --fetch-dir: \
             remove --save",
        ));
    }
    let objects = match &args.objects {
        None => None,
        Some(_) if in_store => {
            return Err(Error::config(
                "--objects needs a data set on this machine: remove it, or use a copy",
            ));
        }
        Some(objects) => Some(objects.survey(args.source.source(None)?, !args.no_headers)?),
    };
    let of_cache = match Index::is_cache(index.root()) {
        true => Index::columns_of_cache(index.root())?,
        false => Vec::new(),
    };
    // Saved first: reading headers may take long, and does not change the index.
    if let Some(file) = &args.save {
        index.save(file)?;
    }
    if let Some(file) = &args.save_classes {
        index.classes().write(file)?;
    }
    let classes = index.class_counts();
    let ends = ClassCount::smallest_and_largest(&classes);
    // Images of remote shards exist locally only while a run needs them.
    let survey = if args.no_headers || in_store {
        None
    } else {
        let bar = output::progress_of(index.len(), "images", !args.json);
        let mut options = SurveyOptions::default();
        if let Some(pixels) = args.max_pixels {
            options.max_pixels = pixels;
        }
        let survey = HeaderSurvey::with(&index, &options, &|n| bar.inc(n));
        bar.finish_and_clear();
        Some(survey?)
    };
    if args.json {
        if !of_cache.is_empty() {
            let columns = &mut scan.get_or_insert_default().columns;
            columns.get_or_insert_default().available = of_cache;
        }
        let (smallest_class, largest_class) = ends.unzip();
        output::json(&IndexReport {
            root: index.root().to_string_lossy().into_owned(),
            samples: index.len(),
            classes: classes.len(),
            smallest_class,
            largest_class,
            label_width: index.label_width(),
            shared_bytes: index.bytes(),
            hash: format!("{:032x}", index.hash()),
            shards: index.shard_files(),
            dali_indexes: dali.as_ref().map(|dali| dali.written),
            scan: scan.unwrap_or_default(),
            headers: survey,
            objects,
        })?;
        return dali.map_or(Ok(CommandOutcome::Done), DaliIndexes::finish);
    }
    if let Some(dali) = &dali {
        output::line(&format!("written    {} DALI indexes", dali.written))?;
    }
    if args.share {
        output::line("shared     the index is stored beside the shards, for other machines")?;
    }
    output::line(&format!(
        "{} samples, {} under {}; {} shared",
        index.len(),
        labelled(&index, classes.len()),
        index.root().display(),
        error::size(index.bytes())
    ))?;
    if let Some((few, many)) = ends {
        output::line(&format!("classes    smallest {few}, largest {many}"))?;
    }
    if let Some(columns) = scan.as_ref().and_then(|scan| scan.columns.as_ref()) {
        output::line(&format!("columns    {columns}"))?;
        if !columns.available.is_empty() {
            let names: Vec<String> = columns.available.iter().map(|c| c.to_string()).collect();
            print_beside("available  ", &names.join(", "))?;
        }
    }
    if !of_cache.is_empty() {
        let names: Vec<String> = of_cache.iter().map(ToString::to_string).collect();
        print_beside("columns    ", &names.join(", "))?;
    }
    if let Some(text) = scan.as_ref().and_then(other_fields) {
        output::line(&text)?;
    }
    if let Some(survey) = &survey {
        print_survey(&index, survey)?;
    }
    if let Some(objects) = &objects {
        print_objects(objects)?;
    }
    print_skipped(scan.as_ref());
    dali.map_or(Ok(CommandOutcome::Done), DaliIndexes::finish)
}

/// The result of `--write-idx`.
struct DaliIndexes {
    written: usize,
    refused: Vec<Error>,
}

impl DaliIndexes {
    /// Reports which shards have no index, and why. The command then ends with the last of these
    /// errors.
    fn finish(mut self) -> Result<CommandOutcome> {
        let last = self.refused.pop();
        for e in &self.refused {
            output::print_to_stderr(&format!("featherload: {e}"));
        }
        last.map_or(Ok(CommandOutcome::Done), Err)
    }
}

/// The index, and the result of writing DALI's index if requested.
fn open(
    source: Source,
    args: &IndexArgs,
) -> Result<(Index, Option<ScanReport>, Option<DaliIndexes>)> {
    if !args.write_idx {
        let (index, scan) = of_source(source, args)?;
        return Ok((index, scan, None));
    }
    let Source::Shards(shards, options) = source else {
        return Err(Error::config(
            "--write-idx needs tar shards, and SRC has none: remove the option",
        ));
    };
    let (index, scan, results) = Index::from_shards_writing_idx(&shards, &options)?;
    let mut dali = DaliIndexes {
        written: 0,
        refused: Vec::new(),
    };
    for result in results {
        match result {
            Ok(_) => dali.written += 1,
            Err(e) => dali.refused.push(e),
        }
    }
    Ok((index, Some(scan), Some(dali)))
}

/// The index. Tar shards in an object store are downloaded one by one if no index is kept.
fn of_source(source: Source, args: &IndexArgs) -> Result<(Index, Option<ScanReport>)> {
    let bar = OnceCell::new();
    let progress = |read, of| {
        let bar = bar.get_or_init(|| output::progress_of(of, "shards", !args.json));
        bar.set_position(read);
    };
    let opened = match args.share {
        true => source.index_and_share(&progress),
        false => source.index(&progress),
    };
    if let Some(bar) = bar.get() {
        bar.finish_and_clear();
    }
    opened
}

fn print_survey(index: &Index, survey: &HeaderSurvey) -> Result<()> {
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

/// The kind of the labels, as text.
fn labelled(index: &Index, classes: usize) -> String {
    match (classes, index.label(0)) {
        (0, Label::Vector(_)) => format!("labels of {} numbers", index.label_width()),
        (0, _) => "no labels".to_owned(),
        (1, _) => "1 class".to_owned(),
        (n, _) => format!("{n} classes"),
    }
}

fn print_sizes(index: &Index, survey: &HeaderSurvey, s: &SizeStatistics) -> Result<()> {
    let picture = |p: &PictureSize| {
        let path = index.relative_path(p.id).display();
        format!("{} x {} ({path})", p.width, p.height)
    };
    let (smallest, largest) = (picture(&s.smallest), picture(&s.largest));
    let sizes = format!("smallest {smallest}, largest {largest}");
    print_beside("sizes      ", &sizes)?;
    output::line(&format!(
        "           width {} to {}, median {}; height {} to {}, median {}",
        s.width.min, s.width.max, s.width.median, s.height.min, s.height.max, s.height.median
    ))?;
    let megapixels = |pixels: u64| pixels as f64 * 1e-6;
    let spread = format!(
        "megapixels: mean {:.3}, median {:.3}, 10% below {:.3}, 90% below {:.3}, 99% \
         below {:.3}",
        s.mean_megapixels,
        s.median_megapixels,
        megapixels(s.pixels.p10),
        megapixels(s.pixels.p90),
        megapixels(s.pixels.p99),
    );
    print_beside("           ", &spread)?;
    let decoded = u64::try_from(s.decoded_bytes).unwrap_or(u64::MAX);
    output::line(&format!(
        "bytes      {} of files, {} as RGB",
        error::size(survey.encoded_bytes),
        error::size(decoded)
    ))
}

fn print_unreadable(survey: &HeaderSurvey) -> Result<()> {
    output::line(&format!(
        "unreadable {} of {} by their headers: a run stops at the first. Use --on-error skip to \
         mask them, or --on-error substitute to replace them",
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
        "           only headers were read: `bench` decodes, and may find more damaged images",
    )?;
    Ok(())
}

/// Further fields of samples in shards. They are no defect, so this is no warning.
fn other_fields(scan: &ScanReport) -> Option<String> {
    let fields = scan.other_fields.iter().enumerate();
    let fields = fields.map(|(i, (extension, &samples))| {
        // The unit is printed once.
        let unit = if i == 0 { " samples" } else { "" };
        format!("{extension} ({}{unit})", output::grouped(samples))
    });
    let fields: Vec<String> = fields.collect();
    (!fields.is_empty()).then(|| format!("other fields: {}", fields.join(", ")))
}

/// Reports on stderr what the scan left out.
pub fn print_skipped(scan: Option<&ScanReport>) {
    let Some(scan) = scan else { return };
    for damaged in scan.damaged.iter().take(NAMED) {
        let damaged = flags::in_place(&damaged.to_string());
        output::print_to_stderr(&format!("warning: {damaged}"));
    }
    if let Some(more @ 1..) = scan.damaged.len().checked_sub(NAMED) {
        output::print_to_stderr(&format!(
            "warning: and {more} more shards are damaged (`featherload index --json` lists them)"
        ));
    }
    for (reason, skipped) in &scan.skipped {
        let named = skipped.examples.iter().map(|p| p.display().to_string());
        let named: Vec<String> = named.collect();
        output::print_to_stderr(&format!(
            "left out: {} x {reason} (such as {})",
            skipped.count,
            named.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_wherever_a_long_text_has_them() {
        let mut text = vec![b' '; 3 << 20];
        assert!(!has_frames(&text[..]).unwrap());
        for at in [0, (1 << 20) - 3, (2 << 20) - 20, text.len() - 8] {
            text[at..at + 8].copy_from_slice(b"\"frames\"");
            assert!(has_frames(&text[..]).unwrap(), "{at}");
            text[at..at + 8].fill(b' ');
        }
    }

    #[test]
    fn other_fields_are_one_line_or_none() {
        let mut scan = ScanReport::default();
        assert_eq!(other_fields(&scan), None);
        for (extension, samples) in [("json", 1_200), ("seg.png", 7), ("txt", 1_234_567)] {
            scan.other_fields.insert(extension.into(), samples);
        }
        let want = "other fields: json (1,200 samples), seg.png (7), txt (1,234,567)";
        assert_eq!(other_fields(&scan).unwrap(), want);
    }
}
