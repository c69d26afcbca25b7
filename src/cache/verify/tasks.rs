//! The pieces of work of verifying. Any free thread does the next one.

use std::path::{Path, PathBuf};

use rayon::Scope;

use crate::cache::layout::{INDEX, ShardFile, shard_name};
use crate::cache::verify::file_window::read_whole;
use crate::cache::verify::findings::{FindingKind, FindingLog};
use crate::cache::verify::shard::{self, ShardExpectation, ShardPiece};
use crate::cache::verify::subject::VerifySubject;
use crate::cache::verify::tar_headers;
use crate::data::index::Index;
use crate::data::objects::ObjectTable;
use crate::data::shard::manifest::{CACHE_MANIFEST, CACHE_OBJECTS, CacheManifest, HexHash128};
use crate::error::Error;
use crate::sys::memory;

/// A piece of work. It may return more of them.
enum Task {
    Shard(u64),
    Piece(ShardPiece),
    Foreign(PathBuf),
}

impl VerifySubject {
    /// Starts the whole work. Each thread takes the task that was spawned last. So the pieces of a
    /// shard are done before another shard begins, and few manifests are in memory at a time.
    pub(super) fn begin<'s>(&'s self, scope: &Scope<'s>, found: &'s FindingLog<'_>) {
        for task in self.tasks(found).into_iter().rev() {
            scope.spawn(move |scope| self.run_all(scope, task, found));
        }
    }

    fn run_all<'s>(&'s self, scope: &Scope<'s>, task: Task, found: &'s FindingLog<'_>) {
        for task in self.run(task, found).into_iter().rev() {
            scope.spawn(move |scope| self.run_all(scope, task, found));
        }
    }

    /// The first tasks. Reports missing and extra files.
    fn tasks(&self, found: &FindingLog<'_>) -> Vec<Task> {
        let mut tasks: Vec<Task> = self.foreign.iter().cloned().map(Task::Foreign).collect();
        if !self.checksums {
            return tasks;
        }
        if let Some(number) = self.only {
            let there = self.there.get(&number).map_or(&[][..], Vec::as_slice);
            for file in ShardFile::ALL.iter().filter(|f| !there.contains(f)) {
                found.missing(&file.name(number));
            }
            return vec![Task::Shard(number)];
        }
        found.read(self.manifest_bytes);
        match (&self.manifest, &self.damaged) {
            (Some(_), _) => {}
            (None, Some(what)) => {
                found.add_file_finding(
                    CACHE_MANIFEST,
                    FindingKind::Manifest,
                    Some(0),
                    what.clone(),
                );
            }
            (None, None) => found.missing(CACHE_MANIFEST),
        }
        match self.index_is_there {
            // The index is checked first, because shards are compared with it.
            true => self.check_index(found),
            false if self.complete => found.missing(INDEX),
            false => {}
        }
        let stated = self.manifest.as_ref().filter(|m| m.complete);
        let stated = stated.map(CacheManifest::side_files).unwrap_or_default();
        for (name, hash) in stated.into_iter().filter(|(name, _)| *name != INDEX) {
            self.check_target_file(&name, hash, found);
        }
        let due: Vec<u64> = match self.entries() {
            Some(entries) => {
                let due = entries.len() as u64;
                for (number, files) in self.there.range(due..) {
                    for file in files {
                        let what = format!("not a shard of this cache, which has {due} shards");
                        found.add_file_finding(file.name(*number), FindingKind::Extra, None, what);
                    }
                }
                (0..due).collect()
            }
            None => {
                self.tell_gaps(found);
                self.there.keys().copied().collect()
            }
        };
        for number in due {
            let there = self.there.get(&number).map_or(&[][..], Vec::as_slice);
            // A shard without a manifest is not complete. An unfinished build may have such shards.
            if !self.complete && !there.contains(&ShardFile::Manifest) {
                continue;
            }
            for file in ShardFile::ALL.iter().filter(|f| !there.contains(f)) {
                found.missing(&file.name(number));
            }
            tasks.push(Task::Shard(number));
        }
        tasks
    }

    /// Reports gaps in the numbers of the shards, if no manifest states how many there are. A name
    /// may have any number, so each gap is reported once.
    fn tell_gaps(&self, found: &FindingLog<'_>) {
        let mut next = Some(0);
        for &number in self.there.keys() {
            let gap = next.filter(|&first| self.complete && first < number);
            if let Some(first) = gap {
                let what = match number - first {
                    1 => "is missing, and so are the other files of this shard".to_owned(),
                    _ => format!(
                        "is missing, and so are all shards up to {}",
                        shard_name(number - 1)
                    ),
                };
                let name = ShardFile::Tar.name(first);
                found.add_file_finding(name, FindingKind::Missing, None, what);
            }
            next = number.checked_add(1);
        }
    }

    fn run(&self, task: Task, found: &FindingLog<'_>) -> Vec<Task> {
        match task {
            Task::Foreign(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                tar_headers::check(&path, Path::new(name), None, found);
            }
            Task::Shard(number) => {
                let there = self.there.get(&number).map_or(&[][..], Vec::as_slice);
                let entry = self.entries().and_then(|e| e.get(number as usize));
                let name = shard_name(number);
                if entry.is_some_and(|entry| entry.name != name) {
                    let what = format!("its shard {number} is not named {name}");
                    found.add_file_finding(CACHE_MANIFEST, FindingKind::Manifest, Some(0), what);
                }
                let stand_alone = |m: &CacheManifest| m.options.has_independent_shards();
                let said = ShardExpectation {
                    entry,
                    stands_alone: self.manifest.as_ref().is_some_and(stand_alone),
                    source_samples: self.manifest.as_ref().map(|m| m.source.samples),
                    index: self.index.get(),
                };
                let pieces = shard::begin(&self.folder, number, there, said, found);
                return pieces.into_iter().map(Task::Piece).collect();
            }
            Task::Piece(piece) => piece.check(self.index.get(), self.objects.get(), found),
        }
        Vec::new()
    }

    /// Checks the sealed index against the hash in the manifest, or by its own checksum if the
    /// cache is not complete. Also checks that it can be loaded and agrees with the manifest. Keeps
    /// a good index for the checks of shards.
    fn check_index(&self, found: &FindingLog<'_>) {
        let path = self.folder.join(INDEX);
        let tell =
            |what: String| found.add_file_finding(INDEX, FindingKind::IndexFile, Some(0), what);
        let most = memory::available_bytes().map_or(u64::MAX, |bytes| bytes / 2);
        let bytes = match read_whole(&path, most) {
            Ok(bytes) => bytes,
            Err(what) => return found.add_file_finding(INDEX, FindingKind::Unreadable, None, what),
        };
        found.read(bytes.len() as u64);
        match self.manifest.as_ref().filter(|m| m.complete) {
            Some(manifest) if manifest.index != Some(HexHash128::of(&bytes)) => {
                tell("damaged, or from another cache: its hash differs from the manifest".into());
            }
            manifest => {
                drop(bytes);
                match Index::of_cache(&self.folder, manifest) {
                    Err(Error::Dataset { what, .. }) => tell(what),
                    Err(e) => tell(e.to_string()),
                    // It is set only once.
                    Ok(index) => _ = self.index.set(index),
                }
            }
        }
    }

    /// Checks the table of objects, or the index of rasters, against its hash in the manifest. Keeps a
    /// good table for the checks of shards.
    fn check_target_file(&self, name: &str, hash: HexHash128, found: &FindingLog<'_>) {
        let path = self.folder.join(name);
        if path.symlink_metadata().is_err() {
            return found.missing(name);
        }
        let tell =
            |what: String| found.add_file_finding(name, FindingKind::IndexFile, Some(0), what);
        let most = memory::available_bytes().map_or(u64::MAX, |bytes| bytes / 2);
        let bytes = match read_whole(&path, most) {
            Ok(bytes) => bytes,
            Err(what) => return found.add_file_finding(name, FindingKind::Unreadable, None, what),
        };
        found.read(bytes.len() as u64);
        if HexHash128::of(&bytes) != hash {
            let what = "damaged, or from another cache: its hash differs from the manifest";
            return tell(what.into());
        }
        if name == CACHE_OBJECTS {
            let samples = self
                .manifest
                .as_ref()
                .map_or(0, |manifest| manifest.samples);
            match ObjectTable::of_file(&bytes, samples) {
                Err(what) => tell(what),
                // It is set only once.
                Ok(table) => _ = self.objects.set(table),
            }
        }
    }
}
