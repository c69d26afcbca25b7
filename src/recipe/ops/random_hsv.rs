//! Random changes of hue, saturation and value.
//!
//! Coordinates stay.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::number;
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;

described! {
    example: "random_hsv: {hue: 0.015, saturation: 0.7, value: 0.4}";

    /// Changes hue, saturation and value in OpenCV's 8-bit HSV, each by a gain that is uniform
    /// between minus and plus its number (ultralytics' `RandomHSV`). The gain of the hue is a share
    /// of the circle and is added. Saturation and value are multiplied by 1 plus their gain.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomHsv {
        /// The greatest gain of the hue, 0 to 1.
        pub hue: f64 = 0.015,
        /// The greatest gain of the saturation, 0 to 1.
        pub saturation: f64 = 0.7,
        /// The greatest gain of the value, 0 to 1.
        pub value: f64 = 0.4,
    }
}

impl Operation for RandomHsv {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        number("hue", self.hue, 0.0, 1.0)?;
        number("saturation", self.saturation, 0.0, 1.0)?;
        number("value", self.value, 0.0, 1.0)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let most = [self.hue, self.saturation, self.value];
        let gains = most.map(|most| (2.0 * on.random.next_f64() - 1.0) * most);
        on.steps.push(Step::Augment(AugmentStep::Hsv { gains }));
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let gains = [self.hue, self.saturation, self.value];
        most.push(Step::Augment(AugmentStep::Hsv { gains }));
        size
    }
}
