//! Random conversion to grey.

use serde::{Deserialize, Serialize};

use crate::recipe::operation::{DeviceSupport, Operation, OperationPart, PixelState, Step};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::probability;

described! {
    example: "random_grayscale: {p: 0.1}";

    /// With probability `p`, converts to grey. The number of channels stays.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomGrayscale {
        /// The probability, 0 to 1.
        pub p: f64 = 0.1,
    }
}

impl Operation for RandomGrayscale {
    const PARTS: &'static [OperationPart] = &[OperationPart::Color];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb_levels("is made from rgb levels")?;
        probability(self.p)?;
        Ok(())
    }

    fn chance(&self) -> Option<(f64, Step)> {
        Some((self.p, Step::Grayscale))
    }

    fn device_support(&self) -> DeviceSupport {
        DeviceSupport {
            colors: Some(1),
            ..DeviceSupport::default()
        }
    }
}
