//! Random autocontrast.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::probability;
use crate::recipe::step::AugmentStep;

described! {
    example: "random_autocontrast: {p: 0.5}";

    /// With probability `p`, stretches each channel so that its lowest level becomes 0 and its
    /// highest 255: Pillow's `autocontrast`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomAutocontrast {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
    }
}

impl Operation for RandomAutocontrast {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(AugmentStep::AutoContrast);
        Some((self.p, step))
    }
}
