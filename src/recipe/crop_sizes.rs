//! What operations on sizes have in common.

use super::size_bounds::HeightWidth;
use super::step::Step;
use super::steps::StepSink;
use super::values::Size;
use crate::error::{FaultKind, SampleFault};

/// Whether a crop of this size fits.
///
/// # Errors
/// When the picture is too small.
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
        "the picture is {w} x {h}, and {op} takes {size} of it: {fix}"
    )))
}

/// Pushes quarter turns, 0 to 3; what the sides become.
pub(crate) fn turn(quarters: u8, (h, w): HeightWidth, steps: &mut dyn StepSink) -> HeightWidth {
    if quarters > 0 {
        steps.push(Step::Turn(quarters));
    }
    if quarters % 2 == 1 { (w, h) } else { (h, w) }
}
