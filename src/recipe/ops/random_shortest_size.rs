//! A resize by a shorter side that is drawn.
//!
//! Coordinates are multiplied by the ratio of the sides, each axis by its own.

use serde::{Deserialize, Serialize};

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
    example: "random_shortest_size: {min_size: [480, 512, 544], max_size: 800}";

    /// Resizes an image so that its shorter side has one of the lengths in `min_size`, each as
    /// likely as the others. The longer side is at most `max_size` (torchvision's
    /// `RandomShortestSize`, detectron2's `ResizeShortestEdge`). The aspect ratio stays. Sides are
    /// truncated to whole pixels. A crop or `pad_to` must follow.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomShortestSize {
        /// Lengths of the shorter side, in pixels: 1 to 256 numbers.
        pub min_size: Vec<u32>,
        /// The maximum of the longer side, in pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub max_size: Option<u32>,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub antialias: bool,
    }
}

impl RandomShortestSize {
    /// Bilinear, without a maximum of the longer side.
    pub fn new(min_size: impl Into<Vec<u32>>) -> Self {
        Self {
            min_size: min_size.into(),
            max_size: None,
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    fn output(&self, (height, width): HeightWidth, shorter: u32) -> HeightWidth {
        let (short, long) = (height.min(width), height.max(width));
        let by = f64::from(shorter) / f64::from(short.max(1));
        let by = match self.max_size {
            Some(max) => by.min(f64::from(max) / f64::from(long.max(1))),
            None => by,
        };
        let side = |n: u32| ((f64::from(n) * by) as u32).max(1);
        (side(height), side(width))
    }

    fn greatest(&self) -> u32 {
        self.min_size.iter().copied().max().unwrap_or(1)
    }
}

impl Operation for RandomShortestSize {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        if !(1..=256).contains(&self.min_size.len()) {
            return Err(format!(
                "min_size has {} numbers: use 1 to 256",
                self.min_size.len()
            ));
        }
        for side in &self.min_size {
            check_side("min_size", *side)?;
        }
        if let Some(max) = self.max_size {
            check_side("max_size", max)?;
        }
        known.forget_size();
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let last = self.min_size.len() as u32 - 1;
        let chosen = on.random.next_up_to(last) as usize;
        let shorter = self.min_size.get(chosen).copied().unwrap_or(1);
        let to = self.output(on.size, shorter);
        push_resize(
            on,
            "random_shortest_size",
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
        let SizeBounds { low, high, .. } = most.reach();
        // A side grows with itself, and shrinks if the other one grows.
        let (height, _) = self.output((high.0, low.1.max(1)), self.greatest());
        let (_, width) = self.output((low.0.max(1), high.1), self.greatest());
        let to = self.output(size, self.greatest());
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
