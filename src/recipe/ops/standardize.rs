//! Standardisation with the mean and deviation of each image.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::ValueKind;

described! {
    example: "standardize: {}";

    /// `(x - mean) / max(std, 1 / sqrt(n))`. Mean and deviation are those of all n values of the
    /// image. The deviation divides by n - 1. As the processor of Pix2Struct in transformers, and
    /// nearly as `per_image_standardization` of TensorFlow, which divides by n. Not beside
    /// `normalize`.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Standardize {}
}

impl Operation for Standardize {
    // The numbers are those of the whole image, so nothing moves across it.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        if known.values == ValueKind::Normalized {
            return Err("comes after normalize or another standardize: remove one of them".into());
        }
        known.values = ValueKind::Normalized;
        known.floats = true;
        known.is_standardized = true;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Standardize {
            grey: on.known.is_grey(),
        });
        Ok(on.size)
    }
}
