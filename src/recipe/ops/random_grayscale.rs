//! To grey, or not.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::known::Known;
use crate::recipe::operation::{OnDevice, Operation};
use crate::recipe::random::{Numbers, Streams};
use crate::recipe::ranges::probability;
use crate::recipe::reach::Sides;
use crate::recipe::step::Step;
use crate::recipe::steps::{Largest, Sink};
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

    fn draw<S: Streams>(
        &self,
        _known: &Known,
        size: Sides,
        random: &mut Numbers<'_, S>,
        steps: &mut impl Sink,
    ) -> Result<Sides, SampleFault> {
        if random.next_f64() < self.p {
            steps.push(Step::Grayscale);
        }
        Ok(size)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.optionally(|most| most.push(Step::Grayscale));
        size
    }

    fn draws(&self) -> bool {
        true
    }

    fn on_device(&self) -> OnDevice {
        OnDevice {
            colors: Some(1),
            ..OnDevice::default()
        }
    }
}
