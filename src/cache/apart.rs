//! Shards that stand alone: each is made of the places that its number says, and of nothing
//! else, so any process may make any of them.
//!
//! In the consumer. Shares are made by any number of processes at a time, which hold the
//! folder together; index and manifest by one that holds it alone. Never in here: what is
//! written into a shard.

use std::ops::{ControlFlow, Range};

use crate::cache::OnBadSample;
use crate::cache::asked::{Build, Watch};
use crate::cache::folder::{Folder, file_hash};
use crate::cache::layout::{INDEX, ShardFile, shard_name};
use crate::cache::members::Members;
use crate::cache::need::{Need, Outlook};
use crate::cache::options::{BuildOptions, BuildPart};
use crate::cache::report::{BuildPhase, BuildProgress, BuildReport};
use crate::cache::so_far::State;
use crate::cache::storage::Left;
use crate::cache::surveyed::{Surveyed, no_picture};
use crate::cache::writing::Writing;
use crate::data::index::CachedSamples;
use crate::data::shard::manifest::CacheManifest;
use crate::error::{Error, Result};
use crate::jobs::encode::payload::Order;
use crate::jobs::encode::run::EncodeRun;
use crate::jobs::encode::spec::EncodeSpec;
use crate::pool::crew::Ready;

/// The shards of a cache, by places of its order.
#[derive(Debug, Clone, Copy)]
struct Shards {
    /// Places of a shard; the last may have fewer.
    each: u64,
    samples: u64,
}

impl Shards {
    fn len(self) -> u64 {
        self.samples.div_ceil(self.each)
    }

    /// The places of shards that follow each other.
    fn places(self, shards: Range<u64>) -> Range<u64> {
        let begin = |number: u64| number.saturating_mul(self.each).min(self.samples);
        begin(shards.start)..begin(shards.end)
    }

    /// The places of these shards, in as few parts as possible.
    fn parts(self, numbers: &[u64]) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for &number in numbers {
            let places = self.places(number..number + 1);
            match parts.last_mut() {
                Some(last) if last.end == places.start => last.end = places.end,
                _ => parts.push(places),
            }
        }
        parts
    }
}

/// What is missing of a part, and what was there.
struct Missing {
    /// In their order.
    shards: Vec<u64>,
    /// Places of the part, and of those that are there.
    places: u64,
    done: u64,
    /// Of what is there, where index and manifest are made.
    known: CachedSamples,
}

impl Build<'_> {
    /// Makes a part of a cache of shards that stand alone, of `each` places.
    pub(super) fn run_apart(
        &self,
        folder: &Folder,
        crew: Ready,
        watch: Watch<'_>,
        each: u64,
    ) -> Result<BuildReport> {
        let shards = Shards {
            each,
            samples: self.index.len(),
        };
        let mut state = State::new(self.index);
        if watch(&self.progress(BuildPhase::Checking, 0)).is_break() {
            return Ok(state.into_report(self.began, false));
        }
        let mut wanted = self.manifest()?;
        let there = self.there(folder, &wanted)?;
        if let Some(there) = &there {
            // What the first call knew: a later one may be told of the same samples by
            // indexes, which do not have it.
            wanted.source.lost.clone_from(&there.source.lost);
        }
        let nothing = Left::nothing(folder);
        // Without a manifest that stays, no shard stays.
        let looks = there.is_some();
        let Some(missing) = self.missing(folder, shards, looks, &mut state, watch)? else {
            return Ok(state.into_report(self.began, false));
        };
        if self.part == BuildPart::Finish
            && let Some(first) = missing.shards.first()
        {
            return Err(Error::option(
                "finish",
                format!(
                    "{} lacks {} of {} shards, the first is {}: make them by `shard` first, or \
                     leave `finish` out",
                    folder.place().display(),
                    missing.shards.len(),
                    shards.len(),
                    shard_name(*first)
                ),
            ));
        }
        if !missing.shards.is_empty() {
            let went = self.make(
                folder,
                crew,
                watch,
                (shards, &missing),
                (&there, &wanted),
                &mut state,
            )?;
            if went.is_break() {
                return Ok(state.into_report(self.began, false));
            }
        }
        if let BuildPart::Share { .. } = self.part {
            return Ok(state.into_report(self.began, true));
        }
        if self.files_hash()? != wanted.source.files {
            return Err(self.changed(folder, &missing.shards));
        }
        let finished = self.finish(folder, shards, &mut state, &there, wanted);
        finished.map_err(|e| nothing.explain(e))?;
        Ok(state.into_report(self.began, true))
    }

    /// What is missing of the part; none when `watch` breaks it off.
    fn missing(
        &self,
        folder: &Folder,
        shards: Shards,
        looks: bool,
        state: &mut State,
        watch: Watch<'_>,
    ) -> Result<Option<Missing>> {
        let numbers = self.part.shards(shards.len());
        let places = shards.places(numbers.clone());
        let mut missing = Missing {
            shards: Vec::new(),
            places: places.end - places.start,
            done: 0,
            known: CachedSamples::new(self.index),
        };
        for number in numbers {
            let places = shards.places(number..number + 1);
            let there = match looks {
                true => folder.complete(number, places.start)?,
                false => None,
            };
            let whole = match there {
                Some((manifest, hash)) if self.force => folder
                    .is_undamaged(number, &manifest)?
                    .then_some((manifest, hash)),
                there => there,
            };
            let Some((manifest, hash)) = whole else {
                missing.shards.push(number);
                continue;
            };
            let entry = folder.whole(number, &manifest, hash)?;
            if self.part == BuildPart::All {
                let name = ShardFile::Tar.name(number);
                missing.known.push_shard(self.index, &name, &manifest);
            }
            missing.done += places.end - places.start;
            state.count(self.index, &entry, &manifest);
            let told = self.progress_of(BuildPhase::Checking, missing.done, missing.places);
            if watch(&told).is_break() {
                return Ok(None);
            }
        }
        state.report.kept_samples = state.report.samples;
        state.report.kept_shards = state.report.shards;
        Ok(Some(missing))
    }

    fn progress_of(&self, phase: BuildPhase, done: u64, samples: u64) -> BuildProgress<'_> {
        BuildProgress {
            samples,
            ..self.progress(phase, done)
        }
    }

    /// Makes what is missing.
    fn make(
        &self,
        folder: &Folder,
        crew: Ready,
        watch: Watch<'_>,
        (shards, missing): (Shards, &Missing),
        (there, wanted): (&Option<CacheManifest>, &CacheManifest),
        state: &mut State,
    ) -> Result<ControlFlow<()>> {
        let order = &Order::new(self.index.len(), self.options.shuffle);
        let BuildOptions { encode, resize, .. } = *self.options;
        let limits = self.options.limits();
        let parts = shards.parts(&missing.shards);
        let to_make: u64 = parts.iter().map(|part| part.end - part.start).sum();
        let samples = || {
            let places = parts.iter().cloned().flatten();
            places.filter_map(|place| order.sample(place))
        };
        // Of the share alone: other processes look at theirs. Shards out of a store cannot change
        // here, and came by their checksums.
        let files = self.files_hash_of(samples())?;
        let mut is_wanted = vec![to_make == self.index.len(); self.index.len() as usize];
        if to_make < self.index.len() {
            samples().for_each(|id| is_wanted[id as usize] = true);
        }
        let wants = |id: u64| is_wanted.get(id as usize).copied().unwrap_or(false);
        if self.bring(order, &parts, watch)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut reading =
            |read| watch(&self.progress_of(BuildPhase::ReadingHeaders, read, to_make));
        let Some(surveyed) = Surveyed::of(self.index, &limits, &wants, &mut reading)? else {
            return Ok(ControlFlow::Break(()));
        };
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
            samples: missing.known.clone(),
            fragment,
        }
        .need_apart(&parts, self.part == BuildPart::All)?;
        let freed = match there {
            None if self.part == BuildPart::All => folder.bytes_from(0)?,
            _ => 0,
        };
        let here = folder.need_here(need, missing.shards.len() as u64);
        Left::check(folder, here, available.saturating_add(freed))?;
        let spec = EncodeSpec {
            encode,
            resize,
            shuffle: self.options.shuffle,
            limits,
        };
        let rooms = surveyed.rooms(order, encode, resize)?;
        let run = EncodeRun::start(
            crew,
            spec,
            self.index,
            &surveyed.sizes,
            &rooms,
            parts.clone(),
        )?;
        // Asked once more: what is removed now does not come back.
        let read = self.progress_of(BuildPhase::ReadingHeaders, to_make, to_make);
        if watch(&read).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        state.report.needed_bytes = need.bytes;
        let left = |need: Need, state: &State, written, encoded| Left {
            folder,
            done: state.report.samples + state.report.skipped,
            samples: missing.places,
            written,
            encoded,
            need,
            freed,
        };
        let begun = match (there, self.part) {
            (Some(_), _) => Ok(()),
            (None, BuildPart::All) => folder.begin_at(0, wanted),
            (None, _) => self.begin_share(folder, wanted),
        };
        begun.map_err(|e| left(need, state, 0, 0).explain(e))?;
        let mut writing = Writing {
            build: self,
            folder,
            surveyed: &surveyed,
            members: &members,
            order,
            state,
            open: None,
            waiting: Vec::new(),
            position: 0,
            done: missing.done,
            places: missing.places,
            written: 0,
            need,
        };
        let result = writing.all(run, watch);
        // The half shard's bytes are free again before anybody is told of free bytes.
        let (written, encoded) = (writing.written, writing.done - missing.done);
        writing.open = None;
        let went = result.map_err(|e| left(need, state, written, encoded).explain(e))?;
        if self.files_hash_of(samples())? != files {
            return Err(self.changed(folder, &missing.shards));
        }
        Ok(went)
    }

    /// Says by what the cache is built, as the first of those that make shares.
    ///
    /// # Errors
    /// When another process said at the same time that it is built by other options.
    fn begin_share(&self, folder: &Folder, wanted: &CacheManifest) -> Result<()> {
        folder.begin(wanted)?;
        self.there(folder, wanted).map(|_| ())
    }

    /// The error of a source that changed meanwhile. Nobody knows which of the shards that
    /// this call made are of which files.
    fn changed(&self, folder: &Folder, made: &[u64]) -> Error {
        if let Err(e) = folder.remove_shards(made) {
            return e;
        }
        Error::dataset(
            self.index.root(),
            "its files changed while the cache was built, so the shards made of them are removed: \
             build again (with `force` if the files stay as they are now)",
        )
    }

    /// Index and manifest of all shards, which are there.
    fn finish(
        &self,
        folder: &Folder,
        shards: Shards,
        state: &mut State,
        there: &Option<CacheManifest>,
        mut wanted: CacheManifest,
    ) -> Result<()> {
        let mut all = State::new(self.index);
        for number in 0..shards.len() {
            let first = shards.places(number..number + 1).start;
            let Some((manifest, hash)) = folder.complete(number, first)? else {
                return Err(Error::dataset(
                    ShardFile::Tar.path(&folder.place(), number),
                    "was there, and is not any more: build again, and let nothing else write to \
                     this folder",
                ));
            };
            let entry = folder.whole(number, &manifest, hash)?;
            all.keep(self.index, entry, &manifest);
        }
        state.take_totals(&all);
        if state.report.skipped > 0 && self.options.on_error == OnBadSample::Stop {
            return Err(Error::option(
                "on_error",
                format!(
                    "the shards leave out {} samples, and `on_error` is stop: they were made with \
                     skip, so end the cache with it",
                    state.report.skipped
                ),
            ));
        }
        if state.report.samples == 0 {
            let examples = &state.report.skipped_examples;
            let reason = examples.first().map_or("", |s| &s.reason);
            return Err(no_picture(self.index, reason));
        }
        if there
            .as_ref()
            .is_some_and(|there| self.is_finished(folder, there, &all))
        {
            return Ok(());
        }
        let index = all.samples.seal()?;
        let path = folder.path().join(INDEX);
        index.write(&path)?;
        wanted.complete = true;
        wanted.samples = state.report.samples;
        wanted.skipped = state.report.skipped;
        wanted.shards = all.shards;
        wanted.index = Some(file_hash(&path)?);
        folder.write_manifest(&wanted)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_missing_shards_are_few_parts() {
        let shards = Shards {
            each: 10,
            samples: 47,
        };
        assert_eq!(shards.len(), 5);
        assert_eq!(shards.places(4..5), 40..47);
        assert_eq!(shards.parts(&[0, 1, 3, 4]), [0..20, 30..47]);
        assert_eq!(shards.parts(&[]), []);
        let one = Shards {
            each: u64::MAX,
            samples: 3,
        };
        assert_eq!((one.len(), one.places(0..1)), (1, 0..3));
    }
}
