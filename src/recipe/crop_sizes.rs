//! Helpers for operations that change sizes.

use super::size_bounds::HeightWidth;
use super::step::Step;
use super::steps::StepSink;
use super::values::Size;
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
