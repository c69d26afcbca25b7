//! A channel of zeros behind those of the pictures.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault,
};
use crate::recipe::operation_docs::described;

described! {
    example: "zero_channel: {}";

    /// Batches get a fourth channel, which is zero: what PaddleClas' `NormalizeImage`
    /// does with `channel_num: 4`, for convolutions that are faster on four. Of colour
    /// pictures in layout nchw; where it stands means nothing.
    #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ZeroChannel {}
}

impl Operation for ZeroChannel {
    const PARTS: &'static [OperationPart] = &[];
    const DRAWS: bool = false;

    /// Of the whole recipe, as it is not of its place: `program` does.
    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        Ok(on.size)
    }
}
