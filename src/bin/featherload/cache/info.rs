//! `featherload cache info`: the contents of a cache.

use std::path::PathBuf;

use clap::Args;
use featherload::cache::{self, CacheInfo, SourceLosses};
use featherload::{Result, error};
use serde_json::json;

use super::progress;
use crate::outcome::CommandOutcome;
use crate::output::{self, grouped, line};

/// Show the contents of a cache and how it was built, and measure its reading speed for at most a
/// second.
#[derive(Args)]
pub struct InfoArgs {
    /// The cache's folder.
    #[arg(value_name = "DST")]
    dst: PathBuf,

    /// Print one JSON object on stdout, with all classes.
    #[arg(long)]
    json: bool,
}

pub fn run(args: InfoArgs) -> Result<CommandOutcome> {
    let info = cache::info(&args.dst)?;
    if args.json {
        output::json(&json!({ "folder": args.dst.to_string_lossy(), "info": info }))?;
        return Ok(CommandOutcome::Done);
    }
    let state = match info.complete {
        true => String::new(),
        false => format!("; NOT COMPLETE: its source has {}", info.source_samples),
    };
    line(&format!(
        "{}: {} samples in {} shards, {}; {} with index and manifests{state}",
        args.dst.display(),
        info.samples,
        info.shards,
        error::size(info.tar_bytes),
        error::size(info.bytes)
    ))?;
    print_options(&info)?;
    if !info.columns.is_empty() {
        let names: Vec<String> = info.columns.iter().map(ToString::to_string).collect();
        line(&format!(
            "columns    {}; {}",
            names.join(", "),
            error::size(info.column_bytes)
        ))?;
    }
    if let Some(objects) = &info.objects {
        let counts = match (objects.objects, objects.most_in_image) {
            (Some(all), Some(most)) => {
                format!(
                    "{}, at most {} in an image; ",
                    grouped(all),
                    grouped(most as u64)
                )
            }
            _ => String::new(),
        };
        let outlines = if objects.outlines { "; outlines" } else { "" };
        let keypoints = match objects.keypoints {
            0 => String::new(),
            n => format!("; {n} keypoints each"),
        };
        line(&format!(
            "objects    {counts}{} categories{keypoints}{outlines}; rule {}",
            grouped(objects.categories.len() as u64),
            objects.rule
        ))?;
    }
    if let Some(rule) = &info.masks {
        line(&format!("masks      one for each image; rule {rule}"))?;
    }
    for (number, raster) in info.rasters.iter().enumerate() {
        let what = if number == 0 { "rasters" } else { "" };
        line(&format!(
            "{what:<11}{}, {}; rule {}",
            raster.name,
            error::size(raster.bytes),
            json!(raster.rule)
        ))?;
    }
    if info.skipped > 0 {
        line(&format!(
            "left out   {} samples of the source",
            info.skipped
        ))?;
    }
    if let Some(lost) = &info.lost {
        print_lost(lost)?;
    }
    if let Some(s) = &info.sample_bytes {
        line(&format!(
            "sample     {} as a mean; {} to {}; quarters {}, {}, {}; 99 in 100 up to {}",
            error::size(s.mean as u64),
            error::size(s.least),
            error::size(s.most),
            error::size(s.quarter),
            error::size(s.median),
            error::size(s.three_quarters),
            error::size(s.p99)
        ))?;
    }
    if let (Some(few), Some(many)) = (&info.smallest_class, &info.largest_class) {
        line(&format!(
            "classes    {}: smallest {few}, largest {many}",
            info.classes.len()
        ))?;
    }
    if let Some(r) = &info.reading {
        line(&format!(
            "reading    {:.0} samples/s, {}/s: {} samples, {} in {:.2} s",
            r.samples_per_s,
            error::size(r.bytes_per_s as u64),
            r.samples,
            error::size(r.bytes),
            r.seconds
        ))?;
        line(&format!("           {}", r.what))?;
    }
    Ok(CommandOutcome::Done)
}

/// Entries of the source that were not samples when the cache was built.
fn print_lost(lost: &SourceLosses) -> Result<()> {
    if lost.damaged_shards > 0 {
        line(&format!(
            "lost       {} samples or more in {} damaged shards of the source",
            grouped(lost.damaged_samples),
            grouped(lost.damaged_shards)
        ))?;
    }
    let left_out = lost.left_out.iter();
    for (reason, count) in left_out {
        line(&format!("left out   {} x {reason}", grouped(*count)))?;
    }
    if let Some(fields) = progress::fields(&lost.other_fields) {
        line(&format!("not copied {fields}"))?;
    }
    Ok(())
}

fn print_options(info: &CacheInfo) -> Result<()> {
    let resize = info.resize.as_deref().unwrap_or("none");
    let order = match info.shuffle {
        Some(seed) => format!("shuffled by seed {seed}"),
        None => "the source's".into(),
    };
    let samples = info
        .shard_samples
        .map(|n| format!("{} samples", grouped(n)));
    let size = (info.shard_size > 0).then(|| error::size(info.shard_size));
    let shards: Vec<String> = size.into_iter().chain(samples).collect();
    line(&format!(
        "built      encode {}, resize {resize}, shards of {}, order {order}, on error {}, by \
         featherload {}",
        info.encode,
        shards.join(" or "),
        info.on_error,
        info.featherload
    ))
}
