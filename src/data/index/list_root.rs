//! Checks that the paths in a list or table lie below their root.
//!
//! Runs in the consumer. Opens no file. Tests whether a file exists only for a path that looks like
//! an address or a Windows path.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::data::index::address_text;
use crate::data::index::names::shown;
use crate::error::{Error, Result};

/// Why a path is rejected.
pub(super) enum PathFault {
    Empty,
    /// The path leads out of the root.
    Outside(String),
    /// The path is an address such as a URL, of no known store.
    Address(String),
    /// The list has files and addresses.
    Mixed(String),
    /// The address is no UTF-8.
    Encoding,
    /// The address has a user name or a password. They are not shown.
    Login,
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
            Self::Address(path) => format!(
                "path '{path}' is an address of no known store: give s3://, gs://, az://, https:// \
                 or file://, or download the image and write its path"
            ),
            Self::Mixed(path) => format!(
                "path '{path}' is of another kind than that of the first image: a list has files \
                 of this machine, or addresses. Divide it into two lists"
            ),
            Self::Encoding => "the address is no UTF-8: write its bytes as %XX".into(),
            Self::Login => "the address has a user name or a password, which would be stored with \
                            the data set: remove it, and use an address that needs none, or a store \
                            whose credentials are in the environment"
                .into(),
            Self::Windows(path) => format!(
                "path '{path}' is written as on Windows, and no such file exists: write / for \\, \
                 remove the drive, and set `root` to the folder that the paths start from"
            ),
        }
    }
}

/// Whether the paths of a list are addresses: all of them, or none.
#[derive(Debug, Default)]
pub(super) struct AddressRows(Cell<Option<bool>>);

impl AddressRows {
    /// Takes the kind of the next path.
    ///
    /// # Errors
    /// It is of another kind than the first.
    pub(super) fn add(&self, path: &[u8], is_address: bool) -> Result<(), PathFault> {
        match self.0.get() {
            Some(first) if first != is_address => {
                return Err(PathFault::Mixed(address_text::for_people(path)));
            }
            Some(_) => {}
            None => self.0.set(Some(is_address)),
        }
        if is_address {
            let text = std::str::from_utf8(path).map_err(|_| PathFault::Encoding)?;
            if address_text::has_login(text) {
                return Err(PathFault::Login);
            }
        }
        Ok(())
    }

    pub(super) fn are_addresses(&self) -> bool {
        self.0.get() == Some(true)
    }
}

/// The folder that the paths of a list start from.
pub(super) struct ListRoot {
    root: PathBuf,
    /// The root with its links resolved.
    resolved: PathBuf,
    allow_outside: bool,
    rows: AddressRows,
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
            rows: AddressRows::default(),
        })
    }

    /// The root of the index.
    pub(super) fn into_root(self) -> PathBuf {
        match self.rows.are_addresses() {
            true => PathBuf::from(address_text::ROOT),
            false => self.root,
        }
    }

    /// The path as a whole one, which starts from the root if it is relative. An address stays as it
    /// is.
    ///
    /// # Errors
    /// Like [`Self::relative`].
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub(super) fn whole(&self, path: &[u8]) -> Result<PathBuf, PathFault> {
        let path = Path::new(OsStr::from_bytes(self.relative(path)?));
        Ok(match self.rows.are_addresses() {
            true => path.to_owned(),
            false => self.root.join(path),
        })
    }

    /// An absolute path as one below the root. `None` if it is not there.
    fn inside<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let path = Path::new(OsStr::from_bytes(path));
        let inside = path
            .strip_prefix(&self.root)
            .or_else(|_| path.strip_prefix(&self.resolved));
        Some(inside.ok()?.as_os_str().as_bytes())
    }

    /// The path as the index stores it: relative to the root if it lies below it. An address stays
    /// as it is.
    ///
    /// # Errors
    /// An empty path, an address of no known store, files and addresses in one list, a Windows
    /// path, or one outside of the root that the options do not allow.
    pub(super) fn relative<'a>(&self, path: &'a [u8]) -> Result<&'a [u8], PathFault> {
        // A file name may contain any of these bytes, so an existing file is accepted.
        let is_there = || self.root.join(OsStr::from_bytes(path)).exists();
        if is_address(path) && (self.rows.are_addresses() || !is_there()) {
            if !address_text::is_of_store(path) {
                return Err(PathFault::Address(address_text::for_people(path)));
            }
            self.rows.add(path, true)?;
            return match address_text::file_path(path) {
                Some(file) if !self.allow_outside && self.inside(&file).is_none_or(leaves) => {
                    Err(PathFault::Outside(address_text::for_people(path)))
                }
                _ => Ok(path),
            };
        }
        self.rows.add(path, false)?;
        if is_of_windows(path) && !is_there() {
            return Err(PathFault::Windows(shown(path)));
        }
        let inside = match path.starts_with(b"/") {
            true => self.inside(path),
            false => Some(path),
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
        for path in ["ftp://host/a.jpg", "data:image/png;base64,iVBO"] {
            let e = said(path).unwrap();
            assert!(e.contains(path) && e.contains("of no known store"), "{e}");
        }
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
        let e = said("https://host/a.jpg").unwrap();
        assert!(e.contains("Divide it into two lists"), "{e}");
    }

    #[test]
    fn addresses_stay_as_they_are_and_are_not_mixed_with_files() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list.txt");
        let roots = ListRoot::new(&list, None, false).unwrap();
        for path in ["http://h/a.jpg?x=1", "S3://b/a.jpg", "gs://b/a", "az://c/a"] {
            let read = roots.relative(path.as_bytes());
            assert_eq!(read.map_err(|bad| bad.text()), Ok(path.as_bytes()));
        }
        // Files of this machine are below the root, as paths are.
        let inside = format!("file://{}/a%20b.jpg", folder.path().display());
        assert!(roots.relative(inside.as_bytes()).is_ok());
        let climbs = format!("file://{}/%2e%2e/a.jpg", folder.path().display());
        let open = ListRoot::new(&list, None, true).unwrap();
        for outside in ["file:///a", "file://localhost/etc/passwd", &climbs] {
            let e = roots.relative(outside.as_bytes()).map_err(|bad| bad.text());
            assert!(e.unwrap_err().contains("`allow_outside`"), "{outside}");
            assert!(open.relative(outside.as_bytes()).is_ok(), "{outside}");
        }
        let e = roots.relative(b"a.jpg").map_err(|bad| bad.text());
        assert!(e.unwrap_err().contains("another kind"));
        assert_eq!(roots.into_root(), Path::new(address_text::ROOT));
    }
}
