//! From payloads to complete shards.
//!
//! In the consumer, which alone writes: members come in order out of the pool
//! and go one behind the other into one shard, so that no byte of a cache depends
//! on who made which payload. Never in here: printing, pictures, what is removed.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use crate::cache::asked::{Build, Watch};
use crate::cache::folder::Folder;
use crate::cache::members::Members;
use crate::cache::need::Need;
use crate::cache::report::{BuildPhase, BuildProgress, SkippedSample};
use crate::cache::shard_file::{Member, ShardFileWriter};
use crate::cache::so_far::{NAMED, State};
use crate::cache::surveyed::Surveyed;
use crate::cache::upload::LOOK;
use crate::cache::{OnBadSample, faults};
use crate::data::shard::manifest::SkippedEntry;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::encode::payload::Order;
use crate::jobs::encode::run::EncodeRun;

/// The run from payloads to complete shards.
pub(super) struct Writing<'a> {
    pub(super) build: &'a Build<'a>,
    pub(super) folder: &'a Folder,
    pub(super) surveyed: &'a Surveyed,
    pub(super) members: &'a Members<'a>,
    pub(super) order: &'a Order,
    pub(super) state: &'a mut State,
    pub(super) open: Option<ShardFileWriter>,
    /// Samples that gave nothing before the first shard was begun.
    pub(super) waiting: Vec<SkippedEntry>,
    /// The next place.
    pub(super) position: u64,
    /// Places of this part of the cache that are written or left out, and all of them.
    pub(super) done: u64,
    pub(super) places: u64,
    /// Bytes of members so far, in this call.
    pub(super) written: u64,
    pub(super) need: Need,
}

impl Writing<'_> {
    pub(super) fn all(&mut self, mut run: EncodeRun, watch: Watch<'_>) -> Result<ControlFlow<()>> {
        if watch(&self.progress()).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let each = self.build.options.most_places(self.order.samples());
        while let Some(payloads) = run.next()? {
            self.position = payloads.first();
            for row in 0..payloads.rows() {
                if each.is_some_and(|n| self.position.is_multiple_of(n)) {
                    if self.open.is_some() {
                        self.end_shard()?;
                    }
                    if let Some(each) = self.build.options.shard_samples {
                        // It is there even if it gets no sample.
                        let (number, id) = (self.position / each, self.position);
                        self.open = Some(ShardFileWriter::begin(self.folder, number, id)?);
                    }
                }
                match payloads.row(row) {
                    Ok((_, payload)) => self.sample(payload)?,
                    Err(fault) => self.fault(fault)?,
                }
                self.position += 1;
                self.done += 1;
                // Many small shards may end within one slot, which is held meanwhile.
                if self.catch_up(watch)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            drop(payloads);
            if let Some(store) = self.build.store {
                store.keep();
            }
            if let Some(mut upload) = self.folder.upload() {
                upload.hear(Duration::ZERO)?;
            }
            if watch(&self.progress()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.end_shard()?;
        let pool = run.report()?;
        self.state.report.worker_deaths = pool.worker_deaths;
        self.state.report.stderr_lost = pool.stderr_lost;
        self.state.report.source_bytes = pool.input_bytes;
        Ok(ControlFlow::Continue(()))
    }

    /// Waits while the store is too far behind.
    fn catch_up(&self, watch: Watch<'_>) -> Result<ControlFlow<()>> {
        loop {
            match self.folder.upload() {
                Some(mut upload) if upload.is_behind() => upload.hear(LOOK)?,
                _ => return Ok(ControlFlow::Continue(())),
            }
            if watch(&self.progress()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    fn progress(&self) -> BuildProgress<'_> {
        let open = self.open.as_ref();
        BuildProgress {
            shards: self.state.report.shards,
            bytes: self.state.report.bytes + open.map_or(0, ShardFileWriter::bytes),
            needed_bytes: self.need.bytes,
            shards_up: self
                .folder
                .upload()
                .map_or(0, |upload| upload.report().shards_up),
            samples: self.places,
            ..self.build.progress(BuildPhase::Writing, self.done)
        }
    }

    /// The id in the source of what stands at the place.
    fn source(&self) -> Result<u64> {
        let source = self.order.sample(self.position);
        source.ok_or_else(|| Error::protocol("more payloads than samples came"))
    }

    fn sample(&mut self, payload: &[u8]) -> Result<()> {
        let source = self.source()?;
        // Where shards stand alone, a sample is named by its place.
        let id = match self.build.options.shard_samples {
            Some(_) => self.position,
            None => {
                self.state.report.samples + self.open.as_ref().map_or(0, ShardFileWriter::samples)
            }
        };
        let names = self.members.of(id, source)?;
        let picture = Member {
            name: &names.picture,
            data: payload,
        };
        let label = names
            .label
            .as_ref()
            .map(|(name, data)| Member { name, data });
        let members: Vec<_> = std::iter::once(picture).chain(label).collect();
        let most = self.build.options.shard_bytes();
        if self.open.as_ref().is_some_and(|s| !s.takes(&members, most)) {
            self.end_shard()?;
        }
        let shard = match &mut self.open {
            Some(shard) => shard,
            None => {
                let number = self.state.report.shards;
                let mut shard = ShardFileWriter::begin(self.folder, number, id)?;
                self.waiting.drain(..).for_each(|s| shard.skip(s));
                self.open.insert(shard)
            }
        };
        let before = shard.bytes();
        let pushed = shard.push(self.folder, source, &members);
        self.written += shard.bytes() - before;
        pushed
    }

    fn fault(&mut self, fault: SampleFault) -> Result<()> {
        let id = self.source()?;
        let stop = |fault| {
            Err(Error::Sample {
                id,
                path: self.build.index.path(id),
                fault,
            })
        };
        let is_lasting = self.surveyed.is_lasting(self.build.index, id, &fault);
        if self.build.options.on_error == OnBadSample::Stop {
            return stop(faults::stopping(fault, is_lasting));
        }
        if !is_lasting {
            return stop(faults::passing(fault));
        }
        let path = self.build.index.relative_path(id);
        let entry = SkippedEntry {
            source: id,
            path: path.to_string_lossy().into_owned(),
            reason: fault.reason,
        };
        match &mut self.open {
            Some(shard) => shard.skip(entry),
            None => self.waiting.push(entry),
        }
        Ok(())
    }

    fn end_shard(&mut self) -> Result<()> {
        let index = self.build.index;
        if let Some(shard) = self.open.take() {
            let number = shard.number();
            let (entry, manifest) = shard.finish(self.folder)?;
            self.folder.ship(number, &manifest)?;
            match self.build.options.shard_samples {
                Some(_) => self.state.count(index, &entry, &manifest),
                None => self.state.keep(index, entry, &manifest),
            }
        } else if self.state.report.shards == 0 {
            self.none_at_all();
        } else {
            // Behind a shard of an earlier call.
            self.state.behind.append(&mut self.waiting);
        }
        Ok(())
    }

    /// No sample gave a picture: those that were left out are told all the same.
    fn none_at_all(&mut self) {
        let told = self.waiting.drain(..).take(NAMED).map(|s| SkippedSample {
            id: s.source,
            path: PathBuf::from(s.path),
            reason: s.reason,
        });
        self.state.report.skipped_examples.extend(told);
    }
}
