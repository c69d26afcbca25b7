//! Keeps the index of local tar shards in a file, so that later runs do not read their headers.
//!
//! Used in the consumer.
//!
//! - A kept index is used if no shard, and no DALI index beside a shard, has changed. It compares
//!   the inode (if the file system keeps inodes), the length, the time of the last write, and the
//!   time of the last change of the inode. Times are in ns. A copy cannot fake the last one.
//! - If a shard has changed, or a byte of the kept file is damaged, the shards are read again.
//! - The index of damaged shards is not kept, so that each run reports the damage.
//! - The file also holds which files a scan skipped, so that later runs report them again.
//! - `head -c 300` of a file shows a description of its shards.
//! - Files of other versions are removed when a new file is written.
//!
//! ```text
//!  0  magic 8 bytes
//!  8  bytes of the note u64
//! 16  xxh3-128 of the note
//! 32  note: JSON; then the index, in the form of `binary_form`
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read, Write};
use std::iter;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::data::index::binary_form;
use crate::data::index::report::{ScanReport, SkipCount, SkipReason};
use crate::data::index::shards::{KeepIndex, ShardLabels, ShardOptions};
use crate::data::index::{ClassList, Index};
use crate::data::shard::dali_index;
use crate::error::{Error, Result};
use crate::sys::atomic_file::replace;
use crate::sys::memory;
use crate::sys::regular_file;
use crate::sys::regular_file::{FileStamp, nanoseconds};
use crate::sys::sealed_bytes::SealedBytes;

const MAGIC: &[u8; 8] = b"\x89FLKEPT\n";
const HEAD: usize = 32;
/// Version of the rules that turn shards into samples. Change it with the rules.
const FORM: u32 = 5;

/// The version in the note of each kept file. It also decides the file's name.
fn this_version() -> String {
    format!("{} {FORM}", env!("CARGO_PKG_VERSION"))
}

/// The file of a kept index, and the current stamps of its shards.
pub(crate) struct IndexCache {
    file: PathBuf,
    /// Whether the user named the folder. If so, a failed write is an error.
    is_named: bool,
    paths: Vec<PathBuf>,
    shards: Vec<ShardStamps>,
}

/// The stamps of a shard and of DALI's index beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShardStamps {
    shard: MetadataStamp,
    /// `None` if there is no such index.
    idx: Option<MetadataStamp>,
}

/// The stamp of a file, and its change time, which `touch` and `cp -p` cannot set.
///
/// The stamps in an index itself lack this time, because a new link or new permissions change it
/// and not the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct MetadataStamp {
    file: FileStamp,
    /// The last change of the inode, in ns since 1970.
    changed: i64,
}

/// The note before the index in its file.
#[derive(Serialize, Deserialize)]
struct IndexCacheNote {
    /// See [`this_version`]. Must be the first field: [`is_of_another_version`] reads no other.
    version: String,
    /// A description of the index, for people.
    of: String,
    shards: Vec<ShardStamps>,
    #[serde(flatten)]
    scan: ScanSummary,
}

/// What a scan skipped. It is kept with the index, and later runs report it again.
#[derive(Serialize, Deserialize)]
pub(super) struct ScanSummary {
    skipped: Vec<SkipSummary>,
    other_fields: BTreeMap<String, u64>,
}

impl ScanSummary {
    pub(super) fn of(report: &ScanReport) -> Self {
        let left = |(reason, skipped): (&SkipReason, &SkipCount)| SkipSummary {
            reason: *reason,
            count: skipped.count,
            examples: skipped
                .examples
                .iter()
                .map(|path| path.as_os_str().as_bytes().to_vec())
                .collect(),
        };
        Self {
            skipped: report.skipped.iter().map(left).collect(),
            other_fields: report.other_fields.clone(),
        }
    }

    /// The report of a scan that found `samples` samples.
    pub(super) fn into_report(self, samples: u64) -> ScanReport {
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        let skipped = |left: SkipSummary| {
            let skipped = SkipCount {
                count: left.count,
                examples: left.examples.into_iter().map(path).collect(),
            };
            (left.reason, skipped)
        };
        ScanReport {
            samples,
            skipped: self.skipped.into_iter().map(skipped).collect(),
            other_fields: self.other_fields,
            ..ScanReport::default()
        }
    }
}

/// The files that were skipped for one reason.
#[derive(Serialize, Deserialize)]
struct SkipSummary {
    reason: SkipReason,
    count: u64,
    /// Paths as bytes.
    examples: Vec<Vec<u8>>,
}

impl ShardStamps {
    /// How the shard at `path`, or DALI's index beside it, has changed. `None` if it has not.
    fn difference(&self, now: &Self, path: &Path) -> Option<String> {
        self.shard
            .difference(&now.shard, path)
            .or_else(|| match (&self.idx, &now.idx) {
                (Some(before), Some(now)) => {
                    let how = before.difference(now, &dali_index::path_of(path))?;
                    Some(format!("the index beside it: {how}"))
                }
                (None, None) => None,
                (None, Some(_)) => Some("an index is beside it now".into()),
                (Some(_), None) => Some("the index beside it is gone".into()),
            })
    }
}

impl MetadataStamp {
    fn difference(&self, now: &Self, path: &Path) -> Option<String> {
        let of_file = self
            .file
            .difference(&now.file, || regular_file::keeps_inodes(path));
        let is_changed = || self.changed != now.changed;
        of_file.or_else(|| is_changed().then(|| "written or renamed meanwhile".into()))
    }
}

impl IndexCache {
    /// The cache file for these shards, which may not exist. `None` if the options or the
    /// environment name no folder for it.
    ///
    /// # Errors
    /// A shard that cannot be inspected.
    pub(crate) fn find(paths: &[PathBuf], options: &ShardOptions) -> Result<Option<Self>> {
        let (folder, is_named) = match &options.keep {
            KeepIndex::Nowhere => return Ok(None),
            KeepIndex::In(folder) => (folder.clone(), true),
            KeepIndex::UserCache => match user_cache() {
                Some(folder) => (folder, false),
                None => return Ok(None),
            },
        };
        let file = folder.join(name(paths, options));
        let shards = paths
            .iter()
            .map(|path| stamps(path))
            .collect::<Result<_>>()?;
        Ok(Some(Self {
            file,
            is_named,
            paths: paths.to_vec(),
            shards,
        }))
    }

    /// Updates the stamps of DALI's indexes, after they were written. Keeps the shards' stamps.
    pub(crate) fn refresh_idx_stamps(&mut self) -> Result<()> {
        for (path, before) in self.paths.iter().zip(&mut self.shards) {
            before.idx = stamps(path)?.idx;
        }
        Ok(())
    }

    /// The kept index. `None` if there is none, or if it is damaged, of another version, or older
    /// than a change of a shard.
    pub(crate) fn open(&self) -> Result<Option<(Index, ScanReport)>> {
        let bytes = match self.read(memory::available_bytes()) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(what) => return self.unusable(&what),
        };
        let Some((note, index)) = parts(&bytes) else {
            return self.unusable("is damaged");
        };
        let Ok(note) = serde_json::from_slice::<IndexCacheNote>(note) else {
            return self.unusable("is of another version");
        };
        let before = note.shards.iter().map(Some).chain(iter::repeat(None));
        let now = self.paths.iter().zip(&self.shards);
        for ((path, now), before) in now.zip(before) {
            let how = match before {
                Some(before) => before.difference(now, path),
                None => Some("not there then".to_owned()),
            };
            if let Some(how) = how {
                let (kept, path) = (self.file.display(), path.display());
                tracing::debug!("{kept}: {path} has changed ({how}), so the shards are read again");
                return Ok(None);
            }
        }
        let index = match Index::open(SealedBytes::new(binary_form::NAME, &[index])?) {
            Ok(index) => index,
            Err(damage) => return self.unusable(&damage.to_string()),
        };
        let lengths = self.shards.iter().map(|stamps| stamps.shard.file.bytes);
        if let Err(what) = index.check_ends(lengths) {
            return self.unusable(&what);
        }
        let report = note.scan.into_report(index.len());
        Ok(Some((index, report)))
    }

    /// The bytes of the kept file. `None` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or half of the `available` memory cannot hold it.
    pub(crate) fn read(&self, available: Option<u64>) -> Result<Option<Vec<u8>>, String> {
        let unreadable = |e| format!("cannot be read: {e}");
        let (mut file, len) = match regular_file::open(&self.file) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        binary_form::check_room(len, available).map_err(|too_large| format!("has {too_large}"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(Some(bytes))
    }

    /// Warns that the kept index is not used. The shards are read again.
    fn unusable(&self, what: &str) -> Result<Option<(Index, ScanReport)>> {
        tracing::warn!(
            "the kept index {} {what}, so the shards are read again",
            self.file.display()
        );
        Ok(None)
    }

    /// Keeps `index`, unless a shard has changed while it was read.
    pub(crate) fn write(self, index: &Index, report: &ScanReport) -> Result<()> {
        for (path, before) in self.paths.iter().zip(&self.shards) {
            if let Some(how) = before.difference(&stamps(path)?, path) {
                tracing::debug!("{}: changed while it was read ({how})", path.display());
                return Ok(());
            }
        }
        match self.try_write(index, report) {
            Err(e) if !self.is_named => {
                // The user did not name the folder, so this is not an error.
                tracing::warn!(
                    "the index of the shards cannot be kept: {e}. The next run reads \
                                their headers again"
                );
                Ok(())
            }
            done => done,
        }
    }

    fn try_write(&self, index: &Index, report: &ScanReport) -> Result<()> {
        let note = IndexCacheNote {
            version: this_version(),
            of: described(&self.paths),
            shards: self.shards.clone(),
            scan: ScanSummary::of(report),
        };
        let failed =
            |e: serde_json::Error| Error::io_at("write", &self.file, std::io::Error::other(e));
        let note = serde_json::to_vec(&note).map_err(failed)?;
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::io_at("make the folder", folder, e))?;
            remove_other_versions(folder);
        }
        let head = head(&note);
        replace(&self.file, |file| {
            for part in [&head, note.as_slice(), index.sealed.bytes()] {
                file.write_all(part)?;
            }
            Ok(())
        })
    }
}

/// The header of a file: the bytes before the note.
pub(super) fn head(note: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&(note.len() as u64).to_le_bytes());
    head[16..].copy_from_slice(&XxHash3_128::oneshot(note).to_le_bytes());
    head
}

/// Describes the shards as text.
fn described(paths: &[PathBuf]) -> String {
    match paths {
        [] => String::new(),
        [only] => format!("the index of {}", only.display()),
        [first, .., last] => format!(
            "the index of {} shards, {} to {}",
            paths.len(),
            first.display(),
            last.display()
        ),
    }
}

/// Whether `head`, the first bytes of a file, are those of a kept index.
pub(crate) fn is_kept(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// The description in the kept index at `path`. `None` if its note is damaged.
pub(crate) fn describe(path: &Path) -> Option<String> {
    let note = note_of(path)?;
    Some(serde_json::from_slice::<NoteText>(&note).ok()?.of)
}

/// The part of a note that describes its index.
#[derive(Deserialize)]
struct NoteText {
    of: String,
}

/// Most bytes of a note that [`note_of`] reads: enough for tens of thousands of shards.
const MOST_WORDS: u64 = 64 << 20;

/// The note of a kept file, without the index. `None` if it cannot be read or is damaged.
pub(super) fn note_of(path: &Path) -> Option<Vec<u8>> {
    let (mut file, _) = regular_file::open(path).ok()?;
    let mut head = [0; HEAD];
    file.read_exact(&mut head).ok()?;
    let (magic, head) = head.split_first_chunk::<8>()?;
    let (len, hash) = head.split_first_chunk::<8>()?;
    let len = u64::from_le_bytes(*len);
    if magic != MAGIC || len > MOST_WORDS {
        return None;
    }
    let mut note = Vec::new();
    file.take(len).read_to_end(&mut note).ok()?;
    let is_whole = u128::from_le_bytes(*hash.first_chunk()?) == XxHash3_128::oneshot(&note);
    is_whole.then_some(note)
}

/// Removes kept files of other versions from this folder: only files with the name and the header
/// of a kept index. Ignores files that cannot be removed.
fn remove_other_versions(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || !has_kept_name(entry.file_name().as_bytes()) {
            continue;
        }
        let path = entry.path();
        if !is_of_another_version(&path) {
            continue;
        }
        match fs::remove_file(&path) {
            Ok(()) => tracing::debug!("{}: of another version, removed", path.display()),
            Err(e) => tracing::debug!("{}: cannot be removed: {e}", path.display()),
        }
    }
}

/// Whether the file is a kept index whose note does not begin with the current version.
fn is_of_another_version(path: &Path) -> bool {
    let ours = format!("{{\"version\":\"{}\",", this_version());
    let mut front = Vec::new();
    let due = (HEAD + ours.len()) as u64;
    let read =
        regular_file::open(path).and_then(|(file, _)| file.take(due).read_to_end(&mut front));
    let is_read = read.is_ok_and(|read| read as u64 == due);
    is_read && is_kept(&front) && !front[HEAD..].starts_with(ours.as_bytes())
}

/// Whether a file name has the form that [`name`] returns.
fn has_kept_name(name: &[u8]) -> bool {
    let digits = name
        .strip_prefix(b"shards-")
        .and_then(|rest| rest.strip_suffix(b".fli"));
    digits.is_some_and(|digits| {
        digits.len() == 32
            && digits
                .iter()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The note and the index in the bytes of a kept file. `None` if the note is damaged. Does not
/// check the index.
pub(super) fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let (magic, head) = head.split_first_chunk::<8>()?;
    let (len, hash) = head.split_first_chunk::<8>()?;
    let hash = hash.first_chunk::<16>()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let (note, index) = rest.split_at_checked(len)?;
    let is_right = magic == MAGIC && XxHash3_128::oneshot(note) == u128::from_le_bytes(*hash);
    is_right.then_some((note, index))
}

fn stamps(path: &Path) -> Result<ShardStamps> {
    let shard = fs::metadata(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Error::dataset(path, "no such shard: check the path"),
        _ => Error::io_at("look at", path, e),
    })?;
    Ok(ShardStamps {
        shard: seen(&shard),
        // An index that cannot be inspected is not read either.
        idx: fs::metadata(dali_index::path_of(path))
            .ok()
            .as_ref()
            .map(seen),
    })
}

fn seen(meta: &Metadata) -> MetadataStamp {
    MetadataStamp {
        file: FileStamp::of_metadata(meta),
        changed: nanoseconds(meta.ctime(), meta.ctime_nsec()),
    }
}

/// The file name for a list of shards and the options that change their index.
fn name(paths: &[PathBuf], options: &ShardOptions) -> String {
    let hash = hash_of(|add| {
        add(&FORM.to_le_bytes());
        add(env!("CARGO_PKG_VERSION").as_bytes());
        add_options(add, options);
        for path in paths {
            add(path.as_os_str().as_bytes());
        }
    });
    format!("shards-{hash:032x}.fli")
}

/// The hash of several byte strings, each with its length.
fn hash_of(parts: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u128 {
    let mut hasher = twox_hash::xxhash3_128::Hasher::new();
    parts(&mut |bytes| {
        hasher.write(&(bytes.len() as u64).to_le_bytes());
        hasher.write(bytes);
    });
    hasher.finish_128()
}

/// Adds the options that change the index to a hash.
fn add_options(add: &mut dyn FnMut(&[u8]), options: &ShardOptions) {
    let words = match &options.labels {
        ShardLabels::Auto => ["auto", "", ""],
        ShardLabels::None => ["none", "", ""],
        ShardLabels::Field(field) => ["field", field, ""],
        ShardLabels::Json { field, pointer } => ["json", field, pointer],
    };
    for word in words {
        add(word.as_bytes());
    }
    // An image field that is given is never empty.
    add(options
        .image_field
        .as_deref()
        .unwrap_or_default()
        .as_bytes());
    let classes = options.classes.as_ref();
    // The number of names separates them from the paths that follow. A given list has at least one.
    let names = classes.map_or(0, ClassList::len);
    add(&(names as u64).to_le_bytes());
    for name in classes.into_iter().flat_map(ClassList::iter) {
        add(name.as_bytes());
    }
}

/// A file name for the options and the version [`FORM`], without the paths of the shards.
pub(super) fn name_of_options(options: &ShardOptions) -> String {
    let hash = hash_of(|add| {
        add(&FORM.to_le_bytes());
        add_options(add, options);
    });
    format!("{hash:032x}")
}

/// `featherload` in `XDG_CACHE_HOME` or in `HOME/.cache`. `None` if both variables are unset or
/// relative.
pub(super) fn user_cache() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("featherload"))
}
