//! Counts and limits folders that a scan or a pattern reaches again through links.
//!
//! Runs in the consumer. The threads of a scan share one count. Two links to one folder are two
//! folders of samples, as in torchvision's `ImageFolder`. But 30 folders, each with two links to
//! the next, are 2^29 folders. The count does not depend on the order in which threads enter
//! folders.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// The limit on repeated visits of one scan.
const MOST: usize = 50_000;

/// Links that the error names.
const NAMED: usize = 3;

#[derive(Default)]
pub(crate) struct LinkedFolders(Mutex<FolderVisits>);

#[derive(Default)]
struct FolderVisits {
    /// Device and inode of each folder whose path contains a link.
    folders: HashSet<(u64, u64)>,
    again: usize,
}

impl LinkedFolders {
    /// Records that the scan of `root` enters a folder whose path contains a link. `relative` is
    /// the path of the folder below the root.
    ///
    /// # Errors
    /// More than [`MOST`] folders are reached again.
    pub(crate) fn enter(&self, root: &Path, relative: &[u8], identity: (u64, u64)) -> Result<()> {
        let mut reached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !reached.folders.insert(identity) {
            reached.again += 1;
        }
        if reached.again <= MOST {
            return Ok(());
        }
        drop(reached);
        let links = links(root, Path::new(OsStr::from_bytes(relative)));
        let links: Vec<String> = links.iter().map(|link| format!("{link:?}")).collect();
        Err(Error::dataset(
            root,
            format!(
                "more than {MOST} folders are reached again through links, such as {}: remove \
                 links to folders that hold links, or name the files in a list",
                links.join(" and ")
            ),
        ))
    }
}

/// Rejects a folder in which a pattern with `**` would not end in a reasonable time. Such a pattern
/// follows every link, including a link to a parent folder.
///
/// # Errors
/// Like [`LinkedFolders::enter`]. Folders that cannot be read are skipped: the pattern reports
/// them.
pub(crate) fn check_endless(base: &Path) -> Result<()> {
    let relinked = LinkedFolders::default();
    let mut folders = vec![(base.to_owned(), false)];
    while let Some((folder, linked)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type();
            let is_link = kind.as_ref().is_ok_and(fs::FileType::is_symlink);
            if !is_link && !kind.is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            let linked = linked || is_link;
            if linked {
                let Some(target) = fs::metadata(&path).ok().filter(fs::Metadata::is_dir) else {
                    continue;
                };
                let below = path.strip_prefix(base).unwrap_or(&path);
                let identity = (target.dev(), target.ino());
                relinked.enter(base, below.as_os_str().as_bytes(), identity)?;
            }
            folders.push((path, linked));
        }
    }
    Ok(())
}

/// The first links of a path below `root`.
fn links(root: &Path, relative: &Path) -> Vec<PathBuf> {
    let mut path = root.to_owned();
    let steps = relative.components().map(|step| {
        path.push(step);
        path.clone()
    });
    let steps: Vec<PathBuf> = steps.collect();
    let is_link = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
    let links = steps.into_iter().filter(is_link).take(NAMED);
    let below = |link: PathBuf| link.strip_prefix(root).map(Path::to_owned).unwrap_or(link);
    links.map(below).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Folders `0` to `29`, each with two links to the next. The last one holds `x.tar`.
    fn chain() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..30 {
            let folder = dir.path().join(number.to_string());
            fs::create_dir(&folder).unwrap();
            for link in ["a", "b"].iter().filter(|_| number < 29) {
                symlink(format!("../{}", number + 1), folder.join(link)).unwrap();
            }
        }
        fs::write(dir.path().join("29/x.tar"), "").unwrap();
        dir
    }

    #[test]
    fn a_pattern_over_folders_of_links_ends() {
        let dir = chain();
        let e = check_endless(dir.path()).unwrap_err().to_string();
        assert!(e.contains("more than 50000 folders"), "{e}");
        assert!(e.contains("/a\"") || e.contains("/b\""), "{e}");
        // Two links to one folder, then one link to a parent folder.
        for links in [&[("x", "y"), ("x", "z")][..], &[("..", "x/up")]] {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("x")).unwrap();
            for (to, link) in links {
                symlink(to, dir.path().join(link)).unwrap();
            }
            check_endless(dir.path()).unwrap();
        }
    }

    #[test]
    fn first_visits_are_free_and_the_others_are_counted() {
        let root = Path::new("/nowhere");
        let relinked = LinkedFolders::default();
        for number in 0..3 * MOST as u64 {
            relinked.enter(root, b"a", (1, number)).unwrap();
        }
        for _ in 0..MOST {
            relinked.enter(root, b"a", (1, 7)).unwrap();
        }
        assert!(relinked.enter(root, b"a", (1, 8)).unwrap_err().is_dataset());
    }
}
