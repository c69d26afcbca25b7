//! Reads whole files up to a limit, because their length is not trusted.
//!
//! Used in the consumer, the fetcher and the uploader.

use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::sys::regular_file;

/// Reads the regular file at `path`, at most `most` bytes.
///
/// # Errors
/// The system's error; the file is longer, or not regular.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let failed = |e| Error::io_at("read", path, e);
    let (file, len) = regular_file::open(path).map_err(failed)?;
    if len > most {
        return Err(Error::dataset(path, too_long(len, most)));
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(len).ok();
    let has_room = room.is_some_and(|room| bytes.try_reserve_exact(room).is_ok());
    if !has_room {
        return Err(failed(ErrorKind::OutOfMemory.into()));
    }
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 {
        // It has grown meanwhile.
        len if len > most => Err(Error::dataset(path, too_long(len, most))),
        _ => Ok(bytes),
    }
}

/// Error text for a file or an object of `len` bytes.
pub(crate) fn too_long(len: u64, most: u64) -> String {
    format!(
        "too long: it has {} ({len} bytes), but the limit is {} ({most} bytes): check that it is \
         the right file, or make it again",
        size_rounded_up(len),
        size_rounded_down(most)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let e = read(&path, 4).unwrap_err().to_string();
        assert!(
            e.contains("note: too long: it has ") && e.contains("(5 bytes)"),
            "{e}"
        );
        assert!(e.contains("(4 bytes): check"), "{e}");
        // A hole takes no disk space, but would take memory.
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(read(&path, 1 << 30).is_err());
        assert!(read(dir.path(), 5).is_err());
    }
}
