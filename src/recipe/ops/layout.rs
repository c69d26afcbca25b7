//! The order of the axes of a batch.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::operation::{DrawContext, Known, Operation, Part, SampleFault, Sides};
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
    const PARTS: &'static [Part] = &[];
    const DRAWS: bool = false;

    fn check(&self, _known: &mut Known) -> Result<(), String> {
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        Ok(on.size)
    }
}
