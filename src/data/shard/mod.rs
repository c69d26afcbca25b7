//! Tar shards as bytes: what members they hold, and where; members written, and
//! what a cache says of its shards.
//!
//! Runs in the consumer. A shard is read by positioned reads through one small
//! buffer, never mapped; nothing is allocated by a number that stands in a file,
//! and what is damaged is said with its offset. Knows no pictures, labels or
//! indexes, and starts no threads.
//!
//! A member is a regular file of an uncompressed tar: ustar, GNU or pax. Its
//! data are one run of bytes of the shard, so who knows offset and size needs
//! nothing else of tar.
//!
//! - `header`, `pax`, `walk`: the members of a shard by its headers;
//! - `member_name`: which sample a member belongs to, and as what;
//! - `dali_index`: the index that DALI wants beside a shard;
//! - `shard_patterns`: lists of shards, as people write them;
//! - `shard_writer`: a shard written, member by member;
//! - `manifest`: the checksummed manifests of a cache and of each shard; `hash`: hashes in them.

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

/// Opens the shard at `path`, and says how many bytes it has. What is no regular
/// file is refused, and a FIFO is not waited for.
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

/// Fills `buffer` from offset `at` as far as the file goes; how many bytes it got.
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
