//! Members of one sample that do not stand together in their shard, so that its label would be
//! lost.
//!
//! In the consumer, a shard a thread. Compares the few keys without a picture that the report
//! names, with those of all samples.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::data::index::names::shown;
use crate::data::index::report::SkipReason;
use crate::data::index::shards::found::Found;
use crate::data::index::shards::options::ShardLabels;
use crate::data::shard::name;
use crate::error::{Error, Result};

/// Refuses a shard whose members are in another order than samples need. `beneath`: how its
/// report calls it.
///
/// # Errors
/// A sample that is in two places, and how to sort the shard.
pub(super) fn refuse(
    path: &Path,
    beneath: &Path,
    found: &Found,
    labels: &ShardLabels,
) -> Result<()> {
    let Some(skipped) = found.report.skipped.get(&SkipReason::NoPicture) else {
        return Ok(());
    };
    if *labels == ShardLabels::None {
        return Ok(());
    }
    let examples = skipped.examples.iter();
    let keys = examples.filter_map(|example| example.strip_prefix(beneath).ok());
    for key in keys.map(|key| key.as_os_str().as_bytes()) {
        for i in 0..found.samples() {
            let Some((of_picture, _)) = name::split(found.name(i)) else {
                continue;
            };
            if of_picture == key {
                return Err(Error::dataset(path, in_two_places(path, key)));
            }
            if file(of_picture) == file(key) && !found.has_label(i) {
                return Err(Error::dataset(path, of_two_folders(of_picture, key)));
            }
        }
    }
    Ok(())
}

fn in_two_places(path: &Path, key: &[u8]) -> String {
    let (key, path) = (shown(key), path.display());
    format!(
        "the members of sample '{key}' do not stand together, so its label would be lost: sort \
         the tar by name (mkdir new; tar -xf '{path}' -C new; tar --sort=name -cf new.tar -C new \
         .), or use `labels: none`"
    )
}

fn of_two_folders(picture: &[u8], other: &[u8]) -> String {
    format!(
        "'{}' has a picture and '{}' has none: with unlike folders they are two samples, and the \
         label would be lost. Give both the same folder and name, one after the other, or use \
         `labels: none`",
        shown(picture),
        shown(other)
    )
}

/// The part of a key behind its last slash.
fn file(key: &[u8]) -> &[u8] {
    key.rsplit(|&b| b == b'/').next().unwrap_or(key)
}
