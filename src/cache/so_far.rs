//! What of a cache is complete while it is built: by earlier calls, and by this one.
//!
//! In the consumer. Plain data.

use std::time::Instant;

use crate::cache::layout::ShardFile;
use crate::cache::report::{BuildReport, SkippedSample};
use crate::index::{CachedSamples, Index};
use crate::shard::manifest::{ShardEntry, ShardManifest, SkippedEntry};

/// Skipped samples that a report names.
pub(super) const NAMED: usize = 100;

/// What is complete so far.
pub(super) struct State {
    pub(super) report: BuildReport,
    pub(super) shards: Vec<ShardEntry>,
    pub(super) samples: CachedSamples,
}

impl State {
    pub(super) fn new(index: &Index) -> Self {
        Self {
            report: BuildReport::default(),
            shards: Vec::new(),
            samples: CachedSamples::new(index),
        }
    }

    /// A shard is complete.
    pub(super) fn keep(&mut self, index: &Index, entry: ShardEntry, manifest: &ShardManifest) {
        let name = ShardFile::Tar.name(self.report.shards);
        self.samples.push_shard(index, &name, manifest);
        let report = &mut self.report;
        report.samples += entry.samples;
        report.shards += 1;
        report.bytes += entry.bytes;
        self.shards.push(entry);
        self.skip(index, &manifest.skipped);
    }

    /// These are left out, and a manifest says so.
    pub(super) fn skip(&mut self, index: &Index, skipped: &[SkippedEntry]) {
        let report = &mut self.report;
        report.skipped += skipped.len() as u64;
        let room = NAMED.saturating_sub(report.skipped_examples.len());
        let more = skipped.iter().take(room).map(|s| SkippedSample {
            id: s.source,
            path: index.path(s.source),
            reason: s.reason.clone(),
        });
        report.skipped_examples.extend(more);
    }

    pub(super) fn into_report(mut self, began: Instant, complete: bool) -> BuildReport {
        self.report.complete = complete;
        self.report.seconds = began.elapsed().as_secs_f64();
        self.report
    }
}
