//! Builds one part of a cache in a folder: compares and keeps what exists, makes the missing
//! shards, and finishes the cache. The folder may be a stage for a store.
//!
//! Runs in the consumer. `FolderBuild::run` has the steps in their order. Never in here: printing,
//! pixels, and the bytes of shards.

use std::ops::{ControlFlow, Range};

use crate::cache::OnBadSample;
use crate::cache::build::{BuildWatch, CacheBuild};
use crate::cache::cache_folder::{CacheFolder, file_hash};
use crate::cache::changes;
use crate::cache::columns::{CacheColumns, joined_hash};
use crate::cache::complete_shards::CompleteShards;
use crate::cache::disk_estimate::DiskEstimate;
use crate::cache::disk_full::{RemainingWork, check_room};
use crate::cache::layout::{INDEX, ShardFile, shard_name};
use crate::cache::options::BuildPart;
use crate::cache::payload_writer::PayloadWriter;
use crate::cache::report::{BuildPhase, BuildReport, losses};
use crate::cache::sample_members::SampleMembers;
use crate::cache::shard_places::{IndependentShards, MissingShards, ShardRun};
use crate::cache::source_headers::{SourceHeaders, files_hash, hash_files, no_picture, paths_hash};
use crate::cache::targets::TargetEntries;
use crate::data::index::Index;
use crate::data::shard::manifest::{
    CACHE_OBJECTS, CacheManifest, HexHash128, Manifest, ShardManifest, SkippedEntry, SourceEntry,
    version_of,
};
use crate::error::{Error, Result, lost_picture};
use crate::jobs::encode::payload::CacheOrder;
use crate::jobs::encode::run::EncodeRun;
use crate::jobs::encode::spec::EncodeSpec;
use crate::pool::worker_options::LaunchedWorkers;
use crate::sys::atomic_file::replace_by;

/// The build of one part of a cache in its folder.
struct FolderBuild<'a> {
    build: &'a CacheBuild<'a>,
    folder: &'a CacheFolder,
    /// The manifest of the requested cache. Becomes complete at the end.
    manifest: CacheManifest,
    /// The existing manifest, if it stays. Without it no shard stays.
    existing: Option<CacheManifest>,
    complete: CompleteShards<'a>,
    /// None if a shard depends on the shards before it.
    independent: Option<IndependentShards>,
}

impl CacheBuild<'_> {
    /// Builds the missing shards of this part in `folder`, and finishes the cache unless the part
    /// is a share.
    ///
    /// # Errors
    /// Like [`CacheBuilder::build`](crate::cache::CacheBuilder::build).
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
            // Keeps the losses that the first call found. This call may have read the names from an
            // index, which does not have them.
            manifest.source.lost.clone_from(&existing.source.lost);
        }
        let mut part = FolderBuild {
            build: self,
            folder,
            manifest,
            existing,
            complete: CompleteShards::new(self.index, self.targets.members()),
            independent: self.independent_shards(),
        };
        part.complete.report.complete = part.run(crew, watch)?.is_continue();
        Ok(part.complete.report)
    }

    /// The manifest of the requested cache before its first shard.
    ///
    /// # Errors
    /// When a file of the source cannot be examined.
    pub(super) fn new_manifest(&self) -> Result<CacheManifest> {
        let names = self.index.classes().iter();
        let TargetEntries {
            objects,
            masks,
            rasters,
        } = self.targets.entries();
        Ok(CacheManifest {
            objects,
            masks,
            rasters,
            format: CacheManifest::FORMAT.into(),
            version: version_of(self.columns.is_some(), self.targets.members()),
            checksum: HexHash128(0),
            featherload: env!("CARGO_PKG_VERSION").into(),
            complete: false,
            options: self.options.entry(self.index.len()),
            source: SourceEntry {
                samples: self.index.len(),
                index: HexHash128(self.index.hash()),
                files: self.opened_hash(None)?,
                lost: self.scan.map(|scan| {
                    let mut lost = losses(scan);
                    let keeps = |field: &String| {
                        self.targets.keeps_field(field)
                            || (self.columns).is_some_and(|columns| columns.keeps_field(field))
                    };
                    lost.other_fields.retain(|field, _| !keeps(field));
                    lost
                }),
            },
            classes: names.map(|n| n.to_string_lossy().into_owned()).collect(),
            label_width: self.index.label_width() as u64,
            columns: self.columns.map_or_else(Vec::new, CacheColumns::entries),
            samples: 0,
            skipped: 0,
            shards: Vec::new(),
            index: None,
        })
    }

    /// The manifest of the build in the folder that this call continues. `None` if there is none,
    /// or if this call replaces it. Removes nothing.
    ///
    /// # Errors
    /// A cache with other options or another source, unless it may be replaced.
    fn existing_manifest(
        &self,
        folder: &CacheFolder,
        wanted: &CacheManifest,
    ) -> Result<Option<CacheManifest>> {
        let there = match folder.manifest() {
            // A file that begins like our manifest was ours. Any other file of this name never was.
            Err(e) if self.force && e.is_usage() && Index::is_cache(folder.path()) => {
                tracing::warn!("{e}. The cache is built again");
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
        // If no shard is complete, replacing loses nothing. But another process that makes a share
        // may be about to complete one.
        let alone = self.part == BuildPart::All;
        if self.force || (alone && !there.complete && folder.has_no_shards()?) {
            return Ok(None);
        }
        Err(changes::mismatch_error(folder.path(), "folder", &changed))
    }

    /// Fingerprint of the files of the source, beside that of its index. With `samples`, only of
    /// the files of these samples. Shards from a store were checked when they came, so their
    /// fingerprint comes from the store.
    ///
    /// # Errors
    /// When a file of the source cannot be examined.
    fn files_hash(&self, samples: Option<&mut dyn Iterator<Item = u64>>) -> Result<HexHash128> {
        let images = self.images_hash(samples)?;
        match self.columns {
            Some(columns) => columns.with_files(images),
            None => Ok(images),
        }
    }

    /// Like [`CacheBuild::files_hash`], with the files of columns as they were before the columns
    /// were opened.
    fn opened_hash(&self, samples: Option<&mut dyn Iterator<Item = u64>>) -> Result<HexHash128> {
        let images = self.images_hash(samples)?;
        Ok(match self.columns {
            Some(columns) => columns.with_opened_files(images),
            None => images,
        })
    }

    /// Like [`CacheBuild::files_hash`], without the files that have only columns.
    fn images_hash(&self, samples: Option<&mut dyn Iterator<Item = u64>>) -> Result<HexHash128> {
        // A source in a store has its rasters in the same shards.
        if let Some(store) = self.source_store {
            return Ok(store.fingerprint());
        }
        let samples: Option<Vec<u64>> = samples.map(Iterator::collect);
        let hash = |index: &Index| match &samples {
            None => files_hash(index, None),
            Some(samples) => files_hash(index, Some(&mut samples.iter().copied())),
        };
        let mut rasters = self.targets.rasters.iter();
        let images = hash(self.index)?;
        let all = rasters.try_fold(images, |all, raster| -> Result<HexHash128> {
            let files = &raster.files;
            let paths = paths_hash(self.index.root(), files, samples.as_deref());
            let all = joined_hash(all, &hash(files)?.0.to_le_bytes());
            Ok(joined_hash(all, &paths.0.to_le_bytes()))
        })?;
        match self.columns {
            Some(columns) if columns.has_own_files(self.index) => {
                let files = |id| columns.own_files(self.index, id);
                let texts = match &samples {
                    None => hash_files((0..self.index.len()).flat_map(files)),
                    Some(samples) => hash_files(samples.iter().copied().flat_map(files)),
                };
                Ok(joined_hash(all, &texts?.0.to_le_bytes()))
            }
            _ => Ok(all),
        }
    }
}

impl<'a> FolderBuild<'a> {
    /// Runs all steps in their order. Returns `Break` if `watch` ended the build.
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

    /// Finds the missing shards of the part. Keeps complete ones, and repairs their `.idx` files.
    /// `None` if `watch` ended the build.
    ///
    /// # Errors
    /// When a file exists and cannot be read. This is no reason to make its shard again, or the
    /// shards after it.
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

    /// The manifest of a complete shard that stays, with the hash of its file. With `force`, a
    /// shard with a damaged tar does not stay.
    fn reusable_shard(&self, number: u64) -> Result<Option<(ShardManifest, HexHash128)>> {
        if self.existing.is_none() {
            return Ok(None);
        }
        let Some((shard, hash)) = self.complete_shard(number)? else {
            return Ok(None);
        };
        if self.may_have_more(&shard) {
            return Ok(None);
        }
        if !self.build.force || self.folder.is_undamaged(number, &shard)? {
            return Ok(Some((shard, hash)));
        }
        if self.independent.is_none() {
            tracing::warn!(
                "{}: damaged, so it and the shards after it are made again",
                ShardFile::Tar.path(self.folder.path(), number).display()
            );
        }
        Ok(None)
    }

    /// Whether a shard lacks samples that gave no answer, and this build asks for them again. Not one
    /// that only finishes the cache. In an object store shards are never replaced.
    fn may_have_more(&self, shard: &ShardManifest) -> bool {
        let passes = |left_out: &SkippedEntry| lost_picture::reason_may_pass(&left_out.reason);
        self.build.source_store.is_some()
            && self.build.part != BuildPart::Finish
            && self.folder.upload().is_none()
            && shard.skipped.iter().any(passes)
    }

    /// The manifest of shard `number`, with the hash of its file, if it is complete. A shard that
    /// does not stand alone must be the one after those found so far.
    fn complete_shard(&self, number: u64) -> Result<Option<(ShardManifest, HexHash128)>> {
        let first_id = match self.independent {
            Some(all) => all.places(number..number + 1).start,
            None => self.complete.report.samples,
        };
        self.folder.find_complete(number, first_id)
    }

    /// Whether the folder has the right manifest and index for the complete shards.
    fn is_finished(&self) -> bool {
        self.existing.as_ref().is_some_and(|there| {
            there.complete
                && there.shards == self.complete.entries
                // An index of an older version has the right hash, but cannot be read.
                && Index::of_cache(self.folder.path(), Some(there)).is_ok()
                && (there.side_files().iter())
                    .all(|(name, hash)| self.folder.has_file(name, *hash))
        })
    }

    /// Rejects missing shards if this call may only finish the cache.
    ///
    /// # Errors
    /// When shards are missing.
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

    /// Makes the missing shards:
    /// 1. fetches the source's shards from a store;
    /// 2. reads the headers of the samples;
    /// 3. checks the disk space;
    /// 4. starts the workers;
    /// 5. removes what is replaced;
    /// 6. writes the payloads.
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
        // A shard that depends on the shards before it needs the headers of all samples.
        let all = 0..order.samples();
        let read = match self.independent {
            Some(_) => places.clone(),
            None => vec![all],
        };
        let samples = || {
            let places = read.iter().cloned().flatten();
            places.filter_map(|place| order.sample(place))
        };
        // Only these files: other processes compare theirs.
        let files = match self.independent {
            Some(_) => Some(build.opened_hash(Some(&mut samples()))?),
            None => None,
        };
        if self.fetch_shards(order, &read, watch)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let to_read = read.iter().map(|places| places.end - places.start).sum();
        let Some(mut headers) = self.read_headers(samples(), to_read, watch)? else {
            return Ok(ControlFlow::Break(()));
        };
        let stored = (options.encode, options.resize);
        let most = options.decode_limits().max_scratch;
        headers = headers.with_rasters(&build.targets.rasters, stored, most);
        headers.check(build.source_store.is_some(), options, order, &places)?;
        let targets = (build.targets, options.resize);
        let members = SampleMembers::new(index, options.encode, &headers.formats, targets);
        let (available, fragment) = folder.available()?;
        let estimate = DiskEstimate {
            index,
            options,
            order,
            headers: &headers,
            members: &members,
            columns: build.columns,
            targets: build.targets,
            samples: self.complete.samples.clone(),
            fragment,
            largest_columns: 0,
            has_usual_rasters: false,
        };
        let to_write = missing.places - missing.done;
        let need = estimate.need(&missing.runs, build.part == BuildPart::All, &mut |read| {
            watch(&build.progress(BuildPhase::ReadingColumns, read, to_write))
        })?;
        let Some(need) = need else {
            return Ok(ControlFlow::Break(()));
        };
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
        // The last chance to end the build before files are removed.
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
        // Drops the unfinished shard, so that its space counts as free in an error.
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

    /// Fetches the source's shards with the samples at these places, if the source is in a store.
    /// They stay until other shards are fetched.
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

    /// Reads the headers of these samples. `count` is their number. `None` if `watch` ended the
    /// build.
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
        let rasters = || self.build.targets.rasters.iter();
        let spec = EncodeSpec {
            encode: options.encode,
            resize: options.resize,
            shuffle: options.shuffle,
            limits: options.decode_limits(),
            rasters: rasters().map(|raster| raster.named.clone()).collect(),
        };
        let rooms = headers.payload_spaces(order, spec.encode, spec.resize)?;
        let index = self.build.index;
        let rasters: Vec<&Index> = rasters().map(|raster| &raster.files).collect();
        EncodeRun::start(crew, &spec, index, &rasters, &headers.sizes, &rooms, places)
    }

    /// Whether the build removes the existing files that do not stay. It does not if other
    /// processes may make shards at the same time, or if only some independent shards are missing.
    fn removes_existing(&self) -> bool {
        let some_stay = self.existing.is_some() && self.independent.is_some();
        self.build.part == BuildPart::All && !some_stay
    }

    /// Removes the shards and the index that the build replaces. Then writes the first manifest,
    /// unless the existing one stays.
    ///
    /// # Errors
    /// When another process has begun a cache with other options at the same time.
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

    /// Removes the shards that this call made from a source that has changed meanwhile, because it
    /// is not known which of them hold changed files. Returns the error.
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

    /// Writes the index and the complete manifest. All shards must exist.
    ///
    /// # Errors
    /// A shard that has disappeared, left-out samples with `on_error: stop`, no sample at all, or a
    /// file that cannot be written.
    fn finish(&mut self, missing: &MissingShards) -> Result<()> {
        if self.independent.is_some() && !missing.runs.is_empty() {
            // Adds the shards again by number, which may not be the order in which they were made.
            self.complete.clear();
            for number in self.build.shard_numbers() {
                let Some((shard, hash)) = self.complete_shard(number)? else {
                    return Err(Error::dataset(
                        ShardFile::Tar.path(&self.folder.location(), number),
                        "existed, but is missing now: build again, and let nothing else write \
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
                    "the shards leave out {} samples, but `on_error` is stop: they were made with \
                     skip, so finish the cache with skip",
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
        let rasters = std::mem::take(&mut self.complete.rasters).into_iter();
        for (rasters, (name, hash)) in rasters.zip(manifest.raster_files_mut()) {
            let path = self.folder.path().join(name);
            rasters.seal()?.write(&path)?;
            *hash = Some(file_hash(&path)?);
        }
        let kept = self.build.targets.objects.as_ref();
        let sources = self.complete.sources.take();
        if let (Some(kept), Some(sources), Some(entry)) = (kept, sources, &mut manifest.objects) {
            let table = kept.select(&sources, self.build.options.resize)?;
            let path = self.folder.path().join(CACHE_OBJECTS);
            replace_by(&path, table.file_bytes())?;
            entry.table = Some(file_hash(&path)?);
        }
        self.folder.write_manifest(manifest)
    }
}
