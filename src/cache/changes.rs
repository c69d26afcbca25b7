//! How a cache that is there differs from the one that is wanted.
//!
//! Pure.

use std::path::Path;

use crate::cache::OnBadSample;
use crate::data::shard::manifest::{CacheManifest, OptionsEntry};
use crate::error::Error;

fn size_of_shards(options: &OptionsEntry) -> String {
    match options.stand_alone() {
        true => "none".into(),
        false => options.shard_size.to_string(),
    }
}

/// Each difference that makes other bytes, in words; none: the build that was
/// begun may go on.
pub(super) fn between(there: &CacheManifest, wanted: &CacheManifest) -> Vec<String> {
    let mut changed = Vec::new();
    let mut compare = |what: &str, there: String, wanted: String| {
        if there != wanted {
            changed.push(format!("{what} was {there} and is now {wanted}"));
        }
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    let (a, b) = (&there.options, &wanted.options);
    compare("encode", a.encode.clone(), b.encode.clone());
    compare(
        "resize",
        or_none(a.resize.clone()),
        or_none(b.resize.clone()),
    );
    compare("shard_size", size_of_shards(a), size_of_shards(b));
    let samples = |most: Option<u64>| {
        most.map_or("as many samples as fit".into(), |n| format!("{n} samples"))
    };
    compare(
        "a shard",
        samples(a.shard_samples),
        samples(b.shard_samples),
    );
    let seed = |shuffle: Option<u64>| or_none(shuffle.map(|seed| seed.to_string()));
    compare("shuffle", seed(a.shuffle), seed(b.shuffle));
    // Shards that were complete when a bad sample stopped the build have none among
    // theirs: they are the same where bad ones are left out. That of a complete cache
    // is compared, as its manifest says how it was built.
    let (stop, skip) = (OnBadSample::Stop.to_string(), OnBadSample::Skip.to_string());
    let goes_on = !there.complete && a.on_error == stop && b.on_error == skip;
    if !goes_on {
        compare("on_error", a.on_error.clone(), b.on_error.clone());
    }
    compare(
        "max_pixels",
        a.max_pixels.to_string(),
        b.max_pixels.to_string(),
    );
    compare(
        "max_scratch",
        a.max_scratch.to_string(),
        b.max_scratch.to_string(),
    );
    let (a, b) = (&there.source, &wanted.source);
    compare(
        "the number of samples",
        a.samples.to_string(),
        b.samples.to_string(),
    );
    if a.samples == b.samples && a.index != b.index {
        changed.push("names, labels or classes of the source have changed".into());
    } else if a.files != b.files && a.index == b.index {
        changed.push("files of the source have changed (length or time)".into());
    }
    if there.featherload != wanted.featherload {
        changed.push(format!(
            "featherload was {} and is now {}",
            there.featherload, wanted.featherload
        ));
    }
    changed
}

/// The error of a cache of other settings at `place`, which is a folder or an address (`kind`).
pub(super) fn refused(place: &Path, kind: &str, changed: &[String]) -> Error {
    Error::dataset(
        place,
        format!(
            "holds a cache with other settings: {}. Name another {kind}, or use `force` to \
             replace this one",
            changed.join("; ")
        ),
    )
}
