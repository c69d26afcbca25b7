//! Where the files of samples lie beyond their root: what links lead to, and paths that
//! begin elsewhere.
//!
//! Runs in the consumer. Never in here: which samples there are (`reach`), whether anybody
//! may read what lies there.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders beyond a root, with links resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkTargets {
    folders: BTreeSet<PathBuf>,
    /// Folders of targets, as links name them, that are known already.
    seen: HashSet<PathBuf>,
}

impl LinkTargets {
    /// Notes the folder that a link leads to, or that a path names.
    pub(super) fn folder(&mut self, path: &Path) {
        if let Ok(folder) = fs::canonicalize(path) {
            self.folders.insert(folder);
        }
    }

    /// Notes the folder of the file that the link at `path` leads to. A link to nowhere, or
    /// to a file that may not be looked at, leads nowhere for a worker too. One to a folder is
    /// no sample's: folders that samples lie in are noted as such.
    pub(super) fn link(&mut self, path: &Path) {
        let Ok(target) = fs::read_link(path) else {
            return;
        };
        let target = path.parent().unwrap_or(Path::new("/")).join(target);
        let Some(folder) = target.parent() else {
            return;
        };
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
        if self.seen.contains(folder) && !is_link(&target) {
            return;
        }
        if let Ok(file) = fs::canonicalize(path)
            && !file.is_dir()
        {
            self.folders.extend(file.parent().map(Path::to_owned));
            if !is_link(&target) {
                self.seen.insert(folder.to_owned());
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.folders.extend(other.folders);
        self.seen.extend(other.seen);
    }

    /// What was noted, with links resolved.
    pub(super) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter()
    }

    /// Notes the links among the entries of a folder.
    pub(super) fn links_in(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.link(&entry.path());
            }
        }
    }
}
