//! What a build tells while it goes on, and at its end.
//!
//! Plain data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::data::index::{DamagedShard, ScanReport, SkipCount, SkipReason, lossy};
use crate::data::shard::manifest::SourceLosses;
use crate::remote::fetch::FetchReport;

/// Skipped samples that a report names.
pub(super) const MOST_EXAMPLES: usize = 100;

/// What a build does, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildPhase {
    /// Looking at what is in the folder; with `force` every complete shard is read.
    Checking,
    /// Waiting for shards of the source, which lies in an object store.
    Fetching,
    /// Reading the header of every sample of the source.
    ReadingHeaders,
    /// Encoding samples and writing shards.
    Writing,
    /// Waiting until the object store has the last shards.
    Sending,
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildProgress<'a> {
    pub phase: BuildPhase,
    /// Samples of the source; of a share those that it is made of.
    pub samples: u64,
    /// Of these, in each phase: those whose shards were found complete; those whose
    /// shards came; those whose headers were read; those that are written or left out, where those of earlier
    /// calls count.
    pub done: u64,
    /// Complete shards; this and what follows is 0 before the phase of writing.
    pub shards: u64,
    /// Bytes of tars, the open one's too.
    pub bytes: u64,
    /// What this call was expected to write, bytes.
    pub needed_bytes: u64,
    /// Shards that are in the object store; 0 where a folder is built.
    pub shards_up: u64,
    /// Where the source lies in an object store and only parts of it have room here: which share
    /// of the cache is made, from 0, and of how many. All numbers are of that share then.
    pub share: Option<(u64, u64)>,
    /// What reading the source's names found, in every phase; none where nobody
    /// knows: of a saved index, or a cache.
    pub scan: Option<&'a ScanReport>,
}

/// What is known at the end of a build of what stands in the cache's folder. Of one
/// that was ended before it wrote, that is no more than what it had looked at; no
/// shard was changed then.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BuildReport {
    /// Whether all shards exist (for a share: all of its shards). False after an early end: the
    /// complete shards stay, and the same call continues after them.
    pub complete: bool,
    /// Samples in complete shards; of a share, as all that follows, in its own.
    pub samples: u64,
    /// Samples of the source that were left out.
    pub skipped: u64,
    /// Complete shards.
    pub shards: u64,
    /// Bytes of their tars.
    pub bytes: u64,
    /// Samples, and shards, that earlier calls had written.
    pub kept_samples: u64,
    pub kept_shards: u64,
    /// What this call was expected to write, bytes; 0 when nothing was missing.
    pub needed_bytes: u64,
    /// Bytes of the source that this call read.
    pub source_bytes: u64,
    /// Workers that ended without being told to.
    pub worker_deaths: u64,
    /// Lines of coordinator and workers that were dropped, because nobody read stderr.
    pub stderr_lost: u64,
    pub seconds: f64,
    /// What came of the source; none where it does not lie in an object store.
    pub fetched: Option<FetchReport>,
    /// What went into the object store; none where a folder was built.
    pub sent: Option<SendReport>,
    /// What reading the source's names left out; no part of JSON, which has the
    /// counts.
    #[serde(skip)]
    pub scan: Option<ScanReport>,
    /// Shards of the source of which something is lost; 0 but under
    /// [`OnBadSample::Skip`](crate::cache::OnBadSample::Skip).
    pub damaged_shards: u64,
    /// Samples that are known to be lost with them. No part of `skipped`: they are
    /// no samples of the source's index.
    pub damaged_samples: u64,
    /// Entries of the source that are no samples, by the name of the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Fields of the source's samples that are neither picture nor label, which are
    /// not copied: by extension, how many samples have them. Empty too where nobody
    /// knows: of a saved index, or a cache.
    pub other_fields: BTreeMap<String, u64>,
    /// The first of the samples that were left out, at most 100.
    pub skipped_examples: Vec<SkippedSample>,
}

/// What a build sent into an object store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SendReport {
    /// Shards of this call's part that are there, those of earlier calls too.
    pub shards_up: u64,
    /// Objects that were sent. One that was there with the same bytes is none.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that failed and were made again.
    pub retries: u64,
    /// Senders that died, and were started again.
    pub deaths: u64,
}

impl SendReport {
    /// What two calls sent. Each knows the shards of its own part.
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
    /// What two shares are together.
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

    /// What shares and the call that `ended` their cache are together: it has looked for all
    /// shards, and made and sent none.
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

    /// With what reading the source's names left out.
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

/// What a scan found that is no sample of its index.
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
    /// In the source.
    pub id: u64,
    /// As JSON with a replacement for bytes that are no UTF-8.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub reason: String,
}
