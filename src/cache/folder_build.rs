//! How a part of a cache is built in a folder, whatever part it is and wherever it goes then:
//! what is there is compared and kept, what is missing is made, and the cache is finished.
//!
//! In the consumer. `FolderBuild::run` has the steps in their order. Never in here: printing,
//! pictures, bytes of shards.

use std::ops::{ControlFlow, Range};

use crate::cache::OnBadSample;
use crate::cache::build::{BuildWatch, CacheBuild};
use crate::cache::cache_folder::{CacheFolder, file_hash};
use crate::cache::changes;
use crate::cache::complete_shards::CompleteShards;
use crate::cache::disk_estimate::DiskEstimate;
use crate::cache::disk_full::{RemainingWork, check_room};
use crate::cache::layout::{INDEX, ShardFile, shard_name};
use crate::cache::options::BuildPart;
use crate::cache::payload_writer::PayloadWriter;
use crate::cache::report::{BuildPhase, BuildReport, losses};
use crate::cache::sample_members::SampleMembers;
use crate::cache::shard_places::{IndependentShards, MissingShards, ShardRun};
use crate::cache::source_headers::{SourceHeaders, files_hash, no_picture};
use crate::data::index::Index;
use crate::data::shard::manifest::{
    CacheManifest, HexHash128, Manifest, ShardManifest, SourceEntry, VERSION,
};
use crate::error::{Error, Result};
use crate::jobs::encode::payload::CacheOrder;
use crate::jobs::encode::run::EncodeRun;
use crate::jobs::encode::spec::EncodeSpec;
use crate::pool::worker_options::LaunchedWorkers;

/// One part of a cache in its folder, while it is built.
struct FolderBuild<'a> {
    build: &'a CacheBuild<'a>,
    folder: &'a CacheFolder,
    /// The cache's: begun, and complete at the end.
    manifest: CacheManifest,
    /// The manifest that was there and stays: without one no shard stays.
    existing: Option<CacheManifest>,
    complete: CompleteShards<'a>,
    /// None where a shard depends on those before it.
    independent: Option<IndependentShards>,
}

impl CacheBuild<'_> {
    /// Builds what `folder` lacks of this part.
    pub(super) fn build_in_folder(
        &self,
        folder: &CacheFolder,
        crew: LaunchedWorkers,
        watch: BuildWatch<'_>,
    ) -> Result<BuildReport> {
        let checking = self.progress(BuildPhase::Checking, 0, self.index.len());
        if watch(&checking).is_break() {
            return Ok(BuildReport::default());
        }
        let mut manifest = self.new_manifest()?;
        let existing = self.existing_manifest(folder, &manifest)?;
        if let Some(existing) = &existing {
            // As the first call found it: a later one may read the names from an index, which
            // does not have it.
            manifest.source.lost.clone_from(&existing.source.lost);
        }
        let mut part = FolderBuild {
            build: self,
            folder,
            manifest,
            existing,
            complete: CompleteShards::new(self.index),
            independent: self.independent_shards(),
        };
        part.complete.report.complete = part.run(crew, watch)?.is_continue();
        Ok(part.complete.report)
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
            checksum: HexHash128(0),
            featherload: env!("CARGO_PKG_VERSION").into(),
            complete: false,
            options: self.options.entry(self.index.len()),
            source: SourceEntry {
                samples: self.index.len(),
                index: HexHash128(self.index.hash()),
                files: self.files_hash(None)?,
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
        let changed = changes::list_changes(&there, wanted);
        if changed.is_empty() {
            return Ok(Some(there));
        }
        // Where no shard is complete, nothing is lost; but of those that make shares, another
        // may be about to write one.
        let alone = self.part == BuildPart::All;
        if self.force || (alone && !there.complete && folder.has_no_shards()?) {
            return Ok(None);
        }
        Err(changes::mismatch_error(folder.path(), "folder", &changed))
    }

    /// Fingerprint of the source's files, beside that of its index; of the files of `samples` alone
    /// where they are given. Shards out of a store came by their checksums, and cannot change here.
    ///
    /// # Errors
    /// A file of the source that cannot be looked at.
    fn files_hash(&self, samples: Option<&mut dyn Iterator<Item = u64>>) -> Result<HexHash128> {
        match self.source_store {
            Some(store) => Ok(store.fingerprint()),
            None => files_hash(self.index, samples),
        }
    }
}

impl<'a> FolderBuild<'a> {
    /// All steps in their order; `Break` when `watch` ended it.
    fn run(&mut self, crew: LaunchedWorkers, watch: BuildWatch<'_>) -> Result<ControlFlow<()>> {
        let folder = self.folder;
        let explain = |e| RemainingWork::default().explain(folder, e);
        let Some(missing) = self.find_missing(watch).map_err(explain)? else {
            return Ok(ControlFlow::Break(()));
        };
        if missing.runs.is_empty() {
            if self.is_finished() {
                return Ok(ControlFlow::Continue(()));
            }
            if self.removes_existing() {
                self.clear_and_begin().map_err(explain)?;
            }
        } else {
            self.check_finish(&missing)?;
            if self.make_shards(crew, &missing, watch)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if !self.build.is_share() {
            if self.build.files_hash(None)? != self.manifest.source.files {
                return Err(self.remove_changed(&missing));
            }
            self.finish(&missing).map_err(explain)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Goes through the shards of the part: complete ones are kept, and their `.idx` put right.
    /// None when `watch` ends it.
    ///
    /// # Errors
    /// What the system says of a file that is there and cannot be read: it is no
    /// reason to make its shard again, nor those after it.
    fn find_missing(&mut self, watch: BuildWatch<'_>) -> Result<Option<MissingShards>> {
        let numbers = self.build.shard_numbers();
        let mut missing = MissingShards {
            runs: Vec::new(),
            numbers: Vec::new(),
            places: match self.independent {
                Some(all) => all.samples_of(numbers.clone()),
                None => self.build.index.len(),
            },
            done: 0,
        };
        for number in numbers {
            let Some((shard, hash)) = self.reusable_shard(number)? else {
                missing.numbers.push(number);
                match self.independent {
                    Some(_) => continue,
                    None => break,
                }
            };
            let entry = self.folder.repair_idx(number, &shard, hash)?;
            missing.done += (shard.samples.len() + shard.skipped.len()) as u64;
            match self.build.is_share() {
                true => self.complete.count(&entry, &shard),
                false => self.complete.add(entry, &shard),
            }
            let report = &mut self.complete.report;
            (report.kept_samples, report.kept_shards) = (report.samples, report.shards);
            let phase = BuildPhase::Checking;
            let checked = self.build.progress(phase, missing.done, missing.places);
            if watch(&checked).is_break() {
                return Ok(None);
            }
        }
        match self.independent {
            Some(all) => missing.runs = all.runs(&missing.numbers),
            None if missing.done < missing.places => missing.runs.push(ShardRun {
                places: missing.done..missing.places,
                first_id: self.complete.report.samples,
                first_shard: self.complete.report.shards,
            }),
            None => {}
        }
        Ok(Some(missing))
    }

    /// The manifest of a complete shard that stays, with the hash of its file. Under `force` a
    /// shard whose tar is damaged does not stay.
    fn reusable_shard(&self, number: u64) -> Result<Option<(ShardManifest, HexHash128)>> {
        if self.existing.is_none() {
            return Ok(None);
        }
        let Some((shard, hash)) = self.complete_shard(number)? else {
            return Ok(None);
        };
        if !self.build.force || self.folder.is_undamaged(number, &shard)? {
            return Ok(Some((shard, hash)));
        }
        if self.independent.is_none() {
            tracing::warn!(
                "{}: damaged, so it and the shards behind it are made again",
                ShardFile::Tar.path(self.folder.path(), number).display()
            );
        }
        Ok(None)
    }

    /// The manifest of the next shard, or of one that stands alone, where it is complete.
    fn complete_shard(&self, number: u64) -> Result<Option<(ShardManifest, HexHash128)>> {
        let first_id = match self.independent {
            Some(all) => all.places(number..number + 1).start,
            None => self.complete.report.samples,
        };
        self.folder.find_complete(number, first_id)
    }

    /// Whether the folder has manifest and index of the complete shards.
    fn is_finished(&self) -> bool {
        self.existing.as_ref().is_some_and(|there| {
            there.complete
                && there.shards == self.complete.entries
                // One that an older version wrote has the right hash, and cannot be read.
                && Index::of_cache(self.folder.path(), Some(there)).is_ok()
        })
    }

    /// # Errors
    /// Missing shards, where the call makes none.
    fn check_finish(&self, missing: &MissingShards) -> Result<()> {
        let (BuildPart::Finish, Some(first)) = (self.build.part, missing.numbers.first()) else {
            return Ok(());
        };
        Err(Error::option(
            "finish",
            format!(
                "{} lacks {} of {} shards, the first is {}: make them by `shard` first, or \
                 leave `finish` out",
                self.folder.location().display(),
                missing.numbers.len(),
                self.build.shard_numbers().end,
                shard_name(*first)
            ),
        ))
    }

    /// Makes the missing shards: the source's shards come, headers are read, the disk's room is
    /// checked, workers are started, what makes room is removed, and payloads are written.
    fn make_shards(
        &mut self,
        crew: LaunchedWorkers,
        missing: &MissingShards,
        watch: BuildWatch<'_>,
    ) -> Result<ControlFlow<()>> {
        let (build, folder) = (self.build, self.folder);
        let (index, options) = (build.index, build.options);
        let order = &CacheOrder::new(index.len(), options.shuffle);
        let places: Vec<_> = missing.runs.iter().map(|run| run.places.clone()).collect();
        // Whichever shards are there, one that depends on others needs all headers.
        let all = 0..order.samples();
        let read = match self.independent {
            Some(_) => places.clone(),
            None => vec![all],
        };
        let samples = || {
            let places = read.iter().cloned().flatten();
            places.filter_map(|place| order.sample(place))
        };
        // Of these files alone: other processes look at theirs.
        let files = match self.independent {
            Some(_) => Some(build.files_hash(Some(&mut samples()))?),
            None => None,
        };
        if self.fetch_shards(order, &read, watch)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let to_read = read.iter().map(|places| places.end - places.start).sum();
        let Some(headers) = self.read_headers(samples(), to_read, watch)? else {
            return Ok(ControlFlow::Break(()));
        };
        headers.check(build.source_store.is_some(), options, order, &places)?;
        let members = SampleMembers::new(index, options.encode, &headers.formats);
        let (available, fragment) = folder.available()?;
        let need = DiskEstimate {
            index,
            options,
            order,
            headers: &headers,
            members: &members,
            samples: self.complete.samples.clone(),
            fragment,
        }
        .need(&missing.runs, build.part == BuildPart::All)?;
        let freed = match self.removes_existing() {
            true => folder.bytes_from(self.complete.report.kept_shards)?,
            false => 0,
        };
        let shards = match self.independent {
            Some(_) => missing.numbers.len() as u64,
            None => {
                let most = options.most_shard_places(order.samples());
                let by_places = most.map_or(0, |places| order.samples().div_ceil(places));
                (need.bytes / options.shard_bytes()).max(by_places)
            }
        };
        let here = folder.local_need(need, shards);
        check_room(folder, here, available.saturating_add(freed))?;
        let run = self.start_workers(crew, order, &headers, places)?;
        // Once more before anything is removed, which does not come back.
        if watch(&build.progress(BuildPhase::ReadingHeaders, to_read, to_read)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.complete.report.needed_bytes = need.bytes;
        let mut remaining = RemainingWork {
            done: self.complete.report.samples + self.complete.report.skipped,
            samples: missing.places,
            needed: need.bytes,
            freed,
            ..RemainingWork::default()
        };
        let begun = self.clear_and_begin();
        begun.map_err(|e| remaining.explain(folder, e))?;
        let mut writer = PayloadWriter {
            build,
            folder,
            headers: &headers,
            members: &members,
            order,
            complete: &mut self.complete,
            open: None,
            position: 0,
            done: missing.done,
            places: missing.places,
            written: 0,
        };
        let result = writer.write_all(run, watch);
        // The half shard's bytes are free again before free bytes are reported.
        writer.open = None;
        (remaining.written, remaining.encoded) = (writer.written, writer.done - missing.done);
        remaining.done = self.complete.report.samples + self.complete.report.skipped;
        let ended = result.map_err(|e| remaining.explain(folder, e))?;
        if let Some(files) = files
            && build.files_hash(Some(&mut samples()))? != files
        {
            return Err(self.remove_changed(missing));
        }
        Ok(ended)
    }

    /// Has the source's shards with the samples at these places come, where it lies in a store.
    /// They stay until others come.
    fn fetch_shards(
        &self,
        order: &CacheOrder,
        places: &[Range<u64>],
        watch: BuildWatch<'_>,
    ) -> Result<ControlFlow<()>> {
        let build = self.build;
        let Some(store) = build.source_store else {
            return Ok(ControlFlow::Continue(()));
        };
        let source = (build.index, build.options);
        store.fetch_samples(source, order, places, &mut |done, samples| {
            watch(&build.progress(BuildPhase::Fetching, done, samples))
        })
    }

    /// The headers of these samples, of which there are `count`; none when `watch` ends it.
    fn read_headers(
        &self,
        samples: impl Iterator<Item = u64>,
        count: u64,
        watch: BuildWatch<'_>,
    ) -> Result<Option<SourceHeaders<'a>>> {
        let build = self.build;
        let mut wanted = vec![false; build.index.len() as usize];
        samples.for_each(|id| wanted[id as usize] = true);
        let is_wanted = |id: u64| wanted.get(id as usize).copied().unwrap_or(false);
        let limits = build.options.decode_limits();
        SourceHeaders::read(build.index, &limits, &is_wanted, &mut |read| {
            watch(&build.progress(BuildPhase::ReadingHeaders, read, count))
        })
    }

    fn start_workers(
        &self,
        crew: LaunchedWorkers,
        order: &CacheOrder,
        headers: &SourceHeaders<'_>,
        places: Vec<Range<u64>>,
    ) -> Result<EncodeRun> {
        let options = self.build.options;
        let spec = EncodeSpec {
            encode: options.encode,
            resize: options.resize,
            shuffle: options.shuffle,
            limits: options.decode_limits(),
        };
        let rooms = headers.payload_spaces(order, spec.encode, spec.resize)?;
        EncodeRun::start(crew, spec, self.build.index, &headers.sizes, &rooms, places)
    }

    /// Whether the build removes what is there and does not stay: not where others make shards
    /// at the same time, or only some are missing.
    fn removes_existing(&self) -> bool {
        let some_stay = self.existing.is_some() && self.independent.is_some();
        self.build.part == BuildPart::All && !some_stay
    }

    /// Removes the files that the build replaces: shards and index. Then writes the begun manifest,
    /// if none stays.
    ///
    /// # Errors
    /// When another process that makes shares has begun with other options at the same time.
    fn clear_and_begin(&self) -> Result<()> {
        if self.removes_existing() {
            let first = self.complete.report.kept_shards;
            self.folder.remove_from(first)?;
            return self.folder.write_manifest(&self.manifest);
        }
        if self.existing.is_none() {
            self.folder.begin(&self.manifest)?;
            self.build.existing_manifest(self.folder, &self.manifest)?;
        }
        Ok(())
    }

    /// Removes the shards that this call made of a source that changed meanwhile: which of them
    /// are of which files is not known. Returns the error.
    fn remove_changed(&self, missing: &MissingShards) -> Error {
        let report = &self.complete.report;
        let removed = match self.independent {
            Some(_) => self.folder.remove_shards(&missing.numbers),
            None => {
                let made: Vec<u64> = (report.kept_shards..report.shards).collect();
                self.folder.remove_shards(&made)
            }
        };
        removed.err().unwrap_or_else(|| {
            Error::dataset(
                self.build.index.root(),
                "its files changed while the cache was built, so the shards made of them are \
                 removed: build again (with `force` if the files stay as they are now)",
            )
        })
    }

    /// Writes index and manifest of all shards, which are there.
    fn finish(&mut self, missing: &MissingShards) -> Result<()> {
        if self.independent.is_some() && !missing.runs.is_empty() {
            // In the order of their numbers, which is not that in which they were made.
            self.complete.clear();
            for number in self.build.shard_numbers() {
                let Some((shard, hash)) = self.complete_shard(number)? else {
                    return Err(Error::dataset(
                        ShardFile::Tar.path(&self.folder.location(), number),
                        "was there, and is not any more: build again, and let nothing else write \
                         to this folder",
                    ));
                };
                let entry = self.folder.repair_idx(number, &shard, hash)?;
                self.complete.add(entry, &shard);
            }
            if self.is_finished() {
                return Ok(());
            }
        }
        let report = &self.complete.report;
        if report.skipped > 0 && self.build.options.on_error == OnBadSample::Stop {
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
            let reason = self.complete.first_reason();
            return Err(no_picture(self.build.index, reason));
        }
        self.complete.list_skipped(self.folder)?;
        let path = self.folder.path().join(INDEX);
        self.complete.take_samples().seal()?.write(&path)?;
        let manifest = &mut self.manifest;
        manifest.complete = true;
        manifest.samples = self.complete.report.samples;
        manifest.skipped = self.complete.report.skipped;
        manifest.shards = std::mem::take(&mut self.complete.entries);
        manifest.index = Some(file_hash(&path)?);
        self.folder.write_manifest(manifest)
    }
}
