//! The folder of a cache while it is built: its lock, its complete shards, and the remains of an
//! interrupted build.
//!
//! Runs in the consumer. It removes and replaces only files with the names of a cache, and only
//! under the lock. Other files in the folder stay as they are.

use std::cell::{RefCell, RefMut};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use twox_hash::xxhash3_128::Hasher;

use crate::cache::disk_estimate::DiskNeed;
use crate::cache::layout::{ShardFile, remove_file, shard_file, shard_name};
use crate::cache::lock::FolderLock;
use crate::cache::new_folders::NewFolders;
use crate::cache::options::BuildPart;
use crate::cache::shard_ledger::idx_text;
use crate::cache::upload::{CacheUpload, MOST_WAITING};
use crate::data::index::Index;
use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, ColumnsPlace, HexHash128, Manifest, ShardEntry, ShardManifest,
    SkippedEntry, is_side_file,
};
use crate::error::{Error, Result};
use crate::sys::atomic_file::{is_temporary, put_first, replace_by, sync_folder};
use crate::sys::whole_file;

/// Bytes of a tar per read.
const PIECE: usize = 1 << 20;

/// A file of a cache, and its path: number of the shard and kind of file, or none for the index.
type CacheFile = (Option<(u64, ShardFile)>, PathBuf);

/// A cache's folder, locked against other builders.
#[derive(Debug)]
pub(super) struct CacheFolder {
    path: PathBuf,
    /// The upload of its shards, if the folder is a stage.
    upload: Option<RefCell<CacheUpload>>,
    _lock: FolderLock,
    /// Dropped after the lock, because the lock file is in the folder.
    _new: NewFolders,
}

/// How often the folder is made and locked again if another process removes it in between.
const TRIES: usize = 100;

impl CacheFolder {
    /// Makes the folder if it is absent, and locks it. For a share, other processes that make
    /// shares may lock it too.
    ///
    /// # Errors
    /// When another process builds there, or a system call fails.
    pub(super) fn open(path: &Path, part: BuildPart) -> Result<Self> {
        match part {
            // Temporary files stay, because they may belong to a share that is being made.
            BuildPart::Share { .. } => Self::make(path, FolderLock::lock_shared),
            BuildPart::All | BuildPart::Finish => Self::claim(path),
        }
    }

    /// Makes the folder if it is absent, and locks it for this process alone. Removes the temporary
    /// files of killed builders.
    ///
    /// # Errors
    /// When another process builds there, or a system call fails.
    pub(super) fn claim(path: &Path) -> Result<Self> {
        let folder = Self::make(path, FolderLock::lock_exclusive)?;
        folder.remove_temporaries()?;
        Ok(folder)
    }

    /// Removes the temporary files of killed builders.
    fn remove_temporaries(&self) -> Result<()> {
        for name in self.names()?.iter().filter(|name| is_temporary(name)) {
            remove_file(&self.path.join(name))?;
        }
        Ok(())
    }

    /// Like [`CacheFolder::claim`], for an existing folder and without waiting. `None` if the
    /// folder cannot be locked now.
    ///
    /// # Errors
    /// When its temporary files cannot be removed.
    pub(super) fn try_claim(path: &Path) -> Result<Option<Self>> {
        let Ok(lock) = FolderLock::try_lock_exclusive(path) else {
            return Ok(None);
        };
        let folder = Self::held(path, lock, NewFolders::default());
        folder.remove_temporaries()?;
        Ok(Some(folder))
    }

    fn make(path: &Path, lock: impl Fn(&Path) -> Result<FolderLock>) -> Result<Self> {
        let mut new = NewFolders::default();
        let mut tries = 0;
        let lock = loop {
            tries += 1;
            match new.make(path).and_then(|()| lock(path)) {
                // Another process that made the folder, and was rejected, has just removed it.
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && tries < TRIES => {}
                locked => break locked?,
            }
        };
        Ok(Self::held(path, lock, new))
    }

    fn held(path: &Path, lock: FolderLock, new: NewFolders) -> Self {
        Self {
            _lock: lock,
            path: path.to_owned(),
            upload: None,
            _new: new,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes this folder the stage of a cache that is uploaded to a store.
    pub(super) fn set_upload(&mut self, upload: CacheUpload) {
        self.upload = Some(RefCell::new(upload));
    }

    /// The upload to the store; `None` if the cache stays in this folder.
    pub(super) fn upload(&self) -> Option<RefMut<'_, CacheUpload>> {
        self.upload.as_ref().map(RefCell::borrow_mut)
    }

    /// The place of the cache for messages: its address in a store, or this folder.
    pub(super) fn location(&self) -> PathBuf {
        match self.upload() {
            Some(upload) => upload.address().as_str().into(),
            None => self.path.clone(),
        }
    }

    /// Starts the upload of a complete shard, if the cache goes into a store.
    pub(super) fn upload_shard(&self, number: u64, manifest: &ShardManifest) -> Result<()> {
        match self.upload() {
            Some(mut upload) => upload.upload_shard(number, manifest.bytes),
            None => Ok(()),
        }
    }

    /// The disk space that is needed in this folder at one time. `all` is the need of the whole
    /// cache of `shards` shards.
    pub(super) fn local_need(&self, all: DiskNeed, shards: u64) -> DiskNeed {
        // Shards that wait for their upload, at most one more than `MOST_WAITING`, and the shard
        // that is being written.
        let here = MOST_WAITING + 2;
        match &self.upload {
            Some(_) if shards > here => DiskNeed {
                bytes: (all.bytes / shards + 1).saturating_mul(here).min(all.bytes),
                exact: false,
            },
            _ => all,
        }
    }

    /// The manifest in the folder; `None` if there is none.
    ///
    /// # Errors
    /// A damaged manifest. Files of a cache without a manifest: they may not be ours.
    pub(super) fn manifest(&self) -> Result<Option<CacheManifest>> {
        let path = self.path.join(CACHE_MANIFEST);
        if path.symlink_metadata().is_ok() {
            let read = cache_manifest(&self.path).map_err(|e| match e {
                Error::Dataset { path, line, what } if !Index::is_cache(&self.path) => {
                    Error::Dataset {
                        path,
                        line,
                        what: format!(
                            "{what}. The folder is not a cache, so even `force` replaces \
                             nothing: name another folder"
                        ),
                    }
                }
                e => e,
            });
            return read.map(Some);
        }
        let others = self.names()?;
        match others.iter().find(|name| is_cache_file(name)) {
            None => Ok(None),
            Some(name) => Err(Error::dataset(
                &self.path,
                format!(
                    "holds {name} and no {CACHE_MANIFEST}, so it may not be a cache: name \
                     another folder"
                ),
            )),
        }
    }

    /// Whether the folder has this file beside its shards, with this hash.
    pub(super) fn has_file(&self, name: &str, hash: HexHash128) -> bool {
        file_hash(&self.path.join(name)).is_ok_and(|found| found == hash)
    }

    pub(super) fn write_manifest(&self, manifest: &CacheManifest) -> Result<()> {
        manifest.write(&self.path.join(CACHE_MANIFEST)).map(|_| ())
    }

    /// Removes the manifest. Without it the folder is not a cache.
    pub(super) fn remove_manifest(&self) -> Result<()> {
        remove_file(&self.path.join(CACHE_MANIFEST))
    }

    /// Rewrites the `.idx` of a complete shard if its content is wrong, and starts the upload of
    /// the shard. `hash` is that of the shard's manifest file. Returns the shard's entry for the
    /// cache's manifest.
    pub(super) fn repair_idx(
        &self,
        number: u64,
        manifest: &ShardManifest,
        hash: HexHash128,
    ) -> Result<ShardEntry> {
        let text = idx_text(manifest)?;
        let idx = ShardFile::Idx.path(&self.path, number);
        if !has_content(&idx, &text) {
            replace_by(&idx, &text)?;
        }
        self.upload_shard(number, manifest)?;
        Ok(entry(number, manifest, hash, &text))
    }

    /// Reads the whole tar of a shard. Returns whether it has the hash that its manifest states.
    ///
    /// # Errors
    /// When the tar cannot be read.
    pub(super) fn is_undamaged(&self, number: u64, manifest: &ShardManifest) -> Result<bool> {
        let tar = ShardFile::Tar.path(&self.path, number);
        let hash = file_hash(&tar).map_err(|e| match e {
            Error::Io { source, .. } => Error::io_at("read", &tar, explain_unreadable(&source)),
            e => e,
        })?;
        Ok(hash == manifest.hash)
    }

    /// Adds left-out samples to the manifest of the complete shard `number`. This is for samples
    /// after the last one in the cache. All others are listed in the shard of the next sample.
    pub(super) fn add_skipped(&self, number: u64, skipped: &[SkippedEntry]) -> Result<ShardEntry> {
        let path = ShardFile::Manifest.path(&self.path, number);
        let (mut manifest, _) = ShardManifest::read(&path)?;
        manifest.skipped.extend_from_slice(skipped);
        let hash = manifest.write(&path)?;
        let text = idx_text(&manifest)?;
        if let Some(mut upload) = self.upload() {
            upload.replace_shard(number, manifest.bytes)?;
        }
        Ok(entry(number, &manifest, hash, &text))
    }

    /// Whether the folder has no manifest of any shard, so that no shard is complete.
    pub(super) fn has_no_shards(&self) -> Result<bool> {
        let is_manifest = |name| matches!(shard_file(name), Some((_, ShardFile::Manifest)));
        Ok(!self.names()?.iter().any(|name| is_manifest(name)))
    }

    /// The manifest of shard `number` and the hash of its file, if the shard is complete. It is
    /// complete if its manifest can be read and begins at `first_id`, and the tar has the stated
    /// length. The tar may be here or in the store. `None` otherwise.
    ///
    /// # Errors
    /// A file that exists and cannot be read, or a link whose target is missing.
    pub(super) fn find_complete(
        &self,
        number: u64,
        first_id: u64,
    ) -> Result<Option<(ShardManifest, HexHash128)>> {
        let path = ShardFile::Manifest.path(&self.path, number);
        let (manifest, hash) = match ShardManifest::read(&path) {
            Ok(read) => read,
            Err(Error::Dataset { .. }) => return Ok(None),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return absent_file(&path);
            }
            Err(e) => return Err(e),
        };
        let path = ShardFile::Tar.path(&self.path, number);
        let up = self.upload().and_then(|upload| upload.stored_bytes(number));
        // Follows links, because a shard may have been moved to another disk.
        let bytes = match (up, path.metadata()) {
            (Some(bytes), _) => Some(bytes),
            (None, Ok(tar)) => tar.is_file().then_some(tar.len()),
            (None, Err(e)) if e.kind() == ErrorKind::NotFound => return absent_file(&path),
            (None, Err(e)) => return Err(Error::io_at("look at", &path, e)),
        };
        let whole = bytes == Some(manifest.bytes) && manifest.first_id == first_id;
        Ok(whole.then_some((manifest, hash)))
    }

    /// Writes the manifest if there is none. If another process writes one first, that one stays:
    /// the caller must compare it.
    pub(super) fn begin(&self, manifest: &CacheManifest) -> Result<()> {
        put_first(&self.path.join(CACHE_MANIFEST), &manifest.to_bytes()?)
    }

    /// Removes these shards from this folder and from the store.
    pub(super) fn remove_shards(&self, numbers: &[u64]) -> Result<()> {
        if let Some(mut upload) = self.upload() {
            upload.remove(numbers.iter().copied())?;
        }
        // A shard without a manifest is not complete, so manifests are removed first.
        for file in [ShardFile::Manifest, ShardFile::Tar, ShardFile::Idx] {
            for number in numbers {
                remove_file(&file.path(&self.path, *number))?;
            }
        }
        sync_folder(&self.path)
    }

    /// Removes the index, and the shards from `number` on. Call it only for the folder of a cache:
    /// in other folders, files with these names may not be ours.
    pub(super) fn remove_from(&self, number: u64) -> Result<()> {
        let mut late = self.files_from(number)?;
        // A shard without a manifest is not complete, so manifests are removed first.
        late.sort_by_key(|(file, _)| match file {
            None => (0, 0),
            Some((n, ShardFile::Manifest)) => (1, *n),
            Some((n, _)) => (2, *n),
        });
        for (_, path) in &late {
            remove_file(path)?;
        }
        match late.is_empty() {
            true => Ok(()),
            false => sync_folder(&self.path),
        }
    }

    /// Disk space, in bytes, that removing the index and the shards from `number` on frees.
    pub(super) fn bytes_from(&self, number: u64) -> Result<u64> {
        let mut bytes = 0u64;
        for (_, path) in self.files_from(number)? {
            let file = path
                .symlink_metadata()
                .map_err(|e| Error::io_at("look at", &path, e))?;
            // A file with a second hard link keeps its space.
            if file.is_file() && file.nlink() == 1 {
                bytes = bytes.saturating_add(file.blocks().saturating_mul(512));
            }
        }
        Ok(bytes)
    }

    /// The files beside the shards, and the files of the shards from `number` on, with their paths.
    fn files_from(&self, number: u64) -> Result<Vec<CacheFile>> {
        let names = self.names()?.into_iter().filter_map(|name| {
            let file = shard_file(&name);
            let late = match file {
                Some((n, _)) => n >= number,
                None => is_side_file(&name),
            };
            late.then(|| (file, self.path.join(name)))
        });
        Ok(names.collect())
    }

    /// Free bytes of the folder's file system for this user, and the size of its fragments. The
    /// size of each file is rounded up to whole fragments.
    pub(super) fn available(&self) -> Result<(u64, u64)> {
        let stat = statvfs(&self.path)
            .map_err(|e| Error::io_at("ask for the free space of", &self.path, e))?;
        let fragment = (stat.fragment_size() as u64).max(1);
        Ok((
            (stat.blocks_available() as u64).saturating_mul(fragment),
            fragment,
        ))
    }

    /// The sorted names in the folder. Names that are not UTF-8 are left out: no file of a cache
    /// has one.
    fn names(&self) -> Result<Vec<String>> {
        let failed = |e| Error::io_at("read folder", &self.path, e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns `None` for a file of a shard that was not found at `path`.
///
/// # Errors
/// When `path` is a link whose target is missing. Its disk may not be mounted, which is no reason
/// to make the shard again.
pub(super) fn absent_file<T>(path: &Path) -> Result<Option<T>> {
    let otherwise = "remove the link and build again";
    refuse_dangling(path, otherwise).map(|()| None)
}

/// Rejects a link whose target is missing. Call it after `path` was not found. `otherwise` is the
/// second half of the advice.
///
/// # Errors
/// When `path` is a link.
fn refuse_dangling(path: &Path, otherwise: &str) -> Result<()> {
    let Ok(target) = fs::read_link(path) else {
        return Ok(());
    };
    Err(Error::dataset(
        path,
        format!(
            "a link to {}, which is missing: mount its disk, or {otherwise}",
            target.display()
        ),
    ))
}

/// The manifest of the cache in `folder`.
///
/// # Errors
/// When it is absent, damaged, or cannot be read.
pub(super) fn cache_manifest(folder: &Path) -> Result<CacheManifest> {
    let path = folder.join(CACHE_MANIFEST);
    match CacheManifest::read(&path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
            refuse_dangling(&path, "name another folder")?;
            Err(Error::io_at("read", &path, source))
        }
        read => Ok(read?.0),
    }
}

/// The entry of shard `number` in the cache's manifest. `hash` is that of the shard's manifest
/// file, `idx` the text of its `.idx`.
pub(super) fn entry(
    number: u64,
    manifest: &ShardManifest,
    hash: HexHash128,
    idx: &[u8],
) -> ShardEntry {
    ShardEntry {
        name: shard_name(number),
        bytes: manifest.bytes,
        samples: manifest.samples.len() as u64,
        manifest: hash,
        idx: HexHash128::of(idx),
        columns: manifest.columns.as_ref().map(|member| ColumnsPlace {
            at: member.data_at,
            bytes: member.size,
        }),
    }
}

fn is_cache_file(name: &str) -> bool {
    is_side_file(name) || shard_file(name).is_some()
}

/// Adds advice to the error of a tar that may never be readable again.
fn explain_unreadable(e: &io::Error) -> io::Error {
    io::Error::new(
        e.kind(),
        format!(
            "{e}. If it fails each time, delete this tar and build again: the build makes this \
             shard again, and the shards that depend on it"
        ),
    )
}

/// Whether the file at `path` has exactly these bytes. False if it cannot be read, so that it is
/// written again.
fn has_content(path: &Path, bytes: &[u8]) -> bool {
    whole_file::read(path, bytes.len() as u64).is_ok_and(|there| there == bytes)
}

/// XXH3-128 of a whole file, read in pieces.
///
/// # Errors
/// When the file cannot be opened or read.
pub(super) fn file_hash(path: &Path) -> Result<HexHash128> {
    let failed = |e| Error::io_at("read", path, e);
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Hasher::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(HexHash128(hasher.finish_128())),
            Ok(n) => hasher.write(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(failed(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::layout::LOCK;

    #[test]
    fn a_folder_is_one_builders_and_what_it_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/cache");
        fs::create_dir_all(&path).unwrap();
        for name in [
            ".featherload-abcDE1",
            "foreign.txt",
            ".featherload-demo.json",
        ] {
            fs::write(path.join(name), "x").unwrap();
        }
        let folder = CacheFolder::claim(&path).unwrap();
        assert_eq!(
            folder.names().unwrap(),
            [".featherload-demo.json", LOCK, "foreign.txt"]
        );
        let e = CacheFolder::claim(&path).unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("another process"),
            "{e}"
        );
        drop(folder);
        assert!(!path.join(LOCK).exists());
        // A killed builder leaves the file, but not the lock.
        fs::write(path.join(LOCK), "").unwrap();
        CacheFolder::claim(&path).unwrap();
        // A link is rejected: the lock would be on another file.
        std::os::unix::fs::symlink("foreign.txt", path.join(LOCK)).unwrap();
        let e = CacheFolder::claim(&path).unwrap_err();
        assert!(e.is_usage() && e.to_string().contains(LOCK), "{e}");
        fs::remove_file(path.join(LOCK)).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(CacheFolder::claim(&file).unwrap_err().is_usage());
    }

    #[test]
    fn shards_of_others_are_not_taken_for_ours() {
        let dir = tempfile::tempdir().unwrap();
        let folder = CacheFolder::claim(dir.path()).unwrap();
        assert!(folder.manifest().unwrap().is_none());
        fs::write(dir.path().join("shard-000007.tar"), "x").unwrap();
        let e = folder.manifest().unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains("shard-000007.tar"),
            "{e}"
        );
        fs::write(dir.path().join(CACHE_MANIFEST), "{}").unwrap();
        let e = folder.manifest().unwrap_err();
        assert!(
            e.is_usage() && e.to_string().contains(CACHE_MANIFEST),
            "{e}"
        );
    }

    #[test]
    fn a_tar_that_cannot_be_read_says_what_mends_it() {
        let said = explain_unreadable(&io::Error::from_raw_os_error(5)).to_string();
        assert!(
            said.contains("Input/output error") && said.contains("delete this tar"),
            "{said}"
        );
    }

    #[test]
    fn late_shards_are_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = CacheFolder::claim(dir.path()).unwrap();
        for name in [
            "shard-000001.tar",
            "shard-000002.idx",
            "shard-000002.json",
            "shard-000002.tar",
            "shard-000002.tar.gz",
            "shard-9.tar",
            crate::cache::layout::INDEX,
        ] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        folder.remove_from(2).unwrap();
        let left = folder.names().unwrap();
        assert_eq!(
            left,
            [
                LOCK,
                "shard-000001.tar",
                "shard-000002.tar.gz",
                "shard-9.tar"
            ]
        );
        let (available, fragment) = folder.available().unwrap();
        assert!(available > 0 && fragment >= 1);
    }
}
