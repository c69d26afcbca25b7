//! Removes a border of the image, as in timm.
//!
//! Coordinates are shifted by the left and top edge of what is left.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::check_side;
use crate::recipe::steps::StepBounds;

described! {
    example: "trim_border: {pixels: 4}";

    /// Removes a border of `pixels` on each side (timm's `TrimBorder`). An image without pixels
    /// inside the border is a failed sample.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TrimBorder {
        /// The width of the border.
        pub pixels: u32,
    }
}

impl TrimBorder {
    fn left(&self, (height, width): HeightWidth) -> HeightWidth {
        let less = |side: u32| side.saturating_sub(self.pixels.saturating_mul(2));
        (less(height), less(width))
    }
}

impl Operation for TrimBorder {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        check_side("pixels", self.pixels)?;
        if let Some((h, w)) = known.size
            && self.left((h, w)).0.min(self.left((h, w)).1) == 0
        {
            return Err(format!(
                "pixels is {}, and the images are {w} x {h} here: use a smaller border",
                self.pixels
            ));
        }
        known.map_size(|size| self.left(size));
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = self.left(on.size);
        if height == 0 || width == 0 {
            return Err(FaultKind::TooSmall.fault(format!(
                "the image is {} x {}, and trim_border removes {} pixels on each side: use a \
                 smaller border",
                on.size.1, on.size.0, self.pixels
            )));
        }
        on.steps.push(self.step((height, width)));
        Ok((height, width))
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let to = self.left(size);
        if to.0 == 0 || to.1 == 0 {
            return size;
        }
        let reach = most.reach();
        let left = |sides: HeightWidth| {
            let (h, w) = self.left(sides);
            (h.max(1), w.max(1))
        };
        let over = StepBounds {
            size_after: (!reach.is_fixed()).then(|| reach.map(left)),
            ..StepBounds::default()
        };
        most.add(self.step(to), over);
        to
    }
}

impl TrimBorder {
    fn step(&self, (height, width): HeightWidth) -> Step {
        Step::Crop(PixelRect {
            top: self.pixels,
            left: self.pixels,
            width,
            height,
        })
    }
}
