//! A cache compared, byte by byte, with what its manifests say of it.
//!
//! In the consumer, by threads that are joined before the end. Every file is read
//! once, by positioned reads of 1 MiB, never mapped: a page that the storage
//! damaged is read as what it is. Shards may be few and large, so each is checked
//! in pieces of some samples, by whoever is free. Changes nothing.
//!
//! - `findings`: what is told; `queue`: who does what;
//! - `bytes`: reads; `shard`: one shard by its manifest; `walked`: one without, by
//!   its headers alone.

mod bytes;
mod findings;
mod queue;
mod shard;
mod walked;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use self::findings::Found;
pub use self::findings::{Finding, FindingKind, HurtSample, VerifyProgress, VerifyReport};
use self::queue::Queue;
use self::shard::{Piece, read_whole};
use crate::cache::layout::{CACHE_MANIFEST, INDEX, ShardFile, shard_file, shard_name};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::loader::default_workers;
use crate::shard::manifest::{
    CacheManifest, Damage, Hash128, Manifest, ShardEntry, ShardManifest, VERSION,
};
use crate::shard::read_at;
use crate::shard::walk::Walk;

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
    let plan = Plan::of(path)?;
    let found = Found::new(watch, plan.bytes);
    let queue = Queue::new(plan.tasks(&found));
    let workers = options.workers.unwrap_or_else(default_workers);
    let work = || {
        while let Some(task) = queue.take() {
            task.run(|task| plan.run(task, &found));
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
    Ok(found.report(plan.complete, plan.checksums, began.elapsed()))
}

/// What is to be checked.
struct Plan {
    folder: PathBuf,
    /// Its manifest, as far as that is good.
    manifest: Option<CacheManifest>,
    /// What is wrong with it.
    damaged: Option<String>,
    manifest_bytes: u64,
    /// The files of shards that are there, by their number.
    there: BTreeMap<u64, Vec<ShardFile>>,
    /// The one shard that is wanted; else all.
    only: Option<u64>,
    /// Tars that are no cache's.
    foreign: Vec<PathBuf>,
    index_is_there: bool,
    complete: bool,
    checksums: bool,
    /// Of all files that are looked at.
    bytes: u64,
}

/// A part of the work. Each gives more of it, or none.
enum Task {
    Index,
    Shard(u64),
    Piece(Piece),
    Foreign(PathBuf),
}

impl Plan {
    fn of(path: &Path) -> Result<Self> {
        let mut plan = Self {
            folder: path.to_owned(),
            manifest: None,
            damaged: None,
            manifest_bytes: 0,
            there: BTreeMap::new(),
            only: None,
            foreign: Vec::new(),
            index_is_there: false,
            complete: true,
            checksums: true,
            bytes: 0,
        };
        let metadata = fs::metadata(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Error::dataset(path, "no such file or folder")
            }
            _ => Error::io_at("look at", path, e),
        })?;
        if !metadata.is_dir() {
            plan.folder = path.parent().unwrap_or(Path::new("")).to_owned();
            if plan.is_one_shard(path) {
                return Ok(plan);
            }
            // Of a shard that lost its manifest, damage is looked for, too.
            if one_shard(path).is_none() || !Index::is_cache(&plan.folder) {
                refuse_what_is_no_tar(path)?;
            }
            plan.foreign.push(path.to_owned());
            plan.bytes = metadata.len();
            plan.checksums = false;
            return Ok(plan);
        }
        let tars = plan.list()?;
        plan.read_manifest()?;
        if plan.manifest.is_some() || plan.is_ours() {
            plan.complete = plan.manifest.as_ref().is_none_or(|m| m.complete);
            return Ok(plan);
        }
        if tars.is_empty() {
            let what = match plan.damaged {
                Some(what) => format!("its {CACHE_MANIFEST} is {what}, and there are no shards"),
                None => format!("no cache: it has no {CACHE_MANIFEST}, and no tar"),
            };
            return Err(Error::dataset(path, what));
        }
        // What its manifest.json is, is not known.
        plan.there.clear();
        plan.damaged = None;
        plan.bytes = tars.iter().map(|tar| length(tar)).sum();
        plan.foreign = tars;
        plan.checksums = false;
        Ok(plan)
    }

    /// Whether a cache's folder this is, although its manifest cannot be read: others
    /// give their shards such names, and put statistics beside them as `.json`.
    fn is_ours(&self) -> bool {
        let manifest_of = |(number, files): (&u64, &Vec<ShardFile>)| {
            let path = ShardFile::Manifest.path(&self.folder, *number);
            files.contains(&ShardFile::Manifest).then_some(path)
        };
        let mut manifests = self.there.iter().filter_map(manifest_of);
        // The root of an index that somebody saved there is not `/`.
        let is_index = || Index::load(&self.folder.join(INDEX)).is_ok_and(|i| i.root() == "/");
        Index::is_cache(&self.folder)
            || manifests.any(|path| is_shard_manifest(&path))
            || (self.index_is_there && is_index())
    }

    /// Whether `path` is the tar of a shard with its manifest beside it; takes its
    /// files.
    fn is_one_shard(&mut self, path: &Path) -> bool {
        let Some(number) = one_shard(path) else {
            return false;
        };
        let mut there = Vec::new();
        for file in ShardFile::ALL {
            if let Ok(meta) = fs::metadata(file.path(&self.folder, number)) {
                there.push(file);
                self.bytes += meta.len();
            }
        }
        let manifest = ShardFile::Manifest.path(&self.folder, number);
        let ours = Index::is_cache(&self.folder) || is_shard_manifest(&manifest);
        if !ours || !there.contains(&ShardFile::Manifest) {
            self.bytes = 0;
            return false;
        }
        self.there.insert(number, there);
        self.only = Some(number);
        true
    }

    /// Looks at all names. Returns the tars.
    fn list(&mut self) -> Result<Vec<PathBuf>> {
        let failed = |e| Error::io_at("list", &self.folder, e);
        let mut tars = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let extension = Path::new(&name).extension();
            let is_tar = extension.is_some_and(|e| e.eq_ignore_ascii_case("tar"));
            if is_tar {
                tars.push(entry.path());
            }
            // A name that is no text is none of ours.
            let ours = name.to_str().and_then(shard_file);
            if let Some((number, file)) = ours {
                self.there.entry(number).or_default().push(file);
            }
            self.index_is_there |= name == INDEX;
            if is_tar || ours.is_some() || name == INDEX {
                self.bytes += length(&entry.path());
            }
        }
        tars.sort();
        Ok(tars)
    }

    fn read_manifest(&mut self) -> Result<()> {
        let path = self.folder.join(CACHE_MANIFEST);
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let bytes = match read_whole(&path) {
            Ok(bytes) => bytes,
            Err(e) => {
                self.damaged = Some(e);
                return Ok(());
            }
        };
        self.manifest_bytes = bytes.len() as u64;
        self.bytes += self.manifest_bytes;
        match CacheManifest::from_bytes(&bytes) {
            Ok(manifest) => self.manifest = Some(manifest),
            // Another version is not understood, and not damaged.
            Err(damage @ Damage::Version { found }) if !was_version(&bytes, found) => {
                return Err(Error::dataset(path, damage.to_string()));
            }
            Err(damage) => self.damaged = Some(damage.to_string()),
        }
        Ok(())
    }

    /// What each shard should be, by the manifest of a complete cache.
    fn entries(&self) -> Option<&[ShardEntry]> {
        let manifest = self.manifest.as_ref().filter(|m| m.complete);
        manifest.map(|m| m.shards.as_slice())
    }

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

/// Whether a manifest is one of the version that is understood, but for the number
/// `found` that stands in the place of its version.
fn was_version(bytes: &[u8], found: u32) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let field = |version: u32| format!("\"version\": {version}");
    let mended = text.replacen(&field(found), &field(VERSION), 1);
    CacheManifest::from_bytes(mended.as_bytes()).is_ok()
}

/// The number of the shard whose tar is called as the file at `path` is.
fn one_shard(path: &Path) -> Option<u64> {
    match shard_file(path.file_name()?.to_str()?) {
        Some((number, ShardFile::Tar)) => Some(number),
        _ => None,
    }
}

/// # Errors
/// A file that does not even begin as a tar: it was named by mistake.
fn refuse_what_is_no_tar(path: &Path) -> Result<()> {
    let (file, len) = crate::shard::open(path)?;
    let mut walk = Walk::new(&file, len);
    let first = walk.next().map_err(|e| Error::io_at("read", path, e))?;
    if first.is_some() {
        return Ok(());
    }
    crate::index::refuse_what_is_no_tar(path, &file, len, &walk.finish()).map_err(|e| match e {
        Error::Dataset { path, line, what } => Error::Dataset {
            path,
            line,
            what: format!("{what}; give the cache's folder, a shard of it, or a plain tar"),
        },
        e => e,
    })
}

/// Whether the file at `path` begins as the manifest of a shard: whatever comes
/// behind, the shard is a cache's.
fn is_shard_manifest(path: &Path) -> bool {
    let beginning = format!("{{\"format\":\"{}\"", ShardManifest::FORMAT);
    let mut head = vec![0; beginning.len()];
    let read = crate::shard::open(path)
        .is_ok_and(|(file, _)| read_at(&file, &mut head, 0).is_ok_and(|n| n == head.len()));
    read && head == beginning.as_bytes()
}

/// 0 of a file that cannot be looked at: reading it tells why.
fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}
