//! Files that are replaced whole: a reader sees the old one or the new one.
//!
//! Runs in the consumer.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// How the names of temporary files begin.
pub(crate) const TEMPORARY: &str = ".featherload-";

/// Writes a sibling temporary file and renames it over `path`, so that a reader
/// sees the old file or the new one, and a crash leaves one of them.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|e| Error::io_at("make a temporary file in", folder, e))?;
    write(temporary.as_file_mut()).map_err(|e| Error::io_at("write", path, e))?;
    temporary
        .as_file()
        .sync_all()
        .map_err(|e| Error::io_at("sync", path, e))?;
    temporary
        .persist(path)
        .map_err(|e| Error::io_at("rename a temporary file to", path, e.error))?;
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::io_at("sync", folder, e))
}

/// As [`replace`], by bytes.
pub(crate) fn replace_by(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |file| file.write_all(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        let e = replace(&path, |_| Err(io::Error::other("no"))).unwrap_err();
        assert!(e.to_string().starts_with("write "), "{e}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        replace_by(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
