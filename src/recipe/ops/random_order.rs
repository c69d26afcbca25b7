//! Several operations in a drawn order.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::geometry::Uniform;
use crate::recipe::inner;
use crate::recipe::known::Known;
use crate::recipe::operation::{Named, Operation};
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;

described! {
    example: "random_order: {transforms: [{color_jitter: {brightness: 0.4}}, {gaussian_blur: {kernel_size: 9}}]}";

    /// All of `transforms`, each order as likely.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomOrder<O> {
        /// Operations that keep the size of pictures and what their values mean.
        pub transforms: Vec<O>,
    }
}

impl<O> RandomOrder<O> {
    pub fn new(transforms: impl Into<Vec<O>>) -> Self {
        Self {
            transforms: transforms.into(),
        }
    }
}

impl<O: Named> Operation for RandomOrder<O> {
    fn check(&self, known: &mut Known) -> Result<(), String> {
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
        let mut order: Vec<usize> = (0..self.transforms.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, random.next_up_to(i as u32) as usize);
        }
        for at in order {
            inner::draw(&self.transforms, at, (known, size), random, steps)?;
        }
        Ok(size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        // Twice, so that each stands behind every other.
        for _ in 0..2 {
            inner::largest(&self.transforms, known, size, most);
        }
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
