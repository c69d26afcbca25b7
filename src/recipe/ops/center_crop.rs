//! The middle of a picture.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::geometry::Rect;
use crate::recipe::operation::{
    DrawContext, Known, Largest, OnDevice, Operation, Part, Rights, SampleFault, Sides, Step,
};
use crate::recipe::ranges::sides;
use crate::recipe::reach::Reach;
use crate::recipe::sizes::fits;
use crate::recipe::steps::{Over, Presence};
use crate::recipe::values::{Padding, PaddingMode, PerChannel, Rounding, Size};

described! {
    example: "center_crop: {size: 224}";

    /// The middle of a picture: `size` pixels. A smaller picture gets a border of 0, as
    /// in torchvision. Or, with `ratio` instead, a square with that part of the shorter
    /// side, to be resized after it: 0.875 for 224 of 256, as PaddleClas'
    /// `CropImageAtRatio`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CenterCrop {
        /// Height and width of the part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<Size>,
        /// Above 0, at most 1. The side is cut to a whole number, and at least 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub ratio: Option<f64>,
        /// Of half of an odd margin: `nearest` as torchvision, `down` as PaddleClas.
        #[serde(default = "nearest", skip_serializing_if = "is_nearest")]
        pub rounding: Rounding,
        /// Pads a picture that is smaller than `size` with 0, all around by half of what is
        /// missing; the odd pixel is at the right or at the bottom. False: such a picture is
        /// a failed sample.
        #[serde(default = "yes", skip_serializing_if = "is_true")]
        pub pad_if_needed: bool,
    }
}

impl CenterCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: Some(size.into()),
            ratio: None,
            rounding: Rounding::Nearest,
            pad_if_needed: true,
        }
    }

    /// A square with this part of the shorter side.
    pub fn at_ratio(ratio: f64) -> Self {
        Self {
            size: None,
            ratio: Some(ratio),
            rounding: Rounding::Nearest,
            pad_if_needed: true,
        }
    }
}

impl CenterCrop {
    /// Height and width of the part; of a picture that is too small too.
    pub(crate) fn output(&self, (height, width): Sides) -> Sides {
        match (self.size, self.ratio) {
            (Some(size), _) => (size.height, size.width),
            (None, Some(ratio)) => {
                let shorter = height.min(width);
                // The cast cuts.
                let side = ((ratio * f64::from(shorter)) as u32).clamp(1, shorter.max(1));
                (side, side)
            }
            // Refused by `check`.
            (None, None) => (height, width),
        }
    }

    /// The part that stays: along a side that is too short all of it.
    pub(crate) fn part(&self, (height, width): Sides) -> Rect {
        let (h, w) = self.output((height, width));
        let middle = |all: u32, some: u32| match self.rounding {
            Rounding::Nearest => {
                (f64::from(all.saturating_sub(some)) / 2.0).round_ties_even() as u32
            }
            Rounding::Down => all.saturating_sub(some) / 2,
        };
        Rect {
            top: middle(height, h),
            left: middle(width, w),
            width: w.min(width),
            height: h.min(height),
        }
    }

    /// What is added around the part that stays; none where it is large enough.
    fn padding(&self, part: Rect, (h, w): Sides) -> Option<Padding> {
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
    const PARTS: &'static [Part] = &[Part::Crop, Part::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut Known) -> Result<(), String> {
        match (self.size, self.ratio) {
            (Some(size), None) => {
                sides(size)?;
                if !self.pad_if_needed {
                    known.holds(size, "put a resize before it")?;
                }
                known.has_size(size);
                Ok(())
            }
            (None, Some(ratio)) if 0.0 < ratio && ratio <= 1.0 => {
                known.becomes(|size| self.output(size));
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

    fn parts(&self) -> &'static [Part] {
        match self.pads() {
            true => Self::PARTS,
            false => &[Part::Crop],
        }
    }

    /// What surely fits is a crop alone, which decoding and devices do.
    fn settled(&self, known: &Known) -> Option<Self> {
        let fits = self.size.is_some_and(|size| known.surely_holds(size));
        (self.pads() && fits).then_some(Self {
            pad_if_needed: false,
            ..*self
        })
    }

    /// Crops before it pads: along each side one of both is nothing, so the order changes
    /// no pixel, and the border is never larger than what is made.
    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        let to = self.output(on.size);
        if !self.pad_if_needed {
            fits(to.into(), on.size, "center_crop", "use a resize before it")?;
        }
        let part = self.part(on.size);
        on.steps.push(Step::Crop(part));
        if let Some(padding) = self.padding(part, to) {
            on.steps.push(pad(on.known, padding));
        }
        Ok(to)
    }

    fn largest(&self, known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        let to = self.output(size);
        if !self.pads() && (to.0 > size.0 || to.1 > size.1) {
            return size;
        }
        let reach = most.reach();
        let left = |sides: Sides| {
            let part = self.part(sides);
            (part.height, part.width)
        };
        let over = Over {
            behind: (!reach.is_certain()).then(|| reach.map(left)),
            ..Over::default()
        };
        let part = self.part(size);
        most.add(Step::Crop(part), over);
        let some_are_padded = left(reach.low) != self.output(reach.low);
        if self.pads() && some_are_padded {
            let padding = self.padding(part, to).unwrap_or_default();
            let over = Over {
                presence: match reach.is_certain() {
                    true => Presence::Always,
                    false => Presence::Maybe,
                },
                behind: Some(Reach::exactly(to)),
                ..Over::default()
            };
            most.add(pad(known, padding), over);
        }
        to
    }

    fn part_name(&self, part: Part) -> Option<&'static str> {
        (part == Part::Pad).then_some("its padding")
    }

    fn on_device(&self) -> OnDevice {
        OnDevice {
            border: true,
            ..OnDevice::default()
        }
    }

    fn rights(&self) -> Rights {
        Rights {
            border: self
                .pads()
                .then_some((PaddingMode::Constant, PerChannel::default())),
            border_is_rare: true,
            ..Rights::default()
        }
    }
}

fn pad(known: &Known, padding: Padding) -> Step {
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

fn nearest() -> Rounding {
    Rounding::Nearest
}

fn is_nearest(rounding: &Rounding) -> bool {
    *rounding == Rounding::Nearest
}
