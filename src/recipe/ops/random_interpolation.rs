//! Shrinks and enlarges an image again, as in PaddleClas.
//!
//! Coordinates are multiplied by the ratio of the sides, and back.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::policy_op::draw_chance;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::probability;
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::step::{AugmentStep, OpencvFilter};
use crate::recipe::steps::StepBounds;
use crate::recipe::values::Size;

described! {
    example: "random_interpolation: {p: 0.2}";

    /// With probability `p`, resizes an image to a square of 0.2 to 1 times its height, then back
    /// to its size. Each resize draws one of OpenCV's filters: nearest, linear, area, cubic or
    /// Lanczos (PaddleClas' `RandomInterpolationAugment`).
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomInterpolation {
        /// The probability, 0 to 1.
        pub p: f64 = 0.2,
    }
}

const FILTERS: [OpencvFilter; 5] = [
    OpencvFilter::Nearest,
    OpencvFilter::Linear,
    OpencvFilter::Area,
    OpencvFilter::Cubic,
    OpencvFilter::Lanczos4,
];

impl Operation for RandomInterpolation {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        probability(self.p)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        if !draw_chance(self.p, on.random) {
            return Ok((height, width));
        }
        let part = 0.2 + 0.8 * on.random.next_f64();
        // The cast truncates. OpenCV cannot resize to 0 pixels.
        let side = ((part * f64::from(height)) as u32).max(1);
        for size in [(side, side), (height, width)] {
            let at = on.random.next_up_to(FILTERS.len() as u32 - 1) as usize;
            let filter = FILTERS.get(at).copied().unwrap_or(OpencvFilter::Linear);
            on.steps.push(resample(size, filter));
        }
        Ok((height, width))
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let before = most.reach();
        let square = (size.0, size.0);
        let most_square = (before.high.0, before.high.0);
        most.optionally(|most| {
            for (size, behind) in [
                (square, SizeBounds::between((1, 1), most_square)),
                (size, before),
            ] {
                let over = StepBounds {
                    size_after: Some(behind),
                    ..StepBounds::default()
                };
                most.add(resample(size, OpencvFilter::Linear), over);
            }
        });
        size
    }
}

fn resample((height, width): HeightWidth, filter: OpencvFilter) -> Step {
    Step::Augment(AugmentStep::Resample {
        size: Size { height, width },
        filter,
    })
}
