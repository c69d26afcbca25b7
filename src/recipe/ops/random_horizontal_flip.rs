//! Left and right change places.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::ranges::probability;
use crate::recipe::step::Step;
use crate::recipe::unit::Part;

described! {
    example: "random_horizontal_flip: {p: 0.5}";

    /// Left becomes right with probability `p`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomHorizontalFlip {
        /// The probability, 0 to 1.
        pub p: f64,
    }
}

impl Default for RandomHorizontalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl Operation for RandomHorizontalFlip {
    fn check(&self, _known: &mut Known) -> Result<(), String> {
        probability(self.p)
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Turn]
    }

    fn chance(&self) -> Option<(f64, Step)> {
        Some((self.p, Step::Mirror))
    }
}
