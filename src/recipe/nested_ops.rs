//! What operations that hold operations share: which ones may stand inside, whose
//! numbers those draw, and their largest case.
//!
//! Pure. An operation inside keeps a stream of its own, by its name and by how many of
//! its kind stand in front of it in there: whether and when it is done shifts no numbers.

use super::operation::{
    DrawContext, HeightWidth, LargestCase, NamedOperation, OperationPart, PixelState, SampleFault,
};

/// Most operations inside of one.
const MOST: usize = 64;
/// Most levels of operations inside of each other.
const DEEPEST: usize = 4;

/// How many levels there are of operations inside of one that holds these.
pub(crate) fn levels<O: NamedOperation>(transforms: &[O]) -> usize {
    let deepest = transforms.iter().map(O::nesting_depth).max();
    deepest.unwrap_or(0) + 1
}

/// How many operations these are, those inside of them included.
pub(crate) fn operations<O: NamedOperation>(transforms: &[O]) -> usize {
    let inside = transforms.iter().map(|op| 1 + op.nested_operations());
    inside.sum()
}

/// Whether these may be done or not, in any order: what is known of the pixels stays.
///
/// # Errors
/// Names the operation inside, and what would be accepted.
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
        if op.label_count().is_some() {
            return fault("gives labels, and every sample needs one: move it out of transforms");
        }
        if op.sets_size() || (behind.size, behind.resized) != (known.size, known.resized) {
            return fault(
                "changes the size of pictures, which must not be random: move it out of transforms",
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

/// Pushes the steps of the operation at that place.
///
/// # Errors
/// As the operation inside has them.
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
        random: &mut on.random.nested(name, earlier as u32),
        steps: on.steps,
    };
    op.draw(inside).map(|_| ())
}

/// Pushes the largest case of each, none of which need be drawn.
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
