//! Helpers for operations that change sizes.

use super::operation::DrawContext;
use super::ranges::MAX_SIDE;
use super::size_bounds::{HeightWidth, SizeBounds};
use super::step::Step;
use super::steps::{LargestCase, StepBounds, StepSink};
use super::values::{InterpolationMode, Size};
use crate::error::{FaultKind, SampleFault};

/// Checks that a crop of this size fits.
///
/// # Errors
/// If the image is too small.
pub(crate) fn check_fits(
    size: Size,
    (h, w): HeightWidth,
    op: &str,
    fix: &str,
) -> Result<(), SampleFault> {
    if size.height <= h && size.width <= w {
        return Ok(());
    }
    Err(FaultKind::TooSmall.fault(format!(
        "the image is {w} x {h}, and {op} takes {size} of it: {fix}"
    )))
}

/// Pushes a turn by 0 to 3 quarters and returns the new height and width.
pub(crate) fn turn(quarters: u8, (h, w): HeightWidth, steps: &mut dyn StepSink) -> HeightWidth {
    if quarters > 0 {
        steps.push(Step::Turn(quarters));
    }
    if quarters % 2 == 1 { (w, h) } else { (h, w) }
}

/// Checks that no side of a result is too long.
///
/// # Errors
/// If a side is.
pub(crate) fn check_result(
    op: &str,
    (height, width): HeightWidth,
    to: HeightWidth,
) -> Result<(), SampleFault> {
    if to.0.max(to.1) <= MAX_SIDE {
        return Ok(());
    }
    Err(FaultKind::TooLarge.fault(format!(
        "the image is {width} x {height}, {op} makes it {} x {}, and a side has at most \
         {MAX_SIDE} pixels: put a crop before it",
        to.1, to.0
    )))
}

/// Pushes a resize, with its filter and whether it is antialiased, and returns the new height and
/// width.
///
/// # Errors
/// If a side is too long.
pub(crate) fn push_resize(
    on: DrawContext<'_>,
    op: &str,
    to: HeightWidth,
    (interpolation, antialias): (InterpolationMode, bool),
) -> Result<HeightWidth, SampleFault> {
    check_result(op, on.size, to)?;
    on.steps.push(Step::Resize {
        size: to.into(),
        interpolation,
        antialias,
    });
    Ok(to)
}

/// Pushes the largest resize. `most_sides`: the greatest height and width over all images.
pub(crate) fn push_largest_resize(
    most: &mut LargestCase<'_>,
    to: HeightWidth,
    most_sides: HeightWidth,
    (interpolation, antialias): (InterpolationMode, bool),
) -> HeightWidth {
    let to = (to.0.min(MAX_SIDE), to.1.min(MAX_SIDE));
    let step = Step::Resize {
        size: to.into(),
        interpolation,
        antialias,
    };
    largest_resize(most, step, most_sides);
    to
}

/// Pushes this resize with the greatest height and width over all images.
pub(crate) fn largest_resize(most: &mut LargestCase<'_>, step: Step, (height, width): HeightWidth) {
    let high = (height.min(MAX_SIDE), width.min(MAX_SIDE));
    let over = StepBounds {
        size_after: Some(SizeBounds::between((1, 1), high)),
        ..StepBounds::default()
    };
    most.add(step, over);
}
