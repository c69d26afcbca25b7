//! Several operations, or none of them.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::half;
use crate::recipe::described::described;
use crate::recipe::inner;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Named, Operation, Part, SampleFault, Sides, Uniform,
};
use crate::recipe::ranges::probability;

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
    /// Several steps, of which some see the whole picture.
    const PARTS: &'static [Part] = &[Part::Augment];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        probability(self.p)?;
        inner::check(&self.transforms, known)
    }

    fn draw(&self, mut on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        if on.random.next_f64() < self.p {
            for at in 0..self.transforms.len() {
                inner::draw(&self.transforms, at, &mut on)?;
            }
        }
        Ok(on.size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        inner::largest(&self.transforms, known, size, most);
        size
    }

    fn levels(&self) -> usize {
        inner::levels(&self.transforms)
    }

    fn operations_inside(&self) -> usize {
        inner::operations(&self.transforms)
    }
}
