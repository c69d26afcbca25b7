//! torchvision's `RandomPhotometricDistort`: the colour changes of SSD.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource, push_lowest_draw,
};
use crate::recipe::operation_docs::described;
use crate::recipe::permutation::draw_permutation;
use crate::recipe::ranges::{MAX_FACTOR, probability, range};
use crate::recipe::step::AugmentStep;
use crate::recipe::values::{JitterStyle, Span};

described! {
    example: "random_photometric_distort: {p: 0.5}";

    /// Changes brightness, contrast, saturation and hue, and puts the channels in a random order,
    /// each with probability `p`. Contrast changes before the saturation, or after the hue. As
    /// torchvision's `RandomPhotometricDistort`, from SSD (Liu et al. 2016).
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomPhotometricDistort {
        /// Range of the factor of brightness.
        pub brightness: Span = Span(0.875, 1.125),
        /// Range of the factor of contrast.
        pub contrast: Span = Span(0.5, 1.5),
        /// Range of the factor of saturation.
        pub saturation: Span = Span(0.5, 1.5),
        /// Range of the hue shift as a share of the colour circle, -0.5 to 0.5.
        pub hue: Span = Span(-0.05, 0.05),
        /// The probability of each change, 0 to 1.
        pub p: f64 = 0.5,
        /// The library whose arithmetic is used: `tensor` (torchvision) or `pillow`.
        pub style: JitterStyle = JitterStyle::Tensor,
    }
}

impl Operation for RandomPhotometricDistort {
    /// Several steps, one of which needs the whole image.
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb_levels("changes colours of rgb levels")?;
        if self.style == JitterStyle::Pillow {
            known
                .check_rgb8()
                .map_err(|why| format!("{why}, or remove style: pillow"))?;
        }
        probability(self.p)?;
        range("brightness", self.brightness, 0.0, MAX_FACTOR)?;
        range("contrast", self.contrast, 0.0, MAX_FACTOR)?;
        range("saturation", self.saturation, 0.0, MAX_FACTOR)?;
        range("hue", self.hue, -0.5, 0.5)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        // In torchvision's order of draws.
        let [brightness, contrast, saturation, hue] =
            [self.brightness, self.contrast, self.saturation, self.hue]
                .map(|span| (on.random.next_f64() < self.p).then(|| span.draw(on.random)));
        let contrast_first = on.random.next_f64() < 0.5;
        let (first, last) = match contrast_first {
            true => (contrast, None),
            false => (None, contrast),
        };
        let changes = [
            (0, brightness),
            (1, first),
            (2, saturation),
            (3, hue),
            (1, last),
        ];
        for (which, factor) in changes {
            if let Some(factor) = factor {
                on.steps.push(self.step(which, factor));
            }
        }
        if on.random.next_f64() < self.p {
            let order = draw_permutation(on.known, on.random);
            on.steps.push(Step::Permute(order));
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.optionally(|most| push_lowest_draw(self, known, size, most))
    }
}

impl RandomPhotometricDistort {
    /// The step of brightness (0), contrast (1), saturation (2) or hue (3).
    fn step(&self, which: usize, factor: f64) -> Step {
        match self.style {
            JitterStyle::Pillow => Step::Augment(AugmentStep::of_jitter(which, factor)),
            JitterStyle::Tensor => Step::of_jitter(which, factor),
        }
    }
}
