//! Quarter turns.
//!
//! A quarter turn counter-clockwise makes (y, width - x) of (x, y).

use serde::{Deserialize, Serialize};

use crate::recipe::crop_sizes::turn;
use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault,
};
use crate::recipe::operation_docs::described;

described! {
    example: "rotate90: {times: 1}";

    /// Turns by `times` quarters, counter-clockwise.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Rotate90 {
        /// The number of quarter turns.
        pub times: i32,
    }
}

impl Operation for Rotate90 {
    const PARTS: &'static [OperationPart] = &[OperationPart::Turn];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        if self.times % 2 != 0 {
            known.size = known.size.map(|(h, w)| (w, h));
            known.resized = true;
        }
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        Ok(turn(self.times.rem_euclid(4) as u8, on.size, on.steps))
    }

    fn sets_size(&self) -> bool {
        true
    }
}
