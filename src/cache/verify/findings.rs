//! What verifying tells: each place that is hurt, and how much was looked at.
//!
//! Plain data, and the one place where threads put it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::data::index::lossy;

use crate::data::shard::member_name;

/// Findings that are kept one by one; all are counted.
const KEPT: usize = 100_000;

/// What is hurt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The header in front of a member.
    Header,
    /// The data of a member.
    Data,
    /// The zeros behind a member's data, up to the next block of 512 bytes.
    Padding,
    /// The two blocks of zeros that end a tar.
    EndBlocks,
    /// A tar is shorter or longer than it was.
    Length,
    /// DALI's index beside a shard.
    Index,
    /// The index file, `index.fli`, of all samples.
    IndexFile,
    /// The manifest of the cache or of a shard.
    Manifest,
    /// A file of the cache is not there.
    Missing,
    /// A shard that is none of the cache's.
    Extra,
    /// A file, or a part of it, cannot be read.
    Unreadable,
}

impl FindingKind {
    /// As people read it; JSON has `_` in the place of a blank.
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

    /// The finding of the member `name`, of which this part is damaged.
    pub(super) fn of_member(self, name: &str) -> String {
        match self {
            Self::Header => format!("the header of '{name}' is damaged"),
            Self::Data => format!("the data of '{name}' are damaged"),
            Self::Padding => format!("the padding behind '{name}' is not zero"),
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

/// The sample that a finding lies in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct DamagedSample {
    /// In the cache; none where no manifest tells it.
    pub id: Option<u64>,
    /// Its members' names up to the first dot.
    pub key: String,
}

impl DamagedSample {
    /// The sample that the member `name` is of.
    pub(super) fn of_member(id: Option<u64>, name: &[u8]) -> Self {
        // A name without a key is the whole of what is known.
        let key = member_name::split(name).map_or(name, |(key, _)| key);
        Self {
            id,
            key: String::from_utf8_lossy(key).into_owned(),
        }
    }
}

/// One place that is hurt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct VerifyFinding {
    /// Its name in the cache's folder.
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    /// Bytes from the file's beginning: of the first byte that differs, or, where
    /// that cannot be known (data and manifests have one checksum), of the
    /// beginning of what the checksum is of. None for a file as a whole.
    pub offset: Option<u64>,
    pub kind: FindingKind,
    pub sample: Option<DamagedSample>,
    pub message: String,
}

/// How far verifying is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyProgress {
    /// Bytes that were read.
    pub bytes: u64,
    /// Of so many, as files were long at the start.
    pub of: u64,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// False when the cache's build has not ended: its complete shards were checked.
    pub complete: bool,
    /// Whether there were checksums to compare contents with. False for tars that
    /// are no cache's: of these, headers and bounds were checked.
    pub checksums: bool,
    /// Shards that were gone through.
    pub shards: u64,
    /// Samples that were gone through, damaged ones included.
    pub samples: u64,
    /// Bytes that were read.
    pub bytes: u64,
    pub seconds: f64,
    /// All findings.
    pub found: u64,
    /// The first 100,000 of them, by file and offset.
    pub findings: Vec<VerifyFinding>,
}

impl VerifyReport {
    /// Whether nothing was found. Of a cache whose build has not ended this says
    /// that its complete shards are good, not that it is whole: see
    /// [`VerifyReport::complete`].
    pub fn is_good(&self) -> bool {
        self.found == 0
    }
}

/// Who wants to know how far it is.
pub(super) type VerifyWatch<'a> = &'a (dyn Fn(VerifyProgress) + Sync);

/// What all threads have found so far.
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

    /// So many bytes more were read.
    pub(super) fn read(&self, bytes: u64) {
        // SYNC: a count that nobody takes anything else from.
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        (self.watch)(VerifyProgress {
            bytes: before + bytes,
            of: self.of,
        });
    }

    /// So many samples of a shard, or more of them, are to be gone through.
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

    /// Of a file, not of a sample.
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
