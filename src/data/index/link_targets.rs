//! The folders outside the root that hold files of samples: the targets of links, and paths that
//! begin elsewhere.
//!
//! Runs in the consumer. Not in this file: the list of samples (`sandbox_roots` reads it), and
//! access rights.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders outside a root, with links resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkTargets {
    folders: BTreeSet<PathBuf>,
    /// Folders of link targets that are already known, as the links name them.
    seen: HashSet<PathBuf>,
}

impl LinkTargets {
    /// Adds the folder that a link leads to, or that a path names.
    pub(super) fn folder(&mut self, path: &Path) {
        if let Ok(folder) = fs::canonicalize(path) {
            self.folders.insert(folder);
        }
    }

    /// Adds the folder of the file that the link at `path` leads to. Ignores a dangling link and an
    /// unreadable target, because a worker cannot open them either. Ignores a link to a folder: the
    /// scan adds folders with [`LinkTargets::folder`].
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

    /// All added folders, with links resolved.
    pub(super) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter()
    }

    /// Adds the targets of the links in a folder.
    pub(super) fn links_in(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.link(&entry.path());
            }
        }
    }
}
