//! A resize with a border: the whole image in a row of a fixed size.
//!
//! Coordinates are multiplied by the ratio of the sides, and shifted by the border at the left and
//! at the top.

use serde::{Deserialize, Serialize};

use super::pad_to::PadAnchor;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::sides;
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence, StepSink};
use crate::recipe::values::{InterpolationMode, Padding, PaddingMode, PerChannel, Size};

described! {
    example: "letterbox: {size: 640}";

    /// Resizes an image so that it just fits into `size`, and adds a border up to it. The aspect
    /// ratio stays. Sides are rounded to whole pixels, an odd pixel of the border is at the right
    /// or at the bottom (ultralytics' `LetterBox`).
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Letterbox {
        /// Height and width of the result.
        pub size: Size,
        /// Whether images are enlarged. If not, small images keep their size.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub scale_up: bool,
        /// Where the image lies in the result.
        #[serde(default = "middle")]
        pub anchor: PadAnchor,
        /// The colour of the border.
        #[serde(default = "grey")]
        pub fill: PerChannel,
        /// How values between pixels are computed.
        #[serde(default)]
        pub interpolation: InterpolationMode,
        /// Shrinking uses all pixels, as in Pillow. ultralytics' does not.
        #[serde(default = "crate::recipe::defaults::yes")]
        pub antialias: bool,
    }
}

fn middle() -> PadAnchor {
    PadAnchor::Center
}

fn grey() -> PerChannel {
    PerChannel([114.0; 3])
}

impl Letterbox {
    /// Bilinear, in the middle of a grey border.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            scale_up: true,
            anchor: middle(),
            fill: grey(),
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    /// Height and width of the image in the result.
    fn inside(&self, (height, width): HeightWidth) -> HeightWidth {
        let of = |to: u32, from: u32| f64::from(to) / f64::from(from.max(1));
        let fits = of(self.size.height, height).min(of(self.size.width, width));
        let by = match self.scale_up {
            true => fits,
            false => fits.min(1.0),
        };
        let side = |n: u32, most: u32| {
            let side = (f64::from(n) * by).round_ties_even() as u32;
            side.clamp(1, most)
        };
        (side(height, self.size.height), side(width, self.size.width))
    }

    fn push(&self, known: &PixelState, (height, width): HeightWidth, steps: &mut dyn StepSink) {
        steps.push(Step::Resize {
            size: Size { height, width },
            interpolation: self.interpolation,
            antialias: self.antialias,
        });
        let (x, y) = (self.size.width - width, self.size.height - height);
        let (left, top) = match self.anchor {
            PadAnchor::TopLeft => (0, 0),
            PadAnchor::Center => (x / 2, y / 2),
            PadAnchor::BottomRight => (x, y),
        };
        if (x, y) != (0, 0) {
            steps.push(Step::Pad {
                padding: Padding {
                    left,
                    top,
                    right: x - left,
                    bottom: y - top,
                },
                mode: PaddingMode::Constant,
                fill: known.in_memory(self.fill.0),
            });
        }
    }
}

impl Operation for Letterbox {
    const PARTS: &'static [OperationPart] = &[OperationPart::Resize, OperationPart::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        known.check_color("fill", self.fill.0)?;
        known.set_size(self.size);
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        self.push(on.known, self.inside(on.size), on.steps);
        Ok((self.size.height, self.size.width))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let whole = (self.size.height, self.size.width);
        let to = self.inside(size);
        let step = Step::Resize {
            size: to.into(),
            interpolation: self.interpolation,
            antialias: self.antialias,
        };
        // An image of just this shape has no border.
        let (inside, border) = match (most.reach().is_fixed(), to == whole) {
            (true, true) => (SizeBounds::exactly(to), None),
            (true, false) => (SizeBounds::exactly(to), Some(StepPresence::Always)),
            (false, _) => (
                SizeBounds::between((1, 1), whole),
                Some(StepPresence::Maybe),
            ),
        };
        let over = |presence, size| StepBounds {
            presence,
            size_after: Some(size),
            ..StepBounds::default()
        };
        most.add(step, over(StepPresence::Always, inside));
        let Some(presence) = border else {
            return whole;
        };
        let padding = Padding {
            bottom: whole.0 - to.0,
            right: whole.1 - to.1,
            ..Padding::default()
        };
        let pad = Step::Pad {
            padding,
            mode: PaddingMode::Constant,
            fill: known.in_memory(self.fill.0),
        };
        most.add(pad, over(presence, SizeBounds::exactly(whole)));
        whole
    }

    fn with_size(&self, size: HeightWidth) -> Option<Self> {
        Some(Self {
            size: size.into(),
            ..*self
        })
    }

    fn part_name(&self, part: OperationPart) -> Option<&'static str> {
        Some(match part {
            OperationPart::Resize => "its resize",
            _ => "its border",
        })
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: Some((PaddingMode::Constant, self.fill)),
            ..MoveRights::default()
        }
    }
}
