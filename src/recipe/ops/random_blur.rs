//! PaddleClas' `BlurImage`: a Gaussian blur, a motion blur or none. The choice may be the label.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::is_default;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{number, probability};
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;

described! {
    example: "random_blur: {p: 0.5}";

    /// With probability `p`, one of two blurs with equal probability, as in OpenCV: a Gaussian with
    /// a random kernel size, or a motion blur along a random line, stretched to all levels.
    /// PaddleClas' `BlurImage`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomBlur {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
        /// Sides of Gaussian kernels are 5, 7 and so on, below this number: 6 to 12.
        pub gaussian_below: u32 = 12,
        /// Lengths of motions are 5, 7 and so on, below this number: 6 to 12.
        pub motion_below: u32 = 12,
        /// Angles of motions are whole degrees from minus this number to one less than it: 1 to
        /// 180.
        pub motion_angle: u32 = 45,
        /// Uses 1 (blurred) or 0 as the sample's label, instead of the data set's. Only one
        /// operation of a recipe may set labels.
        #[serde(skip_serializing_if = "is_default")]
        pub label: bool = false,
    }
}

/// The smallest side of a kernel.
const LEAST: u32 = 5;
/// OpenCV blurs longer kernels by a Fourier transform.
const MOST_BELOW: u32 = 12;
const MOST_ANGLE: u32 = 180;

impl Operation for RandomBlur {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        probability(self.p)?;
        let in_range = |name: &str, v: u32, least: u32, most: u32| {
            number(name, f64::from(v), f64::from(least), f64::from(most))
        };
        in_range("gaussian_below", self.gaussian_below, LEAST + 1, MOST_BELOW)?;
        in_range("motion_below", self.motion_below, LEAST + 1, MOST_BELOW)?;
        in_range("motion_angle", self.motion_angle, 1, MOST_ANGLE)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        // It must be the first number drawn: `draw_label` draws it again.
        if !blurs(self.p, on.random) {
            return Ok(on.size);
        }
        let is_motion = on.random.next_up_to(1) == 1;
        let step = if is_motion {
            let length = odd_below(self.motion_below, on.random);
            let turn = on
                .random
                .next_up_to((2 * self.motion_angle).saturating_sub(1));
            AugmentStep::MotionBlur {
                length,
                degrees: turn as i32 - self.motion_angle as i32,
            }
        } else {
            let width = odd_below(self.gaussian_below, on.random);
            let height = odd_below(self.gaussian_below, on.random);
            AugmentStep::GaussianBlur { width, height }
        };
        on.steps.push(Step::Augment(step));
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        if self.p > 0.0 {
            let blur = AugmentStep::MotionBlur {
                length: LEAST,
                degrees: 0,
            };
            most.optionally(|most| most.push(Step::Augment(blur)));
        }
        size
    }

    fn label_count(&self) -> Option<u32> {
        self.label.then_some(2)
    }

    fn draw_label(&self, random: &mut impl UniformSource) -> Option<i64> {
        self.label.then(|| blurs(self.p, random).into())
    }
}

fn blurs(p: f64, random: &mut impl UniformSource) -> bool {
    random.next_f64() < p || p >= 1.0
}

/// A random one of 5, 7 and so on, below a number.
fn odd_below(below: u32, random: &mut impl UniformSource) -> u32 {
    let last = below.saturating_sub(LEAST + 1) / 2;
    LEAST + 2 * random.next_up_to(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter(u64);

    impl UniformSource for Counter {
        fn next_f64(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn sides_are_those_of_arange() {
        for (below, sides) in [
            (6, &[5][..]),
            (7, &[5]),
            (8, &[5, 7]),
            (11, &[5, 7, 9]),
            (12, &[5, 7, 9, 11]),
        ] {
            let mut random = Counter(9);
            let mut seen: Vec<u32> = (0..300).map(|_| odd_below(below, &mut random)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, sides, "{below}");
        }
    }
}
