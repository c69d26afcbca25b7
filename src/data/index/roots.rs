//! Whether the paths that a file lists lie below the root that they start from.
//!
//! Runs in the consumer. Looks at the root, never at a path's file.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::names::shown;
use crate::error::{Error, Result};

/// Why a path is not stored.
pub(super) enum Misplaced {
    Empty,
    /// It leads out of the root: the path, to be shown.
    Outside(String),
}

impl Misplaced {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Empty => "no path".into(),
            Self::Outside(path) => {
                format!("path '{path}' leads out of the root: set `root`, or use `allow_outside`")
            }
        }
    }
}

/// The root, and what it is called when links are resolved.
pub(super) struct Roots {
    root: PathBuf,
    resolved: PathBuf,
    allow_outside: bool,
}

impl Roots {
    /// The root, or the folder of `file`.
    ///
    /// # Errors
    /// When it is no folder.
    pub(super) fn new(file: &Path, root: Option<&Path>, allow_outside: bool) -> Result<Self> {
        let root = match root {
            Some(root) => root.to_owned(),
            None => match file.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
                _ => PathBuf::from("."),
            },
        };
        let root = std::path::absolute(&root)
            .map_err(|_| Error::config("the root of the list's paths has an empty name"))?;
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

    /// The path as it is stored: relative to the root where that can be.
    pub(super) fn relative<'a>(&self, path: &'a [u8]) -> Result<&'a [u8], Misplaced> {
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
                    Err(Misplaced::Empty)
                } else {
                    Ok(inside)
                }
            }
            _ if self.allow_outside => Ok(path),
            _ => Err(Misplaced::Outside(shown(path))),
        }
    }
}

/// True when a relative path leads out of where it starts, links aside.
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
