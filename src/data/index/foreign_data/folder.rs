//! Folders without images that other tools wrote: databases, records, archives.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::content::kind_of;
use super::file_kind::{EXPORT, ForeignKind, SCENE};
use crate::data::index::cifar;

/// Limits per folder: entries that are listed, and files or sub-folders that are opened.
const MOST_NAMES: usize = 10_000;
const MOST_OPENED: usize = 32;

/// The foreign data set in a folder without images or in one of its sub-folders, with a fix.
///
/// The text is a fragment, such as `it holds an LMDB database (data.mdb): ...`.
pub(crate) fn of_folder(root: &Path) -> Option<String> {
    let held = held(root, root).or_else(|| below(root).find_map(|path| held(root, &path)))?;
    Some(format!("it holds {}: {}", held.what, held.fix))
}

/// The first sub-folders, sorted by bytes.
fn below(root: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = names(root).into_iter().map(|name| root.join(name));
    paths.filter(|path| path.is_dir()).take(MOST_OPENED)
}

/// The first tar shard that lies in a folder itself, sorted by bytes.
pub(crate) fn tar_in(folder: &Path) -> Option<PathBuf> {
    let names = names(folder).into_iter();
    let tars = names.filter(|name| name.as_bytes().ends_with(b".tar"));
    let mut paths = tars.map(|name| folder.join(name));
    paths.find(|path| !path.is_dir())
}

/// The first tar shard in a sub-folder.
pub(super) fn tar_below(root: &Path) -> Option<PathBuf> {
    below(root).find_map(|path| tar_in(&path))
}

/// The foreign data set of a folder, by its files. Its text names files relative to `root`.
fn held(root: &Path, folder: &Path) -> Option<ForeignKind> {
    let names = names(folder);
    let has = |name: &str| names.iter().any(|known| known == name);
    let ends = |end: &str| {
        let mut ending = names
            .iter()
            .filter(|name| name.as_bytes().ends_with(end.as_bytes()));
        ending.next()
    };
    let path = |name: &OsStr| {
        let path = folder.join(name);
        path.strip_prefix(root).map_or(path.clone(), Path::to_owned)
    };
    let named = |what: &str, name: &OsStr, fix: &str| {
        let what = format!("{what} ({})", path(name).display());
        Some(ForeignKind::new(what, fix))
    };
    if cifar::is_named(folder) {
        let fix = "give a PaddleClas config of Cifar10 or Cifar100 as `recipe`";
        return Some(ForeignKind::new("CIFAR's batches", fix));
    }
    const SCENES: [&str; 2] = ["transforms.json", "transforms_train.json"];
    if let Some(name) = SCENES.into_iter().find(|name| has(name)) {
        return named("a scene", name.as_ref(), SCENE);
    }
    if has("data.mdb") {
        return named("an LMDB database", "data.mdb".as_ref(), EXPORT);
    }
    if let Some(name) = ends(".tfrecord").or_else(|| records_of_parts(&names)) {
        let fix = "write their images to a folder or to tar shards, and give these";
        return named("TFRecord files", name, fix);
    }
    if has("index.json")
        && let Some(kind) = kind_of(&folder.join("index.json"))
    {
        return named(&kind.what, "index.json".as_ref(), &kind.fix);
    }
    if let Some(tar) = tar_in(folder) {
        let fix = format!("to read them give '{}'", folder.join("*.tar").display());
        return named("tar shards", tar.file_name()?, &fix);
    }
    // JSON and text files come last: other files identify a data set better.
    let mut paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    paths.sort_by_key(|path| {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        ["json", "txt", "xml", "md", "yaml"]
            .iter()
            .any(|known| extension == *known)
    });
    let mut files = paths
        .into_iter()
        .filter(|path| path.is_file())
        .take(MOST_OPENED);
    let (path, kind) = files.find_map(|path| Some((path.clone(), kind_of(&path)?)))?;
    let shown = path.strip_prefix(root).unwrap_or(&path).display();
    Some(ForeignKind::new(
        format!("{shown}, which is {}", kind.what),
        kind.fix,
    ))
}

/// The first name such as `train.tfrecord-00000-of-00010`.
fn records_of_parts(names: &[OsString]) -> Option<&OsString> {
    names.iter().find(|name| {
        let name = name.to_string_lossy();
        name.contains(".tfrecord-")
    })
}

/// Names of the entries of a folder, sorted by bytes, without hidden ones.
fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.take(MOST_NAMES).map(|entry| entry.file_name());
    let mut names: Vec<_> = names
        .filter(|name| !name.as_bytes().starts_with(b"."))
        .collect();
    names.sort();
    names
}
