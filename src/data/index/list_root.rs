//! Checks that the paths in a list or table lie below their root.
//!
//! Runs in the consumer. Opens no file. Tests whether a file exists only for a path that looks like
//! an address or a Windows path.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::names::shown;
use crate::error::{Error, Result};

/// Why a path is rejected.
pub(super) enum PathFault {
    Empty,
    /// The path leads out of the root.
    Outside(String),
    /// The path is an address such as a URL.
    Address(String),
    /// The path is written as on Windows, and no file has this name.
    Windows(String),
}

impl PathFault {
    /// The error text, which follows file and line.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Empty => "no path: write the path of an image".into(),
            Self::Outside(path) => {
                format!("path '{path}' leads out of the root: set `root`, or use `allow_outside`")
            }
            Self::Address(path) if path.starts_with("file:") => {
                format!("path '{path}' is an address: write the path alone, without file://")
            }
            Self::Address(path) => format!(
                "path '{path}' is an address, but images of a list must be files on this machine: \
                 download them and write their paths, or put them into tar shards, which can be \
                 read from a store"
            ),
            Self::Windows(path) => format!(
                "path '{path}' is written as on Windows, and no such file exists: write / for \\, \
                 remove the drive, and set `root` to the folder that the paths start from"
            ),
        }
    }
}

/// The folder that the paths of a list start from.
pub(super) struct ListRoot {
    root: PathBuf,
    /// The root with its links resolved.
    resolved: PathBuf,
    allow_outside: bool,
}

impl ListRoot {
    /// Uses `root`, or the folder of `file` if `root` is `None`.
    ///
    /// # Errors
    /// The root is not a folder, or cannot be inspected.
    pub(super) fn new(file: &Path, root: Option<&Path>, allow_outside: bool) -> Result<Self> {
        let root = match root {
            Some(root) => root.to_owned(),
            None => match file.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
        };
        let root = std::path::absolute(&root)
            .map_err(|_| Error::config("the root of the list's paths is empty: check `root`"))?;
        let kind = fs::metadata(&root).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::dataset(&root, "no such folder for the list's paths: check `root`")
            }
            _ => Error::io_at("read the type of", &root, e),
        })?;
        if !kind.is_dir() {
            return Err(Error::dataset(
                &root,
                "is not a folder, so the list's paths cannot begin there: check `root`",
            ));
        }
        Ok(Self {
            resolved: fs::canonicalize(&root).unwrap_or_else(|_| root.clone()),
            root,
            allow_outside,
        })
    }

    pub(super) fn into_root(self) -> PathBuf {
        self.root
    }

    /// The path as the index stores it: relative to the root if it lies below it.
    ///
    /// # Errors
    /// An empty path, an address, a Windows path, or one outside of the root that the options do
    /// not allow.
    pub(super) fn relative<'a>(&self, path: &'a [u8]) -> Result<&'a [u8], PathFault> {
        // A file name may contain any of these bytes, so an existing file is accepted.
        let is_there = || self.root.join(OsStr::from_bytes(path)).exists();
        if is_address(path) && !is_there() {
            return Err(PathFault::Address(shown(path)));
        }
        if is_of_windows(path) && !is_there() {
            return Err(PathFault::Windows(shown(path)));
        }
        let inside = if path.starts_with(b"/") {
            let path = Path::new(OsStr::from_bytes(path));
            path.strip_prefix(&self.root)
                .or_else(|_| path.strip_prefix(&self.resolved))
                .ok()
                .map(|inside| inside.as_os_str().as_bytes())
        } else {
            Some(path)
        };
        match inside {
            Some(inside) if !leaves(inside) => {
                if inside.is_empty() {
                    Err(PathFault::Empty)
                } else {
                    Ok(inside)
                }
            }
            _ if self.allow_outside => Ok(path),
            _ => Err(PathFault::Outside(shown(path))),
        }
    }
}

/// Whether a path is an address such as `s3://bucket/a.jpg`, or an image as a `data:` URL.
pub(super) fn is_address(path: &[u8]) -> bool {
    let scheme = path
        .iter()
        .position(|&b| !b.is_ascii_alphanumeric() && b != b'+');
    let (scheme, rest) = path.split_at(scheme.unwrap_or(0));
    scheme.len() > 1 && (rest.starts_with(b"://") || path.starts_with(b"data:image/"))
}

/// Whether a path is written as on Windows, such as `cat\1.jpg` or `C:/cat/1.jpg`.
fn is_of_windows(path: &[u8]) -> bool {
    let has_drive = matches!(path, [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    has_drive || path.contains(&b'\\')
}

/// Whether a relative path leads out of the folder that it starts from. Does not follow links.
fn leaves(path: &[u8]) -> bool {
    let mut depth = 0u64;
    for part in path.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return true,
            },
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_of_windows_are_refused_unless_a_file_has_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.txt");
        fs::write(&list, "").unwrap();
        fs::write(folder.path().join("odd\\name.jpg"), "").unwrap();
        let roots = ListRoot::new(&list, None, true).unwrap();
        let said = |path: &str| roots.relative(path.as_bytes()).err().map(|bad| bad.text());
        for path in [
            "http://host/a.jpg",
            "https://host/a.jpg",
            "s3://bucket/a.jpg",
            "gs://bucket/a.jpg",
            "data:image/png;base64,iVBO",
        ] {
            let e = said(path).unwrap();
            assert!(e.contains(path) && e.contains("download them"), "{e}");
        }
        let e = said("file:///a.jpg").unwrap();
        assert!(e.ends_with("write the path alone, without file://"), "{e}");
        for path in [
            "cat\\1.jpg",
            "C:\\cat\\1.jpg",
            "D:/cat/1.jpg",
            "\\\\host\\share\\1.jpg",
        ] {
            let e = said(path).unwrap();
            assert!(
                e.contains("as on Windows") && e.contains("write / for \\") && e.contains("`root`"),
                "{e}"
            );
        }
        for path in [
            "odd\\name.jpg",
            "a/1.jpg",
            "a:b/1.jpg",
            "a/x://1.jpg",
            "c:1.jpg",
        ] {
            assert_eq!(said(path), None, "{path}");
        }
    }
}
