//! What of a cache is complete while it is built: by earlier calls, and by this one.
//!
//! In the consumer.

use std::time::Instant;

use crate::cache::folder::Folder;
use crate::cache::layout::ShardFile;
use crate::cache::report::{BuildReport, SkippedSample};
use crate::data::index::{CachedSamples, Index};
use crate::data::shard::manifest::{ShardEntry, ShardManifest, SkippedEntry};
use crate::error::Result;

/// Skipped samples that a report names.
pub(super) const NAMED: usize = 100;

/// What is complete so far.
pub(super) struct State {
    pub(super) report: BuildReport,
    pub(super) shards: Vec<ShardEntry>,
    pub(super) samples: CachedSamples,
    /// Left out behind the last shard, which is of an earlier call: in no manifest
    /// before it is known that the source's files stayed as they were.
    pub(super) behind: Vec<SkippedEntry>,
}

impl State {
    pub(super) fn new(index: &Index) -> Self {
        Self {
            report: BuildReport::default(),
            shards: Vec::new(),
            samples: CachedSamples::new(index),
            behind: Vec::new(),
        }
    }

    /// A shard is complete.
    pub(super) fn keep(&mut self, index: &Index, entry: ShardEntry, manifest: &ShardManifest) {
        let name = ShardFile::Tar.name(self.report.shards);
        self.samples.push_shard(index, &name, manifest);
        self.count(index, &entry, manifest);
        self.shards.push(entry);
    }

    /// A shard that stands alone is complete: it has no place among others yet.
    pub(super) fn count(&mut self, index: &Index, entry: &ShardEntry, manifest: &ShardManifest) {
        let report = &mut self.report;
        report.samples += entry.samples;
        report.shards += 1;
        report.bytes += entry.bytes;
        self.skip(index, &manifest.skipped);
    }

    /// Takes what is there from `all`; what this call did stays.
    pub(super) fn take_totals(&mut self, all: &Self) {
        let (mine, all) = (&mut self.report, &all.report);
        mine.samples = all.samples;
        mine.skipped = all.skipped;
        mine.shards = all.shards;
        mine.bytes = all.bytes;
        mine.skipped_examples.clone_from(&all.skipped_examples);
    }

    /// Lists what is left out behind the last shard in its manifest.
    pub(super) fn list_behind(&mut self, folder: &Folder, index: &Index) -> Result<()> {
        let skipped = std::mem::take(&mut self.behind);
        let Some(last) = self.shards.last_mut().filter(|_| !skipped.is_empty()) else {
            return Ok(());
        };
        *last = folder.skip_behind(self.report.shards - 1, &skipped)?;
        self.skip(index, &skipped);
        Ok(())
    }

    /// These are left out, and a manifest says so.
    fn skip(&mut self, index: &Index, skipped: &[SkippedEntry]) {
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
