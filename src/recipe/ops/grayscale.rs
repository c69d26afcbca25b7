//! To grey.

use serde::{Deserialize, Serialize};

use crate::recipe::described::described;
use crate::recipe::operation::{
    DrawContext, Known, OnDevice, Operation, Part, SampleFault, Sides, Step,
};

described! {
    example: "grayscale: {num_output_channels: 3}";

    /// To grey: 0.2989 R + 0.587 G + 0.114 B, in one channel or three equal ones.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Grayscale {
        /// 1 or 3.
        pub num_output_channels: u8 = 1,
    }
}

impl Operation for Grayscale {
    const PARTS: &'static [Part] = &[Part::Color];
    const DRAWS: bool = false;

    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_levels_of_rgb("is made from rgb levels")?;
        if !matches!(self.num_output_channels, 1 | 3) {
            return Err(format!(
                "num_output_channels is {}: use 1 or 3",
                self.num_output_channels
            ));
        }
        known.channels = self.num_output_channels;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<Sides, SampleFault> {
        on.steps.push(Step::Grayscale);
        Ok(on.size)
    }

    fn on_device(&self) -> OnDevice {
        OnDevice {
            colors: Some(1),
            ..OnDevice::default()
        }
    }
}
