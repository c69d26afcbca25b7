//! A random flip from left to right.
//!
//! x becomes width - x.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::probability;

described! {
    example: "random_horizontal_flip: {p: 0.5}";

    /// With probability `p`, flips left and right.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomHorizontalFlip {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
    }
}

impl Operation for RandomHorizontalFlip {
    const PARTS: &'static [OperationPart] = &[OperationPart::Turn];

    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        Some((self.p, Step::Mirror))
    }
}
