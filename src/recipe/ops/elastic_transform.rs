//! Moves every pixel by a random displacement.
//!
//! The source of a pixel is its own place plus a displacement. Coordinates go the other way, through
//! the inverse of that map.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::number;
use crate::recipe::values::{InterpolationMode, PerChannel, two};

described! {
    example: "elastic_transform: {alpha: 50, sigma: 5}";

    /// Moves every pixel by a random displacement, as if seen through water: blurred noise from -1
    /// to 1, times half of `alpha` pixels. The size stays.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ElasticTransform {
        /// The strength in pixels: one number, or `[along the width, along the height]`.
        #[serde(deserialize_with = "two")]
        pub alpha: [f64; 2] = [50.0; 2],
        /// Deviation of the blur in pixels, at most 64; 0 for both: no blur.
        #[serde(deserialize_with = "two")]
        pub sigma: [f64; 2] = [5.0; 2],
        /// `nearest` or `bilinear`.
        pub interpolation: InterpolationMode = InterpolationMode::Bilinear,
        /// The colour outside the image.
        pub fill: PerChannel = PerChannel::default(),
    }
}

impl Operation for ElasticTransform {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        for alpha in self.alpha {
            number("alpha", alpha, 0.0, MOST_ALPHA)?;
        }
        for sigma in self.sigma {
            number("sigma", sigma, 0.0, MOST_SIGMA)?;
        }
        let [x, y] = self.sigma;
        if (x == 0.0) != (y == 0.0) {
            return Err(format!(
                "sigma is {x} along the width and {y} along the height: use two numbers above 0, \
                 or 0 for no blur"
            ));
        }
        match self.interpolation {
            InterpolationMode::Nearest | InterpolationMode::Bilinear => {}
            other => {
                return Err(format!(
                    "interpolation is {}: use nearest or bilinear",
                    other.name()
                ));
            }
        }
        known.check_color("fill", self.fill.0)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Elastic {
            key: (on.random.next_f64() * (1u64 << 53) as f64) as u64,
            alpha: self.alpha,
            sigma: self.sigma,
            interpolation: self.interpolation,
            fill: on.known.in_memory(self.fill.0),
        });
        Ok(on.size)
    }
}

const MOST_ALPHA: f64 = 100_000.0;
const MOST_SIGMA: f64 = 64.0;
