//! A cache compared, byte by byte, with what its manifests say of it.
//!
//! In the consumer, by threads that are joined before the end. Every file is read
//! once (the index twice: a good one is loaded, too), by positioned reads of 1 MiB,
//! never mapped: a page that the storage damaged is read as what it is. Shards may
//! be few and large, so each is checked in pieces of some samples, by whoever is
//! free. Changes nothing.
//!
//! - `subject`: what is to be checked; `findings`: what is told; `queue`: who does
//!   what;
//! - `bytes`: reads; `shard`: one shard by its manifest; `walked`: one without, by
//!   its headers alone.

mod bytes;
mod findings;
mod queue;
mod shard;
mod subject;
mod walked;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use self::bytes::read_whole;
use self::findings::Found;
pub use self::findings::{Finding, FindingKind, HurtSample, VerifyProgress, VerifyReport};
use self::queue::Queue;
use self::shard::Piece;
use self::subject::Subject;
use crate::cache::layout::{CACHE_MANIFEST, INDEX, ShardFile, shard_name};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::loader::default_workers;
use crate::shard::manifest::Hash128;

/// How a cache is verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Threads that read, 1 at least; none = the usable CPUs.
    pub workers: Option<usize>,
}

/// Compares all bytes of the cache in the folder `path` with its checksums: its
/// manifest, each shard's manifest, index and tar (headers, data, padding, end),
/// and the sealed index; and tells files that are missing, and shards that are
/// none of its. Where a shard's manifest is damaged, its tar is gone through by its
/// headers. Of a cache whose build has not ended the complete shards are checked.
///
/// One shard of a cache, `shard-000001.tar`, is checked by the manifest beside it.
/// A folder of tars that are no cache's, or one such tar, has no checksums: headers
/// and bounds are checked, and [`VerifyReport::checksums`] is false.
///
/// `watch` is called with the bytes done, from any of the threads.
///
/// ```
/// # fn main() -> featherload::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let (src, dst) = (dir.path().join("src"), dir.path().join("dst"));
/// # std::fs::create_dir(&src).unwrap();
/// # std::fs::write(src.join("1.ppm"), b"P6 2 1 255\n\x01\x02\x03\x04\x05\x06").unwrap();
/// use featherload::Source;
/// use featherload::cache::{self, BuildOptions, Builder, FindingKind, VerifyOptions};
///
/// let source = Source::detect(&src)?;
/// Builder::new(source, &dst, BuildOptions::default()).workers(0).build()?;
/// let verify = || cache::verify(&dst, &VerifyOptions::default(), &|_| {});
/// assert!(verify()?.is_good());
///
/// let tar = dst.join("shard-000000.tar");
/// let mut bytes = std::fs::read(&tar).unwrap();
/// bytes[512] ^= 1;
/// std::fs::write(&tar, bytes).unwrap();
/// let report = verify()?;
/// let finding = &report.findings[0];
/// assert_eq!(finding.kind, FindingKind::Data);
/// assert_eq!(finding.sample.as_ref().map(|s| s.key.as_str()), Some("00000000_1"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// When there is neither cache nor tar, or the folder cannot be listed; a file that
/// is no tar, or a compressed one, unless it is a shard with its manifest beside
/// it. Damage is no error, and neither is a file in the folder that cannot be read:
/// they are findings.
pub fn verify(
    path: &Path,
    options: &VerifyOptions,
    watch: &(dyn Fn(VerifyProgress) + Sync),
) -> Result<VerifyReport> {
    let began = Instant::now();
    if options.workers == Some(0) {
        return Err(Error::config("0 threads cannot read: give 1 at least"));
    }
    let subject = Subject::of(path)?;
    let found = Found::new(watch, subject.bytes);
    let queue = Queue::new(subject.tasks(&found));
    let workers = options.workers.unwrap_or_else(default_workers);
    let work = || {
        while let Some(task) = queue.take() {
            task.run(|task| subject.run(task, &found));
        }
    };
    thread::scope(|scope| {
        // A thread that cannot be started is done without.
        let helpers: Vec<_> = (1..workers)
            .filter_map(|_| {
                thread::Builder::new()
                    .name("featherload-verify".into())
                    .spawn_scoped(scope, work)
                    .ok()
            })
            .collect();
        work();
        helpers.into_iter().try_for_each(|helper| {
            let joined = helper.join();
            joined.map_err(|_| Error::worker("a thread that verifies a cache panicked"))
        })
    })?;
    Ok(found.report(subject.complete, subject.checksums, began.elapsed()))
}

/// A part of the work. Each gives more of it, or none.
enum Task {
    Index,
    Shard(u64),
    Piece(Piece),
    Foreign(PathBuf),
}

impl Subject {
    /// The first tasks; tells what is wrong with the files as they lie there.
    fn tasks(&self, found: &Found<'_>) -> Vec<Task> {
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
                found.file(CACHE_MANIFEST, FindingKind::Manifest, Some(0), what.clone());
            }
            (None, None) => found.missing(CACHE_MANIFEST),
        }
        let due: Vec<u64> = match self.entries() {
            Some(entries) => {
                let due = entries.len() as u64;
                for (number, files) in self.there.range(due..) {
                    for file in files {
                        let what = format!("no shard of this cache, which has {due}");
                        found.file(file.name(*number), FindingKind::Extra, None, what);
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
            // The manifest makes a shard complete: a build that goes on has more.
            if !self.complete && !there.contains(&ShardFile::Manifest) {
                continue;
            }
            for file in ShardFile::ALL.iter().filter(|f| !there.contains(f)) {
                found.missing(&file.name(number));
            }
            tasks.push(Task::Shard(number));
        }
        match self.index_is_there {
            true => tasks.push(Task::Index),
            false if self.complete => found.missing(INDEX),
            false => {}
        }
        tasks
    }

    /// Shards that are missing in front of others, where no manifest says how many
    /// there are: any number may stand in a name, so each gap is told once.
    fn tell_gaps(&self, found: &Found<'_>) {
        let mut next = Some(0);
        for &number in self.there.keys() {
            let gap = next.filter(|&first| self.complete && first < number);
            if let Some(first) = gap {
                let what = match number - first {
                    1 => "is not there, nor is any other file of this shard".to_owned(),
                    _ => format!(
                        "is not there, nor is any shard up to {}",
                        shard_name(number - 1)
                    ),
                };
                let name = ShardFile::Tar.name(first);
                found.file(name, FindingKind::Missing, None, what);
            }
            next = number.checked_add(1);
        }
    }

    fn run(&self, task: Task, found: &Found<'_>) -> Vec<Task> {
        match task {
            Task::Index => self.check_index(found),
            Task::Foreign(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                walked::check(&path, Path::new(name), None, found);
            }
            Task::Shard(number) => {
                let there = self.there.get(&number).map_or(&[][..], Vec::as_slice);
                let entry = self.entries().and_then(|e| e.get(number as usize));
                let name = shard_name(number);
                if entry.is_some_and(|entry| entry.name != name) {
                    let what = format!("its shard {number} is not called {name}");
                    found.file(CACHE_MANIFEST, FindingKind::Manifest, Some(0), what);
                }
                return shard::begin(&self.folder, number, there, entry, found);
            }
            Task::Piece(piece) => piece.check(found),
        }
        Vec::new()
    }

    /// The sealed index, by the manifest's hash of it, or else by its own checksum;
    /// and whether it can be loaded.
    fn check_index(&self, found: &Found<'_>) {
        let path = self.folder.join(INDEX);
        let tell = |what: String| found.file(INDEX, FindingKind::IndexFile, Some(0), what);
        let bytes = match read_whole(&path) {
            Ok(bytes) => bytes,
            Err(what) => return found.file(INDEX, FindingKind::Unreadable, None, what),
        };
        found.read(bytes.len() as u64);
        match self.manifest.as_ref().filter(|m| m.complete) {
            Some(manifest) if manifest.index != Some(Hash128::of(&bytes)) => {
                tell("damaged, or of another cache: its hash is not the manifest's".into());
            }
            manifest => {
                drop(bytes);
                match Index::of_cache(&self.folder, manifest) {
                    Err(Error::Dataset { what, .. }) => tell(what),
                    Err(e) => tell(e.to_string()),
                    Ok(_) => {}
                }
            }
        }
    }
}
