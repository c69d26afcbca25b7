//! Finds out what to verify: a cache, one shard of it, or other tars. Decides by the files there
//! and by their first bytes.
//!
//! Runs in the consumer. Reads the cache's manifest, and the beginnings of other files.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::cache::layout::{INDEX, ShardFile, length, no_such_path, shard_file};
use crate::cache::verify::file_window::read_whole;
use crate::data::index::{Index, check_is_tar};
use crate::data::objects::ObjectTable;
use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, LAST_VERSION, Manifest, ManifestDamage, ShardEntry,
    ShardManifest, VERSION, is_side_file,
};
use crate::data::shard::walk::HeaderWalk;
use crate::error::{Error, Result};

/// The files to verify.
pub(super) struct VerifySubject {
    pub(super) folder: PathBuf,
    /// The manifest of the cache, if it is intact.
    pub(super) manifest: Option<CacheManifest>,
    /// The damage of the manifest.
    pub(super) damaged: Option<String>,
    pub(super) manifest_bytes: u64,
    /// The existing files of shards, by number.
    pub(super) there: BTreeMap<u64, Vec<ShardFile>>,
    /// The only shard to verify; none = all.
    pub(super) only: Option<u64>,
    /// Tars that do not belong to a cache.
    pub(super) foreign: Vec<PathBuf>,
    pub(super) index_is_there: bool,
    /// The sealed index, after it was found intact.
    pub(super) index: OnceLock<Index>,
    /// The table of objects, after it was found intact.
    pub(super) objects: OnceLock<ObjectTable>,
    pub(super) complete: bool,
    pub(super) checksums: bool,
    /// Bytes of all files that are checked.
    pub(super) bytes: u64,
}

impl VerifySubject {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let mut subject = Self {
            folder: path.to_owned(),
            manifest: None,
            damaged: None,
            manifest_bytes: 0,
            there: BTreeMap::new(),
            only: None,
            foreign: Vec::new(),
            index_is_there: false,
            index: OnceLock::new(),
            objects: OnceLock::new(),
            complete: true,
            checksums: true,
            bytes: 0,
        };
        let metadata = fs::metadata(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Error::dataset(path, no_such_path("file or folder", path))
            }
            _ => Error::io_at("look at", path, e),
        })?;
        if !metadata.is_dir() {
            subject.folder = path.parent().unwrap_or(Path::new("")).to_owned();
            if subject.is_one_shard(path)? {
                return Ok(subject);
            }
            // A shard of a cache that lost its manifest is checked even if it does not begin like a
            // tar.
            if one_shard(path).is_none() || !Index::is_cache(&subject.folder) {
                refuse_what_is_none(path)?;
            }
            subject.foreign.push(path.to_owned());
            subject.bytes = metadata.len();
            subject.checksums = false;
            return Ok(subject);
        }
        let tars = subject.list()?;
        subject.read_manifest()?;
        if subject.manifest.is_some() || subject.is_ours() {
            subject.complete = subject.manifest.as_ref().is_none_or(|m| m.complete);
            return Ok(subject);
        }
        if tars.is_empty() {
            let what = match subject.damaged {
                Some(what) => format!("its {CACHE_MANIFEST} is {what}, and there are no shards"),
                None => format!("is not a cache: it has no {CACHE_MANIFEST} and no tar"),
            };
            return Err(Error::dataset(path, what));
        }
        // Its manifest.json belongs to something unknown.
        subject.there.clear();
        subject.damaged = None;
        subject.bytes = tars.iter().map(|tar| length(tar)).sum();
        subject.foreign = tars;
        subject.checksums = false;
        Ok(subject)
    }

    /// Whether the folder is a cache although its manifest cannot be read. Other writers also use
    /// such names for shards, and put statistics beside them as `.json`.
    fn is_ours(&self) -> bool {
        let manifest_of = |(number, files): (&u64, &Vec<ShardFile>)| {
            let path = ShardFile::Manifest.path(&self.folder, *number);
            files.contains(&ShardFile::Manifest).then_some(path)
        };
        let mut manifests = self.there.iter().filter_map(manifest_of);
        // An index that a user saved there has another root than `/`.
        let is_index = || Index::load(&self.folder.join(INDEX)).is_ok_and(|i| i.root() == "/");
        Index::is_cache(&self.folder)
            || manifests.any(|path| Index::is_shard_manifest(&path))
            || (self.index_is_there && is_index())
    }

    /// Whether `path` is the tar of a shard with its manifest beside it, or of a shard in the
    /// cache's manifest. If so, adds the files of that shard.
    ///
    /// # Errors
    /// A manifest of another version: that of the cache, or that of the shard if the cache has
    /// none.
    fn is_one_shard(&mut self, path: &Path) -> Result<bool> {
        let Some(number) = one_shard(path) else {
            return Ok(false);
        };
        let of_cache = Index::is_cache(&self.folder);
        if of_cache {
            self.read_manifest()?;
            // Damage of the cache's manifest does not matter for one shard.
            (self.bytes, self.manifest_bytes, self.damaged) = (0, 0, None);
        }
        let mut there = Vec::new();
        for file in ShardFile::ALL {
            if let Ok(meta) = fs::metadata(file.path(&self.folder, number)) {
                there.push(file);
                self.bytes += meta.len();
            }
        }
        let manifest = ShardFile::Manifest.path(&self.folder, number);
        let has_manifest = there.contains(&ShardFile::Manifest)
            && (of_cache || Index::is_shard_manifest(&manifest));
        let is_due = usize::try_from(number)
            .is_ok_and(|number| self.entries().is_some_and(|e| e.get(number).is_some()));
        if !has_manifest && !is_due {
            self.bytes = 0;
            return Ok(false);
        }
        if self.manifest.is_none()
            && has_manifest
            && let Ok(bytes) = read_whole(&manifest, ShardManifest::MOST_BYTES)
        {
            refuse_version::<ShardManifest>(&manifest, &bytes)?;
        }
        self.there.insert(number, there);
        self.only = Some(number);
        Ok(true)
    }

    /// Lists the folder, and records its files. Returns the tars.
    fn list(&mut self) -> Result<Vec<PathBuf>> {
        let failed = |e| Error::io_at("list", &self.folder, e);
        let mut tars = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let extension = Path::new(&name).extension();
            // Hidden files are skipped, as in folders of samples: `._a.tar` has attributes of a
            // file.
            let is_hidden = name.as_encoded_bytes().starts_with(b".");
            let is_tar = extension.is_some_and(|e| e.eq_ignore_ascii_case("tar")) && !is_hidden;
            if is_tar {
                tars.push(entry.path());
            }
            // A name that is not UTF-8 is not ours.
            let ours = name.to_str().and_then(shard_file);
            if let Some((number, file)) = ours {
                self.there.entry(number).or_default().push(file);
            }
            self.index_is_there |= name == INDEX;
            let is_side_file = name.to_str().is_some_and(is_side_file);
            if is_tar || ours.is_some() || is_side_file {
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
        let bytes = match read_whole(&path, CacheManifest::MOST_BYTES) {
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
            Err(damage) => {
                refuse_version::<CacheManifest>(&path, &bytes)?;
                self.damaged = Some(damage.to_string());
            }
        }
        Ok(())
    }

    /// The entries of all shards, from the manifest of a complete cache.
    pub(super) fn entries(&self) -> Option<&[ShardEntry]> {
        let manifest = self.manifest.as_ref().filter(|m| m.complete);
        manifest.map(|m| m.shards.as_slice())
    }
}

/// Rejects the bytes of a manifest of another version.
///
/// # Errors
/// When the version differs, and the version number itself is not damaged.
fn refuse_version<M: Manifest>(path: &Path, bytes: &[u8]) -> Result<()> {
    match M::from_bytes(bytes) {
        Err(damage @ ManifestDamage::Version { found }) if !was_version::<M>(bytes, found) => {
            Err(Error::dataset(path, damage.to_string()))
        }
        _ => Ok(()),
    }
}

/// Whether a manifest is valid if its version `found` is replaced by the current one. Then only the
/// number is damaged.
fn was_version<M: Manifest>(bytes: &[u8], found: u32) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let blank = if M::PRETTY { " " } else { "" };
    let field = |version: u32| format!("\"version\":{blank}{version}");
    (VERSION..=LAST_VERSION).any(|version| {
        let mended = text.replacen(&field(found), &field(version), 1);
        M::from_bytes(mended.as_bytes()).is_ok()
    })
}

/// The number of the shard, if `path` has the name of a shard's tar.
fn one_shard(path: &Path) -> Option<u64> {
    match shard_file(path.file_name()?.to_str()?) {
        Some((number, ShardFile::Tar)) => Some(number),
        _ => None,
    }
}

/// Rejects a file that was named by mistake.
///
/// # Errors
/// When the file does not begin like a tar.
fn refuse_what_is_none(path: &Path) -> Result<()> {
    let (file, len) = crate::data::shard::open(path)?;
    let mut walk = HeaderWalk::new(&file, len);
    let first = walk.next().map_err(|e| Error::io_at("read", path, e))?;
    if first.is_some() {
        return Ok(());
    }
    check_is_tar(path, &file, len, &walk.finish()).map_err(|e| match e {
        Error::Dataset { path, line, what } => Error::Dataset {
            path,
            line,
            what: format!("{what}: give the cache's folder, a shard of it, or a plain tar"),
        },
        e => e,
    })
}
