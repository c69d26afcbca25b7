//! A cache is built: what is gone on with, what is refused, and how it ends.
//!
//! In the consumer. Never in here: printing, pictures, bytes of shards.

use std::ops::ControlFlow;

use crate::cache::asked::{Build, Watch};
use crate::cache::changes;
use crate::cache::folder::{Folder, file_hash};
use crate::cache::layout::INDEX;
use crate::cache::members::Members;
use crate::cache::need::{Outlook, Start};
use crate::cache::options::{BuildOptions, BuildPart};
use crate::cache::report::{BuildPhase, BuildReport, losses};
use crate::cache::so_far::State;
use crate::cache::storage::Left;
use crate::cache::surveyed::{Surveyed, no_picture};
use crate::cache::writing::Writing;
use crate::data::index::{CachedSamples, Index};
use crate::data::shard::manifest::{CacheManifest, Hash128, Manifest, SourceEntry, VERSION};
use crate::error::{Error, Result};
use crate::jobs::encode::payload::Order;
use crate::jobs::encode::run::EncodeRun;
use crate::jobs::encode::spec::EncodeSpec;
use crate::pool::crew::Ready;

impl Build<'_> {
    /// Builds what is missing in `folder`.
    pub(super) fn run(
        &self,
        folder: &Folder,
        crew: Ready,
        watch: Watch<'_>,
    ) -> Result<BuildReport> {
        if let Some(each) = self.options.shard_samples {
            return self.run_apart(folder, crew, watch, each);
        }
        let mut state = State::new(self.index);
        if watch(&self.progress(BuildPhase::Checking, 0)).is_break() {
            return Ok(state.into_report(self.began, false));
        }
        let mut wanted = self.manifest()?;
        let mut first = Start::default();
        let there = self.there(folder, &wanted)?;
        let nothing = Left::nothing(folder);
        if let Some(there) = &there {
            // What the first call knew: a later one may be told of the same samples by
            // indexes, which do not have it.
            wanted.source.lost.clone_from(&there.source.lost);
            let checked = folder.each_complete(self.force, |entry, manifest| {
                first.position += (manifest.samples.len() + manifest.skipped.len()) as u64;
                state.keep(self.index, entry, manifest);
                watch(&self.progress(BuildPhase::Checking, first.position))
            });
            let checked = checked.map_err(|e| nothing.explain(e))?;
            first.id = state.report.samples;
            first.shard = state.report.shards;
            state.report.kept_samples = state.report.samples;
            state.report.kept_shards = state.report.shards;
            if checked.is_break() {
                return Ok(state.into_report(self.began, false));
            }
        }
        let done = first.position >= self.index.len();
        if done && there.is_some_and(|m| self.is_finished(folder, &m, &state)) {
            return Ok(state.into_report(self.began, true));
        }
        if done {
            let begun = folder.begin_at(first.shard, &wanted);
            begun.map_err(|e| nothing.explain(e))?;
        } else {
            let went = self.go_on(folder, crew, watch, first, &wanted, &mut state)?;
            if went.is_break() {
                return Ok(state.into_report(self.began, false));
            }
        }
        if state.report.samples == 0 {
            let examples = &state.report.skipped_examples;
            let reason = examples.first().map_or("", |s| &s.reason);
            return Err(no_picture(self.index, reason));
        }
        if self.files_hash()? != wanted.source.files {
            // Nobody knows which of these are of which files.
            let made: Vec<u64> = (first.shard..state.report.shards).collect();
            folder.remove_shards(&made)?;
            folder.remove_from(first.shard)?;
            return Err(Error::dataset(
                self.index.root(),
                "its files changed while the cache was built, so the shards made of them are \
                 removed: build again (with `force` if the files stay as they are now)",
            ));
        }
        state
            .list_behind(folder, self.index)
            .map_err(|e| nothing.explain(e))?;
        let none = CachedSamples::new(self.index);
        let index = std::mem::replace(&mut state.samples, none).seal()?;
        let path = folder.path().join(INDEX);
        index.write(&path).map_err(|e| nothing.explain(e))?;
        wanted.complete = true;
        wanted.samples = state.report.samples;
        wanted.skipped = state.report.skipped;
        wanted.shards.clone_from(&state.shards);
        wanted.index = Some(file_hash(&path)?);
        folder
            .write_manifest(&wanted)
            .map_err(|e| nothing.explain(e))?;
        Ok(state.into_report(self.began, true))
    }

    /// Encodes and writes all places from `first` on. What stands there is removed
    /// once nothing that can be told before speaks against the build.
    fn go_on(
        &self,
        folder: &Folder,
        crew: Ready,
        watch: Watch<'_>,
        first: Start,
        wanted: &CacheManifest,
        state: &mut State,
    ) -> Result<ControlFlow<()>> {
        let order = &Order::new(self.index.len(), self.options.shuffle);
        let BuildOptions { encode, resize, .. } = *self.options;
        let limits = self.options.limits();
        // All headers are read, whichever shards of the cache are there.
        let all = 0..order.samples();
        if self.bring(order, &[all], watch)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut reading = |read| watch(&self.progress(BuildPhase::ReadingHeaders, read));
        let Some(surveyed) = Surveyed::of(self.index, &limits, &|_| true, &mut reading)? else {
            return Ok(ControlFlow::Break(()));
        };
        let to_the_end = first.position..order.samples();
        let parts = vec![to_the_end];
        let source = (self.index, self.store.is_some());
        surveyed.check(source, self.options, order, &parts)?;
        let members = Members::new(self.index, encode, &surveyed.formats);
        let (available, fragment) = folder.available()?;
        let need = Outlook {
            index: self.index,
            options: self.options,
            order,
            surveyed: &surveyed,
            members: &members,
            samples: state.samples.clone(),
            fragment,
        }
        .need(first)?;
        let freed = folder.bytes_from(first.shard)?;
        let places = self.options.most_places(order.samples());
        let by_places = places.map_or(0, |each| order.samples().div_ceil(each));
        let shards = (need.bytes / self.options.shard_bytes()).max(by_places);
        let here = folder.need_here(need, shards);
        Left::check(folder, here, available.saturating_add(freed))?;
        let spec = EncodeSpec {
            encode,
            resize,
            shuffle: self.options.shuffle,
            limits,
        };
        let rooms = surveyed.rooms(order, encode, resize)?;
        let run = EncodeRun::start(crew, spec, self.index, &surveyed.sizes, &rooms, parts)?;
        let left = |state: &State, written, encoded| Left {
            folder,
            done: state.report.samples + state.report.skipped,
            samples: order.samples(),
            written,
            encoded,
            need,
            freed,
        };
        // Asked once more: what is removed now does not come back.
        let read = self.progress(BuildPhase::ReadingHeaders, self.index.len());
        if watch(&read).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        state.report.needed_bytes = need.bytes;
        let begun = folder.begin_at(first.shard, wanted);
        begun.map_err(|e| left(state, 0, 0).explain(e))?;
        let mut writing = Writing {
            build: self,
            folder,
            surveyed: &surveyed,
            members: &members,
            order,
            state,
            open: None,
            waiting: Vec::new(),
            position: first.position,
            done: first.position,
            places: self.index.len(),
            written: 0,
            need,
        };
        let result = writing.all(run, watch);
        // The half shard's bytes are free again before anybody is told of free bytes.
        let (written, encoded) = (writing.written, writing.position - first.position);
        writing.open = None;
        result.map_err(|e| left(state, written, encoded).explain(e))
    }

    /// The manifest that is there and is to be gone on with; none: nothing is
    /// there, or nothing that is to stay. Removes nothing.
    ///
    /// # Errors
    /// A cache of other options or another source, unless it is to be replaced.
    pub(super) fn there(
        &self,
        folder: &Folder,
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
        Err(Error::dataset(
            folder.path(),
            format!(
                "holds a cache with other settings: {}. Name another folder, or use `force` to \
                 replace this one",
                changed.join("; ")
            ),
        ))
    }

    /// Whether nothing is missing behind the last shard.
    pub(super) fn is_finished(
        &self,
        folder: &Folder,
        there: &CacheManifest,
        state: &State,
    ) -> bool {
        there.complete
            && there.shards == state.shards
            // One that an older version wrote has the right hash, and cannot be read.
            && Index::of_cache(folder.path(), Some(there)).is_ok()
    }

    /// The manifest of a cache that is begun.
    ///
    /// # Errors
    /// A file of the source that cannot be looked at.
    pub(super) fn manifest(&self) -> Result<CacheManifest> {
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
}
