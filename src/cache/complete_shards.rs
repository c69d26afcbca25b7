//! The shards that are complete so far, from earlier calls and from this one, and their part of the
//! cache's index and manifest.
//!
//! Runs in the consumer.

use crate::cache::cache_folder::CacheFolder;
use crate::cache::layout::ShardFile;
use crate::cache::report::{BuildReport, MOST_EXAMPLES, SkippedSample};
use crate::cache::shard_ledger::SourceSample;
use crate::data::index::{CachedSamples, Index};
use crate::data::shard::manifest::{ShardEntry, ShardManifest, SkippedEntry, TargetMembers};
use crate::error::Result;

/// The shards that are complete so far.
pub(super) struct CompleteShards<'a> {
    index: &'a Index,
    pub(super) report: BuildReport,
    /// In the order of their numbers. Shards that are only counted have no entry.
    pub(super) entries: Vec<ShardEntry>,
    pub(super) samples: CachedSamples,
    /// Their rasters, by number.
    pub(super) rasters: Vec<CachedSamples>,
    targets: TargetMembers,
    /// The samples of the source in the order of the cache, if it has objects.
    pub(super) sources: Option<Vec<SourceSample>>,
    /// Left-out samples that are in no manifest yet. Those after the last shard of an earlier call
    /// stay here until the files of the source are compared again.
    pub(super) unlisted: Vec<SkippedEntry>,
}

impl<'a> CompleteShards<'a> {
    pub(super) fn new(index: &'a Index, targets: TargetMembers) -> Self {
        let count = targets.all_rasters();
        let rasters = (0..count).map(|number| CachedSamples::of_raster(index, number, count));
        Self {
            index,
            rasters: rasters.collect(),
            targets,
            sources: targets.objects.then(Vec::new),
            report: BuildReport::default(),
            entries: Vec::new(),
            samples: CachedSamples::new(index),
            unlisted: Vec::new(),
        }
    }

    /// Adds the shard that follows those added before.
    pub(super) fn add(&mut self, entry: ShardEntry, manifest: &ShardManifest) {
        let name = format!("{}.{}", entry.name, ShardFile::Tar.extension());
        self.samples.push_shard(self.index, &name, manifest);
        for raster in &mut self.rasters {
            raster.push_shard(self.index, &name, manifest);
        }
        if let Some(sources) = &mut self.sources {
            let samples = manifest.samples.iter();
            sources.extend(samples.map(|sample| (sample.source, sample.size)));
        }
        self.count(&entry, manifest);
        self.entries.push(entry);
    }

    /// Counts a shard without an entry, because shards before it may be missing.
    pub(super) fn count(&mut self, entry: &ShardEntry, manifest: &ShardManifest) {
        let report = &mut self.report;
        report.samples += entry.samples;
        report.shards += 1;
        report.bytes += entry.bytes;
        self.skip(&manifest.skipped);
    }

    /// Removes all shards, so that they can be added in their order. Keeps the counts of the work
    /// of this call.
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
            ..Self::new(self.index, self.targets)
        };
    }

    /// Writes the left-out samples after the last shard into the manifest of that shard.
    pub(super) fn list_skipped(&mut self, folder: &CacheFolder) -> Result<()> {
        let skipped = std::mem::take(&mut self.unlisted);
        if let Some(last) = self.entries.last_mut().filter(|_| !skipped.is_empty()) {
            *last = folder.add_skipped(self.report.shards - 1, &skipped)?;
            self.skip(&skipped);
        }
        Ok(())
    }

    /// Counts left-out samples that a manifest lists.
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

    /// Why the first left-out sample was left out; empty if there is none.
    pub(super) fn first_reason(&self) -> &str {
        let listed = self.report.skipped_examples.first().map(|s| &s.reason);
        let unlisted = self.unlisted.first().map(|s| &s.reason);
        listed.or(unlisted).map_or("", |reason| reason)
    }

    /// Moves out the samples of all shards, for the index.
    pub(super) fn take_samples(&mut self) -> CachedSamples {
        std::mem::replace(&mut self.samples, CachedSamples::new(self.index))
    }
}
