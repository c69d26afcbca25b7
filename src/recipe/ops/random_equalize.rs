//! Levels about equally often, or not.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::{Numbers, Streams};
use crate::recipe::ranges::probability;
use crate::recipe::reach::Sides;
use crate::recipe::step::{Augment, Step};
use crate::recipe::steps::{Largest, Sink};
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

    fn draw<S: Streams>(
        &self,
        _known: &Known,
        size: Sides,
        random: &mut Numbers<'_, S>,
        steps: &mut impl Sink,
    ) -> Result<Sides, SampleFault> {
        if random.next_f64() < self.p {
            steps.push(self.step());
        }
        Ok(size)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.optionally(|most| most.push(self.step()));
        size
    }

    fn draws(&self) -> bool {
        true
    }
}

impl RandomEqualize {
    fn step(&self) -> Step {
        Step::Augment(Augment::Equalize)
    }
}
