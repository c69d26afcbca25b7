//! The checks of a recipe with several crops of each image: they share one decoded image and one
//! format of batches.

use serde_json::json;

use super::check::RecipeFault;
use super::operation::Operation;
use super::recipe_spec::{Recipe, RecipeCrop};
use super::row_extent::RowExtent;
use super::tensor::{DataType, MemoryLayout};

/// Most crops of one image.
pub(crate) const MAX_CROPS: u32 = 256;

/// A crop in messages.
pub(super) fn name_of(number: usize, crop: &RecipeCrop) -> String {
    match crop.recipe.name.as_str() {
        "" => format!("crop {number}"),
        name => format!("crop {number} ({name})"),
    }
}

/// Checks a recipe with crops, apart from its crops.
pub(super) fn check_whole(recipe: &Recipe) -> Result<(), RecipeFault> {
    let fault = |message: String| Err(RecipeFault { op: None, message });
    if !recipe.ops.is_empty() {
        return fault(
            "ops stands beside crops, and each crop has its own: move ops into the crops".into(),
        );
    }
    if recipe.reorder.is_some() {
        return fault("reorder stands beside crops: write it in each crop".into());
    }
    if recipe.mixing.is_some() {
        return fault(
            "mixing needs one image for each sample, and crops give several: remove mixing, and \
             mix in the training loop"
                .into(),
        );
    }
    let count: u64 = recipe.crops.iter().map(|crop| u64::from(crop.count)).sum();
    if count > u64::from(MAX_CROPS) {
        return fault(format!(
            "crops gives {count} crops of each image: use at most {MAX_CROPS}"
        ));
    }
    Ok(())
}

/// A mistake in a crop: the index of one of its operations, if it concerns one, and the message.
pub(super) type CropFault = (Option<usize>, String);

/// Checks a crop before it is compiled. `first`: the first crop.
pub(super) fn check_crop(crop: &RecipeCrop, first: &RecipeCrop) -> Result<(), CropFault> {
    let RecipeCrop { recipe, count, .. } = crop;
    if *count == 0 {
        return Err((
            None,
            "count is 0: use at least 1, or remove the crop".into(),
        ));
    }
    if !recipe.crops.is_empty() {
        return Err((None, "has crops of its own: write them beside it".into()));
    }
    if recipe.mixing.is_some() {
        return Err((
            None,
            "has mixing, which needs one image for each sample: remove it".into(),
        ));
    }
    if let Some(op) = recipe.ops.iter().position(|op| op.label_count().is_some()) {
        let name = recipe.ops[op].name();
        let message = format!("{name} gives labels, and a sample with crops has one label");
        return Err((Some(op), format!("{message}: remove its label")));
    }
    check_shared(crop, first)
}

/// Checks that the operations with the numbers of the first crop are those of the first crop.
fn check_shared(crop: &RecipeCrop, first: &RecipeCrop) -> Result<(), CropFault> {
    let shared = crop.shared as usize;
    let mut of_first = first.counted_ops();
    let mut own = crop.counted_ops();
    for at in 1..=shared {
        let Some((op, own)) = own.next() else {
            let message = format!(
                "shared is {shared}, and the crop has {} operations beside decode, normalize, \
                 cast and layout: use at most that",
                at - 1
            );
            return Err((None, message));
        };
        match of_first.next() {
            Some((_, other)) if other == own => {}
            other => {
                let other = other.map_or("none", |(_, op)| op.name());
                let message = format!(
                    "shared is {shared}, so {}, operation {at} of the crop, must be that of the \
                     first crop, which has {other} there: write the same parameters, or a smaller \
                     number",
                    own.name()
                );
                return Err((Some(op), message));
            }
        }
    }
    Ok(())
}

/// What is known of a compiled crop.
#[derive(Debug, Clone, Copy)]
pub(super) struct CropFormat<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) extent: RowExtent,
    pub(super) dtype: DataType,
    pub(super) layout: MemoryLayout,
    pub(super) channels: usize,
    /// An operation that depends on the size of the batch.
    pub(super) size_dependent_op: Option<&'static str>,
}

/// Checks a compiled crop against the first one.
pub(super) fn check_format(
    crop: &CropFormat<'_>,
    first: Option<&CropFormat<'_>>,
) -> Result<(), CropFault> {
    let own = match crop.extent {
        RowExtent::Fixed { .. } => None,
        RowExtent::Own => Some(
            "keeps the size of each image, and the crops of a batch need one size: add".to_owned(),
        ),
        RowExtent::Patches(rule) => {
            let op = rule.operation();
            let text = format!("makes {op} of each image, and crops are images: replace {op} by");
            Some(text)
        }
    };
    if let Some(own) = own {
        return Err((
            None,
            format!("{own} random_resized_crop, center_crop or a resize to [height, width]"),
        ));
    }
    if let Some(name) = crop.size_dependent_op {
        return Err((
            crop.recipe.ops.iter().position(|op| op.name() == name),
            format!("{name} has `sizes` for multi_scale, which crops do not have: remove them"),
        ));
    }
    match first {
        Some(first) => check_same(first, crop).map_err(|message| (None, message)),
        None => Ok(()),
    }
}

/// Checks what all crops of an image share: its decoding, and the format of batches.
fn check_same(first: &CropFormat<'_>, other: &CropFormat<'_>) -> Result<(), String> {
    let differs = |what: &str, first: String, other: String, fix: &str| {
        Err(format!(
            "{what} is {other}, and {first} in the first crop: all crops of an image need the \
             same: {fix}"
        ))
    };
    let [one, two] = [first, other].map(|crop| crop.dtype.to_string());
    if one != two {
        return differs("dtype", one, two, "set dtype for the whole loader");
    }
    let [one, two] = [first, other].map(|crop| crop.layout.to_string());
    if one != two {
        return differs("layout", one, two, "set layout for the whole loader");
    }
    if first.channels != other.channels {
        let [first, other] = [first, other].map(|of| format!("{} channels", of.channels));
        return differs(
            "the row",
            first,
            other,
            "make all crops grey with grayscale, or none",
        );
    }
    let [one, two] = [first, other].map(|crop| crop.recipe.decode());
    for (what, one, two) in [
        ("background", json!(one.background), json!(two.background)),
        (
            "orientation",
            json!(one.orientation),
            json!(two.orientation),
        ),
        ("alpha", json!(one.alpha), json!(two.alpha)),
        ("truncated", json!(one.truncated), json!(two.truncated)),
    ] {
        if one != two {
            return Err(format!(
                "decode has {what} {two}, and {one} in the first crop, but an image is decoded \
                 once: give all crops the same. Names and files of recipes have orientation exif \
                 and alpha composite. Transforms of other libraries have stored and drop"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
