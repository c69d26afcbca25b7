//! Code shared by operations that contain operations: which ones may be nested, their random
//! numbers, and their largest case.
//!
//! Pure. A nested operation has its own random stream. The stream depends on its name and on how
//! many operations of that name come before it in the list. So skipping or reordering nested
//! operations does not shift the random numbers of others.

use super::operation::{
    DrawContext, HeightWidth, LargestCase, NamedOperation, OperationPart, PixelState, SampleFault,
};

/// The maximum number of operations in one list.
const MOST: usize = 64;
/// The maximum nesting depth.
const DEEPEST: usize = 4;

/// The nesting depth of an operation that contains these.
pub(crate) fn levels<O: NamedOperation>(transforms: &[O]) -> usize {
    let deepest = transforms.iter().map(O::nesting_depth).max();
    deepest.unwrap_or(0) + 1
}

/// The number of these operations, including nested ones.
pub(crate) fn operations<O: NamedOperation>(transforms: &[O]) -> usize {
    let inside = transforms.iter().map(|op| 1 + op.nested_operations());
    inside.sum()
}

/// Checks that each of these may be skipped, and that they may run in any order: none changes the
/// state of the pixels.
///
/// # Errors
/// Names the nested operation and what is accepted.
pub(crate) fn check<O: NamedOperation>(transforms: &[O], known: &PixelState) -> Result<(), String> {
    if !(1..=MOST).contains(&transforms.len()) {
        return Err(format!(
            "transforms has {} operations: use 1 to {MOST}",
            transforms.len()
        ));
    }
    if levels(transforms) > DEEPEST {
        return Err(format!(
            "operations are nested deeper than {DEEPEST} levels: use fewer levels"
        ));
    }
    for op in transforms {
        let fault = |why: &str| Err(format!("{} in transforms: {why}", op.op_name()));
        let mut behind = *known;
        if let Err(why) = op.check(&mut behind) {
            return fault(&why);
        }
        if op.joint().is_some() {
            return fault("joins pictures of several samples: move it out of transforms");
        }
        if op.label_count().is_some() {
            return fault("gives labels, and every sample needs one: move it out of transforms");
        }
        if op.sets_size() || (behind.size, behind.resized) != (known.size, known.resized) {
            return fault(
                "changes the size of images, which must not be random: move it out of transforms",
            );
        }
        let ends =
            |part: &OperationPart| matches!(part, OperationPart::Normalize | OperationPart::Cast);
        let parts = op.parts();
        if behind != *known || parts.is_empty() || parts.iter().any(ends) {
            return fault(
                "changes the meaning of pixel values, which must not be random: move it out of \
                 transforms",
            );
        }
    }
    Ok(())
}

/// Pushes the steps of operation number `at`.
///
/// # Errors
/// Those of the nested operation.
pub(crate) fn draw<O: NamedOperation>(
    transforms: &[O],
    at: usize,
    on: &mut DrawContext<'_>,
) -> Result<(), SampleFault> {
    let (before, rest) = transforms.split_at(at.min(transforms.len()));
    let Some(op) = rest.first() else {
        return Ok(());
    };
    let name = op.op_name();
    let earlier = before.iter().filter(|o| o.op_name() == name).count();
    let inside = DrawContext {
        known: on.known,
        size: on.size,
        boxes: on.boxes,
        random: &mut on.random.nested(name, earlier as u32),
        steps: on.steps,
    };
    op.draw(inside).map(|_| ())
}

/// Pushes the largest case of each operation. All of them are optional.
pub(crate) fn largest<O: NamedOperation>(
    transforms: &[O],
    known: &PixelState,
    size: HeightWidth,
    most: &mut LargestCase<'_>,
) {
    most.optionally(|most| {
        for op in transforms {
            op.largest(known, size, most);
        }
    });
}
