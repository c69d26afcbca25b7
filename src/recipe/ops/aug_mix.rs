//! AugMix as in PaddleClas (`ppcls/data/preprocess/ops/operators.py`, `functional.py`). It adds
//! chains of operations on the image with Dirichlet weights, and mixes the sum with the image by a
//! beta-distributed weight. Bilinear, with black corners.
//!
//! Coordinates stay: moved copies are mixed with the image, which does not move.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::{beta, dirichlet, sign};
use crate::recipe::augment::policy_op::{
    PolicyOp, WarpOptions, draw_chance, draw_policy_op, push_largest_warps,
};
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{count, number, probability};
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;
use crate::recipe::values::{ChainDepth, InterpolationMode};

described! {
    example: "aug_mix: {width: 3, depth: random}";

    /// AugMix: `width` chains of `depth` operations, mixed with the image (Hendrycks et al. 2020),
    /// as in PaddleClas.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct AugMix {
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
        /// The parameter of the Dirichlet and beta distributions of the weights, 0.01 to 100.
        pub alpha: f64 = 0.1,
        /// The number of chains, 1 to 8.
        pub width: u32 = 3,
        /// Operations per chain: 1 to 8, or `random` for 1 to 3.
        pub depth: ChainDepth = ChainDepth::Fixed(1),
        /// The maximum level, 0.1 to 10. Levels are uniform from 0.1 to it.
        pub severity: f64 = 1.0,
    }
}

impl Operation for AugMix {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        probability(self.p)?;
        number("alpha", self.alpha, 0.01, 100.0)?;
        number("severity", self.severity, 0.1, 10.0)?;
        count("width", self.width, MOST)?;
        match self.depth {
            ChainDepth::Fixed(depth) => count("depth", depth, MOST),
            ChainDepth::Random => Ok(()),
        }
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        if !draw_chance(self.p, on.random) {
            return Ok(on.size);
        }
        let weights: [f64; MOST as usize] = dirichlet(self.alpha, self.width as usize, on.random);
        let by = beta(self.alpha, on.random);
        on.steps.push(Step::Augment(AugmentStep::Keep));
        for weight in weights.iter().take(self.width as usize) {
            let depth = match self.depth {
                ChainDepth::Fixed(depth) => depth,
                ChainDepth::Random => 1 + on.random.next_up_to(DRAWN - 1),
            };
            for _ in 0..depth {
                let kind = draw_policy_op(&KINDS, on.random);
                let level = 0.1 + (self.severity - 0.1) * on.random.next_f64();
                let sign = sign(on.random);
                on.steps
                    .augment(kind.step(amount(kind, level, sign, on.size), LOOK));
            }
            let weight = *weight as f32;
            on.steps.push(Step::Augment(AugmentStep::Add { weight }));
        }
        on.steps
            .push(Step::Augment(AugmentStep::Blend { by: by as f32 }));
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        if self.p > 0.0 {
            most.optionally(|most| {
                most.push(Step::Augment(AugmentStep::Keep));
                for _ in 0..self.width.min(2) {
                    push_largest_warps(deepest(self.depth), most);
                    most.push(Step::Augment(AugmentStep::Add { weight: 1.0 }));
                }
                most.push(Step::Augment(AugmentStep::Blend { by: 1.0 }));
            });
        }
        size
    }
}

/// The maximum number of chains, and of operations in a chain.
pub(crate) const MOST: u32 = 8;

/// The maximum number of operations in a chain of random depth.
const DRAWN: u32 = 3;

/// The maximum number of operations in a chain.
pub(crate) fn deepest(depth: ChainDepth) -> u32 {
    match depth {
        ChainDepth::Fixed(depth) => depth,
        ChainDepth::Random => DRAWN,
    }
}

pub(crate) const KINDS: [PolicyOp; 9] = [
    PolicyOp::AutoContrast,
    PolicyOp::Equalize,
    PolicyOp::Posterize,
    PolicyOp::Rotate,
    PolicyOp::Solarize,
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
];

pub(crate) const LOOK: WarpOptions = WarpOptions {
    interpolation: InterpolationMode::Bilinear,
    fill: [0; 3],
};

/// The amount for a level of at most 10: `int_parameter` and `float_parameter`.
pub(crate) fn amount(kind: PolicyOp, level: f64, sign: f64, size: (u32, u32)) -> f64 {
    let whole = |most: f64| (level * most / 10.0).trunc();
    match kind {
        PolicyOp::Posterize => 4.0 - whole(4.0),
        PolicyOp::Rotate => whole(30.0) * sign,
        PolicyOp::Solarize => 256.0 - whole(256.0),
        PolicyOp::ShearX | PolicyOp::ShearY => level * 0.3 / 10.0 * sign,
        PolicyOp::TranslateX | PolicyOp::TranslateY => whole(kind.side(size) / 3.0) * sign,
        _ => 0.0,
    }
}
