//! The checks of a recipe: every number is in its range, and every operation can work on the pixels
//! that it gets.
//!
//! The check walks through the operations in the written order and tracks the state of the pixels
//! between them. It stops at the first mistake. The ranges of an operation's own numbers are in its
//! file.

use super::mixing::Mixing;
use super::op::Op;
use super::operation::Operation;
use super::patches::CutRule;
use super::pixel_state::PixelState;
use super::recipe_spec::Recipe;
use super::tensor::DataType;
use crate::error::Error;

/// A mistake in a recipe: the message and the operation. The place in a file is added later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecipeFault {
    /// Index in `Recipe::ops`. The index after the last operation is `Recipe::mixing`, and the next
    /// ones are the operations of `mixing`. None: the recipe as a whole.
    pub(crate) op: Option<usize>,
    /// Names the operation, the number, and what is accepted.
    pub(crate) message: String,
}

impl RecipeFault {
    /// The error for a recipe of this name that does not come from a file.
    pub(crate) fn into_error(self, name: &str) -> Error {
        Error::config(format!("recipe '{name}': {}", self.message))
    }
}

/// The pixel states of a checked recipe, and the format of its batches.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CheckedRecipe {
    /// The state of the pixels before each operation.
    pub(crate) states_before: Vec<PixelState>,
    pub(crate) known: PixelState,
    /// The element type of the batch.
    pub(crate) dtype: DataType,
    /// Height and width of every row. None: each row has the size of its image.
    pub(crate) size: Option<(u32, u32)>,
}

/// The maximum number of operations in a recipe. The planner compares each operation with those
/// before it, so its time grows with the square of their number.
const MOST: usize = 1000;

/// Checks every operation of a recipe.
pub(crate) fn check(recipe: &Recipe) -> Result<CheckedRecipe, RecipeFault> {
    check_number(recipe)?;
    let mut known = PixelState::after_decode(recipe.decode().color);
    let mut seen = RepeatCheck::default();
    let mut before = Vec::new();
    let cuts = |op: &Op| matches!(op, Op::Patches(_) | Op::Tiles(_));
    let cutter = recipe.ops.iter().find(|op| cuts(op)).map(Op::name);
    for (i, op) in recipe.ops.iter().enumerate() {
        let fault = |message: String| RecipeFault {
            op: Some(i),
            message: format!("{}: {message}", op.name()),
        };
        seen.note(op, i).map_err(fault)?;
        before.push(known);
        let was_resized = std::mem::take(&mut known.resized);
        op.check(&mut known).map_err(fault)?;
        if let Some(cutter) = cutter.filter(|_| !cuts(op)) {
            check_beside_patches(op, &known, cutter).map_err(fault)?;
        }
        known.resized |= was_resized;
    }
    let dtype = seen.dtype.unwrap_or(DataType::F32);
    known
        .values
        .check_data_type(dtype)
        .map_err(|message| RecipeFault {
            op: seen.cast,
            message: format!("cast: {message}"),
        })?;
    if let Some(CutRule::Patches(rule)) = known.patches
        && rule.order().is_numbered
        && rule.max_num_patches > whole_numbers(dtype)
    {
        return Err(RecipeFault {
            op: seen.cast,
            message: format!(
                "cast: {} holds whole numbers up to {}, and patches have numbers up to {}: use \
                 f32, or lower max_num_patches",
                dtype.name(),
                whole_numbers(dtype),
                rule.max_num_patches
            ),
        });
    }
    if known.size.is_none() && known.resized && known.patches.is_none() {
        return Err(RecipeFault {
            op: seen.last_resize,
            message: format!(
                "{} leaves images of different sizes, and the rows of a batch need one: add \
                 center_crop, random_crop or a resize to [height, width] after it, or remove it \
                 to keep whole images",
                seen.last_resize
                    .map_or("the recipe", |i| recipe.ops[i].name())
            ),
        });
    }
    Ok(CheckedRecipe {
        states_before: before,
        known,
        dtype,
        size: known.size,
    })
}

/// The whole numbers from 0 to this one are elements of the type.
fn whole_numbers(dtype: DataType) -> u32 {
    match dtype {
        DataType::U8 => 255,
        DataType::F16 => 1 << 11,
        DataType::Bf16 => 1 << 8,
        DataType::F32 => 1 << 24,
    }
}

/// Rejects operations that have no effect on rows of patches or tiles, or change the size of what
/// is cut. `cutter`: the name of the operation that cuts.
fn check_beside_patches(op: &Op, known: &PixelState, cutter: &str) -> Result<(), String> {
    if known.resized {
        return Err(format!(
            "changes the size of images, which {cutter} sets: remove it"
        ));
    }
    match op {
        Op::Layout(_) => Err(format!(
            "has no effect, since {cutter} sets the order: remove it"
        )),
        Op::ZeroChannel(_) => Err(format!(
            "adds a channel, and {cutter} have three: remove it"
        )),
        _ if known.is_grey() => Err(format!(
            "leaves one channel, and {cutter} have three: decode to rgb, and use \
             num_output_channels: 3 in grayscale"
        )),
        _ => Ok(()),
    }
}

/// Counts all operations, including nested ones and those on batches.
fn check_number(recipe: &Recipe) -> Result<(), RecipeFault> {
    let of_samples = recipe.ops.iter().map(|op| 1 + op.nested_operations());
    let of_batches = recipe.mixing.as_ref().map_or(0, Mixing::operations);
    let mut numbers: Vec<usize> = of_samples.collect();
    numbers.push(of_batches);
    let number: usize = numbers.iter().sum();
    if number <= MOST {
        return Ok(());
    }
    let mut left = MOST;
    let over = numbers
        .iter()
        .position(|number| match left.checked_sub(*number) {
            Some(less) => {
                left = less;
                false
            }
            None => true,
        });
    Err(RecipeFault {
        op: over,
        message: format!(
            "the recipe has {number} operations, those inside of others included: use at most \
             {MOST}"
        ),
    })
}

/// Operations that may appear only once, and the last place of some others.
#[derive(Default)]
struct RepeatCheck {
    normalize: bool,
    reads_boxes: bool,
    layout: bool,
    label: Option<&'static str>,
    cast: Option<usize>,
    dtype: Option<DataType>,
    last_resize: Option<usize>,
}

impl RepeatCheck {
    fn note(&mut self, op: &Op, at: usize) -> Result<(), String> {
        let twice = |seen: &mut bool| match std::mem::replace(seen, true) {
            true => Err("is written twice: remove one".to_owned()),
            false => Ok(()),
        };
        if op.label_count().is_some()
            && let Some(first) = self.label.replace(op.name())
        {
            return Err(format!(
                "label is true, and {first} before it gives the labels already: remove one"
            ));
        }
        if op.reads_boxes() && std::mem::replace(&mut self.reads_boxes, true) {
            return Err("is the second operation that reads boxes: remove one".into());
        }
        if op.sets_size() {
            self.last_resize = Some(at);
        }
        match op {
            Op::Decode(_) if at > 0 => {
                return Err(
                    "must be the first operation, and only once: move it to the top".into(),
                );
            }
            Op::Normalize(_) => twice(&mut self.normalize)?,
            Op::Layout(_) => twice(&mut self.layout)?,
            Op::Cast(cast) => {
                self.cast = Some(at);
                self.dtype = Some(cast.dtype);
            }
            _ => {}
        }
        Ok(())
    }
}
