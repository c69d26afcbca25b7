//! A random change of sharpness.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::half;
use crate::recipe::operation::{Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_FACTOR, number, probability};
use crate::recipe::step::AugmentStep;

described! {
    example: "random_adjust_sharpness: {sharpness_factor: 2.0, p: 0.5}";

    /// With probability `p`, mixes the image with a smoothed one: Pillow's
    /// `ImageEnhance.Sharpness`. Factor 0 gives the smoothed image, 1 the original, 2 twice the
    /// sharpness.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomAdjustSharpness {
        /// 0 to 1000.
        pub sharpness_factor: f64,
        /// The probability, 0 to 1.
        #[serde(default = "half")]
        pub p: f64,
    }
}

impl RandomAdjustSharpness {
    /// With probability 0.5.
    pub fn new(sharpness_factor: f64) -> Self {
        Self {
            sharpness_factor,
            p: half(),
        }
    }
}

impl Operation for RandomAdjustSharpness {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        number("sharpness_factor", self.sharpness_factor, 0.0, MAX_FACTOR)?;
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(AugmentStep::Sharpness(self.sharpness_factor as f32));
        Some((self.p, step))
    }
}
