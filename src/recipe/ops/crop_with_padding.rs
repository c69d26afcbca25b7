//! Fills everything outside a random box with one colour.
//!
//! Coordinates stay: pixels outside the box change, and none moves.

use serde::{Deserialize, Serialize};

use crate::recipe::geometry::{outside_boxes, random_box};
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{probability, range};
use crate::recipe::step::BoxFill;
use crate::recipe::values::{PerChannel, Span};

described! {
    example: "crop_with_padding: {p: 0.5, value: 128}";

    /// With probability `p`, keeps the pixels of a random box and sets all others to `value`. The
    /// size stays (PaddleClas' `CropWithPadding`). The box is that of `random_resized_crop`.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct CropWithPadding {
        /// The probability, 0 to 1.
        pub p: f64 = 1.0,
        /// Range of the box's area as a share of the image's.
        pub scale: Span = Span(0.08, 1.0),
        /// Range of the box's width divided by its height.
        pub ratio: Span = Span(3.0 / 4.0, 4.0 / 3.0),
        /// The colour around the box, in levels.
        pub value: PerChannel = PerChannel::default(),
    }
}

impl Operation for CropWithPadding {
    const PARTS: &'static [OperationPart] = &[OperationPart::Erase];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        range("scale", self.scale, 0.0, 1.0)?;
        range("ratio", self.ratio, 0.0, f64::MAX)?;
        known.check_color("value", self.value.0)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if on.random.next_f64() < self.p {
            let (scale, ratio) = ((self.scale.0, self.scale.1), (self.ratio.0, self.ratio.1));
            let kept = random_box(on.size.1, on.size.0, scale, ratio, on.random);
            for rect in outside_boxes(kept, on.size) {
                on.steps.push(Step::Erase {
                    rect,
                    with: BoxFill::Value(on.known.in_memory(self.value.0)),
                    grey: on.known.is_grey(),
                });
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
        most.push_erase(known, size)
    }
}
