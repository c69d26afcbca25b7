//! A border around the image.
//!
//! Coordinates are shifted by the border at the left and at the top.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, MoveRights, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::padding;
use crate::recipe::values::{Padding, PaddingMode, PerChannel};

described! {
    example: "pad: {padding: 4, fill: 128}";

    /// Adds a border around the image.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Pad {
        /// Pixels to add at each side.
        pub padding: Padding,
        /// The colour for `padding_mode: constant`.
        #[serde(default)]
        pub fill: PerChannel,
        /// The pixels of the border.
        #[serde(default)]
        pub padding_mode: PaddingMode,
    }
}

impl Pad {
    pub fn new(padding: impl Into<Padding>) -> Self {
        Self {
            padding: padding.into(),
            fill: PerChannel::default(),
            padding_mode: PaddingMode::default(),
        }
    }
}

impl Operation for Pad {
    const PARTS: &'static [OperationPart] = &[OperationPart::Pad];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        padding(self.padding)?;
        known.check_color("fill", self.fill.0)?;
        known.add_padding(self.padding)?;
        known.resized = true;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Pad {
            padding: self.padding,
            mode: self.padding_mode,
            fill: on.known.in_memory(self.fill.0),
        });
        Ok(self.padding.padded_size(on.size))
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            border: Some((self.padding_mode, self.fill)),
            ..MoveRights::default()
        }
    }
}
