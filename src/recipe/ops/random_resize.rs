//! A resize by a shorter side from a range.
//!
//! Coordinates are multiplied by the ratio of the sides, each axis by its own.

use serde::{Deserialize, Serialize};

use super::resize::Resize;
use crate::recipe::crop_sizes::{push_largest_resize, push_resize};
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState,
    SampleFault, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::check_side;
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::values::InterpolationMode;

described! {
    example: "random_resize: {min_size: 256, max_size: 513}";

    /// Resizes an image so that its shorter side has a uniform length of at least `min_size` and
    /// less than `max_size` (torchvision's `RandomResize`). The aspect ratio stays. A crop or
    /// `pad_to` must follow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomResize {
        /// The least length of the shorter side, in pixels.
        pub min_size: u32,
        /// One more than the greatest length of the shorter side.
        pub max_size: u32,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub antialias: bool,
    }
}

impl RandomResize {
    /// Bilinear.
    pub fn new(min_size: u32, max_size: u32) -> Self {
        Self {
            min_size,
            max_size,
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    fn to(&self, shorter: u32) -> Resize {
        Resize {
            interpolation: self.interpolation,
            antialias: self.antialias,
            ..Resize::shorter(shorter)
        }
    }
}

impl Operation for RandomResize {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        check_side("min_size", self.min_size)?;
        check_side("max_size", self.max_size)?;
        if self.max_size <= self.min_size {
            return Err(format!(
                "max_size is {}: use more than min_size, which is {}",
                self.max_size, self.min_size
            ));
        }
        known.forget_size();
        known.min_side = Some(self.min_size);
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let more = on.random.next_up_to(self.max_size - self.min_size - 1);
        let to = self.to(self.min_size + more).output(on.size);
        push_resize(
            on,
            "random_resize",
            to,
            (self.interpolation, self.antialias),
        )
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let largest = self.to(self.max_size - 1);
        let SizeBounds { low, high, .. } = most.reach();
        // A side grows with itself, and shrinks if the other one grows.
        let (height, _) = largest.output((high.0, low.1.max(1)));
        let (_, width) = largest.output((low.0.max(1), high.1));
        let to = largest.output(size);
        let filter = (self.interpolation, self.antialias);
        push_largest_resize(most, to, (height, width), filter)
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            filter: Some((self.interpolation, self.antialias)),
            ..DeviceSupport::default()
        }
    }
}
