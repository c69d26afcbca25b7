//! The stage of a cache that goes into an object store: a folder of this machine, whose shards go
//! to the store as they are complete. Index and manifest go last, so a reader never sees a
//! manifest whose shards are not there.
//!
//! In the consumer. What goes when is in `build`; what the store has is in `upload`.

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

/// The store that a cache goes into, by way of a stage.
#[derive(Debug, Clone)]
pub(super) struct StoreTarget {
    pub(super) address: StoreAddress,
    /// The folder that the stage is made in.
    pub(super) stages: PathBuf,
    /// The executable of the sender, where it is named.
    pub(super) helper: Option<PathBuf>,
}

/// Where stages are, unless another folder is named.
///
/// # Errors
/// When nobody says where the user keeps such.
pub(super) fn default_stages() -> Result<PathBuf> {
    let cache = Index::user_cache().ok_or_else(|| {
        Error::option(
            "stage_dir",
            "neither XDG_CACHE_HOME nor HOME is set: give `stage_dir`, the folder that shards are \
             built in before they go to the store",
        )
    })?;
    Ok(cache.join("building"))
}

impl StoreTarget {
    /// The stage of a part of the cache: shares have one each.
    pub(super) fn stage(&self, part: BuildPart) -> PathBuf {
        let name = self.name();
        self.stages.join(match part {
            BuildPart::Share { number, of } => format!("{name}-{number}-of-{of}"),
            BuildPart::All | BuildPart::Finish => name,
        })
    }

    /// How the stages of all its parts begin.
    fn name(&self) -> String {
        HexHash128::of(self.address.as_str().as_bytes()).to_string()
    }

    /// Removes the stages that killed processes left, once the cache is whole in the store. Those
    /// that a process holds stay: it removes them itself.
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
                tracing::warn!("{e}. It is a rest of another build: remove it");
            }
        }
    }
}

/// Whether this follows the name of a stage: nothing, or `-K-of-N`.
fn is_part(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let share = text
        .strip_prefix('-')
        .and_then(|rest| rest.split_once("-of-"));
    text.is_empty() || share.is_some_and(|(k, n)| is_number(k) && is_number(n))
}

/// Leaves nothing in the stage but this build, as far as the store has `begun` with it.
pub(super) fn prepare(
    stage: &CacheFolder,
    begun: Option<&CacheManifest>,
    wanted: &CacheManifest,
    force: bool,
) -> Result<()> {
    let here = stage.manifest();
    let is_ours = matches!(&here, Ok(Some(here)) if changes::list_changes(here, wanted).is_empty());
    if force || !is_ours {
        // A stage has no other files than those of builds that were broken off.
        stage.remove_from(0)?;
        stage.remove_manifest()?;
    }
    match begun {
        Some(begun) if !is_ours => stage.write_manifest(begun),
        _ => Ok(()),
    }
}

/// Removes a stage whose cache is in the store. Others that make the same share stay in it, and
/// the last of them removes it.
pub(super) fn remove(folder: CacheFolder) -> Result<()> {
    let path = folder.path().to_owned();
    drop(folder);
    match CacheFolder::claim(&path) {
        Ok(folder) => remove_held(&folder),
        Err(_) => Ok(()),
    }
}

/// The same of one that is held alone.
fn remove_held(folder: &CacheFolder) -> Result<()> {
    let path = folder.path();
    folder.remove_from(0)?;
    folder.remove_manifest()?;
    let lock = path.join(LOCK);
    let removed = fs::remove_file(&lock).and_then(|()| fs::remove_dir(path));
    match removed {
        // Something else lies there, which stays.
        Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed.map_err(|e| Error::io_at("remove", path, e)),
    }
}
