//! To grey.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::described::described;
use crate::recipe::known::Known;
use crate::recipe::operation::{OnDevice, Operation};
use crate::recipe::random::Numbers;
use crate::recipe::reach::Sides;
use crate::recipe::step::Step;
use crate::recipe::steps::Sink;
use crate::recipe::unit::Part;

described! {
    example: "grayscale: {num_output_channels: 3}";

    /// To grey: 0.2989 R + 0.587 G + 0.114 B, in one channel or three equal ones.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Grayscale {
        /// 1 or 3.
        pub num_output_channels: u8,
    }
}

/// One channel.
impl Default for Grayscale {
    fn default() -> Self {
        Self {
            num_output_channels: 1,
        }
    }
}

impl Operation for Grayscale {
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

    fn parts(&self) -> &'static [Part] {
        &[Part::Color]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        _random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        steps.push(Step::Grayscale);
        Ok(size)
    }

    fn on_device(&self) -> OnDevice {
        OnDevice {
            colors: Some(1),
            ..OnDevice::default()
        }
    }
}
