//! A box of the picture of another sample.
//!
//! A joint: `recipe/joints` has what it draws. Coordinates stay. Objects of the other picture are
//! clipped to the box.

use serde::{Deserialize, Serialize};

use crate::recipe::joints::{JointKind, SampleJoint, check_window};
use crate::recipe::operation::{Operation, OperationPart, PixelState};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::check_one_size;
use crate::recipe::ranges::{count, number, probability};

described! {
    example: "cut_samples: {alpha: 1.0, p: 0.1}";

    /// With probability `p`, replaces a random box by that of a random other sample, which has gone
    /// through the same operations: ultralytics' CutMix. Only a box that touches no object of the
    /// picture is used, and only if an object of the other picture lies in it. The pictures must
    /// have one size here. `cutmix` of `mixing` mixes whole batches with their labels instead.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct CutSamples {
        /// The sides of a box are those of the picture times sqrt(1 - w), with w of beta(alpha,
        /// alpha). 0.01 to 1000.
        pub alpha: f64 = 1.0,
        /// The number of boxes to try, 1 to 16.
        pub boxes: u32 = 3,
        /// The least share of an object of the other picture that lies in the box, 0 to 1.
        pub min_visibility: f64 = 0.1,
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

impl Operation for CutSamples {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        check_window(self.partner_window)?;
        number("alpha", self.alpha, 0.01, 1000.0)?;
        number("min_visibility", self.min_visibility, 0.0, 1.0)?;
        count("boxes", self.boxes, 16)?;
        check_one_size(known)
    }

    fn joint(&self) -> Option<SampleJoint> {
        Some(SampleJoint {
            p: self.p,
            kind: JointKind::Cut {
                alpha: self.alpha,
                boxes: self.boxes,
                min_visibility: self.min_visibility,
            },
            window: self.partner_window,
        })
    }
}
