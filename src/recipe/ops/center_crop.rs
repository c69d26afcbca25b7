//! A crop at the centre.
//!
//! A crop shifts coordinates by its left and top edge. A border that it needs shifts them back.

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::check_fits;
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart,
    PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::sides;
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::{LengthRounding, Padding, PaddingMode, PerChannel, Size};

described! {
    example: "center_crop: {size: 224}";

    /// The centre of an image: `size` pixels. A smaller image gets a border of 0, as in
    /// torchvision. With `ratio` instead: a square with that share of the shorter side, to be
    /// resized afterwards, such as 0.875 for 224 of 256 (PaddleClas' `CropImageAtRatio`).
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CenterCrop {
        /// Height and width of the crop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<Size>,
        /// Above 0, at most 1. The side is truncated to a whole number of at least 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ratio: Option<f64>,
        /// How half of an odd margin is rounded: `nearest` as in torchvision, `down` as in
        /// PaddleClas. Not `detr`.
        #[serde(default = "nearest", skip_serializing_if = "is_nearest")]
        pub rounding: LengthRounding,
        /// Pads an image that is smaller than `size` with 0, by the same number on both sides. An
        /// odd pixel goes to the right or the bottom. False: such an image is a failed sample.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        pub pad_if_needed: bool,
    }
}

impl CenterCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: Some(size.into()),
            ratio: None,
            rounding: LengthRounding::Nearest,
            pad_if_needed: true,
        }
    }

    /// A square with this share of the shorter side.
    pub fn at_ratio(ratio: f64) -> Self {
        Self {
            size: None,
            ratio: Some(ratio),
            rounding: LengthRounding::Nearest,
            pad_if_needed: true,
        }
    }
}

impl CenterCrop {
    /// Height and width of the result, also for an image that is too small.
    pub(crate) fn output(&self, (height, width): HeightWidth) -> HeightWidth {
        match (self.size, self.ratio) {
            (Some(size), _) => (size.height, size.width),
            (None, Some(ratio)) => {
                let shorter = height.min(width);
                // The cast truncates.
                let side = ((ratio * f64::from(shorter)) as u32).clamp(1, shorter.max(1));
                (side, side)
            }
            // Rejected by `check`.
            (None, None) => (height, width),
        }
    }

    /// The box that stays. If a side is too short, all of it.
    pub(crate) fn part(&self, (height, width): HeightWidth) -> PixelRect {
        let (h, w) = self.output((height, width));
        let middle = |all: u32, some: u32| match self.rounding {
            LengthRounding::Nearest => {
                (f64::from(all.saturating_sub(some)) / 2.0).round_ties_even() as u32
            }
            // `check` rejects the last one.
            LengthRounding::Down | LengthRounding::Detr => all.saturating_sub(some) / 2,
            LengthRounding::Up => all.saturating_sub(some).div_ceil(2),
        };
        PixelRect {
            top: middle(height, h),
            left: middle(width, w),
            width: w.min(width),
            height: h.min(height),
        }
    }

    /// The padding around that box. None if it is large enough.
    pub(super) fn padding(&self, part: PixelRect, (h, w): HeightWidth) -> Option<Padding> {
        let (y, x) = (h.checked_sub(part.height)?, w.checked_sub(part.width)?);
        ((y, x) != (0, 0)).then_some(Padding {
            left: x / 2,
            right: x - x / 2,
            top: y / 2,
            bottom: y - y / 2,
        })
    }

    fn pads(&self) -> bool {
        self.size.is_some() && self.pad_if_needed
    }
}

impl Operation for CenterCrop {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop, OperationPart::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        if self.rounding == LengthRounding::Detr {
            return Err("rounding: detr is of a resize: use nearest, down or up".into());
        }
        match (self.size, self.ratio) {
            (Some(size), None) => {
                sides(size)?;
                if !self.pad_if_needed {
                    known.check_crop_fits(size, "put a resize before it")?;
                }
                known.set_size(size);
                Ok(())
            }
            (None, Some(ratio)) if 0.0 < ratio && ratio <= 1.0 => {
                known.map_size(|size| self.output(size));
                Ok(())
            }
            (None, Some(ratio)) => Err(format!(
                "ratio is {ratio}: use more than 0, at most 1 (a part of the shorter side)"
            )),
            (Some(size), Some(ratio)) => Err(format!(
                "has size {size} and ratio {ratio}, and both set how large the part is: remove one"
            )),
            (None, None) => Err("needs a size or a ratio: write size: 224 or ratio: 0.875".into()),
        }
    }

    fn parts(&self) -> &'static [OperationPart] {
        match self.pads() {
            true => Self::PARTS,
            false => &[OperationPart::Crop],
        }
    }

    /// If the crop always fits, only a crop is left, which the decoder and devices support.
    fn simplified(&self, known: &PixelState) -> Option<Self> {
        let fits = self.size.is_some_and(|size| known.always_fits(size));
        (self.pads() && fits).then_some(Self {
            pad_if_needed: false,
            ..*self
        })
    }

    /// Crops first, then pads. Each side needs only one of both, so the order changes no pixel, and
    /// the border is never larger than the result.
    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let to = self.output(on.size);
        if !self.pad_if_needed {
            check_fits(to.into(), on.size, "center_crop", "use a resize before it")?;
        }
        let part = self.part(on.size);
        on.steps.push(Step::Crop(part));
        if let Some(padding) = self.padding(part, to) {
            on.steps.push(pad(on.known, padding));
        }
        Ok(to)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let to = self.output(size);
        if !self.pads() && (to.0 > size.0 || to.1 > size.1) {
            return size;
        }
        let reach = most.reach();
        let left = |sides: HeightWidth| {
            let part = self.part(sides);
            (part.height, part.width)
        };
        let over = StepBounds {
            size_after: (!reach.is_fixed()).then(|| reach.map(left)),
            ..StepBounds::default()
        };
        let part = self.part(size);
        most.add(Step::Crop(part), over);
        let some_are_padded = left(reach.low) != self.output(reach.low);
        if self.pads() && some_are_padded {
            let padding = self.padding(part, to).unwrap_or_default();
            let over = StepBounds {
                presence: match reach.is_fixed() {
                    true => StepPresence::Always,
                    false => StepPresence::Maybe,
                },
                size_after: Some(SizeBounds::exactly(to)),
                ..StepBounds::default()
            };
            most.add(pad(known, padding), over);
        }
        to
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        (part == OperationPart::Pad).then_some("its padding")
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            border: true,
            ..DeviceSupport::default()
        }
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: self
                .pads()
                .then_some((PaddingMode::Constant, PerChannel::default())),
            border_is_rare: true,
            ..MoveRights::default()
        }
    }
}

fn pad(known: &PixelState, padding: Padding) -> Step {
    Step::Pad {
        padding,
        mode: PaddingMode::Constant,
        fill: known.in_memory([0.0; 3]),
    }
}

fn yes() -> bool {
    true
}

fn is_true(pads: &bool) -> bool {
    *pads
}

fn nearest() -> LengthRounding {
    LengthRounding::Nearest
}

fn is_nearest(rounding: &LengthRounding) -> bool {
    *rounding == LengthRounding::Nearest
}
