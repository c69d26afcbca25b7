//! Tar shards as bytes: reads their members, writes members, and keeps the manifests of a cache.
//!
//! Runs in the consumer. It reads a shard by positioned reads through one small buffer, and never
//! maps it. No number of a file decides how much memory is allocated. Damage is reported with its
//! offset. This module knows no images, labels or indexes, and starts no threads.
//!
//! A member is a regular file of an uncompressed tar: ustar, GNU or pax. Its data are one range of
//! bytes of the shard. So offset and size are enough to read it.
//!
//! - `header`, `pax`, `walk`: the members of a shard, from its headers;
//! - `member_name`: the sample and the field of a member;
//! - `dali_index`: the index file that DALI needs beside a shard;
//! - `shard_patterns`: lists of shards with braces and globs;
//! - `shard_writer`: writes a shard, member by member;
//! - `manifest`: the manifests of a cache and of each shard, with checksums; `hash`: their hashes.

pub(crate) mod dali_index;
pub(crate) mod hash;
pub(crate) mod header;
pub(crate) mod manifest;
pub(crate) mod member_name;
mod pax;
pub(crate) mod shard_patterns;
pub(crate) mod shard_writer;
pub(crate) mod walk;

#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::sys::regular_file::open_regular;

/// Opens the shard at `path`. Returns it with its length in bytes.
///
/// # Errors
/// When the path is not a regular file or cannot be opened. A FIFO is rejected without waiting.
pub(crate) fn open(path: &Path) -> Result<(File, u64)> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Error::dataset(path, "a path cannot hold a NUL byte"))?;
    let (fd, len) = open_regular(&name).map_err(|fault| {
        Error::dataset(
            path,
            format!("this shard {fault}: check its path and permissions"),
        )
    })?;
    Ok((File::from(fd), len as u64))
}

/// Reads from offset `at` until `buffer` is full or the file ends. Returns the number of bytes
/// read.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
