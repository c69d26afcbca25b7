//! A crop of fixed size at a corner.
//!
//! Coordinates are shifted by the left and top edge of the crop.

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::check_fits;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::sides;
use crate::recipe::values::Size;

/// A corner of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageCorner {
    TopLeft,
    TopRight,
    BottomLeft,
    BottomRight,
}

described! {
    example: "corner_crop: {size: 224, corner: top_left}";

    /// A crop of `size` at a corner of the image, as four of torchvision's `FiveCrop`. An image
    /// that is smaller is a failed sample.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CornerCrop {
        /// Height and width of the result in pixels; one number for both.
        pub size: Size,
        /// `top_left`, `top_right`, `bottom_left` or `bottom_right`.
        pub corner: ImageCorner,
    }
}

impl CornerCrop {
    pub fn new(size: impl Into<Size>, corner: ImageCorner) -> Self {
        Self {
            size: size.into(),
            corner,
        }
    }
}

const FIX: &str = "use a resize or a pad before it";

impl Operation for CornerCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        known.check_crop_fits(self.size, FIX)?;
        known.set_size(self.size);
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        let Size {
            height: h,
            width: w,
        } = self.size;
        check_fits(self.size, on.size, "corner_crop", FIX)?;
        let (bottom, right) = match self.corner {
            ImageCorner::TopLeft => (false, false),
            ImageCorner::TopRight => (false, true),
            ImageCorner::BottomLeft => (true, false),
            ImageCorner::BottomRight => (true, true),
        };
        on.steps.push(Step::Crop(PixelRect {
            top: if bottom { height - h } else { 0 },
            left: if right { width - w } else { 0 },
            width: w,
            height: h,
        }));
        Ok((h, w))
    }
}
