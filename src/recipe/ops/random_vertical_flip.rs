//! Top and bottom change places.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::operation::{Known, Operation, Part, Step};
use crate::recipe::ranges::probability;

described! {
    example: "random_vertical_flip: {p: 0.5}";

    /// Top becomes bottom with probability `p`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomVerticalFlip {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
    }
}

impl Operation for RandomVerticalFlip {
    const PARTS: &'static [Part] = &[Part::Turn];

    fn check(&self, _known: &mut Known) -> Result<(), String> {
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        Some((self.p, Step::UpsideDown))
    }
}
