//! The element type.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DrawContext, HeightWidth, MoveRights, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::tensor::DataType;

described! {
    example: "cast: {dtype: f16}";

    /// The element type from here on. The last cast sets the type of the batch. Levels stay 0 to
    /// 255 after a cast; a batch of floats is divided by 255 at the end.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Cast {
        /// `u8`, `f16`, `bf16` or `f32`.
        pub dtype: DataType,
    }
}

impl Operation for Cast {
    const PARTS: &'static [OperationPart] = &[OperationPart::Cast];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.values.check_data_type(self.dtype)?;
        known.floats = self.dtype != DataType::U8;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Cast(self.dtype));
        Ok(on.size)
    }

    fn move_rights(&self) -> MoveRights {
        MoveRights {
            casts_to: Some(self.dtype),
            ..MoveRights::default()
        }
    }
}
