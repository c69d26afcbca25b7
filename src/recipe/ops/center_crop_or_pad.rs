//! The centre of an image, with a border of any kind around smaller ones, as in timm.
//!
//! Coordinates are shifted by the left and top edge of the crop, or of the border.

use serde::{Deserialize, Serialize};

use super::center_crop::CenterCrop;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, MoveRights, Operation, OperationPart, PixelState,
    SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::sides;
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::{Padding, PaddingMode, PerChannel, Size};

described! {
    example: "center_crop_or_pad: {size: 224, fill: [124, 116, 104]}";

    /// The centre of an image: `size` pixels. Each side that is too short gets a border (timm's
    /// `CenterCropOrPad`). An odd pixel of the border goes to the right or the bottom.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct CenterCropOrPad {
        /// Height and width of the result.
        pub size: Size,
        /// The colour for `padding_mode: constant`.
        #[serde(default)]
        pub fill: PerChannel,
        /// The pixels of the border.
        #[serde(default)]
        pub padding_mode: PaddingMode,
    }
}

impl CenterCropOrPad {
    /// With a black border.
    pub fn new(size: impl Into<Size>) -> Self {
        Self {
            size: size.into(),
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }

    fn crop(&self) -> CenterCrop {
        CenterCrop::new(self.size)
    }

    fn step(&self, known: &PixelState, padding: Padding) -> Step {
        Step::Pad {
            padding,
            mode: self.padding_mode,
            fill: known.in_memory(self.fill.0),
        }
    }
}

impl Operation for CenterCropOrPad {
    const PARTS: &'static [OperationPart] = &[OperationPart::Crop, OperationPart::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        sides(self.size)?;
        known.check_color("fill", self.fill.0)?;
        known.set_size(self.size);
        Ok(())
    }

    /// Crops first, then pads. Each side needs only one of both, so the order changes no pixel.
    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let to = (self.size.height, self.size.width);
        let part = self.crop().part(on.size);
        on.steps.push(Step::Crop(part));
        if let Some(padding) = self.crop().padding(part, to) {
            on.steps.push(self.step(on.known, padding));
        }
        Ok(to)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let to = (self.size.height, self.size.width);
        let reach = most.reach();
        let left = |sides: HeightWidth| {
            let part = self.crop().part(sides);
            (part.height, part.width)
        };
        let over = StepBounds {
            size_after: (!reach.is_fixed()).then(|| reach.map(left)),
            ..StepBounds::default()
        };
        let part = self.crop().part(size);
        most.add(Step::Crop(part), over);
        if left(reach.low) != to {
            let padding = self.crop().padding(part, to).unwrap_or_default();
            let over = StepBounds {
                presence: match reach.is_fixed() {
                    true => StepPresence::Always,
                    false => StepPresence::Maybe,
                },
                size_after: Some(SizeBounds::exactly(to)),
                ..StepBounds::default()
            };
            most.add(self.step(known, padding), over);
        }
        to
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
