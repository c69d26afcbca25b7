//! The folder of a cache while it is built: whose it is, what is complete in it,
//! and what is left of a build that was broken off.
//!
//! In the consumer. Removes and replaces files of a cache alone, by their names
//! and under the lock; what else lies there is not touched.

use std::cell::{RefCell, RefMut};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use twox_hash::xxhash3_128::Hasher;

use crate::cache::disk_estimate::DiskNeed;
use crate::cache::layout::{INDEX, ShardFile, remove_file, shard_file, shard_name};
use crate::cache::lock::FolderLock;
use crate::cache::new_folders::NewFolders;
use crate::cache::options::BuildPart;
use crate::cache::shard_ledger::idx_text;
use crate::cache::upload::{CacheUpload, MOST_WAITING};
use crate::data::index::Index;
use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, HexHash128, Manifest, ShardEntry, ShardManifest, SkippedEntry,
};
use crate::error::{Error, Result};
use crate::sys::atomic_file::{is_temporary, put_first, replace_by, sync_folder};
use crate::sys::whole_file;

/// Bytes of a tar that are read at a time.
const PIECE: usize = 1 << 20;

/// Which file of which shard, none = the index; and its path.
type CacheFile = (Option<(u64, ShardFile)>, PathBuf);

/// A cache's folder, held against other builders.
#[derive(Debug)]
pub(super) struct CacheFolder {
    path: PathBuf,
    /// The store that its shards go to, where it is a stage.
    upload: Option<RefCell<CacheUpload>>,
    _lock: FolderLock,
    /// Dropped after the lock, whose file lies in the folder.
    _new: NewFolders,
}

/// How often a folder is made and locked that another process removes at its end.
const TRIES: usize = 100;

impl CacheFolder {
    /// Makes the folder, if there is none, and holds it: for a share beside others that make
    /// shares.
    ///
    /// # Errors
    /// When another process builds there, or the system refuses.
    pub(super) fn open(path: &Path, part: BuildPart) -> Result<Self> {
        match part {
            // What killed ones were writing stays: nobody knows whose it is.
            BuildPart::Share { .. } => Self::make(path, FolderLock::lock_shared),
            BuildPart::All | BuildPart::Finish => Self::claim(path),
        }
    }

    /// Makes the folder, if there is none, and holds it. What a killed builder was
    /// writing is removed.
    ///
    /// # Errors
    /// When another process builds there, or the system refuses.
    pub(super) fn claim(path: &Path) -> Result<Self> {
        let folder = Self::make(path, FolderLock::lock_exclusive)?;
        folder.remove_temporaries()?;
        Ok(folder)
    }

    /// Removes what killed builders were writing.
    fn remove_temporaries(&self) -> Result<()> {
        for name in self.names()?.iter().filter(|name| is_temporary(name)) {
            remove_file(&self.path.join(name))?;
        }
        Ok(())
    }

    /// As [`CacheFolder::claim`], of one that is there and that nobody holds at this moment; none of
    /// another.
    ///
    /// # Errors
    /// A system that refuses.
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
                // Another process that had made it, and was refused, has just removed it.
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

    /// The same as the stage of a cache that goes into a store.
    pub(super) fn set_upload(&mut self, upload: CacheUpload) {
        self.upload = Some(RefCell::new(upload));
    }

    /// The cache on its way into a store; none where it stays here.
    pub(super) fn upload(&self) -> Option<RefMut<'_, CacheUpload>> {
        self.upload.as_ref().map(RefCell::borrow_mut)
    }

    /// Where the cache is built, for people.
    pub(super) fn location(&self) -> PathBuf {
        match self.upload() {
            Some(upload) => upload.address().as_str().into(),
            None => self.path.clone(),
        }
    }

    /// A shard is whole here: it may go where the cache goes.
    pub(super) fn upload_shard(&self, number: u64, manifest: &ShardManifest) -> Result<()> {
        match self.upload() {
            Some(mut upload) => upload.upload_shard(number, manifest.bytes),
            None => Ok(()),
        }
    }

    /// What is needed here at a time, where all of it are so many shards.
    pub(super) fn local_need(&self, all: DiskNeed, shards: u64) -> DiskNeed {
        // Those that wait, one that comes behind them, and one that is written.
        let here = MOST_WAITING + 2;
        match &self.upload {
            Some(_) if shards > here => DiskNeed {
                bytes: (all.bytes / shards + 1).saturating_mul(here).min(all.bytes),
                exact: false,
            },
            _ => all,
        }
    }

    /// The manifest that is there; none where there is none.
    ///
    /// # Errors
    /// One that is damaged, or shards without any: they are not ours.
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

    pub(super) fn write_manifest(&self, manifest: &CacheManifest) -> Result<()> {
        manifest.write(&self.path.join(CACHE_MANIFEST)).map(|_| ())
    }

    /// Removes the manifest, and with it what says that this is a cache.
    pub(super) fn remove_manifest(&self) -> Result<()> {
        remove_file(&self.path.join(CACHE_MANIFEST))
    }

    /// What the cache's manifest says of a complete shard, by its manifest and the hash of
    /// that file. Puts right its `.idx`.
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

    /// Reads a tar, and compares it with its manifest.
    ///
    /// # Errors
    /// What the system says of one that cannot be read.
    pub(super) fn is_undamaged(&self, number: u64, manifest: &ShardManifest) -> Result<bool> {
        let tar = ShardFile::Tar.path(&self.path, number);
        let hash = file_hash(&tar).map_err(|e| match e {
            Error::Io { source, .. } => Error::io_at("read", &tar, explain_unreadable(&source)),
            e => e,
        })?;
        Ok(hash == manifest.hash)
    }

    /// Lists what gave no picture behind the last sample of shard `number`, which is
    /// complete, where no sample follows any more in whose shard it would stand.
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

    /// Whether not one shard, wherever it stands, was complete once.
    pub(super) fn has_no_shards(&self) -> Result<bool> {
        let is_manifest = |name| matches!(shard_file(name), Some((_, ShardFile::Manifest)));
        Ok(!self.names()?.iter().any(|name| is_manifest(name)))
    }

    /// The manifest of a shard that is there as a whole, as far as lengths tell;
    /// none where a file is missing, damaged or of another length.
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
        // Links are followed: a shard may have been moved to another disk.
        let bytes = match (up, path.metadata()) {
            (Some(bytes), _) => Some(bytes),
            (None, Ok(tar)) => tar.is_file().then_some(tar.len()),
            (None, Err(e)) if e.kind() == ErrorKind::NotFound => return absent_file(&path),
            (None, Err(e)) => return Err(Error::io_at("look at", &path, e)),
        };
        let whole = bytes == Some(manifest.bytes) && manifest.first_id == first_id;
        Ok(whole.then_some((manifest, hash)))
    }

    /// Writes the manifest where there is none. Another process that comes at the same time
    /// writes the same, or is refused when it looks.
    pub(super) fn begin(&self, manifest: &CacheManifest) -> Result<()> {
        put_first(&self.path.join(CACHE_MANIFEST), &manifest.to_bytes()?)
    }

    /// Removes these shards, here and where they went to.
    pub(super) fn remove_shards(&self, numbers: &[u64]) -> Result<()> {
        if let Some(mut upload) = self.upload() {
            upload.remove(numbers.iter().copied())?;
        }
        // What says that a shard is complete goes first.
        for file in [ShardFile::Manifest, ShardFile::Tar, ShardFile::Idx] {
            for number in numbers {
                remove_file(&file.path(&self.path, *number))?;
            }
        }
        sync_folder(&self.path)
    }

    /// Removes the shards from `number` on, and the index, which has them. Only
    /// where the folder's manifest is a cache's: shards have the names that others
    /// give theirs, too, and in a cache's folder alone they are ours.
    pub(super) fn remove_from(&self, number: u64) -> Result<()> {
        let mut late = self.files_from(number)?;
        // What says that a shard is complete goes first.
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

    /// Bytes of storage that are free again when the shards from `number` on, and
    /// the index, are removed.
    pub(super) fn bytes_from(&self, number: u64) -> Result<u64> {
        let mut bytes = 0u64;
        for (_, path) in self.files_from(number)? {
            let file = path
                .symlink_metadata()
                .map_err(|e| Error::io_at("look at", &path, e))?;
            // A file of two names stays under the other one.
            if file.is_file() && file.nlink() == 1 {
                bytes = bytes.saturating_add(file.blocks().saturating_mul(512));
            }
        }
        Ok(bytes)
    }

    /// The index, and the files of the shards from `number` on, with their paths.
    fn files_from(&self, number: u64) -> Result<Vec<CacheFile>> {
        let names = self.names()?.into_iter().filter_map(|name| {
            let file = shard_file(&name);
            let late = match file {
                Some((n, _)) => n >= number,
                None => name == INDEX,
            };
            late.then(|| (file, self.path.join(name)))
        });
        Ok(names.collect())
    }

    /// Bytes that may still be written to the folder's file system, and what each
    /// file is rounded up to.
    pub(super) fn available(&self) -> Result<(u64, u64)> {
        let stat = statvfs(&self.path)
            .map_err(|e| Error::io_at("ask for the free space of", &self.path, e))?;
        let fragment = (stat.fragment_size() as u64).max(1);
        Ok((
            (stat.blocks_available() as u64).saturating_mul(fragment),
            fragment,
        ))
    }

    /// Names that are text: no other name is of a cache.
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

/// Nothing is at `path`: the shard is missing.
///
/// # Errors
/// When a link is there whose target is not: a disk that is not mounted is no
/// reason to make its shard again, nor those behind it.
pub(super) fn absent_file<T>(path: &Path) -> Result<Option<T>> {
    let otherwise = "remove the link, and this shard and those behind it are made again";
    refuse_dangling(path, otherwise).map(|()| None)
}

/// # Errors
/// When a link is at `path`, where nothing is found; says what may be done `otherwise`.
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

/// The manifest of the cache in `folder`, where a file or a link is in its place.
///
/// # Errors
/// One that is damaged or cannot be read.
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

/// What the cache's manifest says of shard `number`: by the hash of its manifest's
/// file, and the text of its `.idx`.
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
    }
}

fn is_cache_file(name: &str) -> bool {
    name == INDEX || shard_file(name).is_some()
}

/// The error of a tar that may be unreadable for good, with what mends that.
fn explain_unreadable(e: &io::Error) -> io::Error {
    io::Error::new(
        e.kind(),
        format!(
            "{e}. If it fails each time, delete this tar and build again: it and the shards \
             behind it are made again"
        ),
    )
}

/// Whether the file at `path` has these bytes. One that cannot be read is written again.
fn has_content(path: &Path, bytes: &[u8]) -> bool {
    whole_file::read(path, bytes.len() as u64).is_ok_and(|there| there == bytes)
}

/// The hash of a whole file, read piece by piece.
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
        // Of a killed builder the file stays, the lock does not.
        fs::write(path.join(LOCK), "").unwrap();
        CacheFolder::claim(&path).unwrap();
        // Of a link's target it would be another file than the one that is there.
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
            INDEX,
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
