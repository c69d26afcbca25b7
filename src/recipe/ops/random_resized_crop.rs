//! A crop of random area and shape, resized.
//!
//! Coordinates are shifted by the left and top edge of the crop, then multiplied by the ratio of the
//! sides.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::{is_default, yes};
use crate::recipe::geometry::{largest_box, random_box};
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState,
    SampleFault, Step, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{either_filter, range, sides};
use crate::recipe::size_bounds::AspectBounds;
use crate::recipe::steps::{StepBounds, StepSink};
use crate::recipe::values::{InterpolationMode, Size, Span};
use crate::recipe::weights::ResizeFilter;

described! {
    example: "random_resized_crop: {size: 224, scale: [0.08, 1.0]}";

    /// A crop of random area and aspect ratio, resized to `size`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomResizedCrop {
        /// Height and width of the result in pixels; one number for both.
        pub size: Size,
        /// Range of the crop's area as a share of the image's.
        #[serde(default = "RandomResizedCrop::default_scale")]
        pub scale: Span,
        /// Range of the crop's width divided by its height.
        #[serde(default = "RandomResizedCrop::default_ratio")]
        pub ratio: Span,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// An interpolation that replaces `interpolation` for half of the samples, as timm's
        /// `random`.
        #[serde(default, skip_serializing_if = "is_default")]
        pub interpolation_or: Option<InterpolationMode>,
        /// Shrinking uses all pixels, as in Pillow.
        #[serde(default = "yes")]
        pub antialias: bool,
    }
}

impl RandomResizedCrop {
    pub(super) fn default_scale() -> Span {
        Span(0.08, 1.0)
    }

    pub(super) fn default_ratio() -> Span {
        Span(3.0 / 4.0, 4.0 / 3.0)
    }

    /// Bilinear, antialiased, scale 0.08 to 1, ratio 3/4 to 4/3.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            scale: Self::default_scale(),
            ratio: Self::default_ratio(),
            interpolation: InterpolationMode::Bilinear,
            interpolation_or: None,
            antialias: true,
        }
    }

    /// Of both interpolations, the one that reads more pixels.
    fn widest(&self) -> InterpolationMode {
        let reach = |i: InterpolationMode| ResizeFilter::of(i, self.antialias).0.support();
        match self.interpolation_or {
            Some(other) if reach(other) > reach(self.interpolation) => other,
            _ => self.interpolation,
        }
    }
}

impl Operation for RandomResizedCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop, OperationPart::Resize];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        range("scale", self.scale, 0.0, 1.0)?;
        range("ratio", self.ratio, 0.0, f64::MAX)?;
        either_filter(self.interpolation, self.interpolation_or)?;
        known.set_size(self.size);
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        let (scale, ratio) = ((self.scale.0, self.scale.1), (self.ratio.0, self.ratio.1));
        let rect = random_box(width, height, scale, ratio, on.random);
        on.steps.push(Step::Crop(rect));
        // Drawn last, and only if there are two: the box does not depend on it.
        let interpolation = match self.interpolation_or {
            Some(other) if on.random.next_up_to(1) == 1 => other,
            _ => self.interpolation,
        };
        on.steps.push(Step::Resize {
            size: self.size,
            interpolation,
            antialias: self.antialias,
        });
        Ok((self.size.height, self.size.width))
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let over = StepBounds {
            size_after: Some(most.reach().after_random_crop(self.scale, self.ratio)),
            shape: Some(AspectBounds::rounded(self.ratio)),
            ..StepBounds::default()
        };
        most.add(Step::Crop(largest_box(size, self.scale, self.ratio)), over);
        most.push(Step::Resize {
            size: self.size,
            interpolation: self.widest(),
            antialias: self.antialias,
        });
        (self.size.height, self.size.width)
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        Some(Self {
            size: size.into(),
            ..*self
        })
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        Some(match part {
            OperationPart::Crop => "its crop",
            _ => "its resize",
        })
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            ratio: Some(self.ratio),
            filter: Some((self.widest(), self.antialias)),
            ..DeviceSupport::default()
        }
    }
}
