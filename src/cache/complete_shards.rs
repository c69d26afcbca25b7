//! Shards finished so far, by earlier calls and by this one, and what the cache's index and
//! manifest have of them.
//!
//! In the consumer.

use crate::cache::cache_folder::CacheFolder;
use crate::cache::layout::ShardFile;
use crate::cache::report::{BuildReport, MOST_EXAMPLES, SkippedSample};
use crate::data::index::{CachedSamples, Index};
use crate::data::shard::manifest::{ShardEntry, ShardManifest, SkippedEntry};
use crate::error::Result;

/// Shards finished so far.
pub(super) struct CompleteShards<'a> {
    index: &'a Index,
    pub(super) report: BuildReport,
    /// In the order of their numbers; of shards that are only counted none.
    pub(super) entries: Vec<ShardEntry>,
    pub(super) samples: CachedSamples,
    /// Left out, and in no manifest yet. Those after the last shard of an earlier call stay here
    /// until it is known that the source's files stayed as they were.
    pub(super) unlisted: Vec<SkippedEntry>,
}

impl<'a> CompleteShards<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        Self {
            index,
            report: BuildReport::default(),
            entries: Vec::new(),
            samples: CachedSamples::new(index),
            unlisted: Vec::new(),
        }
    }

    /// Adds a shard, which stands after those before.
    pub(super) fn add(&mut self, entry: ShardEntry, manifest: &ShardManifest) {
        let name = format!("{}.{}", entry.name, ShardFile::Tar.extension());
        self.samples.push_shard(self.index, &name, manifest);
        self.count(&entry, manifest);
        self.entries.push(entry);
    }

    /// Counts a shard whose place among others is not known yet.
    pub(super) fn count(&mut self, entry: &ShardEntry, manifest: &ShardManifest) {
        let report = &mut self.report;
        report.samples += entry.samples;
        report.shards += 1;
        report.bytes += entry.bytes;
        self.skip(&manifest.skipped);
    }

    /// Forgets all shards, so that they are added in their order. What this call did stays.
    pub(super) fn clear(&mut self) {
        let report = BuildReport {
            samples: 0,
            skipped: 0,
            shards: 0,
            bytes: 0,
            skipped_examples: Vec::new(),
            ..std::mem::take(&mut self.report)
        };
        *self = Self {
            report,
            ..Self::new(self.index)
        };
    }

    /// Lists what is left out after the last shard in the manifest of that shard.
    pub(super) fn list_skipped(&mut self, folder: &CacheFolder) -> Result<()> {
        let skipped = std::mem::take(&mut self.unlisted);
        if let Some(last) = self.entries.last_mut().filter(|_| !skipped.is_empty()) {
            *last = folder.add_skipped(self.report.shards - 1, &skipped)?;
            self.skip(&skipped);
        }
        Ok(())
    }

    /// Counts samples that are left out, and listed in a manifest.
    fn skip(&mut self, skipped: &[SkippedEntry]) {
        let report = &mut self.report;
        report.skipped += skipped.len() as u64;
        let room = MOST_EXAMPLES.saturating_sub(report.skipped_examples.len());
        let more = skipped.iter().take(room).map(|s| SkippedSample {
            id: s.source,
            path: self.index.path(s.source),
            reason: s.reason.clone(),
        });
        report.skipped_examples.extend(more);
    }

    /// Why the first sample is left out; empty where none is.
    pub(super) fn first_reason(&self) -> &str {
        let listed = self.report.skipped_examples.first().map(|s| &s.reason);
        let unlisted = self.unlisted.first().map(|s| &s.reason);
        listed.or(unlisted).map_or("", |reason| reason)
    }

    /// The samples of all shards, for the index.
    pub(super) fn take_samples(&mut self) -> CachedSamples {
        std::mem::replace(&mut self.samples, CachedSamples::new(self.index))
    }
}
