//! The element type.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::operation::{
    DrawContext, Known, Operation, Part, Rights, SampleFault, Sides, Step,
};
use crate::recipe::tensor::Dtype;

described! {
    example: "cast: {dtype: f16}";

    /// The element type from here on, and of the batch if it is the last cast.
    /// Levels stay 0 to 255 on the way; a batch of floats is divided by 255 at its end.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Cast {
        /// `u8`, `f16`, `bf16` or `f32`.
        pub dtype: Dtype,
    }
}

impl Operation for Cast {
    const PARTS: &'static [Part] = &[Part::Cast];
    const DRAWS: bool = false;

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.values.fit(self.dtype)?;
        known.floats = self.dtype != Dtype::U8;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        on.steps.push(Step::Cast(self.dtype));
        Ok(on.size)
    }

    fn rights(&self) -> Rights {
        Rights {
            casts_to: Some(self.dtype),
            ..Rights::default()
        }
    }
}
