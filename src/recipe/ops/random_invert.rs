//! Levels inverted, or not.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::operation::{Known, Operation, Part, Step};
use crate::recipe::ranges::probability;
use crate::recipe::step::Augment;

described! {
    example: "random_invert: {p: 0.5}";

    /// With probability `p` each level v becomes 255 - v.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomInvert {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
    }
}

impl Operation for RandomInvert {
    const PARTS: &'static [Part] = &[Part::Color];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels8()?;
        probability(self.p)
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(Augment::Invert);
        Some((self.p, step))
    }
}
