//! Lists how an existing cache differs from the requested one.
//!
//! Pure functions.

use std::path::Path;

use serde_json::Value;

use crate::cache::OnBadSample;
use crate::data::index::shown;
use crate::data::shard::manifest::CacheManifest;
use crate::error::Error;

/// The settings of a cache, with their names for messages.
fn settings(manifest: &CacheManifest) -> [(&'static str, String); 13] {
    let options = &manifest.options;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    let most_bytes = (!options.has_independent_shards()).then_some(options.shard_size);
    let columns: Vec<String> = manifest
        .columns
        .iter()
        .map(|column| format!("{} ({})", shown(column.name.as_bytes()), column.kind))
        .collect();
    let columns = (!columns.is_empty()).then(|| columns.join(", "));
    let rasters: Vec<String> = (manifest.rasters.iter())
        .map(|entry| format!("{} {}", entry.name, Value::Object(entry.rule.clone())))
        .collect();
    let rasters = (!rasters.is_empty()).then(|| rasters.join(", "));
    let most_samples = options.shard_samples.map(|n| format!("{n} samples"));
    [
        ("encode", options.encode.clone()),
        ("resize", or_none(options.resize.clone())),
        ("shard_size", or_none(most_bytes.map(|n| n.to_string()))),
        (
            "a shard",
            most_samples.unwrap_or_else(|| "as many samples as fit".into()),
        ),
        ("columns", or_none(columns)),
        (
            "objects",
            or_none(
                manifest
                    .objects
                    .as_ref()
                    .map(|entry| entry.rule.to_string()),
            ),
        ),
        (
            "masks",
            or_none(manifest.masks.as_ref().map(|entry| entry.rule.to_string())),
        ),
        ("rasters", or_none(rasters)),
        ("shuffle", or_none(options.shuffle.map(|n| n.to_string()))),
        (ON_ERROR, options.on_error.clone()),
        ("max_pixels", options.max_pixels.to_string()),
        ("max_scratch", options.max_scratch.to_string()),
        ("the number of samples", manifest.source.samples.to_string()),
    ]
}

const ON_ERROR: &str = "on_error";

/// Each difference that changes the bytes of the cache, in words. Empty if the existing build can
/// continue.
pub(super) fn list_changes(there: &CacheManifest, wanted: &CacheManifest) -> Vec<String> {
    // An unfinished build with `on_error: stop` has no bad samples in its complete shards. They are
    // the same with `skip`. A complete cache is compared, because its manifest states how it was
    // built.
    let goes_on = !there.complete
        && there.options.on_error == OnBadSample::Stop.to_string()
        && wanted.options.on_error == OnBadSample::Skip.to_string();
    let mut changed = Vec::new();
    for ((what, there), (_, wanted)) in settings(there).into_iter().zip(settings(wanted)) {
        if there != wanted && !(goes_on && what == ON_ERROR) {
            changed.push(format!("{what} was {there} and is now {wanted}"));
        }
    }
    let (a, b) = (&there.source, &wanted.source);
    if a.samples == b.samples && a.index != b.index {
        changed.push("names, labels or classes of the source have changed".into());
    } else if a.files != b.files && a.index == b.index {
        changed.push("files of the source have changed (length or time)".into());
    }
    if let (Some(a), Some(b)) = (&there.objects, &wanted.objects)
        && (a.source != b.source || a.form != b.form)
    {
        changed.push("the objects of the source have changed".into());
    }
    for (a, b) in there.rasters.iter().zip(&wanted.rasters) {
        if a.name == b.name && a.source != b.source {
            changed.push(format!(
                "the members that are raster {} have changed",
                a.name
            ));
        }
    }
    if there.featherload != wanted.featherload {
        changed.push(format!(
            "featherload was {} and is now {}",
            there.featherload, wanted.featherload
        ));
    }
    changed
}

/// The error for a cache with other settings at `place`. `kind` says whether that is a folder or an
/// address.
pub(super) fn mismatch_error(place: &Path, kind: &str, changed: &[String]) -> Error {
    Error::dataset(
        place,
        format!(
            "holds a cache with other settings: {}. Name another {kind}, or use `force` to \
             replace this one",
            changed.join("; ")
        ),
    )
}
