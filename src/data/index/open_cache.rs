//! Opens a cache: reads its index, and checks that its shards fit its manifest.
//!
//! Used in the consumer. Reads the manifest, the index and the length of each shard, and no sample.
//! `cache::verify` compares the contents of shards with checksums. Opening does not.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use twox_hash::xxhash3_128::Hasher;

use crate::data::index::Index;
use crate::data::index::binary_form::IndexDamage;
use crate::data::index::index_file;
use crate::data::index::index_file::LoadFailure;
use crate::data::shard::manifest::{
    CACHE_INDEX, CACHE_MANIFEST, CacheManifest, HexHash128, Manifest, ShardManifest, shard_name,
};
use crate::error::{Error, Result};
use crate::sys::regular_file;
use crate::sys::regular_file::FileStamp;

/// The start of a manifest. A folder whose manifest begins like this is a cache, even if the rest
/// is damaged.
const BEGINNING: &[u8] = b"{\n  \"format\": \"featherload-cache\"";

pub(crate) fn is_cache(folder: &Path) -> bool {
    begins_with(&folder.join(CACHE_MANIFEST), BEGINNING)
}

/// Whether bytes begin like the manifest of a cache.
#[cfg_attr(not(feature = "stores"), allow(dead_code))]
pub(crate) fn is_manifest(bytes: &[u8]) -> bool {
    bytes.starts_with(BEGINNING)
}

/// Whether the file at `path` begins like the manifest of a shard. Its shard then belongs to a
/// cache, even if the rest is damaged.
pub(crate) fn is_shard_manifest(path: &Path) -> bool {
    let beginning = format!("{{\"format\":\"{}\"", ShardManifest::FORMAT);
    begins_with(path, beginning.as_bytes())
}

fn begins_with(path: &Path, beginning: &[u8]) -> bool {
    let mut head = Vec::new();
    let read = regular_file::open(path)
        .and_then(|(file, _)| file.take(beginning.len() as u64).read_to_end(&mut head));
    read.is_ok() && head == beginning
}

/// The error of a cache with a missing or damaged manifest, known as a cache by its other files.
/// `None` if the folder is not a cache, or has a valid manifest.
pub(crate) fn damaged_manifest(folder: &Path) -> Option<Error> {
    let manifest = folder.join(CACHE_MANIFEST);
    let is_there = manifest.symlink_metadata().is_ok();
    let has_shard = is_shard_manifest(&folder.join(format!("{}.json", shard_name(0))));
    let has_index = || index_file::is_saved(&folder.join(CACHE_INDEX)).unwrap_or(false);
    match has_shard || (is_there && has_index()) {
        true if is_there => CacheManifest::read(&manifest).err(),
        true => Some(see_verify(
            folder,
            format!("its {CACHE_MANIFEST} is missing"),
        )),
        false => None,
    }
}

pub(super) fn see_verify(folder: &Path, what: String) -> Error {
    Error::dataset(
        folder,
        format!("{what}: see `featherload cache verify`, or build the cache again"),
    )
}

/// Loads the sealed index in `folder`, with the root `/`. If `manifest` is given, the index must
/// have the hash that it states, and must agree with it.
pub(crate) fn load(folder: &Path, manifest: Option<&CacheManifest>) -> Result<Index> {
    load_file(folder, CACHE_INDEX, manifest)
}

/// Like [`load`], for the file `name`: the index of images, or of rasters.
pub(super) fn load_file(
    folder: &Path,
    name: &str,
    manifest: Option<&CacheManifest>,
) -> Result<Index> {
    let path = folder.join(name);
    let files = manifest.map(CacheManifest::side_files);
    let is_due = |hash: HexHash128| {
        let is_this = |(file, due): &(String, HexHash128)| file == name && *due == hash;
        (files.as_ref()).is_none_or(|all| all.iter().any(is_this))
    };
    let damaged = |damage: IndexDamage| {
        let again = "run the same `featherload cache build` again";
        Error::dataset(&path, format!("{damage}; {again}"))
    };
    let index = index_file::open(&path).map_err(|unusable| match unusable {
        LoadFailure::Failed(e) => match path.symlink_metadata() {
            Err(_) => see_verify(folder, format!("its {name} is missing")),
            Ok(_) => e,
        },
        // A path that is not a regular file must not be read: a FIFO has no end.
        LoadFailure::Damaged(damage @ IndexDamage::NotAnIndex) => damaged(damage),
        // The hash matches, so the bytes are intact. Another version of featherload wrote them.
        LoadFailure::Damaged(_) if manifest.is_some() && file_hash(&path).is_some_and(is_due) => {
            other_version(&path)
        }
        LoadFailure::Damaged(damage) => damaged(damage),
    })?;
    if !is_due(HexHash128::of(index.sealed.bytes())) {
        let what = format!("its {name} belongs to another cache");
        return Err(see_verify(folder, what));
    }
    let agrees = manifest.map_or(Ok(()), |manifest| index.check_cache(manifest));
    match agrees {
        Ok(()) => Ok(index),
        Err(what) => Err(Error::dataset(
            folder,
            format!("its {name} {what}: build the cache again"),
        )),
    }
}

fn other_version(path: &Path) -> Error {
    Error::dataset(
        path,
        "is of another version: run `featherload cache build` again",
    )
}

pub(super) fn file_hash(path: &Path) -> Option<HexHash128> {
    let (mut file, _) = regular_file::open(path).ok()?;
    let mut hasher = Hasher::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Some(HexHash128(hasher.finish_128())),
            Ok(n) => hasher.write(&piece[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Opens a cache whose shards are downloaded later, into this folder. Nothing is recorded about
/// their files, so opening them compares no fingerprints.
pub(crate) fn open_remote(folder: &Path) -> Result<Index> {
    let (manifest, _) = CacheManifest::read(&folder.join(CACHE_MANIFEST))?;
    let index = load(folder, Some(&manifest))?;
    let unknown = vec![FileStamp::default(); manifest.shards.len()];
    index.rebased(folder, &unknown)
}

pub(crate) fn open(folder: &Path) -> Result<Index> {
    let verify = |what| see_verify(folder, what);
    let (manifest, _) = CacheManifest::read(&folder.join(CACHE_MANIFEST))?;
    if !manifest.complete {
        return Err(Error::dataset(
            folder,
            "is an unfinished cache: run the same `featherload cache build` again",
        ));
    }
    let index = load(folder, Some(&manifest))?;
    let root = fs::canonicalize(folder).map_err(|e| Error::io_at("look at", folder, e))?;
    let mut stamps = Vec::with_capacity(manifest.shards.len());
    for said in &manifest.shards {
        let path = root.join(format!("{}.tar", said.name));
        let found = match FileStamp::of(&path) {
            Ok(found) => found,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(verify(format!("its shard {} is missing", said.name)));
            }
            Err(e) => return Err(Error::io_at("look at", &path, e)),
        };
        if found.bytes != said.bytes {
            return Err(verify(format!(
                "its shard {} has {} bytes, but its manifest says {}",
                said.name, found.bytes, said.bytes
            )));
        }
        stamps.push(found);
    }
    index.rebased(&root, &stamps)
}
