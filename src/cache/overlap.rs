//! A cache is not written into what it is made of: its files would change the source, or take the
//! place of shards.
//!
//! In the consumer. Places are paths or addresses; they are compared by what they lead to.

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

/// # Errors
/// A place inside the folder or the address that is the source.
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
        // What their files lie beside is known when they are read.
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
    // Of shards that are named nothing else is read.
    match !Index::names_tars(source.as_str()) && source.contains(place)? {
        true => Err(inside(place, source.as_str())),
        false => Ok(()),
    }
}

/// The folders that links in `folder` lead into: a shard that a link stands for lies there.
fn targets(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let failed = |e| Error::io_at("read", folder, e);
    let mut targets = BTreeSet::new();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // What is not there is reported by whoever reads it.
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

/// # Errors
/// A place that files of the source lie in; of a folder of pictures also one below, where links
/// lead to it.
pub(super) fn check_files(index: &Index, place: &Path, is_folder: bool) -> Result<()> {
    let Some(at) = StoreAddress::location(place)? else {
        return Ok(());
    };
    if index.shards() > 0 {
        let mut shards: Vec<PathBuf> = (0..index.shards()).map(|n| index.shard_path(n)).collect();
        // Pages of one file are shards, too.
        shards.dedup();
        for shard in shards {
            // A shard that a link leads to is replaced where it lies.
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

/// The folders that samples which are files lie in, each once.
fn folders(index: &Index) -> impl Iterator<Item = PathBuf> {
    let (mut last, mut seen): (&[u8], _) = (b"\0", HashSet::new());
    (0..index.len()).filter_map(move |id| {
        let path = index.relative_path(id).as_os_str().as_bytes();
        let end = path.iter().rposition(|&b| b == b'/').unwrap_or(0);
        // Samples of a folder mostly follow each other.
        let is_new = last != &path[..end] && seen.insert(&path[..end]);
        last = &path[..end];
        is_new.then(|| index.root().join(OsStr::from_bytes(last)))
    })
}
