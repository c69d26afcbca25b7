//! Writes DALI's index files beside the shards.
//!
//! Runs in the consumer.

use std::path::{Path, PathBuf};

use crate::data::index::shards::group::check_is_tar;
use crate::data::shard::dali_index;
use crate::data::shard::dali_index::DaliIndexText;
use crate::data::shard::walk::{HeaderWalk, ShardEnding};
use crate::error::{Error, Result};
use crate::sys::atomic_file::replace_by;

/// Writes the DALI index of the shard at `path` beside it, completely or not at all. Returns its
/// path.
///
/// # Errors
/// The shard is damaged, cut or empty, a member name cannot be written, or a file cannot be read or
/// written.
pub(crate) fn write_dali_index(path: &Path) -> Result<PathBuf> {
    let (file, len) = crate::data::shard::open(path)?;
    let mut walk = HeaderWalk::new(&file, len);
    let mut text = DaliIndexText::default();
    let mut unwritable = None;
    while let Some(member) = walk.next().map_err(|e| Error::io_at("read", path, e))? {
        let pushed = text.push(&member.name, member.data_at, member.size);
        if let Err(e) = pushed {
            unwritable.get_or_insert(e);
        }
    }
    let walked = walk.finish();
    check_is_tar(path, &file, len, &walked)?;
    let refused = |what: String| Err(Error::dataset(path, what));
    // Beside a newer index, later runs would not read the headers again.
    if let Some(damage) = walked.damage.first() {
        return refused(format!(
            "{damage}: a damaged shard gets no index: make the shard again"
        ));
    }
    // The index might describe only a part of the shard.
    if walked.ending == ShardEnding::NoBlocks {
        return refused(format!(
            "ends at byte {len} without the two zero blocks of a tar's end, so it may be cut \
             off: make the shard again"
        ));
    }
    if let Some(e) = unwritable {
        return refused(e.to_string());
    }
    if text.samples() == 0 {
        return refused("no samples, so an index would be empty: remove the shard".into());
    }
    let index = dali_index::path_of(path);
    replace_by(&index, &text.finish())?;
    Ok(index)
}
