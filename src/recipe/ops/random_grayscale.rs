//! To grey, or not.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::operation::{Known, OnDevice, Operation, Part, Step};
use crate::recipe::ranges::probability;

described! {
    example: "random_grayscale: {p: 0.1}";

    /// To grey with probability `p`; the number of channels stays.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomGrayscale {
        /// The probability, 0 to 1.
        pub p: f64 = 0.1,
    }
}

impl Operation for RandomGrayscale {
    const PARTS: &'static [Part] = &[Part::Color];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels_of_rgb("is made from rgb levels")?;
        probability(self.p)?;
        Ok(())
    }

    fn chance(&self) -> Option<(f64, Step)> {
        Some((self.p, Step::Grayscale))
    }

    fn on_device(&self) -> OnDevice {
        OnDevice {
            colors: Some(1),
            ..OnDevice::default()
        }
    }
}
