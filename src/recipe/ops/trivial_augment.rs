//! `torchvision.transforms.autoaugment.TrivialAugmentWide` with 31 strengths, on Pillow images: one
//! operation with its strength and its sign.
//!
//! Rotations, shears and shifts move coordinates by the inverse of their matrix, as `random_affine`.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::policy_op::{
    PolicyOp, WarpOptions, draw_policy_op, push_largest_warps,
};
use crate::recipe::augment::torchvision::{STRONGEST, TORCHVISION, linspace, torchvision_amount};
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{pillow_filter, whole_levels};
use crate::recipe::values::{InterpolationMode, PerChannel};

described! {
    example: "trivial_augment: {}";

    /// TrivialAugment: one operation with a random strength (Mueller and Hutter 2021), as
    /// torchvision's `TrivialAugmentWide` with 31 strengths.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TrivialAugment {
        /// How values between pixels are computed.
        pub interpolation: InterpolationMode = InterpolationMode::Nearest,
        /// The colour outside the image, levels 0 to 255.
        pub fill: PerChannel = PerChannel::default(),
    }
}

impl Operation for TrivialAugment {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        pillow_filter(self.interpolation)?;
        whole_levels("fill", self.fill)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let kind = draw_policy_op(&TORCHVISION, on.random);
        let strength = strength(kind, on.random.next_up_to(STRONGEST));
        let amount = torchvision_amount(kind, strength, sign(on.random));
        let look = WarpOptions::new(self.interpolation, self.fill);
        on.steps.augment(kind.step(amount, look));
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.optionally(|most| push_largest_warps(1, most));
        size
    }
}

/// `TrivialAugmentWide._augmentation_space`.
pub(crate) fn strength(kind: PolicyOp, at: u32) -> f64 {
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY => linspace(0.0, 0.99, at),
        PolicyOp::TranslateX | PolicyOp::TranslateY => linspace(0.0, 32.0, at),
        PolicyOp::Rotate => linspace(0.0, 135.0, at),
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            linspace(0.0, 0.99, at)
        }
        PolicyOp::Posterize => {
            8.0 - (f64::from(at) / (f64::from(STRONGEST) / 6.0)).round_ties_even()
        }
        PolicyOp::Solarize => linspace(255.0, 0.0, at),
        _ => 0.0,
    }
}
