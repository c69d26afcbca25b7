//! Writes payloads into shards.
//!
//! Runs in the consumer, the only process that writes. Payloads come in order from the pool, and go
//! into one shard at a time. So no byte of a cache depends on which worker made which payload.
//! Never in here: printing, pixels, and the removal of files.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::cache::build::{BuildWatch, CacheBuild};
use crate::cache::cache_folder::CacheFolder;
use crate::cache::columns::CacheColumns;
use crate::cache::complete_shards::CompleteShards;
use crate::cache::report::{BuildPhase, BuildProgress};
use crate::cache::sample_members::SampleMembers;
use crate::cache::shard_file::{MemberData, ShardFileWriter};
use crate::cache::source_headers::SourceHeaders;
use crate::cache::upload::LOOK;
use crate::data::shard::manifest::{SkippedEntry, TargetMembers};
use crate::error::{Error, Result, SampleFault};
use crate::jobs::encode::payload::{CacheOrder, SamplePayload};
use crate::jobs::encode::run::EncodeRun;

/// Writes payloads into shards.
pub(super) struct PayloadWriter<'a, 'c> {
    pub(super) build: &'a CacheBuild<'a>,
    pub(super) folder: &'a CacheFolder,
    pub(super) headers: &'a SourceHeaders<'a>,
    pub(super) members: &'a SampleMembers<'a>,
    pub(super) order: &'a CacheOrder,
    pub(super) complete: &'a mut CompleteShards<'c>,
    /// The shard that is being written.
    pub(super) open: Option<ShardFileWriter>,
    /// The next place of the order.
    pub(super) position: u64,
    /// Places of this part of the cache that are written or left out.
    pub(super) done: u64,
    /// All places of this part.
    pub(super) places: u64,
    /// Bytes of members that this call has written.
    pub(super) written: u64,
}

impl PayloadWriter<'_, '_> {
    /// Writes all payloads of `run`.
    ///
    /// # Errors
    /// The first bad sample that may not be left out, or a file that cannot be written.
    pub(super) fn write_all(
        &mut self,
        mut run: EncodeRun,
        watch: BuildWatch<'_>,
    ) -> Result<ControlFlow<()>> {
        if watch(&self.progress()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let each = self.build.options.most_shard_places(self.order.samples());
        while let Some(payloads) = run.next()? {
            self.position = payloads.first();
            for row in 0..payloads.rows() {
                if each.is_some_and(|n| self.position.is_multiple_of(n)) {
                    self.end_shard()?;
                    if let Some(each) = self.build.options.shard_samples {
                        // This shard is written even if all its samples are left out.
                        let (number, id) = (self.position / each, self.position);
                        self.open = Some(ShardFileWriter::begin(
                            self.folder,
                            number,
                            id,
                            self.contents(),
                        )?);
                    }
                }
                match payloads.row(row) {
                    Ok(payload) => self.write_sample(payload)?,
                    Err(fault) => self.skip_sample(fault)?,
                }
                self.position += 1;
                self.done += 1;
                // Many small shards may end within one slot, so this waits while it holds the slot.
                if self.wait_for_upload(watch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            drop(payloads);
            if let Some(store) = self.build.source_store {
                store.check_fetcher();
            }
            if let Some(mut upload) = self.folder.upload() {
                upload.receive_replies(Duration::ZERO)?;
            }
            if watch(&self.progress()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.end_shard()?;
        let pool = run.filler.report()?;
        self.complete.report.worker_deaths = pool.processes.worker_deaths;
        self.complete.report.stderr_lost = pool.processes.stderr_lost;
        self.complete.report.source_bytes = pool.input_bytes;
        Ok(ControlFlow::Continue(()))
    }

    /// Waits while too many shards wait for their upload.
    fn wait_for_upload(&self, watch: BuildWatch<'_>) -> Result<ControlFlow<()>> {
        loop {
            match self.folder.upload() {
                Some(mut upload) if upload.is_behind() => upload.receive_replies(LOOK)?,
                _ => return Ok(ControlFlow::Continue(())),
            }
            if watch(&self.progress()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn progress(&self) -> BuildProgress<'_> {
        let (open, report) = (self.open.as_ref(), &self.complete.report);
        let upload = self.folder.upload();
        BuildProgress {
            shards: report.shards,
            bytes: report.bytes + open.map_or(0, ShardFileWriter::bytes),
            needed_bytes: report.needed_bytes,
            shards_up: upload.map_or(0, |upload| upload.report().shards_up),
            ..self
                .build
                .progress(BuildPhase::Writing, self.done, self.places)
        }
    }

    /// The id in the source of the sample at the current place.
    fn source_id(&self) -> Result<u64> {
        let source = self.order.sample(self.position);
        source.ok_or_else(|| Error::protocol("more payloads than samples came"))
    }

    /// The columns and targets of shards.
    fn contents(&self) -> (Option<&CacheColumns>, TargetMembers) {
        (self.build.columns, self.build.targets.members())
    }

    fn write_sample(&mut self, payload: SamplePayload<'_>) -> Result<()> {
        let source = self.source_id()?;
        // In independent shards, the id of a sample is its place.
        let id = match self.build.options.shard_samples {
            Some(_) => self.position,
            None => {
                let open = self.open.as_ref().map_or(0, ShardFileWriter::samples);
                self.complete.report.samples + open
            }
        };
        let size = self.headers.sizes.get(source);
        let size = size.ok_or_else(|| Error::protocol("a payload came without its header"))?;
        let names = match self.members.of(id, source, size)? {
            Ok(names) => names,
            Err(fault) => return self.skip_sample(fault),
        };
        let texts = [&names.label, &names.objects].into_iter().flatten();
        let texts = texts.map(|(name, data)| (name.as_str(), data.as_slice()));
        let picture: MemberData<'_> = (&names.picture, payload.image);
        let rasters = names.rasters.iter().zip(payload.rasters);
        let rasters = rasters.map(|(name, raster)| (name.as_str(), raster));
        let members = std::iter::once(picture).chain(texts).chain(rasters);
        let members: Vec<_> = members.collect();
        let columns = self.build.columns;
        let row = columns.map(|columns| columns.row(self.build.index, source));
        let row = row.transpose()?;
        let most = self.build.options.shard_bytes();
        let contents = (columns, self.build.targets.members());
        let takes = |open: &ShardFileWriter| open.takes(&members, row.as_ref(), most);
        if self.open.as_ref().is_some_and(|open| !takes(open)) {
            self.end_shard()?;
        }
        let shard = match &mut self.open {
            Some(shard) => shard,
            None => {
                let number = self.complete.report.shards;
                let mut shard = ShardFileWriter::begin(self.folder, number, id, contents)?;
                let unlisted = self.complete.unlisted.drain(..);
                unlisted.for_each(|s| shard.skip(s));
                self.open.insert(shard)
            }
        };
        let before = shard.bytes();
        let source = (source, self.members.stated_size(size));
        let pushed = shard.push(self.folder, source, &members, row);
        self.written += shard.bytes() - before;
        pushed
    }

    /// Leaves out a bad sample.
    ///
    /// # Errors
    /// The fault, if it ends the build.
    fn skip_sample(&mut self, fault: SampleFault) -> Result<()> {
        let (id, index) = (self.source_id()?, self.build.index);
        let on_error = self.build.options.on_error;
        let entry = SkippedEntry {
            source: id,
            reason: self.headers.skip_reason(on_error, id, fault)?,
            path: index.relative_path(id).to_string_lossy().into_owned(),
        };
        match &mut self.open {
            Some(shard) => shard.skip(entry),
            None => self.complete.unlisted.push(entry),
        }
        Ok(())
    }

    /// Completes the shard that is being written, if there is one.
    fn end_shard(&mut self) -> Result<()> {
        let Some(shard) = self.open.take() else {
            return Ok(());
        };
        let number = shard.number();
        let (entry, manifest) = shard.finish(self.folder)?;
        self.written += manifest.columns.as_ref().map_or(0, |member| member.size);
        self.folder.upload_shard(number, &manifest)?;
        match self.build.options.shard_samples {
            Some(_) => self.complete.count(&entry, &manifest),
            None => self.complete.add(entry, &manifest),
        }
        Ok(())
    }
}
