//! AutoAugment's policy for ImageNet as in PaddleClas' `ImageNetPolicy`
//! (`ppcls/data/preprocess/ops/autoaugment.py`, after DeepVoltaire/AutoAugment).
//!
//! Rotations, shears and shifts move coordinates by the inverse of their matrix, as `random_affine`.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::paddle;
use crate::recipe::augment::policy_op::{PolicyOp, draw_chance, push_largest_warps};
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault,
    UniformSource,
};
use crate::recipe::operation_docs::described;

described! {
    example: "auto_augment: {}";

    /// AutoAugment: one of 25 pairs of operations, each with its probability and
    /// strength (Cubuk et al. 2019), as PaddleClas' `AutoAugment` draws and applies them.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct AutoAugment {
        /// The table of pairs.
        pub policy: AutoPolicy,
    }
}

/// A table of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoPolicy {
    #[default]
    Imagenet,
}

impl Operation for AutoAugment {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let at = on.random.next_up_to(PAIRS.len() as u32 - 1) as usize;
        let (first, second) = PAIRS[at];
        for (p, kind, strength) in [first, second] {
            let done = draw_chance(p, on.random);
            let sign = sign(on.random);
            if done {
                let strength = paddle::strength(kind, strength);
                on.steps
                    .augment(paddle::step(kind, strength, sign, on.size, FILL));
            }
        }
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.optionally(|most| push_largest_warps(2, most));
        size
    }
}

use PolicyOp::{
    AutoContrast, Color, Contrast, Equalize, Invert, Posterize, Rotate, Sharpness, ShearX, Solarize,
};

/// Probability, operation, and number of its strength.
type PolicyEntry = (f64, PolicyOp, u32);

pub(crate) const PAIRS: [(PolicyEntry, PolicyEntry); 25] = [
    ((0.4, Posterize, 8), (0.6, Rotate, 9)),
    ((0.6, Solarize, 5), (0.6, AutoContrast, 5)),
    ((0.8, Equalize, 8), (0.6, Equalize, 3)),
    ((0.6, Posterize, 7), (0.6, Posterize, 6)),
    ((0.4, Equalize, 7), (0.2, Solarize, 4)),
    ((0.4, Equalize, 4), (0.8, Rotate, 8)),
    ((0.6, Solarize, 3), (0.6, Equalize, 7)),
    ((0.8, Posterize, 5), (1.0, Equalize, 2)),
    ((0.2, Rotate, 3), (0.6, Solarize, 8)),
    ((0.6, Equalize, 8), (0.4, Posterize, 6)),
    ((0.8, Rotate, 8), (0.4, Color, 0)),
    ((0.4, Rotate, 9), (0.6, Equalize, 2)),
    ((0.0, Equalize, 7), (0.8, Equalize, 8)),
    ((0.6, Invert, 4), (1.0, Equalize, 8)),
    ((0.6, Color, 4), (1.0, Contrast, 8)),
    ((0.8, Rotate, 8), (1.0, Color, 2)),
    ((0.8, Color, 8), (0.8, Solarize, 7)),
    ((0.4, Sharpness, 7), (0.6, Invert, 8)),
    ((0.6, ShearX, 5), (1.0, Equalize, 9)),
    ((0.4, Color, 0), (0.6, Equalize, 3)),
    ((0.4, Equalize, 7), (0.2, Solarize, 4)),
    ((0.6, Solarize, 5), (0.6, AutoContrast, 5)),
    ((0.6, Invert, 4), (1.0, Equalize, 8)),
    ((0.6, Color, 4), (1.0, Contrast, 8)),
    ((0.8, Equalize, 8), (0.6, Equalize, 3)),
];

/// The fill colour of a shear's corners.
pub(crate) const FILL: [u8; 3] = [128; 3];
