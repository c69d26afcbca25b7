//! The index of shards that are no cache, kept so that later runs need not read
//! their headers: the sealed form, behind what the shards were like.
//!
//! Used in the consumer. A kept index is used when every shard, and DALI's index
//! beside it, is the file that it was: by inode (where the file system keeps
//! inodes), length and the times (in ns) of its data and of the file itself, which
//! no copy can be given. It is thrown away otherwise, or when a byte of it is
//! damaged; the shards are then read again. One of damaged shards is never kept, so
//! that each run says what is lost. What a scan left out is kept with it, and said
//! again. The note begins with words for people: `head -c 300` of a file says which
//! shards it is of. Kept files of other versions, which nobody would read again, are
//! removed when one is written.
//!
//! ```text
//!  0  magic 8 bytes
//!  8  bytes of the note u64
//! 16  xxh3-128 of the note
//! 32  note: JSON; then the index, in the form of `sealed`
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
/// Changed with what samples are made of shards.
const FORM: u32 = 5;

/// Of all that is kept under other names by another program of ours.
fn this_version() -> String {
    format!("{} {FORM}", env!("CARGO_PKG_VERSION"))
}

/// Where an index is kept, and what its shards are like now.
pub(crate) struct IndexCache {
    file: PathBuf,
    /// Whether the user named the folder: then not writing there is an error.
    is_named: bool,
    paths: Vec<PathBuf>,
    shards: Vec<ShardStamps>,
}

/// A shard, and the index of DALI's that may take the place of its headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ShardStamps {
    shard: MetadataStamp,
    /// None where there is none.
    idx: Option<MetadataStamp>,
}

/// A file, and the time that `touch` and `cp -p` cannot set. A sealed index goes
/// without it: a link more or other rights do not make another shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct MetadataStamp {
    file: FileStamp,
    /// Of the last change of the file itself, ns since 1970.
    changed: i64,
}

/// What stands in front of the index.
#[derive(Serialize, Deserialize)]
struct IndexCacheNote {
    /// See [`this_version`]. First: whoever tidies up looks no further.
    version: String,
    /// What is kept here, for people.
    of: String,
    shards: Vec<ShardStamps>,
    #[serde(flatten)]
    scan: ScanSummary,
}

/// What a scan left out, kept with its index, and said again.
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

    /// The report of a scan that found so many samples.
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

/// What was left out for one reason.
#[derive(Serialize, Deserialize)]
struct SkipSummary {
    reason: SkipReason,
    count: u64,
    /// Paths as bytes.
    examples: Vec<Vec<u8>>,
}

impl ShardStamps {
    /// In which way the shard at `path`, or DALI's index beside it, is another now.
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
    /// Where the index of these shards is, or would be; none where none is kept.
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

    /// Takes note of DALI's indexes that were written after the shards were read. The
    /// shards must be what they were.
    pub(crate) fn refresh_idx_stamps(&mut self) -> Result<()> {
        for (path, before) in self.paths.iter().zip(&mut self.shards) {
            before.idx = stamps(path)?.idx;
        }
        Ok(())
    }

    /// The index that is kept, when it is of these shards as they are.
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

    /// What is kept, where something is and half of the memory that is available holds it.
    ///
    /// # Errors
    /// Why it is not to be used.
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

    /// The shards are read again, which costs time and nothing else.
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
                // Nobody asked for it.
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

/// What stands in front of a note.
pub(super) fn head(note: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&(note.len() as u64).to_le_bytes());
    head[16..].copy_from_slice(&XxHash3_128::oneshot(note).to_le_bytes());
    head
}

/// Which shards these are, in words.
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

/// Whether `head`, the beginning of a file, is that of a kept index.
pub(crate) fn is_kept(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// What the kept index at `path` is of, in words; none when it is damaged.
pub(crate) fn describe(path: &Path) -> Option<String> {
    let note = note_of(path)?;
    Some(serde_json::from_slice::<NoteText>(&note).ok()?.of)
}

/// What a note has for people.
#[derive(Deserialize)]
struct NoteText {
    of: String,
}

/// The longest note that is read for its words: tens of thousands of shards.
const MOST_WORDS: u64 = 64 << 20;

/// The note of a kept file, when it is whole.
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

/// Removes what other versions kept in this folder: files that have the name and
/// the form of a kept index, and no others. What cannot be removed stays.
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

/// Whether the file begins as a kept index does, and its note as none of ours now.
fn is_of_another_version(path: &Path) -> bool {
    let ours = format!("{{\"version\":\"{}\",", this_version());
    let mut front = Vec::new();
    let due = (HEAD + ours.len()) as u64;
    let read =
        regular_file::open(path).and_then(|(file, _)| file.take(due).read_to_end(&mut front));
    let is_read = read.is_ok_and(|read| read as u64 == due);
    is_read && is_kept(&front) && !front[HEAD..].starts_with(ours.as_bytes())
}

/// Whether a name is one that [`name`] makes.
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

/// Note and index of a kept file.
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
        // One that cannot be looked at is not read, either.
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

/// One file for each list of shards, field of pictures, kind of labels and table of classes.
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

/// The hash of parts, each with its length.
fn hash_of(parts: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u128 {
    let mut hasher = twox_hash::xxhash3_128::Hasher::new();
    parts(&mut |bytes| {
        hasher.write(&(bytes.len() as u64).to_le_bytes());
        hasher.write(bytes);
    });
    hasher.finish_128()
}

/// What of the options makes another index.
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
    // Never empty where it is given.
    add(options
        .image_field
        .as_deref()
        .unwrap_or_default()
        .as_bytes());
    let classes = options.classes.as_ref();
    // Their number keeps names apart from the paths that follow; a table has one.
    let names = classes.map_or(0, ClassList::len);
    add(&(names as u64).to_le_bytes());
    for name in classes.into_iter().flat_map(ClassList::iter) {
        add(name.as_bytes());
    }
}

/// A name for the index of one set of shards: another one for other options, and for what reads
/// shards otherwise.
pub(super) fn name_of_options(options: &ShardOptions) -> String {
    let hash = hash_of(|add| {
        add(&FORM.to_le_bytes());
        add_options(add, options);
    });
    format!("{hash:032x}")
}

pub(super) fn user_cache() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("featherload"))
}
