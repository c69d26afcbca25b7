//! A Gaussian blur of random strength.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::range;
use crate::recipe::values::{Size, Span};

described! {
    example: "gaussian_blur: {kernel_size: 23, sigma: [0.1, 2.0]}";

    /// A Gaussian blur with a kernel of `kernel_size` (odd; height, width) and a deviation uniform
    /// in `sigma`, in pixels. Edges are reflected, as in torchvision.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct GaussianBlur {
        /// Height and width of the kernel, odd, at most 255.
        pub kernel_size: Size,
        /// Range of the deviation in pixels.
        #[serde(default = "GaussianBlur::default_sigma")]
        pub sigma: Span,
    }
}

impl GaussianBlur {
    fn default_sigma() -> Span {
        Span(0.1, 2.0)
    }

    pub fn new(kernel_size: impl Into<Size>) -> Self {
        Self {
            kernel_size: kernel_size.into(),
            sigma: Self::default_sigma(),
        }
    }
}

impl Operation for GaussianBlur {
    const PARTS: &'static [OperationPart] = &[OperationPart::Blur];

    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        let k = self.kernel_size;
        for side in [k.height, k.width] {
            if side % 2 == 0 || side > 255 {
                return Err(format!("kernel_size is {k}: use odd numbers, at most 255"));
            }
        }
        range("sigma", self.sigma, 0.0, 1000.0)?;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Blur {
            kernel: self.kernel_size,
            sigma: self.sigma.draw(on.random),
        });
        Ok(on.size)
    }
}
