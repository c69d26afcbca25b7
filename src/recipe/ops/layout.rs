//! The order of the axes of a batch.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::steps::Sink;
use crate::recipe::tensor::MemoryLayout;
use crate::recipe::unit::Part;

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
    fn check(&self, _known: &mut Known) -> Result<(), String> {
        Ok(())
    }

    fn parts(&self) -> &'static [Part] {
        &[]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        _steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        Ok(size)
    }
}
