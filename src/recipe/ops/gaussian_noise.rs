//! torchvision's `GaussianNoise`.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::ValueKind;
use crate::recipe::ranges::number;

described! {
    example: "gaussian_noise: {sigma: 0.1}";

    /// Adds normal noise to every value. Its numbers are shares of 255 levels; after `normalize`,
    /// normalised values. 8-bit levels get whole numbers: the noise is truncated towards zero.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct GaussianNoise {
        /// The mean, -10 to 10.
        pub mean: f64 = 0.0,
        /// The standard deviation, 0 to 10.
        pub sigma: f64 = 0.1,
        /// Keeps levels in 0 to 255. If false, 8-bit levels wrap around. Must be false after
        /// `normalize`.
        pub clip: bool = true,
    }
}

/// With these, the noise fits 16 bits.
const MOST: f64 = 10.0;

impl Operation for GaussianNoise {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        number("mean", self.mean, -MOST, MOST)?;
        number("sigma", self.sigma, 0.0, MOST)?;
        match known.values {
            ValueKind::Levels => Ok(()),
            ValueKind::Normalized if !self.clip => Ok(()),
            ValueKind::Normalized => Err(
                "clip keeps levels in 0 to 255, and the pixels are normalized: move it before \
                 normalize, or set clip: false"
                    .to_owned(),
            ),
            ValueKind::Color(space) => Err(format!(
                "adds to levels, and the pixels are {}: move it before convert_color",
                space.name()
            )),
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let unit = match on.known.values {
            ValueKind::Levels => 255.0,
            ValueKind::Color(_) | ValueKind::Normalized => 1.0,
        };
        on.steps.push(Step::Noise {
            key: (on.random.next_f64() * (1u64 << 53) as f64) as u64,
            mean: (self.mean * unit) as f32,
            sigma: (self.sigma * unit) as f32,
            clip: self.clip,
            grey: on.known.is_grey(),
        });
        Ok(on.size)
    }
}
