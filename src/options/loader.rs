//! What is done with the samples, and by how many, as a caller says it.
//!
//! In the consumer. Never in here: defaults, but of the recipe; the builder has them.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::device::{DecodeOn, Device, Upload};
use crate::error::Result;
use crate::jobs::images::on_error::OnError;
use crate::options::units::read_seconds;
use crate::plan::{MultiScale, Position, Rank, Sampler, State, Tail};
use crate::pool::sandbox::Sandbox;
use crate::recipe::{
    Background, DecodeMode, Dtype, MemoryLayout, Recipe, RecipeFormat, Reorder, Truncated, Upright,
};

/// Options of a run. What is left out is the PaddleClas config's, where the recipe is
/// one, or has [`LoaderBuilder`](crate::LoaderBuilder)'s default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoaderOptions {
    /// A preset's name, a recipe file, or a PaddleClas config. Default `train224`.
    pub recipe: Option<String>,
    /// A recipe as JSON text, in the place of `recipe`.
    pub recipe_text: Option<String>,
    /// Of a PaddleClas config: `train`, `eval`, `eval.query` and so on; by default `train`.
    pub mode: Option<String>,
    /// Of a PaddleClas config: leave out operations that are not served.
    pub skip_unknown_ops: bool,
    /// In the place of the recipe's.
    pub dtype: Option<Dtype>,
    pub layout: Option<MemoryLayout>,
    pub decode: Option<DecodeMode>,
    pub reorder: Option<Reorder>,
    pub background: Option<Background>,
    pub orientation: Option<Upright>,
    pub truncated: Option<Truncated>,
    pub batch_size: Option<u32>,
    pub num_workers: Option<usize>,
    pub depth: Option<u32>,
    /// Bytes.
    pub memory_limit: Option<u64>,
    pub device: Device,
    pub upload: Option<Upload>,
    /// Bytes.
    pub gpu_memory_limit: Option<u64>,
    pub decode_on: Option<DecodeOn>,
    pub seed: Option<u64>,
    pub sampler: Option<Sampler>,
    pub sample_weights: Option<Vec<f64>>,
    pub multi_scale: Option<MultiScale>,
    pub tail: Option<Tail>,
    pub rank: Option<Rank>,
    pub on_error: Option<OnError>,
    /// Seconds, where it is read as text.
    #[serde(deserialize_with = "read_seconds")]
    pub row_limit: Option<Duration>,
    /// Seconds, where it is read as text.
    #[serde(deserialize_with = "read_seconds")]
    pub hold_timeout: Option<Duration>,
    pub max_pixels: Option<u64>,
    /// Bytes.
    pub max_scratch: Option<u64>,
    pub epochs: Option<u64>,
    pub start: Option<Position>,
    pub resume: Option<State>,
    pub sandbox: Option<Sandbox>,
    pub helper: Option<PathBuf>,
}

impl LoaderOptions {
    /// What people call the recipe.
    pub fn recipe_name(&self) -> &str {
        match (&self.recipe_text, &self.recipe) {
            (Some(_), _) => "the recipe",
            (None, Some(name)) => name,
            (None, None) => "train224",
        }
    }

    /// The recipe, where it is no config.
    pub(super) fn recipe(&self) -> Result<Recipe> {
        match &self.recipe_text {
            Some(text) => Recipe::from_text(text, RecipeFormat::Json, self.recipe_name()),
            None => Recipe::load(self.recipe_name()),
        }
    }

    /// A recipe with what is said here in the place of its own.
    pub(super) fn overridden(&self, mut recipe: Recipe) -> Recipe {
        if let Some(dtype) = self.dtype {
            recipe = recipe.with_dtype(dtype);
        }
        if let Some(layout) = self.layout {
            recipe = recipe.with_layout(layout);
        }
        if let Some(colour) = self.background {
            recipe = recipe.with_background(colour);
        }
        if let Some(orientation) = self.orientation {
            recipe = recipe.with_orientation(orientation);
        }
        if let Some(truncated) = self.truncated {
            recipe = recipe.with_truncated(truncated);
        }
        if let Some(reorder) = self.reorder {
            recipe = recipe.with_reorder(reorder);
        }
        if let Some(mode) = self.decode {
            recipe = recipe.with_decode(mode);
        }
        recipe
    }
}
