//! Several operations, or none of them.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::defaults::half;
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::inner;
use crate::recipe::known::Known;
use crate::recipe::operation::{Named, Operation};
use crate::recipe::random::Numbers;
use crate::recipe::ranges::probability;
use crate::recipe::reach::Sides;
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;

described! {
    example: "random_apply: {transforms: [{gaussian_blur: {kernel_size: 23}}], p: 0.5}";

    /// With probability `p` all of `transforms`, in this order.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomApply<O> {
        /// Operations that keep the size of pictures and what their values mean.
        pub transforms: Vec<O>,
        /// The probability, 0 to 1.
        #[serde(default = "half")]
        pub p: f64,
    }
}

impl<O> RandomApply<O> {
    /// For half of the pictures.
    pub fn new(transforms: impl Into<Vec<O>>) -> Self {
        Self {
            transforms: transforms.into(),
            p: half(),
        }
    }
}

impl<O: Named> Operation for RandomApply<O> {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        probability(self.p)?;
        inner::check(&self.transforms, known)
    }

    fn parts(&self) -> &'static [Part] {
        // Several steps, of which some see the whole picture.
        &[Part::Augment]
    }

    fn draw(
        &self,
        known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        if random.next_f64() < self.p {
            for at in 0..self.transforms.len() {
                inner::draw(&self.transforms, at, (known, size), random, steps)?;
            }
        }
        Ok(size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        inner::largest(&self.transforms, known, size, most);
        size
    }

    fn draws(&self) -> bool {
        true
    }

    fn levels(&self) -> usize {
        inner::levels(&self.transforms)
    }

    fn operations_inside(&self) -> usize {
        inner::operations(&self.transforms)
    }
}
