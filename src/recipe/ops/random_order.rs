//! Several operations in random order.
//!
//! Coordinates move as by its operations, in the drawn order.

use serde::{Deserialize, Serialize};

use crate::recipe::nested_ops;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, NamedOperation, Operation, OperationPart, PixelState,
    SampleFault, UniformSource,
};
use crate::recipe::operation_docs::described;

described! {
    example: "random_order: {transforms: [{color_jitter: {brightness: 0.4}}, {gaussian_blur: {kernel_size: 9}}]}";

    /// Runs all of `transforms`, each order with equal probability.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomOrder<O> {
        /// Operations that keep the size of images and the kind of values.
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

impl<O: NamedOperation> Operation for RandomOrder<O> {
    /// Several steps, some of which need the whole image.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        nested_ops::check(&self.transforms, known)
    }

    fn draw(&self, mut on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let mut order: Vec<usize> = (0..self.transforms.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, on.random.next_up_to(i as u32) as usize);
        }
        for at in order {
            nested_ops::draw(&self.transforms, at, &mut on)?;
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        // Twice, so that each comes after every other.
        for _ in 0..2 {
            nested_ops::largest(&self.transforms, known, size, most);
        }
        size
    }

    fn nesting_depth(&self) -> usize {
        nested_ops::levels(&self.transforms)
    }

    fn nested_operations(&self) -> usize {
        nested_ops::operations(&self.transforms)
    }
}
