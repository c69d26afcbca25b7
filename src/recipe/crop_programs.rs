//! Compiles a recipe with several crops of each image: a program for each crop, which share one
//! decoded image and one format of batches.

use super::check::RecipeFault;
use super::op::Decode;
use super::operation::Operation;
use super::program::SampleProgram;
use super::recipe_crop::RecipeCrop;
use super::recipe_spec::Recipe;
use super::row_extent::RowExtent;
use super::values::ColorOrder;

/// Most crops of one image.
pub(crate) const MAX_CROPS: u32 = 256;

/// The programs of all crops of an image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CropPrograms {
    /// The recipe of all crops.
    pub(super) recipe: Recipe,
    /// One program for each crop, in order. A crop with a count is repeated.
    pub(super) programs: Vec<SampleProgram>,
}

/// Compiles a recipe with crops. The result is the program of the first crop, with those of all
/// crops beside it.
pub(super) fn compile(recipe: &Recipe) -> Result<SampleProgram, RecipeFault> {
    check_whole(recipe)?;
    let mut programs: Vec<SampleProgram> = Vec::new();
    let mut ops_before = 0;
    for (number, crop) in recipe.crops.iter().enumerate() {
        let fault = |op: Option<usize>, message: String| RecipeFault {
            op: Some(ops_before + op.unwrap_or(0)),
            message: format!("{}: {message}", name_of(number, crop)),
        };
        let program = compile_crop(crop).map_err(|(op, message)| fault(op, message))?;
        if let Some(first) = programs.first() {
            check_same(first, &program).map_err(|message| fault(None, message))?;
        }
        ops_before += crop.recipe.ops.len();
        programs.extend((0..crop.count).map(|_| program.clone()));
    }
    let Some(first) = programs.first().cloned() else {
        let message = "crops is an empty list: write crops, or ops".into();
        return Err(RecipeFault { op: None, message });
    };
    Ok(first.with_crop_programs(CropPrograms {
        recipe: recipe.clone(),
        programs,
    }))
}

/// A crop in messages.
fn name_of(number: usize, crop: &RecipeCrop) -> String {
    match crop.recipe.name.as_str() {
        "" => format!("crop {number}"),
        name => format!("crop {number} ({name})"),
    }
}

fn check_whole(recipe: &Recipe) -> Result<(), RecipeFault> {
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

/// Compiles one crop. A fault has the index of an operation of the crop, if it concerns one.
fn compile_crop(crop: &RecipeCrop) -> Result<SampleProgram, (Option<usize>, String)> {
    let RecipeCrop { recipe, count } = crop;
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
    let program = SampleProgram::compile_one(recipe).map_err(|fault| (fault.op, fault.message))?;
    if program.extent == RowExtent::Own {
        return Err((
            None,
            "keeps the size of each image, and the crops of a batch need one size: add \
             random_resized_crop, center_crop or a resize to [height, width]"
                .into(),
        ));
    }
    if let Some(name) = program.size_dependent_op() {
        return Err((
            recipe.ops.iter().position(|op| op.name() == name),
            format!("{name} has `sizes` for multi_scale, which crops do not have: remove them"),
        ));
    }
    Ok(program)
}

/// Checks what all crops of an image share: its decoding, and the format of batches.
fn check_same(first: &SampleProgram, other: &SampleProgram) -> Result<(), String> {
    let differs = |what: &str, first: String, other: String| {
        Err(format!(
            "{what} is {other}, and {first} in the first crop: all crops of an image need the same"
        ))
    };
    let (a, b) = (first.output_format, other.output_format);
    if a.dtype != b.dtype {
        return differs("dtype", a.dtype.to_string(), b.dtype.to_string());
    }
    if a.layout != b.layout {
        return differs("layout", a.layout.to_string(), b.layout.to_string());
    }
    if a.channels() != b.channels() {
        let channels = |n: usize| format!("{n} channels");
        return differs("the row", channels(a.channels()), channels(b.channels()));
    }
    let [one, two] = [first, other].map(|program| {
        Decode {
            // These do not change the decoded image.
            color: ColorOrder::default(),
            mode: None,
            ..program.recipe().decode()
        }
    });
    if one != two {
        return Err(
            "decode has another background, orientation, alpha or truncated than the first crop: \
             an image is decoded once, so all crops need the same"
                .into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
