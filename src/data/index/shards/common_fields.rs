//! Combines the field choices of all shards into one, or explains why that is impossible.
//!
//! Runs in the consumer, after the threads that read the shards. Reads nothing.

use std::path::Path;

use crate::data::index::names;
use crate::data::index::shards::fields::FieldCounts;
use crate::data::index::shards::options::{ShardLabels, ShardOptions};
use crate::data::index::shards::shard_scan::ShardScan;
use crate::error::{Error, Result};

/// Gives all shards the same choice of fields.
///
/// # Errors
/// Several fields hold images, and `image_field` names none of them.
pub(crate) fn choose_common(
    at: &Path,
    found: &mut [ShardScan],
    options: &ShardOptions,
) -> Result<()> {
    if options.image_field.is_none() {
        settle_pictures(at, found)?;
    }
    if options.labels == ShardLabels::Auto {
        settle_labels(at, found);
    }
    Ok(())
}

fn settle_pictures(at: &Path, found: &mut [ShardScan]) -> Result<()> {
    let has_plain = found
        .iter()
        .any(|f| f.choice.pictures.is_empty() && f.samples() > 0);
    let mut pictures = FieldCounts::default();
    found.iter().for_each(|f| pictures.merge(&f.seen.pictures));
    if has_plain {
        if !pictures.is_empty() {
            tracing::warn!(
                "{}: samples without an image are skipped, but have other fields: {}: if one of \
                them is the image, name it with `image_field`",
                at.display(),
                pictures.shown()
            );
        }
        for of_shard in found {
            // In this shard, samples have no image by extension, but other shards have such images.
            if let Some(plain) = of_shard.plain.take() {
                *of_shard = *plain;
            }
        }
        return Ok(());
    }
    match pictures.is_several() {
        true => Err(Error::dataset(at, several(&pictures, found))),
        false => Ok(()),
    }
}

/// The message for images in several fields.
fn several(pictures: &FieldCounts, found: &[ShardScan]) -> String {
    let shown = pictures.shown();
    let first = pictures.of.keys().next().map_or("", String::as_str);
    let choose = format!("choose one with `image_field: {first}`");
    let is_number = |name: &String| name.starts_with(|c: char| c.is_ascii_digit());
    let of_names = pictures.of.keys().all(is_number) || pictures.of.values().all(|&n| n == 1);
    let member = found.iter().find_map(|f| f.seen.member.as_deref());
    let Some(member) = member.filter(|_| of_names) else {
        return format!("images are in several fields: {shown}: {choose}");
    };
    let file = member.rsplit(|&b| b == b'/').next().unwrap_or_default();
    let dot = file.iter().position(|&b| b == b'.').unwrap_or(file.len());
    let (key, field) = (&file[..dot], &file[file.len().min(dot + 1)..]);
    let text = names::shown;
    let end = field.rsplit(|&b| b == b'.').next().unwrap_or_default();
    let stem = &file[..file.len() - end.len() - usize::from(end.len() < file.len())];
    let better = text(stem).replace('.', "_");
    format!(
        "images are in several fields: {shown}. A sample's name ends at its first dot, as in \
         webdataset: {} is the field {} of sample {}. Rename members whose names have dots, such \
         as {better}.{}, or {choose}",
        text(file),
        text(field),
        text(key),
        text(end)
    )
}

fn settle_labels(at: &Path, found: &mut [ShardScan]) {
    let mut labels = FieldCounts::default();
    found.iter().for_each(|f| labels.merge(&f.seen.labels));
    let has_class = found.iter().any(|f| f.seen.has_class);
    if !has_class && labels.is_several() {
        tracing::warn!(
            "{}: no labels are read, because several fields may hold them: {}: name one with \
             `label_field`",
            at.display(),
            labels.shown()
        );
    }
    if has_class || labels.is_several() {
        found.iter_mut().for_each(ShardScan::drop_chosen_labels);
    }
}
