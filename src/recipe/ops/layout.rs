//! The order of the axes of a batch.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault,
};
use crate::recipe::operation_docs::described;
use crate::recipe::tensor::MemoryLayout;

described! {
    example: "layout: {layout: nchw}";

    /// The order of the batch's axes.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Layout {
        /// `nchw` or `nhwc`.
        pub layout: MemoryLayout,
    }
}

impl Operation for Layout {
    const PARTS: &'static [OperationPart] = &[];
    const DRAWS: bool = false;

    fn check(&self, _known: &mut PixelState) -> Result<(), String> {
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        Ok(on.size)
    }
}
