//! A crop of a recipe with several crops of each image, as a user writes it.

use serde::{Deserialize, Serialize};

use super::op::Op;
use super::recipe_spec::{Recipe, ReorderMode};

/// One entry of [`Recipe::crops`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "CropText", into = "CropText")]
pub struct RecipeCrop {
    /// The operations of the crop. It has neither crops nor `mixing` of its own.
    pub recipe: Recipe,
    /// The number of such crops of each image, each with its own random numbers.
    pub count: u32,
}

/// The form in recipe files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CropText {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(default = "one")]
    count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reorder: Option<ReorderMode>,
    ops: Vec<Op>,
}

fn one() -> u32 {
    1
}

impl From<CropText> for RecipeCrop {
    fn from(text: CropText) -> Self {
        Self {
            recipe: Recipe {
                reorder: text.reorder,
                ops: text.ops,
                ..Recipe::new(text.name)
            },
            count: text.count,
        }
    }
}

/// A recipe that can run loses nothing: other fields of a crop are refused before.
impl From<RecipeCrop> for CropText {
    fn from(crop: RecipeCrop) -> Self {
        Self {
            name: crop.recipe.name,
            count: crop.count,
            reorder: crop.recipe.reorder,
            ops: crop.recipe.ops,
        }
    }
}
