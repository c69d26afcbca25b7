//! A border around the image, up to a size.
//!
//! Coordinates are shifted by the border at the left and at the top.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, check_side};
use crate::recipe::steps::StepBounds;
use crate::recipe::values::{Padding, PaddingMode, PerChannel, Size};

described! {
    example: "pad_to: {multiple_of: 32}";

    /// Adds a border up to a size. With `size`: exactly that size, and a larger image is a failed
    /// sample. With `min_size`: at least that, and longer sides stay. With `multiple_of`: the next
    /// multiple of that on each side (PaddleClas' `Padv2`, albumentations' `PadIfNeeded`).
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PadTo {
        /// Height and width of the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub size: Option<Size>,
        /// The least height and width of the result. A side that is longer stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub min_size: Option<Size>,
        /// Each side becomes the next multiple of this, in pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub multiple_of: Option<Size>,
        /// Where the image lies in the result.
        #[serde(default)]
        pub anchor: PadAnchor,
        /// Pixels at the left and at the top, with `anchor: top_left`. An image that already has
        /// the size stays as it is. An image for which the offset leaves too little room is a
        /// failed sample.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub offset: Option<[u32; 2]>,
        /// The colour for `padding_mode: constant`.
        #[serde(default)]
        pub fill: PerChannel,
        /// The pixels of the border.
        #[serde(default)]
        pub padding_mode: PaddingMode,
    }
}

/// Where an image lies in a larger one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PadAnchor {
    /// All padding is at the right and at the bottom.
    #[default]
    TopLeft,
    /// An odd pixel of padding is at the right or at the bottom.
    Center,
    /// All padding is at the left and at the top.
    BottomRight,
}

impl PadTo {
    fn new(size: Option<Size>, multiple_of: Option<Size>) -> Self {
        Self {
            size,
            min_size: None,
            multiple_of,
            anchor: PadAnchor::TopLeft,
            offset: None,
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }

    /// To a size, with a black border at the right and at the bottom.
    pub fn size(size: impl Into<Size>) -> Self {
        Self::new(Some(size.into()), None)
    }

    /// To the next multiples, with a black border at the right and at the bottom.
    pub fn multiple_of(of: impl Into<Size>) -> Self {
        Self::new(None, Some(of.into()))
    }

    /// At least to a size, with a black border at the right and at the bottom.
    pub fn min_size(size: impl Into<Size>) -> Self {
        Self {
            min_size: Some(size.into()),
            ..Self::new(None, None)
        }
    }
}

impl PadTo {
    /// Height and width of the result, also for an image that is too large.
    pub(crate) fn output(&self, (height, width): HeightWidth) -> HeightWidth {
        match (self.size, self.min_size, self.multiple_of) {
            (Some(size), _, _) => (size.height, size.width),
            (None, Some(least), _) => (height.max(least.height), width.max(least.width)),
            (None, None, Some(of)) => {
                let next =
                    |side: u32, of: u32| side.checked_next_multiple_of(of).unwrap_or(u32::MAX);
                (next(height, of.height), next(width, of.width))
            }
            // Rejected by `check`.
            (None, None, None) => (height, width),
        }
    }

    /// The padding around an image of this height and width. None: it does not fit.
    pub(crate) fn padding(&self, (height, width): HeightWidth) -> Option<Padding> {
        let (h, w) = self.output((height, width));
        let (y, x) = (h.checked_sub(height)?, w.checked_sub(width)?);
        let (left, top) = match (self.offset, self.anchor) {
            _ if (x, y) == (0, 0) => (0, 0),
            (Some([left, top]), _) => (left, top),
            (None, PadAnchor::TopLeft) => (0, 0),
            (None, PadAnchor::Center) => (x / 2, y / 2),
            (None, PadAnchor::BottomRight) => (x, y),
        };
        Some(Padding {
            left,
            top,
            right: x.checked_sub(left)?,
            bottom: y.checked_sub(top)?,
        })
    }
}

impl Operation for PadTo {
    const PARTS: &'static [OperationPart] = &[OperationPart::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_color("fill", self.fill.0)?;
        if self.offset.is_some() && self.anchor != PadAnchor::TopLeft {
            return Err(
                "offset counts from the top left, and anchor names another corner: remove one"
                    .into(),
            );
        }
        let rules = [
            ("size", self.size),
            ("min_size", self.min_size),
            ("multiple_of", self.multiple_of),
        ];
        let mut given = rules.iter().filter_map(|(name, of)| Some((name, (*of)?)));
        match (given.next(), given.next()) {
            (Some((name, size)), None) => {
                check_side(name, size.height)?;
                check_side(name, size.width)?;
            }
            (Some((first, one)), Some((second, other))) => {
                return Err(format!(
                    "has {first} {one} and {second} {other}, and both set how large it becomes: \
                     remove one"
                ));
            }
            (None, _) => {
                return Err(
                    "needs a size, a min_size or a multiple_of: write size: 256, min_size: 256 or \
                     multiple_of: 32"
                        .into(),
                );
            }
        }
        // An image that is too large fails later, as a sample.
        let here = known.size.or(known.min_side.map(|side| (side, side)));
        if let (Some(size), Some((h, w))) = (self.size, here)
            && (h > size.height || w > size.width)
        {
            let are = match known.size {
                Some(_) => "are",
                None => "are at least",
            };
            return Err(format!(
                "size {size} has no room for the images, which {are} {w} x {h} here: use a \
                 larger size, or put a resize or a crop before it"
            ));
        }
        if let Some((h, w)) = known.size.filter(|here| self.padding(*here).is_none()) {
            return Err(format!(
                "offset leaves no room for the images, which are {w} x {h} here: use a smaller \
                 offset"
            ));
        }
        known.map_size(|size| self.output(size));
        if let Some(size) = self.size {
            known.set_size(size);
        }
        match known.size {
            Some((h, w)) if h.max(w) > MAX_SIDE => Err(format!(
                "makes images of {w} x {h}, and a side has at most {MAX_SIDE} pixels: use a \
                 smaller multiple_of"
            )),
            _ => Ok(()),
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let padding = self
            .padding(on.size)
            .ok_or_else(|| no_room(self, on.size))?;
        on.steps.push(self.step(on.known, padding));
        Ok(padding.padded_size(on.size))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        // A smaller draw may fit where this one does not.
        let to = self.output(size);
        let padding = self.padding(size).unwrap_or(Padding {
            bottom: to.0.saturating_sub(size.0),
            right: to.1.saturating_sub(size.1),
            ..Padding::default()
        });
        let over = StepBounds {
            size_after: Some(most.reach().map(|sides| self.output(sides))),
            ..StepBounds::default()
        };
        most.add(self.step(known, padding), over);
        to
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: Some((self.padding_mode, self.fill)),
            ..MoveRights::default()
        }
    }
}

impl PadTo {
    fn step(&self, known: &PixelState, padding: Padding) -> Step {
        Step::Pad {
            padding,
            mode: self.padding_mode,
            fill: known.in_memory(self.fill.0),
        }
    }
}

fn no_room(o: &PadTo, (h, w): (u32, u32)) -> SampleFault {
    let to = Size::from(o.output((h, w)));
    let at = match o.offset {
        Some([left, top]) => format!(" with {left} pixels at its left and {top} at its top"),
        None => String::new(),
    };
    FaultKind::TooLarge.fault(format!(
        "the image is {w} x {h}, and pad_to makes it {to}{at}: put a resize or a crop \
             before pad_to"
    ))
}
