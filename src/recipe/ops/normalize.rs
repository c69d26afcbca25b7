//! Normalisation with the mean and deviation of each channel.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::{ValueKind, normalize_unit};
use crate::recipe::values::PerChannel;

described! {
    example: "normalize: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}";

    /// `(x - mean) / std` for each channel. For levels (rgb, bgr, grey, ycbcr) x is the value
    /// divided by 255, in `lab` and `hsv` the value itself.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Normalize {
        /// The mean of each channel.
        pub mean: PerChannel,
        /// The deviation of each channel.
        pub std: PerChannel,
    }
}

impl Normalize {
    pub fn new(mean: impl Into<PerChannel>, std: impl Into<PerChannel>) -> Self {
        Self {
            mean: mean.into(),
            std: std.into(),
        }
    }

    /// Mean and deviation of ImageNet, in RGB.
    pub fn imagenet() -> Self {
        Self::new([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    }
}

impl Operation for Normalize {
    const PARTS: &'static [OperationPart] = &[OperationPart::Normalize];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        let (mean, std) = (self.mean.0, self.std.0);
        known.check_color("mean", mean)?;
        known.check_color("std", std)?;
        if std.contains(&0.0) {
            return Err(format!("std is {std:?}: use values other than 0"));
        }
        if known.values == ValueKind::Normalized {
            return Err("comes after standardize: remove one of them".into());
        }
        known.values = ValueKind::Normalized;
        known.floats = true;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Normalize {
            unit: normalize_unit(on.known.values),
            mean: on.known.in_memory(self.mean.0),
            std: on.known.in_memory(self.std.0),
        });
        Ok(on.size)
    }
}
