//! Rejects a cache inside its own source: its files would change the source, or replace its shards.
//!
//! Runs in the consumer. Places are paths or addresses. Links are resolved before they are
//! compared.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::loader::Source;
use crate::remote::fetch::StoreAddress;
use crate::sys::location::ResolvedPath;

/// Checks the place of a cache before the source is read.
///
/// # Errors
/// When `place` is inside the folder or the address of the source.
pub(super) fn check_source(source: &Source, place: &Path) -> Result<()> {
    let is_within = |folder: &Path| -> Result<bool> {
        let folder = ResolvedPath::of(folder).map_err(|e| Error::io_at("find", folder, e))?;
        Ok(StoreAddress::location(place)?.is_some_and(|place| place.is_within(&folder)))
    };
    match source {
        Source::Folder(folder, _) | Source::Cache(folder) | Source::Cifar(folder, _) => {
            match is_within(folder)? {
                true => Err(inside(place, &folder.display().to_string())),
                false => Ok(()),
            }
        }
        Source::Store(address, _) => check_address(address, place),
        // The folders of their files are known only after they are read.
        _ => Ok(()),
    }
}

fn check_address(source: &StoreAddress, place: &Path) -> Result<()> {
    let at = StoreAddress::location(place)?;
    for folder in source.folders()? {
        let folder = StoreAddress::parse(&folder)?;
        let is_where_links_lead = match (&at, folder.local_path()) {
            (Some(at), Some(folder)) => targets(&folder)?.iter().any(|f| at.is_folder(f, false)),
            _ => false,
        };
        if is_where_links_lead || folder.is_same_place(place)? {
            return Err(Error::config(format!(
                "{} is where shards of the source lie: name another place",
                place.display()
            )));
        }
    }
    // If the source names shards, only those are read.
    match !Index::names_tars(source.as_str()) && source.contains(place)? {
        true => Err(inside(place, source.as_str())),
        false => Ok(()),
    }
}

/// The folders with the targets of the links in `folder`. A linked shard is in such a folder.
fn targets(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let failed = |e| Error::io_at("read", folder, e);
    let mut targets = BTreeSet::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // Reading the source reports a missing folder.
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(targets),
        Err(e) => return Err(failed(e)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_symlink()
            && let Ok(target) = entry.path().canonicalize()
            && let Some(parent) = target.parent()
        {
            targets.insert(parent.to_owned());
        }
    }
    Ok(targets)
}

fn inside(place: &Path, source: &str) -> Error {
    Error::config(format!(
        "{} lies inside the source {source}, which it would change: name a folder elsewhere",
        place.display()
    ))
}

/// Checks the place of a cache after the source is read.
///
/// # Errors
/// When `place` has files of the source. For a folder of images (`is_folder`), also when `place` is
/// below a folder with images, because links may lead to it.
pub(super) fn check_files(index: &Index, place: &Path, is_folder: bool) -> Result<()> {
    let Some(at) = StoreAddress::location(place)? else {
        return Ok(());
    };
    if index.shards() > 0 {
        let mut shards: Vec<PathBuf> = (0..index.shards()).map(|n| index.shard_path(n)).collect();
        // A file with several pages is listed as several shards.
        shards.dedup();
        for shard in shards {
            // A linked shard would be replaced at the link's target.
            let target = shard.canonicalize().ok();
            let mut files = [Some(shard.clone()), target].into_iter().flatten();
            if files.any(|file| file.parent().is_some_and(|f| at.is_folder(f, false))) {
                return Err(Error::config(format!(
                    "{} is a shard of the source, and the cache would be written beside it: name \
                     another folder",
                    shard.display()
                )));
            }
        }
        return Ok(());
    }
    for folder in folders(index) {
        if at.is_folder(&folder, is_folder) {
            return Err(Error::config(format!(
                "{} has samples of the source, and the cache would be written beside them: name \
                 another folder",
                folder.display()
            )));
        }
    }
    Ok(())
}

/// The folders of samples that are files of their own, each once.
fn folders(index: &Index) -> impl Iterator<Item = PathBuf> {
    let (mut last, mut seen): (&[u8], _) = (b"\0", HashSet::new());
    (0..index.len()).filter_map(move |id| {
        let path = index.relative_path(id).as_os_str().as_bytes();
        let end = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        // Most samples of one folder are consecutive.
        let is_new = last != &path[..end] && seen.insert(&path[..end]);
        last = &path[..end];
        is_new.then(|| index.root().join(OsStr::from_bytes(last)))
    })
}
