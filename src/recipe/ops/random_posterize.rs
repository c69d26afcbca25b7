//! A random reduction of levels.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::half;
use crate::recipe::operation::{Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{number, probability};
use crate::recipe::step::AugmentStep;

described! {
    example: "random_posterize: {bits: 4, p: 0.5}";

    /// With probability `p`, keeps the upper `bits` of each level and sets the others to 0:
    /// Pillow's `posterize`. 0 bits: black.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomPosterize {
        /// Bits that stay, 0 to 8.
        pub bits: u32,
        /// The probability, 0 to 1.
        #[serde(default = "half")]
        pub p: f64,
    }
}

impl RandomPosterize {
    /// With probability 0.5.
    pub fn new(bits: u32) -> Self {
        Self { bits, p: half() }
    }
}

impl Operation for RandomPosterize {
    /// It must not move after a resize: mixed pixels could fall to other levels, by up to a whole
    /// step.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        number("bits", f64::from(self.bits), 0.0, 8.0)?;
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(AugmentStep::Posterize {
            bits: self.bits as u8,
        });
        Some((self.p, step))
    }
}
