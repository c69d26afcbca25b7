//! Folders that a build makes, and removes again where it is refused.
//!
//! In the consumer. Removes empty folders alone, and none that was there before.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Folders that were made here: those that are empty at the end go again, so a build that is
/// refused leaves nothing.
#[derive(Debug, Default)]
pub(super) struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Makes a folder and those above it.
    ///
    /// # Errors
    /// Something else of that name; a system that refuses.
    pub(super) fn make(&mut self, path: &Path) -> Result<()> {
        let missing = path.ancestors().take_while(|folder| {
            !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err()
        });
        self.0.extend(missing.map(Path::to_owned));
        // The deepest first.
        self.0
            .sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        self.0.dedup();
        fs::create_dir_all(path).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Error::dataset(
                path,
                "is not a folder, and a cache is one: name another place",
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
