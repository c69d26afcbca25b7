//! A crop of fixed size at a random place.
//!
//! Coordinates are shifted by the border, then by the left and top edge of the crop.

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::check_fits;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step, UniformSource, push_lowest_draw,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{padding, sides};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::{Padding, PaddingMode, PerChannel, Size};

described! {
    example: "random_crop: {size: 32, padding: 4}";

    /// A crop of `size` at a uniformly random place of the image with its `padding`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomCrop {
        /// Height and width of the result in pixels; one number for both.
        pub size: Size,
        /// Pixels to add at each side.
        #[serde(default)]
        pub padding: Padding,
        /// Pads images that are smaller than `size` by the missing pixels on both sides, as in
        /// torchvision. False: such an image is a failed sample.
        #[serde(default)]
        pub pad_if_needed: bool,
        /// The colour outside the image, levels 0 to 255.
        #[serde(default)]
        pub fill: PerChannel,
        /// The pixels of the border.
        #[serde(default)]
        pub padding_mode: PaddingMode,
    }
}

impl RandomCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            padding: Padding::default(),
            pad_if_needed: false,
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }
}

/// Worded for every source of a recipe: not all have `pad_if_needed`.
const FIX: &str = "use a resize or a pad before it";

impl Operation for RandomCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Pad, OperationPart::Crop];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        known.check_color("fill", self.fill.0)?;
        let pad = self.padding;
        padding(pad)?;
        known.add_padding(pad)?;
        if !self.pad_if_needed {
            known.check_crop_fits(self.size, FIX)?;
        }
        known.set_size(self.size);
        Ok(())
    }

    fn parts(&self) -> &'static [OperationPart] {
        if self.pad_if_needed || self.padding != Padding::default() {
            Self::PARTS
        } else {
            &[OperationPart::Crop]
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (pad, (h, w)) = paddings(self, on.size);
        if pad != Padding::default() {
            on.steps.push(self.pad(on.known, pad));
        }
        check_fits(self.size, (h, w), "random_crop", FIX)?;
        on.steps.push(Step::Crop(PixelRect {
            top: on.random.next_up_to(h - self.size.height),
            left: on.random.next_up_to(w - self.size.width),
            width: self.size.width,
            height: self.size.height,
        }));
        Ok((self.size.height, self.size.width))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let reach = most.reach();
        if !self.pad_if_needed || reach.is_fixed() {
            return push_lowest_draw(self, known, size, most);
        }
        // Some images are padded, others are not.
        let padded = self.padded(reach);
        let (pad, _) = paddings(self, size);
        let pads = pad != Padding::default();
        if pads {
            let over = StepBounds {
                presence: StepPresence::Maybe,
                size_after: Some(padded),
                ..StepBounds::default()
            };
            most.add(self.pad(known, pad), over);
        }
        let crop = PixelRect {
            top: 0,
            left: 0,
            width: self.size.width,
            height: self.size.height,
        };
        let over = StepBounds {
            padded_before: (!pads).then_some(padded),
            ..StepBounds::default()
        };
        most.add(Step::Crop(crop), over);
        (self.size.height, self.size.width)
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        (part == OperationPart::Pad).then_some("its padding")
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: Some((self.padding_mode, self.fill)),
            ..MoveRights::default()
        }
    }
}

impl RandomCrop {
    fn pad(&self, known: &PixelState, padding: Padding) -> Step {
        Step::Pad {
            padding,
            mode: self.padding_mode,
            fill: known.in_memory(self.fill.0),
        }
    }

    /// The size bounds of the padded images, if some need padding.
    fn padded(&self, from: SizeBounds) -> SizeBounds {
        let (size, padding) = (self.size, self.padding);
        let padded = |side: u32, by: u32, want: u32| {
            let side = side.saturating_add(by);
            match want.checked_sub(side) {
                Some(missing) => want.saturating_add(missing),
                None => side,
            }
        };
        let both = |h: u32, w: u32| {
            (
                padded(h, padding.top.saturating_add(padding.bottom), size.height),
                padded(w, padding.left.saturating_add(padding.right), size.width),
            )
        };
        let (a, b) = (both(from.low.0, from.low.1), both(from.high.0, from.high.1));
        let high = (a.0.max(b.0), a.1.max(b.1));
        SizeBounds::between((size.height.min(high.0), size.width.min(high.1)), high)
    }
}

/// The padding of a random crop, and the size that it crops from.
fn paddings(o: &RandomCrop, size: HeightWidth) -> (Padding, (u32, u32)) {
    let mut pad = o.padding;
    let (h, w) = pad.padded_size(size);
    if o.pad_if_needed {
        // All missing pixels on both sides, as in torchvision.
        let (y, x) = (
            o.size.height.saturating_sub(h),
            o.size.width.saturating_sub(w),
        );
        pad = Padding {
            left: pad.left + x,
            right: pad.right + x,
            top: pad.top + y,
            bottom: pad.bottom + y,
        };
    }
    (pad, pad.padded_size(size))
}
