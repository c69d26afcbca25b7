//! torchvision's `JPEG`: encodes and decodes.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::range;
use crate::recipe::step::AugmentStep;
use crate::recipe::values::Span;

described! {
    example: "jpeg: {quality: [40, 90]}";

    /// Encodes the image as JPEG with a random `quality`, and decodes it again. The pixels are those
    /// of libjpeg-turbo, as in torchvision's `JPEG` and in Pillow: chroma at half size both ways.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Jpeg {
        /// One quality, or the lowest and the highest: whole numbers, 1 to 100. All are equally
        /// likely.
        pub quality: Span,
    }
}

impl Jpeg {
    /// With a quality from `low` to `high`.
    pub fn new(low: u8, high: u8) -> Self {
        Self {
            quality: Span(f64::from(low), f64::from(high)),
        }
    }
}

impl Operation for Jpeg {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        let Span(low, high) = self.quality;
        range("quality", self.quality, 1.0, 100.0)?;
        match low.fract() == 0.0 && high.fract() == 0.0 {
            true => Ok(()),
            false => Err(format!("quality is {low} to {high}: use whole numbers")),
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let Span(low, high) = self.quality;
        let quality = low as u32 + on.random.next_up_to((high - low) as u32);
        let quality = quality as u8;
        on.steps.push(Step::Augment(AugmentStep::Jpeg { quality }));
        Ok(on.size)
    }
}
