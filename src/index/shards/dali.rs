//! DALI's indexes, written beside the shards.
//!
//! Runs in the consumer.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::shard::idx::{self, IdxText};
use crate::shard::walk::Walk;
use crate::sys::replace::replace_by;

/// Writes DALI's index beside each shard, whole or not at all; where they are.
pub(in crate::index) fn write_dali_indexes(shards: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut written = Vec::with_capacity(shards.len());
    for path in shards {
        let (file, len) = crate::shard::open(path)?;
        let mut walk = Walk::new(&file, len);
        let mut text = IdxText::default();
        while let Some(member) = walk.next().map_err(|e| Error::io_at("read", path, e))? {
            text.push(&member.name, member.data_at, member.size)
                .map_err(|e| Error::dataset(path, e.to_string()))?;
        }
        let walked = walk.finish();
        // Beside an index that is newer nobody would look at the headers again.
        if let Some(damage) = walked.damage.first() {
            return Err(Error::dataset(
                path,
                format!("{damage}: no index is written for a damaged shard; make the shard again"),
            ));
        }
        if text.samples() == 0 {
            return Err(Error::dataset(
                path,
                "no samples: an index of none cannot be read",
            ));
        }
        let index = idx::path_of(path);
        replace_by(&index, &text.finish())?;
        written.push(index);
    }
    Ok(written)
}
