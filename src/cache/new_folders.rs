//! Folders that a build makes, and removes again if it is rejected.
//!
//! Runs in the consumer. Removes only empty folders, and none that existed before.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The folders that were made. Those that are empty at the end are removed, so a rejected build
/// leaves nothing.
#[derive(Debug, Default)]
pub(super) struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Makes a folder and its missing parents.
    ///
    /// # Errors
    /// When a file of that name exists, or the folder cannot be made.
    pub(super) fn make(&mut self, path: &Path) -> Result<()> {
        let missing = path.ancestors().take_while(|folder| {
            !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err()
        });
        self.0.extend(missing.map(Path::to_owned));
        // Sorts the deepest folder first.
        self.0
            .sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        self.0.dedup();
        fs::create_dir_all(path).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Error::dataset(
                path,
                "is not a folder, but a cache must be one: name another place",
            ),
            _ => Error::io_at("create folder", path, e),
        })
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            match fs::remove_dir(folder) {
                Err(e) if e.kind() != ErrorKind::NotFound => break,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_folders_go_when_they_are_empty_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("there")).unwrap();
        let mut new = NewFolders::default();
        new.make(&at("there/a/b")).unwrap();
        new.make(&at("there/a/b")).unwrap();
        drop(new);
        assert!(at("there").exists() && !at("there/a").exists());

        let mut new = NewFolders::default();
        new.make(&at("c/d/e")).unwrap();
        fs::write(at("c/file"), "").unwrap();
        drop(new);
        assert!(at("c/file").exists() && !at("c/d").exists());
    }
}
