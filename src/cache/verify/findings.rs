//! The results of verifying: each damaged place, and how much was checked.
//!
//! Plain data, and `FindingLog`, which collects them from all threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::data::index::lossy;

use crate::data::shard::member_name;

/// Findings that are listed one by one. All are counted.
const KEPT: usize = 100_000;

/// The kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The header before a member.
    Header,
    /// The data of a member.
    Data,
    /// The zeros after a member's data, up to the next block of 512 bytes.
    Padding,
    /// The two blocks of zeros that end a tar.
    EndBlocks,
    /// A tar is cut off, or does not have the length that its manifest states.
    Length,
    /// DALI's index beside a shard.
    Index,
    /// The index of all samples, `index.fli`, or a file of targets: `objects.flo`, `masks.fli`,
    /// `raster-depth.fli`.
    IndexFile,
    /// The manifest of the cache or of a shard.
    Manifest,
    /// A file of the cache is missing.
    Missing,
    /// A shard that does not belong to the cache.
    Extra,
    /// A file, or a part of it, cannot be read.
    Unreadable,
}

impl FindingKind {
    /// The name for people. JSON has `_` in place of blanks.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Data => "data",
            Self::Padding => "padding",
            Self::EndBlocks => "end blocks",
            Self::Length => "length",
            Self::Index => "index",
            Self::IndexFile => "index file",
            Self::Manifest => "manifest",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Unreadable => "unreadable",
        }
    }

    /// The message for the member `name` with this kind of damage.
    pub(super) fn of_member(self, name: &str) -> String {
        match self {
            Self::Header => format!("the header of '{name}' is damaged"),
            Self::Data => format!("the data of '{name}' are damaged"),
            Self::Padding => format!("the padding after '{name}' is not zero"),
            Self::Length => format!("'{name}' is cut off or missing"),
            other => format!("'{name}': {}", other.name()),
        }
    }
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.name().replace(' ', "_"))
    }
}

/// The sample that a finding belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct DamagedSample {
    /// Id in the cache; none if no intact manifest has it.
    pub id: Option<u64>,
    /// The names of its members up to the first dot.
    pub key: String,
}

impl DamagedSample {
    /// The sample of the member `name`.
    pub(super) fn of_member(id: Option<u64>, name: &[u8]) -> Self {
        // Uses the whole name of a member without a key.
        let key = member_name::split(name).map_or(name, |(key, _)| key);
        Self {
            id,
            key: String::from_utf8_lossy(key).into_owned(),
        }
    }
}

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct VerifyFinding {
    /// Name of the file in the cache's folder.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// Offset in the file, bytes, of the first byte that differs. If that cannot be known, the
    /// offset where the range of the checksum begins: data and manifests have one checksum each.
    /// None for a whole file.
    pub offset: Option<u64>,
    pub kind: FindingKind,
    pub sample: Option<DamagedSample>,
    pub message: String,
}

/// The progress of verifying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// Bytes read so far.
    pub bytes: u64,
    /// Bytes to read, by the lengths of the files at the start.
    pub of: u64,
}

/// The result of verifying.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// False if the build of the cache has not ended. Then only its complete shards were checked.
    pub complete: bool,
    /// Whether contents were compared with checksums. False for tars that are not of a cache: only
    /// their headers and bounds were checked.
    pub checksums: bool,
    /// Number of shards that were checked.
    pub shards: u64,
    /// Number of samples that were checked, damaged ones included.
    pub samples: u64,
    /// Bytes that were read.
    pub bytes: u64,
    pub seconds: f64,
    /// Number of all findings.
    pub found: u64,
    /// The findings, sorted by file and offset. At most 100,000 are listed.
    pub findings: Vec<VerifyFinding>,
}

impl VerifyReport {
    /// Whether there are no findings. If [`VerifyReport::complete`] is false, only the complete
    /// shards were checked.
    pub fn is_good(&self) -> bool {
        self.found == 0
    }
}

/// Receives the progress, from any thread.
pub(super) type VerifyWatch<'a> = &'a (dyn Fn(VerifyProgress) + Sync);

/// Collects the findings and counts of all threads.
pub(super) struct FindingLog<'a> {
    watch: VerifyWatch<'a>,
    of: u64,
    bytes: AtomicU64,
    shards: AtomicU64,
    samples: AtomicU64,
    all: Mutex<(u64, Vec<VerifyFinding>)>,
}

impl<'a> FindingLog<'a> {
    pub(super) fn new(watch: VerifyWatch<'a>, of: u64) -> Self {
        Self {
            watch,
            of,
            bytes: AtomicU64::new(0),
            shards: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            all: Mutex::default(),
        }
    }

    /// Counts bytes that were read, and reports the progress.
    pub(super) fn read(&self, bytes: u64) {
        // SYNC: only a counter. No other data depend on it.
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        (self.watch)(VerifyProgress {
            bytes: before + bytes,
            of: self.of,
        });
    }

    /// Counts a shard, and the samples in it that are checked.
    pub(super) fn shard(&self, samples: u64) {
        self.shards.fetch_add(1, Ordering::Relaxed);
        self.samples.fetch_add(samples, Ordering::Relaxed);
    }

    pub(super) fn add(&self, finding: VerifyFinding) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0 += 1;
        if all.1.len() < KEPT {
            all.1.push(finding);
        }
    }

    /// Adds a finding that belongs to a file, not to a sample.
    pub(super) fn add_file_finding(
        &self,
        name: impl Into<PathBuf>,
        kind: FindingKind,
        offset: Option<u64>,
        message: String,
    ) {
        self.add(VerifyFinding {
            file: name.into(),
            offset,
            kind,
            sample: None,
            message,
        });
    }

    pub(super) fn missing(&self, name: &str) {
        self.add_file_finding(name, FindingKind::Missing, None, "is not there".into());
    }

    pub(super) fn report(self, complete: bool, checksums: bool, took: Duration) -> VerifyReport {
        let (found, mut findings) = self
            .all
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        findings.sort();
        VerifyReport {
            complete,
            checksums,
            shards: self.shards.into_inner(),
            samples: self.samples.into_inner(),
            bytes: self.bytes.into_inner(),
            seconds: took.as_secs_f64(),
            found,
            findings,
        }
    }
}
