//! To grey, or not.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::{OnDevice, Operation};
use crate::recipe::ranges::probability;
use crate::recipe::step::Step;
use crate::recipe::unit::Part;

described! {
    example: "random_grayscale: {p: 0.1}";

    /// To grey with probability `p`; the number of channels stays.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomGrayscale {
        /// The probability, 0 to 1.
        pub p: f64,
    }
}

impl Default for RandomGrayscale {
    fn default() -> Self {
        Self { p: 0.1 }
    }
}

impl Operation for RandomGrayscale {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels_of_rgb("is made from rgb levels")?;
        probability(self.p)?;
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Color]
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
