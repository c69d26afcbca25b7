//! Resolves paths, to compare them: whether two lead to the same place, or one lies inside the
//! other.
//!
//! Used in the consumer and in the fetcher. Opens no file. Links, `..`, trailing slashes, relative
//! paths and bind mounts make no difference. The path need not exist; then its existing parent
//! folders decide.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::sys::regular_file::keeps_inodes;

/// The mount table of this process.
const MOUNTS: &str = "/proc/self/mountinfo";

/// A resolved path.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedPath {
    /// Absolute, without links.
    path: PathBuf,
    /// Device and inode at the path; `None` if nothing exists there.
    id: Option<Id>,
    /// Device and inode of its existing parent folders.
    above: Vec<Id>,
    /// Device, and path on that device.
    on_device: Option<(String, PathBuf)>,
}

type Id = (u64, u64);

impl ResolvedPath {
    /// # Errors
    /// The path is empty; the working folder does not exist.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let path = resolved(&std::path::absolute(path)?);
        let mounts = fs::read(MOUNTS).unwrap_or_default();
        Ok(Self {
            id: id_of(&path),
            above: path.ancestors().skip(1).filter_map(id_of).collect(),
            on_device: on_device(&path, &mounts),
            path,
        })
    }

    /// Absolute, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether both are the same place.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        self.path == other.path
            || (self.id.is_some() && self.id == other.id)
            || (self.on_device.is_some() && self.on_device == other.on_device)
    }

    /// Whether this place is the existing folder at `path`; with `below`, also whether it lies
    /// inside. Fast for many folders, because it checks each once.
    pub(crate) fn is_folder(&self, path: &Path, below: bool) -> bool {
        let Ok(folder) = path.canonicalize() else {
            return false;
        };
        let is_known = |id| self.id == Some(id) || (below && self.above.contains(&id));
        let is_inside = below && self.path.starts_with(&folder);
        self.path == folder || is_inside || id_of(&folder).is_some_and(is_known)
    }

    /// Whether this place is `folder`, or lies inside it.
    pub(crate) fn is_within(&self, folder: &Self) -> bool {
        let is_below = || match (&self.on_device, &folder.on_device) {
            (Some((here, path)), Some((there, folder))) => {
                here == there && path.starts_with(folder)
            }
            _ => false,
        };
        self.is_same_place(folder)
            || self.path.starts_with(&folder.path)
            || folder.id.is_some_and(|id| self.above.contains(&id))
            || is_below()
    }
}

/// Device and inode at a path, if the file system reports them.
fn id_of(path: &Path) -> Option<Id> {
    let found = fs::metadata(path).ok()?;
    keeps_inodes(path).then(|| (found.dev(), found.ino()))
}

/// The absolute path without links. The system resolves the existing part; the rest is resolved
/// textually.
fn resolved(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(found) = known.canonicalize() {
            let mut whole = found;
            for part in rest.into_iter().rev() {
                match part {
                    Component::ParentDir => _ = whole.pop(),
                    Component::Normal(name) => whole.push(name),
                    _ => {}
                }
            }
            return whole;
        }
        let mut parts = known.components();
        match parts.next_back() {
            Some(part) => rest.push(part),
            None => return path.to_owned(),
        }
        known = parts.as_path();
    }
}

/// Device and path on it for an absolute path, by the mount that contains it.
fn on_device(path: &Path, mounts: &[u8]) -> Option<(String, PathBuf)> {
    let mut best: Option<(usize, String, PathBuf)> = None;
    for line in mounts.split(|&b| b == b'\n') {
        let mut fields = line.split(|&b| b == b' ').skip(2);
        let (Some(device), Some(root), Some(at)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let at = unescaped(at);
        let Ok(below) = path.strip_prefix(&at) else {
            continue;
        };
        let depth = at.components().count();
        // If several mounts have the same mount point, the last one hides the others.
        if best.as_ref().is_none_or(|(deepest, ..)| depth >= *deepest) {
            let device = String::from_utf8_lossy(device).into_owned();
            best = Some((depth, device, unescaped(root).join(below)));
        }
    }
    best.map(|(_, device, path)| (device, path))
}

/// Decodes a path of the kernel, which writes blanks, newlines and backslashes as `\ooo`.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = match (first, behind) {
            (b'\\', [a, b, c, ..]) => std::str::from_utf8(&[*a, *b, *c])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 8).ok()),
            _ => None,
        };
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() {
            &behind[3..]
        } else {
            behind
        };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn of(path: impl AsRef<Path>) -> ResolvedPath {
        ResolvedPath::of(path.as_ref()).unwrap()
    }

    #[test]
    fn one_place_is_known_by_each_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        symlink("a", at("link")).unwrap();
        symlink(at("a/b"), at("far")).unwrap();
        let place = of(at("a/b"));
        for same in [
            "a/b/",
            "a//b/.",
            "a/../a/b",
            "link/b",
            "far",
            "link/../a/b",
            "none/../a/b",
        ] {
            assert!(of(at(same)).is_same_place(&place), "{same}");
        }
        for other in ["a", "a/b/c", "a/c", "ab"] {
            assert!(!of(at(other)).is_same_place(&place), "{other}");
        }
        let below = [
            "a/b",
            "a/b/new",
            "a/b/new/deeper",
            "far/new",
            "link/b/none/../new",
        ];
        for inside in below {
            assert!(of(at(inside)).is_within(&place), "{inside}");
        }
        for outside in ["a", "a/bc", "a/b/..", "far/..", "a/b/new/../.."] {
            assert!(!of(at(outside)).is_within(&place), "{outside}");
        }
    }

    #[test]
    fn a_bind_mount_is_the_folder_that_it_shows() {
        let mounts = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
                       30 22 8:1 /data/src/sub /mnt/a\\040b rw - ext4 /dev/sda1 rw\n\
                       31 22 8:2 / /data/src/other rw - ext4 /dev/sdb1 rw\n";
        let at = |path: &str| on_device(Path::new(path), mounts).unwrap();
        let on = |device: &str, path: &str| (device.to_owned(), PathBuf::from(path));
        assert_eq!(at("/mnt/a b/cache"), on("8:1", "/data/src/sub/cache"));
        assert_eq!(at("/data/src"), on("8:1", "/data/src"));
        assert_eq!(at("/data/src/other/x"), on("8:2", "/x"));
        assert_eq!(at("/mnt/a bc"), on("8:1", "/mnt/a bc"));
    }
}
