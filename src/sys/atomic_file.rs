//! Replaces files atomically: a reader sees the old file or the new one.
//!
//! Runs in the consumer.

use std::fs::{File, Permissions};
#[cfg(feature = "stores")]
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// The name of featherload's own files in folders of the user.
macro_rules! own_name {
    ($rest:literal) => {
        concat!(".featherload-", $rest)
    };
}
pub(crate) use own_name;

/// Prefix of these names. A temporary file has [`RANDOM`] random characters after it.
pub(crate) const OWN_PREFIX: &str = own_name!("");

/// Number of random letters and digits.
const RANDOM: usize = 6;

/// Creates a temporary file in the folder of `path`. It is removed when dropped.
pub(crate) fn create_temporary(path: &Path) -> Result<NamedTempFile> {
    let folder = folder_of(path);
    tempfile::Builder::new()
        .prefix(OWN_PREFIX)
        .rand_bytes(RANDOM)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|e| Error::io_at("make a temporary file in", folder, e))
}

/// Moves `temporary` to `path`, in the same folder. The content is on storage when this returns.
pub(crate) fn publish(temporary: NamedTempFile, path: &Path) -> Result<()> {
    temporary
        .as_file()
        .sync_all()
        .map_err(|e| Error::io_at("sync", path, e))?;
    temporary
        .persist(path)
        .map_err(|e| Error::io_at("rename a temporary file to", path, e.error))?;
    sync_folder(folder_of(path))
}

/// Writes a folder to storage, so that renames and removals in it survive a crash.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|f| f.sync_all())
        .map_err(|e| Error::io_at("sync", folder, e))
}

/// Random letters that are unique across machines. Process numbers are not, because they repeat in
/// each PID namespace.
#[cfg(feature = "stores")]
pub(crate) fn unique_name() -> String {
    let random = RandomState::new().hash_one(std::process::id());
    format!("{random:016x}")
}

/// Whether a name has the form of [`create_temporary`].
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_prefix(OWN_PREFIX)
        .is_some_and(|rest| rest.len() == RANDOM && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Replaces the file at `path` atomically. A reader, or a crash, sees the old file or the new one.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let mut temporary = create_temporary(path)?;
    write(temporary.as_file_mut()).map_err(|e| Error::io_at("write", path, e))?;
    publish(temporary, path)
}

/// Like [`replace`], with the bytes as argument.
pub(crate) fn replace_by(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, |file| file.write_all(bytes))
}

/// Creates the file at `path` atomically. If it exists, it stays as it is.
pub(crate) fn put_first(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut temporary = create_temporary(path)?;
    let file = temporary.as_file_mut();
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|e| Error::io_at("write", path, e))?;
    match temporary.persist_noclobber(path) {
        Ok(_) => sync_folder(folder_of(path)),
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(Error::io_at("rename a temporary file to", path, e.error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn temporary_names_are_known_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = create_temporary(&dir.path().join("f")).unwrap();
        let name = file.path().file_name().unwrap().to_str().unwrap();
        assert!(is_temporary(name), "{name}");
        for other in [".featherload-lock", ".featherload-demo.json", "abc", ""] {
            assert!(!is_temporary(other), "{other}");
        }
    }

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
        put_first(&path, b"late").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        put_first(&dir.path().join("g"), b"first").unwrap();
        assert_eq!(fs::read(dir.path().join("g")).unwrap(), b"first");
    }
}
