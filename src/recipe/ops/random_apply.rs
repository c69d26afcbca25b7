//! Several operations, all or none.
//!
//! Coordinates move as by its operations, or not at all.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::half;
use crate::recipe::nested_ops;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, NamedOperation, Operation, OperationPart, PixelState,
    SampleFault, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::probability;

described! {
    example: "random_apply: {transforms: [{gaussian_blur: {kernel_size: 23}}], p: 0.5}";

    /// With probability `p`, runs all of `transforms` in this order.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomApply<O> {
        /// Operations that keep the size of images and the kind of values.
        pub transforms: Vec<O>,
        /// The probability, 0 to 1.
        #[serde(default = "half")]
        pub p: f64,
    }
}

impl<O> RandomApply<O> {
    /// With probability 0.5.
    pub fn new(transforms: impl Into<Vec<O>>) -> Self {
        Self {
            transforms: transforms.into(),
            p: half(),
        }
    }
}

impl<O: NamedOperation> Operation for RandomApply<O> {
    /// Several steps, some of which need the whole image.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        nested_ops::check(&self.transforms, known)
    }

    fn draw(&self, mut on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if on.random.next_f64() < self.p {
            for at in 0..self.transforms.len() {
                nested_ops::draw(&self.transforms, at, &mut on)?;
            }
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        nested_ops::largest(&self.transforms, known, size, most);
        size
    }

    fn nesting_depth(&self) -> usize {
        nested_ops::levels(&self.transforms)
    }

    fn nested_operations(&self) -> usize {
        nested_ops::operations(&self.transforms)
    }
}
