//! A crop that keeps all boxes.
//!
//! Coordinates are shifted by the crop's left and top, and multiplied by the ratio of the sides.

use serde::{Deserialize, Serialize};

use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{number, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepSink};
use crate::recipe::values::{InterpolationMode, Size};

described! {
    example: "random_sized_bbox_safe_crop: {size: [448, 448]}";

    /// Crops a part that has all boxes of `objects`, and resizes it to `size` (albumentations'
    /// `RandomSizedBBoxSafeCrop`, and without `size` its `BBoxSafeRandomCrop`). Each edge is uniform
    /// between that of the boxes and that of the image. Without boxes: a part with the image's
    /// aspect ratio. Without `size` a resize or a crop must follow.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomSizedBboxSafeCrop {
        /// Height and width of the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<Size>,
        /// By how much several boxes together may be cut, 0 to 1. 1: as without boxes.
        #[serde(default)]
        pub erosion_rate: f64,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow. albumentations' does not.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub antialias: bool,
    }
}

impl RandomSizedBboxSafeCrop {
    /// Keeps all boxes whole. Bilinear.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: Some(size.into()),
            erosion_rate: 0.0,
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    /// A part without regard to boxes.
    fn free_rect(
        &self,
        (height, width): HeightWidth,
        random: &mut impl UniformSource,
    ) -> PixelRect {
        let least = (f64::from(height) * (1.0 - self.erosion_rate)) as u32;
        let high = match least >= height {
            true => height,
            false => least + random.next_up_to(height - least),
        };
        let wide = (f64::from(high) * f64::from(width) / f64::from(height.max(1))) as u32;
        let (high, wide) = (high.clamp(1, height), wide.clamp(1, width));
        let mut before = |room: u32| (f64::from(room + 1) * random.next_f64()) as u32;
        let top = before(height - high);
        PixelRect {
            left: before(width - wide),
            top,
            width: wide,
            height: high,
        }
    }

    /// The hull of all boxes as shares of the sides, in `f32` as there. None: no boxes, or nothing
    /// is left of them.
    fn hull(&self, boxes: &[[f64; 4]], (height, width): HeightWidth) -> Option<[f32; 4]> {
        let share = |[x0, y0, x1, y1]: [f64; 4]| {
            let (w, h) = (f64::from(width), f64::from(height));
            [x0 / w, y0 / h, x1 / w, y1 / h].map(|v| v as f32)
        };
        let all = boxes.iter().copied().map(share);
        let [x0, y0, x1, y1] =
            all.reduce(|[a, b, c, d], [e, f, g, h]| [a.min(e), b.min(f), c.max(g), d.max(h)])?;
        if self.erosion_rate == 1.0 {
            return None;
        }
        let rate = self.erosion_rate as f32;
        let [x0, y0, x1, y1] = match boxes.len() {
            1 => [x0, y0, x1, y1],
            _ => {
                let (x, y) = ((x1 - x0) * rate * 0.5, (y1 - y0) * rate * 0.5);
                [x0 + x, y0 + y, x1 - x, y1 - y]
            }
        };
        let is_empty = (x1 - x0).abs() < 1e-6 || (y1 - y0).abs() < 1e-6;
        if is_empty && boxes.len() > 1 {
            return None;
        }
        let (x0, y0) = (x0.clamp(0.0, 1.0), y0.clamp(0.0, 1.0));
        Some([x0, y0, x1.min(1.0).max(x0), y1.min(1.0).max(y0)])
    }

    fn resize(&self, size: Size) -> Step {
        Step::Resize {
            size,
            interpolation: self.interpolation,
            antialias: self.antialias,
        }
    }
}

impl Operation for RandomSizedBboxSafeCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop, OperationPart::Resize];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        number("erosion_rate", self.erosion_rate, 0.0, 1.0)?;
        match self.size {
            Some(size) => {
                sides(size)?;
                known.set_size(size);
            }
            None => known.forget_size(),
        }
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        let rect = match self.hull(on.boxes.unwrap_or_default(), on.size) {
            None => self.free_rect(on.size, on.random),
            Some([x0, y0, x1, y1]) => {
                let mut next = || on.random.next_f64() as f32;
                let left = (x0 * next() * width as f32) as u32;
                let top = (y0 * next() * height as f32) as u32;
                let right = ((x1 + (1.0 - x1) * next()) * width as f32) as u32;
                let bottom = ((y1 + (1.0 - y1) * next()) * height as f32) as u32;
                // albumentations raises where a thin box leaves nothing. Here a pixel is left.
                let (left, top) = (left.min(width - 1), top.min(height - 1));
                PixelRect {
                    left,
                    top,
                    width: right.clamp(left + 1, width) - left,
                    height: bottom.clamp(top + 1, height) - top,
                }
            }
        };
        on.steps.push(Step::Crop(rect));
        let Some(size) = self.size else {
            return Ok((rect.height, rect.width));
        };
        on.steps.push(self.resize(size));
        Ok((size.height, size.width))
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let over = StepBounds {
            size_after: Some(SizeBounds {
                low: (1, 1),
                ..most.reach()
            }),
            ..StepBounds::default()
        };
        most.add(Step::Crop(PixelRect::whole(size)), over);
        let Some(to) = self.size else {
            return size;
        };
        most.push(self.resize(to));
        (to.height, to.width)
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        self.size.map(|_| Self {
            size: Some(size.into()),
            ..*self
        })
    }

    fn reads_boxes(&self) -> bool {
        true
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        Some(match part {
            OperationPart::Crop => "its crop",
            _ => "its resize",
        })
    }
}
