//! The folders that hold the files of all samples, with links resolved. Workers may read
//! them.
//!
//! Runs in the consumer, when a run starts. A folder scan has recorded its links. For a list, and
//! for a saved index, folders are listed once more. Their entries show which of them are links, so
//! this opens no file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::data::index::link_targets::LinkTargets;
use crate::data::index::samples::Index;
use crate::sys::threads;

/// A folder with fewer used samples than this is not listed. Each of its samples is checked alone.
const FEW: usize = 16;
/// Samples that a thread checks at a time.
const CHUNK: usize = 256;
/// As in scans, because network file systems are slow to answer.
const MAX_THREADS: usize = 8;

impl Index {
    /// The folders that hold the files of all samples, with links resolved. The root comes first.
    pub(crate) fn sandbox_roots(&self) -> Vec<PathBuf> {
        let looked;
        let beyond = match &self.beyond {
            Some(beyond) => beyond,
            None => {
                looked = self.look_beyond();
                &looked
            }
        };
        let root = fs::canonicalize(self.root()).unwrap_or_else(|_| self.root().to_owned());
        // If only paths are known, `/` is just the start of them, and `beyond` has each folder.
        let mut reach = Vec::new();
        if self.beyond.is_some() || root.parent().is_some() {
            reach.push(root);
        }
        // Folders are sorted by components, so a folder comes after its parents.
        for folder in beyond.folders() {
            let above = [reach.first(), reach.last()];
            if !above.into_iter().flatten().any(|a| folder.starts_with(a)) {
                reach.push(folder.clone());
            }
        }
        reach
    }

    /// The stored paths of files: of shards if samples are in shards, otherwise of samples.
    fn files(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.sealed.bytes();
        let (shards, samples) = match self.layout.shards() {
            _ if self.is_in_memory() => (0, 0),
            0 => (0, self.layout.samples()),
            shards => (shards, 0),
        };
        let of_shards = (0..shards).map(|number| self.layout.shard_path(bytes, number));
        of_shards.chain((0..samples).map(|id| self.layout.path(bytes, id)))
    }

    fn look_beyond(&self) -> LinkTargets {
        let root = self.root();
        let at = |path: &[u8]| root.join(OsStr::from_bytes(path));
        let mut used: HashMap<&[u8], usize> = HashMap::new();
        // The samples of a folder are mostly consecutive.
        let mut last: (&[u8], usize) = (b"", 0);
        for path in self.files() {
            let folder = folder_of(path);
            if folder != last.0 {
                *used.entry(last.0).or_default() += last.1;
                last = (folder, 0);
            }
            last.1 += 1;
        }
        *used.entry(last.0).or_default() += last.1;
        used.retain(|_, samples| *samples > 0);

        let mut beyond = LinkTargets::default();
        let folders: Vec<(PathBuf, usize)> = used.iter().map(|(f, n)| (at(f), *n)).collect();
        each(&mut beyond, &folders, |(folder, samples)| {
            let mut here = LinkTargets::default();
            here.folder(folder);
            if *samples >= FEW {
                here.links_in(folder);
            }
            here
        });
        let few = |path: &&[u8]| used.get(folder_of(path)).is_some_and(|n| *n < FEW);
        let few: Vec<&[u8]> = match used.values().any(|samples| *samples < FEW) {
            true => self.files().filter(few).collect(),
            false => Vec::new(),
        };
        let files: Vec<&[&[u8]]> = few.chunks(CHUNK).collect();
        each(&mut beyond, &files, |files| {
            let mut here = LinkTargets::default();
            for path in files.iter().map(|path| at(path)) {
                if fs::symlink_metadata(&path).is_ok_and(|m| m.is_symlink()) {
                    here.link(&path);
                }
            }
            here
        });
        beyond
    }
}

/// Adds to `beyond` the result of `look` for each item.
fn each<T: Sync>(beyond: &mut LinkTargets, items: &[T], look: impl Fn(&T) -> LinkTargets + Sync) {
    match threads::each("featherload-links", MAX_THREADS, items, |item| {
        Ok(look(item))
    }) {
        Ok(found) => found.into_iter().for_each(|here| beyond.merge(here)),
        // No thread could be started: this thread looks at the items one by one.
        Err(_) => items.iter().for_each(|item| beyond.merge(look(item))),
    }
}

/// The part of a path before its last name, including the slash.
fn folder_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|&b| b == b'/');
    slash.map_or(&[], |at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::index::{FolderLabels, FolderOptions, ListLabels, ListOptions};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    /// Makes a folder `data` with files, and with links of each kind that lead out of it. Returns
    /// their targets.
    fn with_links(dir: &Path, files: usize) -> Vec<PathBuf> {
        let made = |name: &str| {
            let folder = dir.join(name);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let data = made("data");
        for n in 0..files {
            fs::write(data.join(format!("{n}.jpg")), b"").unwrap();
        }
        for (n, name) in ["far", "chain", "chained"].into_iter().enumerate() {
            fs::write(made(name).join("a.jpg"), [n as u8]).unwrap();
        }
        symlink("../far/a.jpg", data.join("link.jpg")).unwrap();
        fs::remove_file(dir.join("chain/a.jpg")).unwrap();
        symlink(dir.join("chained/a.jpg"), dir.join("chain/a.jpg")).unwrap();
        symlink(dir.join("chain/a.jpg"), data.join("chained.jpg")).unwrap();
        symlink("0.jpg", data.join("inside.jpg")).unwrap();
        symlink("nowhere/a.jpg", data.join("dangling.jpg")).unwrap();
        fs::write(made("whole").join("b.jpg"), b"").unwrap();
        symlink("../whole", data.join("folder")).unwrap();
        ["data", "chained", "far", "whole"]
            .map(|name| dir.join(name).canonicalize().unwrap())
            .to_vec()
    }

    #[test]
    fn a_folder_a_list_and_a_saved_index_reach_where_links_lead() {
        for files in [1, FEW + 1] {
            let dir = tempfile::tempdir().unwrap();
            let reach = with_links(dir.path(), files);
            let options = FolderOptions {
                labels: FolderLabels::None,
                ..FolderOptions::default()
            };
            let (index, _) = Index::folder(&dir.path().join("data"), &options).unwrap();
            assert!(index.beyond.is_some(), "a scan notes them");
            assert_eq!(index.sandbox_roots(), reach);
            let saved = dir.path().join("saved.fli");
            index.save(&saved).unwrap();
            assert_eq!(Index::load(&saved).unwrap().sandbox_roots(), reach);

            let mut paths = String::new();
            for id in 0..index.len() {
                paths += &format!("{}\n", index.relative_path(id).display());
            }
            let list = dir.path().join("list");
            fs::write(&list, paths).unwrap();
            let options = ListOptions {
                labels: ListLabels::None,
                root: Some(dir.path().join("data")),
                ..ListOptions::default()
            };
            let (index, _) = Index::list(&list, &options).unwrap();
            assert_eq!(index.sandbox_roots(), reach);
        }
    }

    #[test]
    fn paths_that_begin_elsewhere_have_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let reach = with_links(dir.path(), 1);
        let files = ["data/0.jpg", "data/folder/b.jpg"].map(|file| dir.path().join(file));
        let index = Index::of_files(&files).unwrap();
        assert_eq!(index.sandbox_roots(), [reach[0].clone(), reach[3].clone()]);
    }

    #[test]
    fn a_scan_of_the_whole_system_reaches_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.jpg");
        let index = Index::of_files(std::slice::from_ref(&file)).unwrap();
        let folder = dir.path().canonicalize().unwrap();
        assert_eq!(index.sandbox_roots(), std::slice::from_ref(&folder));
        let mut scanned = index;
        scanned.beyond = Some(LinkTargets::default());
        assert_eq!(scanned.sandbox_roots(), [PathBuf::from("/")]);
    }

    #[test]
    fn a_folder_below_another_is_not_said_again() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["b/c", "b.d", "b", "a"].map(|name| {
            let folder = dir.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            folder.join("1.jpg")
        });
        let index = Index::of_files(&files).unwrap();
        let at = |name: &str| dir.path().join(name).canonicalize().unwrap();
        assert_eq!(index.sandbox_roots(), [at("a"), at("b"), at("b.d")]);
    }

    #[test]
    fn shards_have_theirs() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("b/1.tar"), b"").unwrap();
        symlink("../b/1.tar", dir.path().join("a/0.tar")).unwrap();
        let index = Index::of_parts(dir.path().join("a").as_path(), &[("0.tar", vec![(0, 1)])]);
        let at = |name: &str| dir.path().join(name).canonicalize().unwrap();
        assert_eq!(index.sandbox_roots(), [at("a"), at("b")]);
    }
}
