//! The subject of a run: source, recipe, batch.

use featherload::{Index, Result};
use serde::Serialize;

use crate::output::fields::head;
use crate::output::grouped;
use crate::setup::RunSetup;

/// The subject of a run. Field names are part of the `--json` format.
#[derive(Clone, Serialize)]
pub struct BenchSubject {
    /// The source as typed, or the config's data set.
    pub source: String,
    pub samples: u64,
    /// The format by file names. `images` if there are several formats.
    pub kind: String,
    pub classes: usize,
    pub label_width: usize,
    pub shards: u64,
    pub recipe: String,
    pub batch: u32,
}

/// Display name of JPEG files.
pub const JPEG: &str = "JPEG";
/// Display name of raw samples.
const RAW: &str = "raw images";

/// Most file names that are read to find the format.
const NAMES: u64 = 1000;

impl BenchSubject {
    pub fn of(setup: &RunSetup<'_>, index: &Index) -> Result<Self> {
        Ok(Self {
            source: setup.source_text(),
            samples: index.len(),
            kind: kind(index),
            classes: index.classes().len(),
            label_width: index.label_width(),
            shards: index.shard_files(),
            recipe: setup.options.recipe()?.name,
            batch: setup.options.batch(),
        })
    }

    /// Whether nothing is decoded.
    pub fn is_raw(&self) -> bool {
        self.kind == RAW
    }

    /// `featherload 0.1.0 | data/imagenet | 1,000 JPEG, no labels | train224 | ...`.
    pub fn print(&self, workers: &str) -> Result<()> {
        head(&[
            concat!("featherload ", env!("CARGO_PKG_VERSION")).to_owned(),
            self.source.clone(),
            self.samples_text(),
            self.recipe.clone(),
            format!("batch {}", grouped(u64::from(self.batch))),
            workers.to_owned(),
        ])
    }

    fn samples_text(&self) -> String {
        let shards = match self.shards {
            0 => String::new(),
            1 => " in 1 shard".to_owned(),
            n => format!(" in {} shards", grouped(n)),
        };
        let labels = match (self.classes, self.label_width) {
            (_, 2..) => format!("labels of {} numbers", self.label_width),
            (1, _) => "1 class".to_owned(),
            (2.., _) => format!("{} classes", grouped(self.classes as u64)),
            (0, 1) => "labels".to_owned(),
            (0, _) => "no labels".to_owned(),
        };
        format!("{} {}{shards}, {labels}", grouped(self.samples), self.kind)
    }
}

/// The format by the names of up to a thousand samples.
fn kind(index: &Index) -> String {
    let step = index.len().div_ceil(NAMES).max(1);
    let mut ids = (0..index.len()).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    let of = |id: u64| {
        let extension = index.relative_path(id).extension()?.to_str()?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "jpg" | "jpeg" => JPEG.to_owned(),
            "npy" => RAW.to_owned(),
            "webp" => "WebP".to_owned(),
            other => other.to_ascii_uppercase(),
        })
    };
    let first = ids.next().and_then(of);
    match first {
        Some(kind) if ids.all(|id| of(id).as_ref() == Some(&kind)) => kind,
        _ => "images".to_owned(),
    }
}
