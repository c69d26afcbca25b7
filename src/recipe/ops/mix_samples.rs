//! A weighted mean of the pictures of two samples.
//!
//! A joint: `recipe/joints` has what it draws. Coordinates stay, and objects of both are kept.

use serde::{Deserialize, Serialize};

use crate::recipe::joints::{JointKind, SampleJoint, check_window};
use crate::recipe::operation::{Operation, OperationPart, PixelState};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::check_one_size;
use crate::recipe::ranges::{number, probability};

described! {
    example: "mix_samples: {alpha: 32.0, p: 0.1}";

    /// With probability `p`, mixes the picture with that of a random other sample, which has gone
    /// through the same operations: ultralytics' MixUp. Objects of both are kept, and the label is
    /// that of the sample. The pictures must have one size here. `mixup` of `mixing` mixes whole
    /// batches with their labels instead.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct MixSamples {
        /// The weight of the picture is drawn from beta(alpha, alpha). 0.01 to 1000.
        pub alpha: f64 = 32.0,
        /// The probability, 0 to 1.
        pub p: f64 = 1.0,
        /// Divides the order of the epoch into windows of this many samples, 2 to 1,000,000.
        /// Partners come from the window of the sample. Without it they come from the whole epoch.
        /// Of the first joint: workers share the pictures of a window, unless an operation before it
        /// draws random numbers.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub partner_window: Option<u32> = None,
    }
}

impl Operation for MixSamples {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        check_window(self.partner_window)?;
        number("alpha", self.alpha, 0.01, 1000.0)?;
        check_one_size(known)
    }

    fn joint(&self) -> Option<SampleJoint> {
        Some(SampleJoint {
            p: self.p,
            kind: JointKind::Mix { alpha: self.alpha },
            window: self.partner_window,
        })
    }
}
