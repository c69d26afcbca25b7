//! Conversion to grey.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{
    DeviceSupport, DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault,
    Step,
};
use crate::recipe::operation_docs::described;

described! {
    example: "grayscale: {num_output_channels: 3}";

    /// Converts to grey: 0.2989 R + 0.587 G + 0.114 B, in one channel or three equal ones.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Grayscale {
        /// 1 or 3.
        pub num_output_channels: u8 = 1,
    }
}

impl Operation for Grayscale {
    const PARTS: &'static [OperationPart] = &[OperationPart::Color];
    const DRAWS: bool = false;

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb_levels("is made from rgb levels")?;
        if !matches!(self.num_output_channels, 1 | 3) {
            return Err(format!(
                "num_output_channels is {}: use 1 or 3",
                self.num_output_channels
            ));
        }
        known.channels = self.num_output_channels;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        on.steps.push(Step::Grayscale);
        Ok(on.size)
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            colors: Some(1),
            ..DeviceSupport::default()
        }
    }
}
