//! A resize to a random share of a size, with the image's aspect ratio.
//!
//! Coordinates are multiplied by the ratio of the sides, each axis by its own.

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::{push_largest_resize, push_resize};
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState,
    SampleFault, UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{range, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::values::{InterpolationMode, Size, Span};

described! {
    example: "scale_jitter: {size: [1024, 1024], scale: [0.1, 2.0]}";

    /// Resizes an image so that it just fits into `size`, times a factor that is uniform in `scale`
    /// (torchvision's `ScaleJitter`). The aspect ratio stays. Sides are truncated to whole pixels.
    /// A crop or `pad_to` must follow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ScaleJitter {
        /// Height and width into which an image with factor 1 fits.
        pub size: Size,
        /// The range of the factor, above 0, at most 100.
        #[serde(default = "usual_scale")]
        pub scale: Span,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub antialias: bool,
    }
}

impl ScaleJitter {
    /// Bilinear, with factors of 0.1 to 2.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            scale: usual_scale(),
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    /// The product is in `f32`, as in torch's tensors.
    fn output(&self, (height, width): HeightWidth, factor: f32) -> HeightWidth {
        let of = |to: u32, from: u32| f64::from(to) / f64::from(from.max(1));
        let fits = of(self.size.height, height).min(of(self.size.width, width));
        let by = fits as f32 * factor;
        let side = |n: u32| ((n as f32 * by) as u32).max(1);
        (side(height), side(width))
    }
}

fn usual_scale() -> Span {
    Span(0.1, 2.0)
}

impl Operation for ScaleJitter {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        range("scale", self.scale, 0.0, 100.0)?;
        known.forget_size();
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let Span(low, high) = self.scale;
        let factor = low as f32 + on.random.next_f64() as f32 * (high - low) as f32;
        let to = self.output(on.size, factor);
        push_resize(on, "scale_jitter", to, (self.interpolation, self.antialias))
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let factor = self.scale.1 as f32;
        let SizeBounds { low, high, .. } = most.reach();
        let (height, _) = self.output((high.0, low.1.max(1)), factor);
        let (_, width) = self.output((low.0.max(1), high.1), factor);
        let to = self.output(size, factor);
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
