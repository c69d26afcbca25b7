//! One operation of several.
//!
//! Coordinates move as by the chosen operation.

use serde::{Deserialize, Serialize};

use crate::recipe::nested_ops;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, NamedOperation, Operation, OperationPart, PixelState,
    SampleFault, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::number;

described! {
    example: "random_choice: {transforms: [{random_invert: {p: 1}}, {random_equalize: {p: 1}}], \
              p: [1, 2]}";

    /// One of `transforms`, with the weights in `p`, or all with equal probability.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomChoice<O> {
        /// Operations that keep the size of images and the kind of values.
        pub transforms: Vec<O>,
        /// One weight per operation, at least 0, with a sum above 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub p: Option<Vec<f64>>,
    }
}

impl<O> RandomChoice<O> {
    /// With equal probabilities.
    pub fn new(transforms: impl Into<Vec<O>>) -> Self {
        Self {
            transforms: transforms.into(),
            p: None,
        }
    }
}

impl<O: NamedOperation> Operation for RandomChoice<O> {
    /// Several steps, some of which need the whole image.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        if let Some(p) = &self.p {
            weights(p, self.transforms.len())?;
        }
        nested_ops::check(&self.transforms, known)
    }

    fn draw(&self, mut on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let at = self.chosen(on.random.next_f64());
        nested_ops::draw(&self.transforms, at, &mut on)?;
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

impl<O> RandomChoice<O> {
    /// The index of the operation for a number in [0, 1).
    fn chosen(&self, number: f64) -> usize {
        let last = self.transforms.len().saturating_sub(1);
        let Some(p) = &self.p else {
            let at = number * self.transforms.len() as f64;
            return (at as usize).min(last);
        };
        let number = number * p.iter().sum::<f64>();
        let mut below = 0.0;
        let found = p.iter().position(|weight| {
            below += weight;
            number < below
        });
        // Only rounding leads past the last one.
        found
            .or(p.iter().rposition(|weight| *weight > 0.0))
            .unwrap_or(last)
    }
}

fn weights(p: &[f64], transforms: usize) -> Result<(), String> {
    if p.len() != transforms {
        return Err(format!(
            "p has {} weights, and transforms has {transforms} operations: use one weight for each",
            p.len()
        ));
    }
    for weight in p {
        number("p", *weight, 0.0, MOST_WEIGHT)?;
    }
    match p.iter().any(|weight| *weight > 0.0) {
        true => Ok(()),
        false => Err("p has no weight above 0: use at least one".into()),
    }
}

/// Keeps the sum finite.
const MOST_WEIGHT: f64 = 1e9;
