//! Several operations in a drawn order.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::inner;
use crate::recipe::operation::{
    DrawContext, Known, Largest, Named, Operation, Part, SampleFault, Sides, Uniform,
};

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
    /// Several steps, of which some see the whole picture.
    const PARTS: &'static [Part] = &[Part::Augment];

    fn check(&self, known: &mut Known) -> Result<(), String> {
        inner::check(&self.transforms, known)
    }

    fn draw(&self, mut on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        let mut order: Vec<usize> = (0..self.transforms.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, on.random.next_up_to(i as u32) as usize);
        }
        for at in order {
            inner::draw(&self.transforms, at, &mut on)?;
        }
        Ok(on.size)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        // Twice, so that each stands behind every other.
        for _ in 0..2 {
            inner::largest(&self.transforms, known, size, most);
        }
        size
    }

    fn levels(&self) -> usize {
        inner::levels(&self.transforms)
    }

    fn operations_inside(&self) -> usize {
        inner::operations(&self.transforms)
    }
}
