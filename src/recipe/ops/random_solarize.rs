//! Random inversion of bright levels.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::half;
use crate::recipe::operation::{Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{number, probability};
use crate::recipe::step::AugmentStep;

described! {
    example: "random_solarize: {threshold: 128, p: 0.2}";

    /// With probability `p`, inverts levels of at least `threshold`: Pillow's `solarize`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomSolarize {
        /// The lowest level that is inverted, 0 to 256.
        pub threshold: f64,
        /// The probability, 0 to 1.
        #[serde(default = "half")]
        pub p: f64,
    }
}

impl RandomSolarize {
    /// With probability 0.5.
    pub fn new(threshold: f64) -> Self {
        Self {
            threshold,
            p: half(),
        }
    }
}

impl Operation for RandomSolarize {
    /// It must not move after a resize: other pixels could exceed the threshold.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        number("threshold", self.threshold, 0.0, 256.0)?;
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(AugmentStep::Solarize {
            // Levels are whole numbers, which `f32` holds exactly.
            threshold: self.threshold.ceil() as f32,
        });
        Some((self.p, step))
    }
}
