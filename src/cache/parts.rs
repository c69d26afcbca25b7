//! How a part of a cache is built in a folder, whatever part it is and wherever it goes then:
//! what is there is compared and kept, what is missing is made, and the cache is finished.
//!
//! In the consumer. [`Build::build_in`] names the steps in their order. Never in here: printing,
//! pictures, bytes of shards.

use std::ops::{ControlFlow, Range};

use crate::cache::OnBadSample;
use crate::cache::build::{Build, Watch};
use crate::cache::changes;
use crate::cache::complete_shards::CompleteShards;
use crate::cache::disk_estimate::DiskEstimate;
use crate::cache::disk_full::RemainingWork;
use crate::cache::folder::{CacheFolder, file_hash};
use crate::cache::layout::{INDEX, ShardFile, shard_name};
use crate::cache::missing_shards::{MissingShards, ShardRun};
use crate::cache::options::BuildPart;
use crate::cache::payload_writer::PayloadWriter;
use crate::cache::report::{BuildPhase, BuildReport, losses};
use crate::cache::sample_members::SampleMembers;
use crate::cache::source_headers::{SourceHeaders, files_hash, files_hash_of, no_picture};
use crate::data::index::Index;
use crate::data::shard::manifest::{
    CacheManifest, Hash128, Manifest, ShardManifest, SourceEntry, VERSION,
};
use crate::error::{Error, Result};
use crate::jobs::encode::payload::Order;
use crate::jobs::encode::run::EncodeRun;
use crate::jobs::encode::spec::EncodeSpec;
use crate::pool::crew::Ready;

impl Build<'_> {
    /// Builds what `folder` lacks of this part.
    pub(super) fn build_in(
        &self,
        folder: &CacheFolder,
        crew: Ready,
        watch: Watch<'_>,
    ) -> Result<BuildReport> {
        let mut complete = CompleteShards::new(self.index);
        let checking = self.progress(BuildPhase::Checking, 0, self.index.len());
        if watch(&checking).is_break() {
            return Ok(complete.into_report(false));
        }
        let mut manifest = self.new_manifest()?;
        let existing = self.existing_manifest(folder, &manifest)?;
        if let Some(existing) = &existing {
            // What the first call knew: a later one may be told of the same samples by
            // indexes, which do not have it.
            manifest.source.lost.clone_from(&existing.source.lost);
        }
        let explain = |e| RemainingWork::none(folder).explain(e);
        // Without a manifest that stays, no shard stays.
        let keeps = existing.is_some();
        let found = self.find_missing(folder, keeps, &mut complete, watch);
        let Some(missing) = found.map_err(explain)? else {
            return Ok(complete.into_report(false));
        };
        if missing.runs.is_empty() {
            if is_finished(folder, &existing, &complete) {
                return Ok(complete.into_report(true));
            }
            if self.replaces(keeps) {
                let begun = folder.begin_at(complete.report.kept_shards, &manifest);
                begun.map_err(explain)?;
            }
        } else {
            self.check_finish(folder, &missing)?;
            let plan = (&missing, keeps, &manifest);
            let made = self.make_shards(folder, crew, plan, &mut complete, watch)?;
            if made.is_break() {
                return Ok(complete.into_report(false));
            }
        }
        if !self.is_share() {
            if self.files_hash()? != manifest.source.files {
                return Err(self.remove_changed(folder, &missing, &complete));
            }
            let finished = self.finish(folder, (&missing, &existing), &mut complete, manifest);
            finished.map_err(explain)?;
        }
        Ok(complete.into_report(true))
    }

    /// The manifest of a cache that is begun.
    ///
    /// # Errors
    /// A file of the source that cannot be looked at.
    pub(super) fn new_manifest(&self) -> Result<CacheManifest> {
        let names = self.index.classes().iter();
        Ok(CacheManifest {
            format: CacheManifest::FORMAT.into(),
            version: VERSION,
            checksum: Hash128(0),
            featherload: env!("CARGO_PKG_VERSION").into(),
            complete: false,
            options: self.options.entry(self.index.len()),
            source: SourceEntry {
                samples: self.index.len(),
                index: Hash128(self.index.hash()),
                files: self.files_hash()?,
                lost: self.scan.map(losses),
            },
            classes: names.map(|n| n.to_string_lossy().into_owned()).collect(),
            label_width: self.index.label_width() as u64,
            samples: 0,
            skipped: 0,
            shards: Vec::new(),
            index: None,
        })
    }

    /// The manifest in the folder whose build goes on; none where there is none, or where what is
    /// there is replaced. Removes nothing.
    ///
    /// # Errors
    /// A cache of other options or another source, unless it is to be replaced.
    fn existing_manifest(
        &self,
        folder: &CacheFolder,
        wanted: &CacheManifest,
    ) -> Result<Option<CacheManifest>> {
        let there = match folder.manifest() {
            // What begins as ours was ours; any other file of this name never is.
            Err(e) if self.force && e.is_usage() && Index::is_cache(folder.path()) => {
                tracing::warn!("{e}. It is built again");
                return Ok(None);
            }
            there => there?,
        };
        let Some(there) = there else {
            return Ok(None);
        };
        let changed = changes::between(&there, wanted);
        if changed.is_empty() {
            return Ok(Some(there));
        }
        // Where no shard is complete, nothing is lost; but of those that make shares, another
        // may be about to write one.
        let alone = self.part == BuildPart::All;
        if self.force || (alone && !there.complete && folder.is_bare()?) {
            return Ok(None);
        }
        Err(changes::refused(folder.path(), "folder", &changed))
    }

    /// Whether a build of all shards removes what is there and does not stay.
    fn replaces(&self, keeps: bool) -> bool {
        self.part == BuildPart::All && !(keeps && self.independent_shards().is_some())
    }

    /// Goes through the shards of the part: complete ones are kept, and their `.idx` put right.
    /// None when `watch` ends it.
    ///
    /// # Errors
    /// What the system says of a file that is there and cannot be read: it is no
    /// reason to make its shard again, nor those after it.
    fn find_missing(
        &self,
        folder: &CacheFolder,
        keeps: bool,
        complete: &mut CompleteShards<'_>,
        watch: Watch<'_>,
    ) -> Result<Option<MissingShards>> {
        let independent = self.independent_shards();
        let numbers = self.shard_numbers();
        let places = independent.map_or(self.index.len(), |all| all.samples_of(numbers.clone()));
        let mut missing = MissingShards {
            runs: Vec::new(),
            numbers: Vec::new(),
            places,
            done: 0,
        };
        for number in numbers {
            let by_place = independent.map(|all| all.places(number..number + 1).start);
            let first_id = by_place.unwrap_or(complete.report.samples);
            let kept = match keeps {
                true => self.kept_shard(folder, number, first_id)?,
                false => None,
            };
            let Some((shard, hash)) = kept else {
                missing.numbers.push(number);
                match independent {
                    Some(_) => continue,
                    None => break,
                }
            };
            let entry = folder.keep_shard(number, &shard, hash)?;
            missing.done += (shard.samples.len() + shard.skipped.len()) as u64;
            match self.is_share() {
                true => complete.count(&entry, &shard),
                false => complete.add(entry, &shard),
            }
            complete.report.kept_samples = complete.report.samples;
            complete.report.kept_shards = complete.report.shards;
            let checked = self.progress(BuildPhase::Checking, missing.done, places);
            if watch(&checked).is_break() {
                return Ok(None);
            }
        }
        match independent {
            Some(all) => missing.runs = all.runs(&missing.numbers),
            None if missing.done < places => missing.runs.push(ShardRun {
                places: missing.done..places,
                first_id: complete.report.samples,
                first_shard: complete.report.shards,
            }),
            None => {}
        }
        Ok(Some(missing))
    }

    /// The manifest of a complete shard, with the hash of its file; under `force` none of a shard
    /// whose tar is damaged.
    fn kept_shard(
        &self,
        folder: &CacheFolder,
        number: u64,
        first_id: u64,
    ) -> Result<Option<(ShardManifest, Hash128)>> {
        let Some((shard, hash)) = folder.complete_shard(number, first_id)? else {
            return Ok(None);
        };
        if !self.force || folder.is_undamaged(number, &shard)? {
            return Ok(Some((shard, hash)));
        }
        if self.independent_shards().is_none() {
            tracing::warn!(
                "{}: damaged, so it and the shards behind it are made again",
                ShardFile::Tar.path(folder.path(), number).display()
            );
        }
        Ok(None)
    }

    /// # Errors
    /// Missing shards, where the call makes none.
    fn check_finish(&self, folder: &CacheFolder, missing: &MissingShards) -> Result<()> {
        let (BuildPart::Finish, Some(first)) = (self.part, missing.numbers.first()) else {
            return Ok(());
        };
        Err(Error::option(
            "finish",
            format!(
                "{} lacks {} of {} shards, the first is {}: make them by `shard` first, or \
                 leave `finish` out",
                folder.place().display(),
                missing.numbers.len(),
                self.shard_numbers().end,
                shard_name(*first)
            ),
        ))
    }

    /// Makes the missing shards: the source's shards come, headers are read, the disk's room is
    /// checked, workers are started, what makes room is removed, and payloads are written.
    fn make_shards(
        &self,
        folder: &CacheFolder,
        crew: Ready,
        (missing, keeps, manifest): (&MissingShards, bool, &CacheManifest),
        complete: &mut CompleteShards<'_>,
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>> {
        let order = &Order::new(self.index.len(), self.options.shuffle);
        let places: Vec<_> = missing.runs.iter().map(|run| run.places.clone()).collect();
        let independent = self.independent_shards().is_some();
        // Whichever shards are there, one that depends on others needs all headers.
        let read = match independent {
            true => places.clone(),
            false => vec![0..order.samples()],
        };
        let samples = || {
            let places = read.iter().cloned().flatten();
            places.filter_map(|place| order.sample(place))
        };
        // Of these files alone: other processes look at theirs.
        let files = match independent {
            true => Some(self.files_hash_of(samples())?),
            false => None,
        };
        if self.fetch_shards(order, &read, watch)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let to_read = read.iter().map(|places| places.end - places.start).sum();
        let Some(headers) = self.read_headers(samples(), to_read, watch)? else {
            return Ok(ControlFlow::Break(()));
        };
        let source = (self.index, self.store.is_some());
        headers.check(source, self.options, order, &places)?;
        let members = SampleMembers::new(self.index, self.options.encode, &headers.formats);
        let (available, fragment) = folder.available()?;
        let need = DiskEstimate {
            index: self.index,
            options: self.options,
            order,
            headers: &headers,
            members: &members,
            samples: complete.samples.clone(),
            fragment,
        }
        .need(&missing.runs, self.part == BuildPart::All)?;
        let freed = match self.replaces(keeps) {
            true => folder.bytes_from(complete.report.kept_shards)?,
            false => 0,
        };
        let shards = match independent {
            true => missing.numbers.len() as u64,
            false => {
                let most = self.options.most_places(order.samples());
                let by_places = most.map_or(0, |places| order.samples().div_ceil(places));
                (need.bytes / self.options.shard_bytes()).max(by_places)
            }
        };
        let here = folder.need_here(need, shards);
        RemainingWork::check(folder, here, available.saturating_add(freed))?;
        let run = self.start_workers(crew, order, &headers, places)?;
        // Once more before anything is removed, which does not come back.
        let read_all = self.progress(BuildPhase::ReadingHeaders, to_read, to_read);
        if watch(&read_all).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        complete.report.needed_bytes = need.bytes;
        let mut remaining = RemainingWork {
            folder,
            done: complete.report.samples + complete.report.skipped,
            samples: missing.places,
            written: 0,
            encoded: 0,
            need,
            freed,
        };
        let begun = self.begin(folder, keeps, complete.report.kept_shards, manifest);
        begun.map_err(|e| remaining.explain(e))?;
        let mut writer = PayloadWriter {
            build: self,
            folder,
            headers: &headers,
            members: &members,
            order,
            complete,
            open: None,
            position: 0,
            done: missing.done,
            places: missing.places,
            written: 0,
        };
        let written = writer.write_all(run, watch);
        remaining.done = writer.complete.report.samples + writer.complete.report.skipped;
        (remaining.written, remaining.encoded) = (writer.written, writer.done - missing.done);
        // The half shard's bytes are free again before free bytes are reported.
        writer.open = None;
        let written = written.map_err(|e| remaining.explain(e))?;
        if let Some(files) = files
            && self.files_hash_of(samples())? != files
        {
            return Err(self.remove_changed(folder, missing, complete));
        }
        Ok(written)
    }

    /// Has the source's shards with the samples at these places come, where it lies in a store.
    /// They stay until others come.
    fn fetch_shards(
        &self,
        order: &Order,
        places: &[Range<u64>],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>> {
        match self.store {
            Some(store) => {
                let source = (self.index, self.options);
                store.bring(source, order, places, &mut |done, samples| {
                    watch(&self.progress(BuildPhase::Fetching, done, samples))
                })
            }
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// The headers of these samples; none when `watch` ends it.
    fn read_headers(
        &self,
        samples: impl Iterator<Item = u64>,
        count: u64,
        watch: Watch<'_>,
    ) -> Result<Option<SourceHeaders>> {
        let mut wanted = vec![false; self.index.len() as usize];
        samples.for_each(|id| wanted[id as usize] = true);
        let is_wanted = |id: u64| wanted.get(id as usize).copied().unwrap_or(false);
        SourceHeaders::read(
            self.index,
            &self.options.limits(),
            &is_wanted,
            &mut |read| watch(&self.progress(BuildPhase::ReadingHeaders, read, count)),
        )
    }

    fn start_workers(
        &self,
        crew: Ready,
        order: &Order,
        headers: &SourceHeaders,
        places: Vec<Range<u64>>,
    ) -> Result<EncodeRun> {
        let spec = EncodeSpec {
            encode: self.options.encode,
            resize: self.options.resize,
            shuffle: self.options.shuffle,
            limits: self.options.limits(),
        };
        let rooms = headers.rooms(order, spec.encode, spec.resize)?;
        EncodeRun::start(crew, spec, self.index, &headers.sizes, &rooms, places)
    }

    /// Removes what the build replaces, from shard `first` on, and puts the begun manifest there,
    /// if none stays.
    ///
    /// # Errors
    /// When another process that makes shares has begun with other options at the same time.
    fn begin(
        &self,
        folder: &CacheFolder,
        keeps: bool,
        first: u64,
        manifest: &CacheManifest,
    ) -> Result<()> {
        if self.replaces(keeps) {
            return folder.begin_at(first, manifest);
        }
        if !keeps {
            folder.begin(manifest)?;
            self.existing_manifest(folder, manifest)?;
        }
        Ok(())
    }

    /// Fingerprint of the source's files, beside that of its index.
    ///
    /// # Errors
    /// A file of the source that cannot be looked at.
    fn files_hash(&self) -> Result<Hash128> {
        match self.store {
            Some(store) => Ok(store.fingerprint()),
            None => files_hash(self.index),
        }
    }

    /// The same of the files of these samples alone. Shards out of a store came by their
    /// checksums, and cannot change here.
    fn files_hash_of(&self, ids: impl Iterator<Item = u64>) -> Result<Hash128> {
        match self.store {
            Some(store) => Ok(store.fingerprint()),
            None => files_hash_of(self.index, ids),
        }
    }

    /// Removes the shards that this call made of a source that changed meanwhile: which of them
    /// are of which files is not known. Returns the error.
    fn remove_changed(
        &self,
        folder: &CacheFolder,
        missing: &MissingShards,
        complete: &CompleteShards<'_>,
    ) -> Error {
        let made = complete.report.kept_shards..complete.report.shards;
        let removed = match self.independent_shards() {
            Some(_) => folder.remove_shards(&missing.numbers),
            None => folder.remove_shards(&made.collect::<Vec<_>>()),
        };
        if let Err(e) = removed {
            return e;
        }
        Error::dataset(
            self.index.root(),
            "its files changed while the cache was built, so the shards made of them are removed: \
             build again (with `force` if the files stay as they are now)",
        )
    }

    /// Writes index and manifest of all shards, which are there.
    fn finish(
        &self,
        folder: &CacheFolder,
        (missing, existing): (&MissingShards, &Option<CacheManifest>),
        complete: &mut CompleteShards<'_>,
        mut manifest: CacheManifest,
    ) -> Result<()> {
        if let Some(all) = self
            .independent_shards()
            .filter(|_| !missing.runs.is_empty())
        {
            // In the order of their numbers, which is not that in which they were made.
            complete.clear();
            for number in self.shard_numbers() {
                let first = all.places(number..number + 1).start;
                let Some((shard, hash)) = folder.complete_shard(number, first)? else {
                    return Err(Error::dataset(
                        ShardFile::Tar.path(&folder.place(), number),
                        "was there, and is not any more: build again, and let nothing else write \
                         to this folder",
                    ));
                };
                complete.add(folder.keep_shard(number, &shard, hash)?, &shard);
            }
            if is_finished(folder, existing, complete) {
                return Ok(());
            }
        }
        let report = &complete.report;
        if report.skipped > 0 && self.options.on_error == OnBadSample::Stop {
            return Err(Error::option(
                "on_error",
                format!(
                    "the shards leave out {} samples, and `on_error` is stop: they were made with \
                     skip, so end the cache with it",
                    report.skipped
                ),
            ));
        }
        if report.samples == 0 {
            return Err(no_picture(self.index, complete.first_reason()));
        }
        complete.list_skipped(folder)?;
        let path = folder.path().join(INDEX);
        complete.take_samples().seal()?.write(&path)?;
        manifest.complete = true;
        manifest.samples = complete.report.samples;
        manifest.skipped = complete.report.skipped;
        manifest.shards.clone_from(&complete.entries);
        manifest.index = Some(file_hash(&path)?);
        folder.write_manifest(&manifest).map(|_| ())
    }
}

/// Whether the folder has manifest and index of the complete shards.
fn is_finished(
    folder: &CacheFolder,
    existing: &Option<CacheManifest>,
    complete: &CompleteShards<'_>,
) -> bool {
    existing.as_ref().is_some_and(|there| {
        there.complete
            && there.shards == complete.entries
            // One that an older version wrote has the right hash, and cannot be read.
            && Index::of_cache(folder.path(), Some(there)).is_ok()
    })
}
