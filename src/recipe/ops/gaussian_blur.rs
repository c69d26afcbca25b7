//! A blur of random strength.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::range;
use crate::recipe::reach::Sides;
use crate::recipe::step::Step;
use crate::recipe::steps::Sink;
use crate::recipe::unit::Part;
use crate::recipe::values::{Size, Span};

described! {
    example: "gaussian_blur: {kernel_size: 23, sigma: [0.1, 2.0]}";

    /// A Gaussian of `kernel_size` (odd; height, width) with a deviation uniform in
    /// `sigma`, pixels; edges are reflected, as in torchvision.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct GaussianBlur {
        /// Height and width of the kernel, odd, at most 255.
        pub kernel_size: Size,
        /// Range of the deviation, pixels.
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
    fn check(&self, _known: &mut Known) -> Result<(), String> {
        let k = self.kernel_size;
        for side in [k.height, k.width] {
            if side % 2 == 0 || side > 255 {
                return Err(format!("kernel_size is {k}: use odd numbers, at most 255"));
            }
        }
        range("sigma", self.sigma, 0.0, 1000.0)?;
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Blur]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        steps.push(Step::Blur {
            kernel: self.kernel_size,
            sigma: self.sigma.draw(random),
        });
        Ok(size)
    }

    fn draws(&self) -> bool {
        true
    }
}
