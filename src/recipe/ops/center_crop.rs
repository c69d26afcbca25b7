//! The middle of a picture.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::geometry::Rect;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::sides;
use crate::recipe::reach::Sides;
use crate::recipe::sizes::fits;
use crate::recipe::step::Step;
use crate::recipe::steps::{Largest, Over, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::{Rounding, Size};

described! {
    example: "center_crop: {size: 224}";

    /// The middle of a picture: `size` pixels, of which a picture that is smaller is a
    /// failed sample (where torchvision pads it with 0): put a resize or a `pad` in
    /// front. Or, with `ratio` instead, a square with that part of the shorter side, to
    /// be resized behind it: 0.875 for 224 of 256, as PaddleClas' `CropImageAtRatio`.
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
    }
}

impl CenterCrop {
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: Some(size.into()),
            ratio: None,
            rounding: Rounding::Nearest,
        }
    }

    /// A square with this part of the shorter side.
    pub fn at_ratio(ratio: f64) -> Self {
        Self {
            size: None,
            ratio: Some(ratio),
            rounding: Rounding::Nearest,
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

    /// The part, of a picture that is large enough.
    pub(crate) fn part(&self, (height, width): Sides) -> Rect {
        let (h, w) = self.output((height, width));
        let middle = |all: u32, some: u32| match self.rounding {
            Rounding::Nearest => (f64::from(all - some) / 2.0).round_ties_even() as u32,
            Rounding::Down => (all - some) / 2,
        };
        Rect {
            top: middle(height, h),
            left: middle(width, w),
            width: w,
            height: h,
        }
    }
}

impl Operation for CenterCrop {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        match (self.size, self.ratio) {
            (Some(size), None) => {
                sides(size)?;
                known.holds(size, "put a resize or a pad before it")?;
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
        &[Part::Crop]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        let to = self.output(size);
        fits(to.into(), size, "center_crop", "or a pad")?;
        steps.push(Step::Crop(self.part(size)));
        Ok(to)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        let to = self.output(size);
        if to.0 > size.0 || to.1 > size.1 {
            return size;
        }
        let reach = most.reach();
        let behind = (!reach.is_certain()).then(|| reach.map(|sides| self.output(sides)));
        let over = Over {
            behind,
            ..Over::default()
        };
        most.add(Step::Crop(self.part(size)), over);
        to
    }
}

fn nearest() -> Rounding {
    Rounding::Nearest
}

fn is_nearest(rounding: &Rounding) -> bool {
    *rounding == Rounding::Nearest
}
