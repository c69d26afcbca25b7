//! Objects of another sample, pasted onto the picture.
//!
//! A joint: `recipe/joints` has what it draws. Coordinates stay. Objects of the picture lose the
//! pixels that are covered.

use serde::{Deserialize, Serialize};

use crate::recipe::joints::{JointKind, SampleJoint, check_window};
use crate::recipe::operation::{Operation, OperationPart, PixelState};
use crate::recipe::operation_docs::described;
use crate::recipe::pixel_state::check_one_size;
use crate::recipe::ranges::{number, probability};

described! {
    example: "copy_paste: {p: 0.5}";

    /// With probability `p`, pastes random objects of a random other sample, which has gone through
    /// the same operations: Simple Copy-Paste. Each pixel of their masks becomes that of the other
    /// picture. Of n objects n numbers are drawn, so about 63 % are pasted. Objects without an
    /// outline and crowds are not pasted. A covered object keeps the rest of its mask, and its box
    /// becomes that of the rest. The pictures must have one size here.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct CopyPaste {
        /// The probability, 0 to 1.
        pub p: f64 = 1.0,
        /// The largest share of the box of an object that the box of a pasted object may cover, 0
        /// to 1. Others are not pasted. ultralytics uses 0.3.
        pub max_overlap: f64 = 1.0,
        /// The least share of an object's mask that must be left, 0 to 1. Others are dropped, and
        /// always those without a pixel.
        pub min_visibility: f64 = 0.0,
        /// Divides the order of the epoch into windows of this many samples, 2 to 1,000,000.
        /// Partners come from the window of the sample. Without it they come from the whole epoch.
        /// Of the first joint: workers share the pictures of a window, unless an operation before it
        /// draws random numbers.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub partner_window: Option<u32> = None,
    }
}

impl Operation for CopyPaste {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        probability(self.p)?;
        number("max_overlap", self.max_overlap, 0.0, 1.0)?;
        number("min_visibility", self.min_visibility, 0.0, 1.0)?;
        check_window(self.partner_window)?;
        check_one_size(known)
    }

    fn joint(&self) -> Option<SampleJoint> {
        Some(SampleJoint {
            p: self.p,
            window: self.partner_window,
            kind: JointKind::Paste {
                max_overlap: self.max_overlap,
                min_visibility: self.min_visibility,
            },
        })
    }
}
