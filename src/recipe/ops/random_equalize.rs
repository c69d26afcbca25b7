//! Levels about equally often, or not.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::ranges::probability;
use crate::recipe::step::{Augment, Step};
use crate::recipe::unit::Part;

described! {
    example: "random_equalize: {p: 0.5}";

    /// With probability `p` every level becomes about as often, in each channel: Pillow's
    /// `equalize`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomEqualize {
        /// The probability, 0 to 1.
        pub p: f64,
    }
}

impl Default for RandomEqualize {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl Operation for RandomEqualize {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels8()?;
        probability(self.p)
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Augment]
    }

    fn chance(&self) -> Option<(f64, Step)> {
        let step = Step::Augment(Augment::Equalize);
        Some((self.p, step))
    }
}
