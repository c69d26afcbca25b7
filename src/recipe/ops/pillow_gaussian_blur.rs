//! Pillow's `ImageFilter.GaussianBlur` with a random radius.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::policy_op::draw_chance;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{probability, range};
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;
use crate::recipe::values::Span;

described! {
    example: "pillow_gaussian_blur: {radius: [0.1, 2.0], p: 0.5}";

    /// With probability `p`, Pillow's `GaussianBlur` with a radius uniform in `radius`. Pillow blurs
    /// with three boxes along each axis. The radius is the standard deviation in pixels. SimCLR,
    /// MoCo, DINO, lightly and solo-learn blur in this way.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct PillowGaussianBlur {
        /// Range of the radius in pixels, 0 to 1000.
        pub radius: Span = Span(0.1, 2.0),
        /// The probability, 0 to 1.
        pub p: f64 = 1.0,
    }
}

impl Operation for PillowGaussianBlur {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        probability(self.p)?;
        range("radius", self.radius, 0.0, MOST_RADIUS)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if draw_chance(self.p, on.random) {
            let radius = self.radius.draw(on.random) as f32;
            if radius > 0.0 {
                on.steps
                    .push(Step::Augment(AugmentStep::BoxBlurs { radius }));
            }
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        if self.p > 0.0 {
            let radius = self.radius.1 as f32;
            most.optionally(|most| most.push(Step::Augment(AugmentStep::BoxBlurs { radius })));
        }
        size
    }
}

const MOST_RADIUS: f64 = 1000.0;
