//! Reads tar shards as WebDataset writes them: finds the samples and their labels.
//!
//! Runs in the consumer, before the workers start. Its threads end before it returns, and
//! the result does not depend on their number. It reads headers and labels, never an image.
//!
//! - A sample is a run of consecutive members with one key. The key is the name up to the first dot
//!   after the last slash. The rest of the name, in lower case, is the field of the member. Hidden
//!   names are ignored.
//! - The image is the field whose extension comes first in [`IMAGE_EXTENSIONS`], or else `npy`. If no
//!   sample has such a field, the image is the only field that ends in such an extension. A sample
//!   without an image is skipped and counted.
//! - Samples have the order of the given shards, and of the members in them.
//! - In a damaged shard only the damaged samples are lost. A sample that lost a member beside the
//!   damage, or at a cut end of the tar, is skipped and counted.
//!
//! - `options`: reading options; `group`: one shard; `shard_scan`: the contents of a shard;
//!   `fields`: the fields of image and label; `common_fields`: the fields of all shards together;
//!   `member_order`: members of a sample that are not consecutive;
//! - `label_join`: labels of all shards;
//! - `dali`: DALI's index beside a shard; `column_reader`: other members, read by batches;
//!   `row_reader`: JSON members, read before a run; `member_parts`: members in place of images.

mod column_reader;
mod common_fields;
mod dali;
mod fields;
mod group;
mod label_join;
mod member_order;
mod member_parts;
mod options;
mod row_reader;
mod shard_scan;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::binary_form::IndexContent;
use crate::data::index::index_cache::IndexCache;
use crate::data::index::names::{IMAGE_EXTENSIONS, shown};
use crate::data::index::report::{ScanReport, SkipReason};
use crate::data::index::samples::Index;
use crate::data::shard::shard_patterns;
use crate::error::{Error, Result};
use crate::sys::threads;

pub(crate) use column_reader::{PROBED, open_columns};
pub(crate) use dali::write_dali_index;
use fields::{FieldCounts, MOST_ALTERNATIVES};
pub(crate) use group::check_is_tar;
use group::relative;
use label_join::LabelJoin;
pub(crate) use member_parts::open_parts;
pub use options::{JSON_EXTENSION, KeepIndex, ShardLabels, ShardOptions};
pub(crate) use row_reader::open_rows;
use shard_scan::RawLabel;
pub(super) use shard_scan::ShardScan;

/// Does not follow the number of cores, because a scan of a network file system mostly waits.
const MAX_THREADS: usize = 8;

/// Whether a path has the extension of a tar, compressed or not.
pub(crate) fn has_tar_extension(path: &Path) -> bool {
    let ends = |path: &Path, known: &[&str]| {
        let extension = path.extension().and_then(OsStr::to_str);
        extension.is_some_and(|e| known.iter().any(|known| e.eq_ignore_ascii_case(known)))
    };
    let stem = path.file_stem().map(Path::new);
    ends(path, &["tar", "tgz", "tzst", "txz", "tbz2", "tlz4"])
        || (ends(path, &["gz", "zst", "xz", "bz2", "lz4"])
            && stem.is_some_and(|stem| ends(stem, &["tar"])))
}

pub(crate) fn open(shards: &[PathBuf], options: &ShardOptions) -> Result<(Index, ScanReport)> {
    let mut opened = ShardIndex::new(shards, options)?;
    if !opened.is_kept {
        opened.keep()?;
    }
    Ok((opened.index, opened.report))
}

/// The result of [`open_and_write_idx`]: an index, its report, and for each shard the path of its
/// DALI index or the error.
pub(crate) type IndexWithIdx = (Index, ScanReport, Vec<Result<PathBuf>>);

/// Like [`open`]. Then writes a DALI index beside each shard that is not damaged.
pub(crate) fn open_and_write_idx(
    shards: &[PathBuf],
    options: &ShardOptions,
) -> Result<IndexWithIdx> {
    let mut opened = ShardIndex::new(shards, options)?;
    let written: Vec<_> = shards.iter().map(|path| write_dali_index(path)).collect();
    // The kept index stores the fingerprints of DALI indexes, which have just changed.
    if let Some(kept) = &mut opened.kept {
        kept.refresh_idx_stamps()?;
    }
    opened.keep()?;
    Ok((opened.index, opened.report, written))
}

/// The index of shards, and the file in which it is kept.
struct ShardIndex {
    index: Index,
    report: ScanReport,
    kept: Option<IndexCache>,
    /// Whether the index was read from `kept`.
    is_kept: bool,
}

impl ShardIndex {
    fn new(shards: &[PathBuf], options: &ShardOptions) -> Result<Self> {
        check(options)?;
        let paths = absolute(shards)?;
        let kept = IndexCache::find(&paths, options)?;
        let whole = kept.as_ref().map(IndexCache::open).transpose()?.flatten();
        let is_kept = whole.is_some();
        let (index, report) = match whole {
            Some(whole) => whole,
            None => {
                let root = common_folder(&paths);
                let found = read_all(&paths, &root, options)?;
                let (content, report) = join(&root, &paths, found, options)?;
                (Index::seal(&root, content)?, report)
            }
        };
        Ok(Self {
            index,
            report,
            kept,
            is_kept,
        })
    }

    /// Keeps the index, unless a shard is damaged.
    fn keep(&mut self) -> Result<()> {
        match self.kept.take() {
            Some(kept) if self.report.damaged.is_empty() => kept.write(&self.index, &self.report),
            _ => Ok(()),
        }
    }
}

/// Checks the options.
///
/// # Errors
/// An option has an invalid value, or two options contradict each other.
pub(super) fn check(options: &ShardOptions) -> Result<()> {
    options
        .image_field
        .as_deref()
        .map_or(Ok(()), check_image_field)?;
    match &options.labels {
        ShardLabels::None if options.classes.is_some() => Err(Error::config(
            "a class table has no effect without labels: remove `classes` or `labels: none`",
        )),
        ShardLabels::Field(field) | ShardLabels::Json { field, .. }
            if field.is_empty() || field.contains('/') =>
        {
            Err(Error::config(format!(
                "'{field}' is not the extension of a field: use one such as 'cls' or 'json'"
            )))
        }
        ShardLabels::Json { pointer, .. } if !pointer.is_empty() && !pointer.starts_with('/') => {
            Err(Error::config(format!(
                "'{pointer}' is not a JSON pointer: begin it with a slash, such as '/label'"
            )))
        }
        _ => Ok(()),
    }
}

/// Checks the field names of `image_field`.
fn check_image_field(text: &str) -> Result<()> {
    let names: Vec<String> = fields::names(text).collect();
    if names.len() > MOST_ALTERNATIVES {
        return Err(Error::config(format!(
            "`image_field` has {} fields, but at most {MOST_ALTERNATIVES} are allowed: name fewer",
            names.len()
        )));
    }
    match names
        .iter()
        .find(|name| name.is_empty() || name.contains('/'))
    {
        None => Ok(()),
        Some(name) => Err(Error::config(format!(
            "`image_field` has '{name}', which is not the name of a field: use one such as \
             'image.jpg'"
        ))),
    }
}

fn absolute(shards: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if shards.is_empty() {
        return Err(Error::config("no shard is named: give a path or a pattern"));
    }
    let absolute = |path: &PathBuf| {
        shard_patterns::check_is_file(path)?;
        std::path::absolute(path).map_err(|_| Error::config("a shard has an empty name"))
    };
    shards.iter().map(absolute).collect()
}

/// The deepest folder that contains all paths.
pub(crate) fn common_folder(paths: &[PathBuf]) -> PathBuf {
    let folder = |path: &PathBuf| path.parent().map_or_else(|| "/".into(), Path::to_owned);
    let mut common: PathBuf = paths.first().map_or_else(|| "/".into(), folder);
    for path in paths {
        while !path.starts_with(&common) && common.pop() {}
    }
    common
}

/// Reads every shard. If several fail, returns the error of the first one.
fn read_all(paths: &[PathBuf], root: &Path, options: &ShardOptions) -> Result<Vec<ShardScan>> {
    threads::each("featherload-shards", MAX_THREADS, paths, |path| {
        read_one(path, root, options)
    })
}

/// Reads one shard below `root`.
pub(super) fn read_one(path: &Path, root: &Path, options: &ShardOptions) -> Result<ShardScan> {
    let shown = path.strip_prefix(root).unwrap_or(path);
    let found = group::read(path, shown, options)?;
    member_order::refuse(path, &found)?;
    Ok(found)
}

/// Joins the samples of all shards, with labels of one kind.
pub(super) fn join(
    root: &Path,
    paths: &[PathBuf],
    mut found: Vec<ShardScan>,
    options: &ShardOptions,
) -> Result<(IndexContent, ScanReport)> {
    let at = match paths {
        [path] => path,
        _ => root,
    };
    common_fields::choose_common(at, &mut found, options)?;
    let mut without_picture = FieldCounts::default();
    found
        .iter()
        .for_each(|f| without_picture.merge(&f.seen.fields));
    let mut report = ScanReport::default();
    let mut content = IndexContent::default();
    let mut joined = LabelJoin::new(&found, options.classes.as_ref())?;
    let without_place = found.iter().find_map(|found| found.without_place.clone());
    let archive = found.iter().find_map(|found| found.archive.clone());
    for (path, mut found) in paths.iter().zip(found) {
        let mut of_shard = std::mem::take(&mut found.report);
        let relative = path.strip_prefix(root).unwrap_or(path);
        content.begin_shard(relative.as_os_str().as_bytes());
        let mut incomplete = 0;
        let mut vectors = found.vectors.as_slice();
        for i in 0..found.samples() {
            let raw = found.labels[i];
            let vector = match raw {
                RawLabel::Vector(width) => vectors.split_off(..width as usize).unwrap_or_default(),
                _ => &[],
            };
            if raw == RawLabel::Absent && joined.is_labelled() && found.is_suspect(i) {
                incomplete += 1;
                continue;
            }
            for name in found.fields_of_suspect(i) {
                of_shard.add_field(name, 1);
            }
            joined
                .add(raw, vector, &found.class_names)
                .map_err(|what| Error::dataset(path.join(self::relative(found.name(i))), what))?;
            let (at, bytes) = found.part(i);
            content.push_part(found.name(i), at, bytes);
        }
        if incomplete > 0 && of_shard.damaged.is_empty() {
            of_shard.damaged.extend(found.tail.take());
        }
        if let Some(damaged) = of_shard.damaged.last_mut() {
            damaged.samples_incomplete += incomplete;
        } else if found.samples() == 0 && of_shard.skipped.is_empty() {
            of_shard.skip(SkipReason::EmptyShard, relative.to_owned());
        }
        report.merge(of_shard);
    }
    report.samples = content.samples() as u64;
    if report.samples == 0 {
        return Err(match archive {
            Some(archive) => of_archives(root, paths, &archive),
            None => nothing_found(root, paths, &report, &without_picture, options),
        });
    }
    if options.classes.is_some() && !joined.is_by_name() {
        return Err(Error::dataset(
            &paths[0],
            format!(
                "`classes` numbers class names, and the labels here are {}: remove it",
                joined.kind()
            ),
        ));
    }
    if !joined.is_labelled()
        && let ShardLabels::Field(field) | ShardLabels::Json { field, .. } = &options.labels
    {
        return Err(Error::dataset(
            &paths[0],
            match (&options.labels, without_place) {
                (ShardLabels::Json { pointer, .. }, Some(keys)) => format!(
                    "no sample has a label at '{pointer}' of its field '{field}'{keys}: name \
                     another place, or use `labels: none`"
                ),
                _ => format!(
                    "no sample has a label in a field '{field}'{}: name another field, or use \
                     `labels: none`",
                    fields::describe_other_fields(&report)
                ),
            },
        ));
    }
    content.classes = joined.classes;
    content.labels = joined.labels;
    Ok((content, report))
}

/// The error for shards that hold archives instead of images.
fn of_archives(root: &Path, paths: &[PathBuf], archive: &[u8]) -> Error {
    Error::dataset(
        root,
        format!(
            "{}: it holds other archives, such as {}. Unpack it, and each archive in it to a \
             folder of its name, and give the folder that has these: their names are the classes. \
             Or unpack it, and give its tars as shards",
            no_samples(paths),
            shown(archive)
        ),
    )
}

fn no_samples(paths: &[PathBuf]) -> String {
    match paths {
        [path] => format!("no samples in {}", path.display()),
        paths => format!("no samples in {} shards", paths.len()),
    }
}

fn nothing_found(
    root: &Path,
    paths: &[PathBuf],
    report: &ScanReport,
    without_picture: &FieldCounts,
    options: &ShardOptions,
) -> Error {
    let mut what = no_samples(paths);
    for (reason, skipped) in &report.skipped {
        what.push_str(&format!("; {reason}: {}", skipped.count));
        if let Some(example) = skipped.examples.first() {
            what.push_str(&format!(", such as {example:?}"));
        }
    }
    for damaged in &report.damaged {
        what.push_str(&format!("; {damaged}"));
    }
    match &options.image_field {
        Some(field) => what.push_str(&format!("; images must be in the field {field}")),
        None => {
            what.push_str("; samples are members whose names end in ");
            what.push_str(&IMAGE_EXTENSIONS.join(", "));
        }
    }
    if !without_picture.is_empty() {
        what.push_str("; the fields here are ");
        what.push_str(&without_picture.shown());
        what.push_str(": name the field of the images with `image_field`");
    }
    Error::dataset(root, what)
}

#[cfg(test)]
mod tests;
