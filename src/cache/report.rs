//! What a build tells while it goes on, and at its end.
//!
//! Plain data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::data::index::{DamagedShard, ScanReport, SkipCount, SkipReason, lossy};
use crate::data::shard::manifest::SourceLosses;
use crate::remote::fetch::FetchReport;

/// The largest number of skipped samples that a report names.
pub(super) const MOST_EXAMPLES: usize = 100;

/// The phases of a build, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildPhase {
    /// Checks the existing files of the folder. With `force` it reads every complete shard.
    Checking,
    /// Waits for shards of a source in an object store.
    Fetching,
    /// Reads the header of every sample of the source.
    ReadingHeaders,
    /// Reads the columns of every sample that the cache keeps, to learn the disk space that they
    /// take.
    ReadingColumns,
    /// Encodes samples and writes shards.
    Writing,
    /// Waits until the object store has the last shards.
    Sending,
}

/// The progress of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildProgress<'a> {
    pub phase: BuildPhase,
    /// Samples of the source, or of the share.
    pub samples: u64,
    /// Finished samples of the current phase: samples of complete shards, samples of downloaded
    /// shards, samples with a header or columns read, or samples that are written or skipped (earlier calls
    /// included).
    pub done: u64,
    /// Complete shards. This field and the next ones are 0 before the phase of writing.
    pub shards: u64,
    /// Bytes of tars, including the open one.
    pub bytes: u64,
    /// Bytes that this call is expected to write.
    pub needed_bytes: u64,
    /// Shards in the destination store; 0 if the destination is a folder.
    pub shards_up: u64,
    /// The current share (from 0) and the number of shares, if the source is in an object store and
    /// does not fit on this machine at once. All other numbers are then those of the share.
    pub share: Option<(u64, u64)>,
    /// The report of reading the names of the source, in every phase. None for a saved index or a
    /// cache.
    pub scan: Option<&'a ScanReport>,
}

impl<'a> BuildProgress<'a> {
    /// The progress while the first shards of the source come from a store.
    pub(super) fn fetching(done: u64, samples: u64, scan: Option<&'a ScanReport>) -> Self {
        Self {
            phase: BuildPhase::Fetching,
            samples,
            done,
            shards: 0,
            bytes: 0,
            needed_bytes: 0,
            shards_up: 0,
            share: None,
            scan,
        }
    }
}

/// The state of the folder at the end of a build. A build that ended before it wrote reports only
/// what it had checked, and has changed no shard.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BuildReport {
    /// Whether all shards exist (for a share: all of its shards). False after an early end: the
    /// complete shards stay, and the same call continues after them.
    pub complete: bool,
    /// Samples in complete shards. For a share, this field and the next ones count its own shards.
    pub samples: u64,
    /// Skipped samples of the source.
    pub skipped: u64,
    /// Complete shards.
    pub shards: u64,
    /// Bytes of their tars.
    pub bytes: u64,
    /// Samples and shards that earlier calls wrote.
    pub kept_samples: u64,
    pub kept_shards: u64,
    /// Bytes that this call was expected to write; 0 if nothing was missing.
    pub needed_bytes: u64,
    /// Bytes of the source that this call read.
    pub source_bytes: u64,
    /// Workers that died.
    pub worker_deaths: u64,
    /// Lines of coordinator and workers that were dropped because stderr was full.
    pub stderr_lost: u64,
    pub seconds: f64,
    /// The download report; none if the source is not in an object store.
    pub fetched: Option<FetchReport>,
    /// The upload report; none if the destination is a folder.
    pub sent: Option<SendReport>,
    /// Files that were skipped while the names of the source were read. Not part of the JSON, which
    /// has the counts.
    #[serde(skip)]
    pub scan: Option<ScanReport>,
    /// Damaged shards of the source; 0 except under
    /// [`OnBadSample::Skip`](crate::cache::OnBadSample::Skip).
    pub damaged_shards: u64,
    /// Samples known to be lost with them. They are not part of `skipped`, because the index of the
    /// source does not have them.
    pub damaged_samples: u64,
    /// Entries of the source that are not samples, by the name of the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Fields of the source's samples that are neither image nor label, and are not copied: by
    /// extension, the number of samples with them. Also empty for a saved index or a cache.
    pub other_fields: BTreeMap<String, u64>,
    /// The first skipped samples, at most 100.
    pub skipped_examples: Vec<SkippedSample>,
}

/// The upload report of a build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SendReport {
    /// Shards of this call's part in the store, including those of earlier calls.
    pub shards_up: u64,
    /// Uploaded objects. An object that the store already had with the same bytes does not count.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Failed requests that were repeated.
    pub retries: u64,
    /// Uploaders that died and were restarted.
    pub deaths: u64,
}

impl SendReport {
    /// The sum of two calls. Each knows the shards of its own part.
    fn and(one: Option<Self>, two: Option<Self>) -> Option<Self> {
        let (Some(one), Some(two)) = (one, two) else {
            return one.or(two);
        };
        Some(Self {
            shards_up: one.shards_up + two.shards_up,
            objects: one.objects + two.objects,
            bytes: one.bytes + two.bytes,
            retries: one.retries + two.retries,
            deaths: one.deaths + two.deaths,
        })
    }
}

impl BuildReport {
    /// The sum of two shares.
    pub(super) fn and(mut self, mut two: Self) -> Self {
        self.skipped_examples.append(&mut two.skipped_examples);
        self.skipped_examples.truncate(MOST_EXAMPLES);
        Self {
            complete: two.complete,
            samples: self.samples + two.samples,
            skipped: self.skipped + two.skipped,
            shards: self.shards + two.shards,
            bytes: self.bytes + two.bytes,
            kept_samples: self.kept_samples + two.kept_samples,
            kept_shards: self.kept_shards + two.kept_shards,
            needed_bytes: self.needed_bytes + two.needed_bytes,
            source_bytes: self.source_bytes + two.source_bytes,
            worker_deaths: self.worker_deaths + two.worker_deaths,
            stderr_lost: self.stderr_lost + two.stderr_lost,
            sent: SendReport::and(self.sent, two.sent),
            ..self
        }
    }

    /// The sum of all shares and of the call that `ended` the cache. That call checked all shards,
    /// and built and uploaded none.
    pub(super) fn finished_by(self, ended: Self) -> Self {
        let shards_up = ended.sent.map_or(0, |sent| sent.shards_up);
        let sent = SendReport::and(self.sent, ended.sent);
        Self {
            kept_samples: self.kept_samples,
            kept_shards: self.kept_shards,
            needed_bytes: self.needed_bytes,
            source_bytes: self.source_bytes,
            worker_deaths: self.worker_deaths,
            stderr_lost: self.stderr_lost,
            sent: sent.map(|sent| SendReport { shards_up, ..sent }),
            ..ended
        }
    }

    /// Adds the files that were skipped while the names of the source were read.
    pub(super) fn with_scan(mut self, scan: Option<ScanReport>) -> Self {
        if let Some(scan) = &scan {
            let lost = losses(scan);
            self.damaged_shards = lost.damaged_shards;
            self.damaged_samples = lost.damaged_samples;
            self.left_out = lost.left_out;
            self.other_fields = lost.other_fields;
        }
        self.scan = scan;
        self
    }
}

/// Entries that a scan found and that are not samples of its index.
pub(super) fn losses(scan: &ScanReport) -> SourceLosses {
    let lost = |d: &DamagedShard| d.samples_incomplete + d.samples_missing.unwrap_or(0);
    let left_out = |(why, skipped): (&SkipReason, &SkipCount)| (why.name().into(), skipped.count);
    SourceLosses {
        damaged_shards: scan.damaged.len() as u64,
        damaged_samples: scan.damaged.iter().map(lost).sum(),
        left_out: scan.skipped.iter().map(left_out).collect(),
        other_fields: scan.other_fields.clone(),
    }
}

/// A sample of the source that is not in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedSample {
    /// Its path in the source.
    pub id: u64,
    /// As JSON, with replacements for bytes that are not UTF-8.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub reason: String,
}
