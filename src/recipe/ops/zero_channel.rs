//! A channel of zeros after those of the image.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault,
};
use crate::recipe::operation_docs::described;

described! {
    example: "zero_channel: {}";

    /// Adds a fourth channel of zeros to batches, as PaddleClas' `NormalizeImage` with
    /// `channel_num: 4`, for convolutions that are faster with four channels. For colour images in
    /// layout nchw. Its place in the recipe has no effect.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ZeroChannel {}
}

impl Operation for ZeroChannel {
    const PARTS: &'static [OperationPart] = &[];
    const DRAWS: bool = false;

    /// The check needs the whole recipe, so `program` does it.
    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        Ok(on.size)
    }
}
