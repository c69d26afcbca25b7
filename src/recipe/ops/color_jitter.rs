//! Brightness, contrast, saturation and hue by random factors.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart,
    PixelState, SampleFault, Step, UniformSource, push_lowest_draw,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_FACTOR, probability, range};
use crate::recipe::step::AugmentStep;
use crate::recipe::values::{JitterStyle, Span};

described! {
    example: "color_jitter: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}";

    /// With probability `p`: changes brightness, contrast, saturation and hue, each by a factor
    /// uniform in its range. A number b means the range max(0, 1 - b) to 1 + b; for hue -b to b.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ColorJitter {
        /// Range of the factor of brightness.
        #[serde(deserialize_with = "Span::around_one")]
        pub brightness: Span = Span(1.0, 1.0),
        /// Range of the factor of contrast.
        #[serde(deserialize_with = "Span::around_one")]
        pub contrast: Span = Span(1.0, 1.0),
        /// Range of the factor of saturation.
        #[serde(deserialize_with = "Span::around_one")]
        pub saturation: Span = Span(1.0, 1.0),
        /// Range of the hue shift as a share of the colour circle, -0.5 to 0.5.
        #[serde(deserialize_with = "Span::around_zero")]
        pub hue: Span = Span(0.0, 0.0),
        /// The probability, 0 to 1.
        pub p: f64 = 1.0,
        /// The four changes are made in random order.
        pub random_order: bool = true,
        /// The library whose arithmetic is used: `tensor` (torchvision) or `pillow`.
        pub style: JitterStyle = JitterStyle::Tensor,
    }
}

impl Operation for ColorJitter {
    const PARTS: &'static [OperationPart] = &[OperationPart::Color];

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
        range("hue", self.hue, -0.5, 0.5)?;
        Ok(())
    }

    fn parts(&self) -> &'static [OperationPart] {
        match self.style {
            JitterStyle::Tensor => Self::PARTS,
            // Like a policy: several steps in random order, one of which needs the whole image.
            JitterStyle::Pillow => &[OperationPart::Augment],
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if on.random.next_f64() >= self.p && self.p < 1.0 {
            return Ok(on.size);
        }
        let factors = [self.brightness, self.contrast, self.saturation, self.hue]
            .map(|span: Span| span.draw(on.random));
        let mut order = [0usize, 1, 2, 3];
        if self.random_order {
            for i in (1..order.len()).rev() {
                order.swap(i, on.random.next_up_to(i as u32) as usize);
            }
        }
        let nothing = [
            Span(1.0, 1.0),
            Span(1.0, 1.0),
            Span(1.0, 1.0),
            Span(0.0, 0.0),
        ];
        let spans = [self.brightness, self.contrast, self.saturation, self.hue];
        for i in order {
            if spans[i] == nothing[i] {
                continue;
            }
            on.steps.push(match self.style {
                JitterStyle::Pillow => Step::Augment(AugmentStep::of_jitter(i, factors[i])),
                JitterStyle::Tensor => Step::of_jitter(i, factors[i]),
            });
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

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            change_after_crop: self.changes_contrast().then_some(
                "contrast uses the mean of the image, which is not the mean of the crop",
            ),
            change_after_resize: "jitter clips at 0 and 255 and rounds, so jittering a mean is not \
                                  the mean of jittered pixels",
            ..MoveRights::default()
        }
    }

    fn device_support(&self) -> DeviceSupport {
        if self.style == JitterStyle::Pillow {
            return DeviceSupport::default();
        }
        DeviceSupport {
            // Brightness, saturation and hue, and contrast if it is changed.
            colors: Some(3 + usize::from(self.changes_contrast())),
            takes_mean: self.changes_contrast(),
            ..DeviceSupport::default()
        }
    }
}

impl ColorJitter {
    fn changes_contrast(&self) -> bool {
        self.contrast != Span(1.0, 1.0)
    }
}
