//! Rejects shards in which members of one sample are not consecutive, because its label would be
//! lost.
//!
//! Runs in the consumer, one thread per shard. Compares the keys of labels without an image, up to
//! a limit, with the keys of all samples.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::data::index::names::shown;
use crate::data::index::shards::shard_scan::ShardScan;
use crate::data::shard::member_name;
use crate::error::{Error, Result};

/// Rejects a shard in which a sample without a label has its label in another place.
///
/// # Errors
/// Names the sample that is in two places, and how to sort the shard.
pub(super) fn refuse(path: &Path, found: &ShardScan) -> Result<()> {
    let labels: BTreeSet<&[u8]> = found.lone_labels.iter().map(Vec::as_slice).collect();
    if labels.is_empty() {
        return Ok(());
    }
    let mut labels_of: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for key in &labels {
        labels_of.entry(file(key)).or_default().push(key);
    }
    // Samples whose file name is the same as that of one of these labels.
    let mut samples_of: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for i in 0..found.samples() {
        let Some((key, _)) = member_name::split(found.name(i)) else {
            continue;
        };
        if labels.contains(key) && !found.has_label(i) {
            return Err(Error::dataset(path, in_two_places(path, key)));
        }
        if labels_of.contains_key(file(key)) {
            samples_of.entry(file(key)).or_default().push(i);
        }
    }
    for (file, samples) in &samples_of {
        // With several samples or labels it is unknown which label belongs to which sample.
        if let ([i], Some([other])) = (samples.as_slice(), labels_of.get(file).map(Vec::as_slice))
            && !found.has_label(*i)
            && let Some((key, _)) = member_name::split(found.name(*i))
        {
            return Err(Error::dataset(path, of_two_folders(key, other)));
        }
    }
    Ok(())
}

fn in_two_places(path: &Path, key: &[u8]) -> String {
    let (key, path) = (shown(key), path.display());
    format!(
        "the members of sample '{key}' are not consecutive, so its label would be lost: sort \
         the tar by name (mkdir new; tar -xf '{path}' -C new; tar --sort=name -cf new.tar -C new \
         .), or use `labels: none`"
    )
}

fn of_two_folders(picture: &[u8], label: &[u8]) -> String {
    format!(
        "'{}' has an image without a label, and '{}' has a label without an image: in different \
         folders they are two samples, and the label would be lost. Give both the same folder \
         and name, one after the other, or use `labels: none`",
        shown(picture),
        shown(label)
    )
}

/// The part of a key after its last slash.
fn file(key: &[u8]) -> &[u8] {
    key.rsplit(|&b| b == b'/').next().unwrap_or(key)
}
