//! Random inversion of levels.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::probability;
use crate::recipe::step::AugmentStep;

described! {
    example: "random_invert: {p: 0.5}";

    /// With probability `p`, replaces each level v by 255 - v.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomInvert {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
    }
}

impl Operation for RandomInvert {
    const PARTS: &'static [OperationPart] = &[OperationPart::Color];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(AugmentStep::Invert);
        Some((self.p, step))
    }
}
