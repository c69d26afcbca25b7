//! The stage of a cache that goes into an object store: a folder on this machine from which
//! complete shards are uploaded. Index and manifest are uploaded last, so a reader never sees a
//! complete manifest with missing shards.
//!
//! Runs in the consumer. `build` has the order of the steps, `upload` the state of the store.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::cache::cache_folder::CacheFolder;
use crate::cache::changes;
use crate::cache::layout::LOCK;
use crate::cache::options::BuildPart;
use crate::data::index::Index;
use crate::data::shard::manifest::{CacheManifest, HexHash128};
use crate::error::{Error, Result};
use crate::remote::fetch::StoreAddress;

/// The store that a cache goes into, through a stage.
#[derive(Debug, Clone)]
pub(super) struct StoreTarget {
    pub(super) address: StoreAddress,
    /// The folder that holds the stages.
    pub(super) stages: PathBuf,
    /// The executable of the uploader, if it is given.
    pub(super) helper: Option<PathBuf>,
}

/// The default folder for stages.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` is set.
pub(super) fn default_stages() -> Result<PathBuf> {
    let cache = Index::user_cache().ok_or_else(|| {
        Error::option(
            "stage_dir",
            "neither XDG_CACHE_HOME nor HOME is set: give `stage_dir`, the folder for shards until \
             they are uploaded",
        )
    })?;
    Ok(cache.join("building"))
}

impl StoreTarget {
    /// The stage of a part of the cache. Each share has its own.
    pub(super) fn stage(&self, part: BuildPart) -> PathBuf {
        let name = self.name();
        self.stages.join(match part {
            BuildPart::Share { number, of } => format!("{name}-{number}-of-{of}"),
            BuildPart::All | BuildPart::Finish => name,
        })
    }

    /// The name of the stage of the whole cache. Those of shares begin with it.
    fn name(&self) -> String {
        HexHash128::of(self.address.as_str().as_bytes()).to_string()
    }

    /// Removes the stages that killed processes left. Call it when the cache is complete in the
    /// store. A stage that a process has locked stays: that process removes it.
    pub(super) fn remove_stages(&self) {
        let name = self.name();
        let is_stage = |entry: &fs::DirEntry| {
            let other = entry.file_name();
            let part = other.to_str().and_then(|other| other.strip_prefix(&name));
            part.is_some_and(is_part)
        };
        let entries = fs::read_dir(&self.stages).into_iter().flatten().flatten();
        for path in entries.filter(is_stage).map(|entry| entry.path()) {
            let free = CacheFolder::try_claim(&path);
            let removed = free.and_then(|folder| folder.as_ref().map_or(Ok(()), remove_held));
            if let Err(e) = removed {
                tracing::warn!("{e}. It is left from another build: remove it");
            }
        }
    }
}

/// Whether `text` may follow the name of a stage: nothing, or `-K-of-N`.
fn is_part(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let share = text
        .strip_prefix('-')
        .and_then(|rest| rest.split_once("-of-"));
    text.is_empty() || share.is_some_and(|(k, n)| is_number(k) && is_number(n))
}

/// Removes everything from the stage that does not belong to this build. `begun` is the manifest in
/// the store that this build continues.
pub(super) fn prepare(
    stage: &CacheFolder,
    begun: Option<&CacheManifest>,
    wanted: &CacheManifest,
    force: bool,
) -> Result<()> {
    let here = stage.manifest();
    let is_ours = matches!(&here, Ok(Some(here)) if changes::list_changes(here, wanted).is_empty());
    if force || !is_ours {
        // All other files of a stage are of interrupted builds.
        stage.remove_from(0)?;
        stage.remove_manifest()?;
    }
    match begun {
        Some(begun) if !is_ours => stage.write_manifest(begun),
        _ => Ok(()),
    }
}

/// Removes a stage that is no longer needed. If other processes make the same share, the last of
/// them removes it.
pub(super) fn remove(folder: CacheFolder) -> Result<()> {
    let path = folder.path().to_owned();
    drop(folder);
    match CacheFolder::claim(&path) {
        Ok(folder) => remove_held(&folder),
        Err(_) => Ok(()),
    }
}

/// Removes a stage that this process has locked alone.
fn remove_held(folder: &CacheFolder) -> Result<()> {
    let path = folder.path();
    folder.remove_from(0)?;
    folder.remove_manifest()?;
    let lock = path.join(LOCK);
    let removed = fs::remove_file(&lock).and_then(|()| fs::remove_dir(path));
    match removed {
        // The folder has other files, which stay.
        Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        // Another process made the same share, and removed it first.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|e| Error::io_at("remove", path, e)),
    }
}
