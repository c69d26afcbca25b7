//! torchvision's `AugMix` (`transforms.v2`), which computes on tensors.
//!
//! Coordinates stay: moved copies are mixed with the image, which does not move.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::{dirichlet, sign};
use crate::recipe::augment::policy_op::{PolicyOp, draw_policy_op, levels, push_largest_warps};
use crate::recipe::defaults::is_default;
use crate::recipe::geometry::cos_sin;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{count, number, whole_levels};
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;
use crate::recipe::values::{ChainDepth, InterpolationMode, PerChannel};

described! {
    example: "torchvision_aug_mix: {severity: 3}";

    /// AugMix: `width` chains of `depth` operations, mixed with the image (Hendrycks et al. 2020), as
    /// in torchvision. Arithmetic is that of tensors.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TorchvisionAugMix {
        /// The number of strengths that are drawn, 1 to 10, from the weakest on.
        pub severity: u32 = 3,
        /// The number of chains, 1 to 8.
        pub width: u32 = 3,
        /// Operations per chain: 1 to 8, or `random` for 1 to 3.
        pub depth: ChainDepth = ChainDepth::Random,
        /// The parameter of the Dirichlet distributions of the weights, 0.01 to 100.
        pub alpha: f64 = 1.0,
        /// Also brightness, colour, contrast and sharpness.
        pub all_ops: bool = true,
        /// `nearest` or `bilinear`.
        pub interpolation: InterpolationMode = InterpolationMode::Bilinear,
        /// The colour outside the image, whole levels 0 to 255. Without it, pixels at the rim are
        /// mixed with black once. With it, they are mixed with `fill` after that.
        #[serde(skip_serializing_if = "is_default")]
        pub fill: Option<PerChannel> = None,
    }
}

impl Operation for TorchvisionAugMix {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        count("severity", self.severity, STRENGTHS)?;
        count("width", self.width, MOST)?;
        if let ChainDepth::Fixed(depth) = self.depth {
            count("depth", depth, MOST)?;
        }
        number("alpha", self.alpha, 0.01, 100.0)?;
        match self.interpolation {
            InterpolationMode::Nearest | InterpolationMode::Bilinear => {}
            other => {
                return Err(format!(
                    "interpolation is {}: use nearest or bilinear",
                    other.name()
                ));
            }
        }
        self.fill.map_or(Ok(()), |fill| whole_levels("fill", fill))
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let [image, chains] = dirichlet::<2>(self.alpha, 2, on.random).map(|w| w as f32);
        let weights: [f64; MOST as usize] = dirichlet(self.alpha, self.width as usize, on.random);
        let kinds = match self.all_ops {
            true => &KINDS[..],
            false => &KINDS[..PARTIAL],
        };
        on.steps.push(Step::Augment(AugmentStep::Keep));
        // The image itself is the first summand.
        on.steps
            .push(Step::Augment(AugmentStep::AddSingle { weight: image }));
        for weight in weights.iter().take(self.width as usize) {
            let depth = match self.depth {
                ChainDepth::Fixed(depth) => depth,
                ChainDepth::Random => 1 + on.random.next_up_to(DRAWN - 1),
            };
            for _ in 0..depth {
                let kind = draw_policy_op(kinds, on.random);
                let strength = match has_strength(kind) {
                    true => on.random.next_up_to(self.severity.saturating_sub(1)),
                    false => 0,
                };
                let sign = match has_sign(kind) {
                    true => sign(on.random),
                    false => 1.0,
                };
                on.steps.push(self.step(kind, strength, sign, on.size));
            }
            let weight = *weight as f32 * chains;
            on.steps
                .push(Step::Augment(AugmentStep::AddSingle { weight }));
        }
        on.steps.push(Step::Augment(AugmentStep::Total));
        Ok(on.size)
    }

    fn largest(
        &self,
        _known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let depth = match self.depth {
            ChainDepth::Fixed(depth) => depth,
            ChainDepth::Random => DRAWN,
        };
        most.optionally(|most| {
            most.push(Step::Augment(AugmentStep::Keep));
            for _ in 0..self.width.min(2) {
                push_largest_warps(depth, most);
                most.push(Step::Augment(AugmentStep::AddSingle { weight: 1.0 }));
            }
            most.push(Step::Augment(AugmentStep::Total));
        });
        size
    }
}

impl TorchvisionAugMix {
    fn step(&self, kind: PolicyOp, strength: u32, sign: f64, size: HeightWidth) -> Step {
        let amount = amount(kind, strength, size) * sign;
        let affine = |matrix: [f64; 6]| {
            Step::Augment(AugmentStep::TensorAffine {
                // torch's matrices are `f32`.
                matrix: matrix.map(|v| f64::from(v as f32)),
                interpolation: self.interpolation,
                fill: self.fill.map(levels),
            })
        };
        let (height, width) = (f64::from(size.0), f64::from(size.1));
        let factor = (1.0 + amount) as f32;
        match kind {
            PolicyOp::ShearX => affine([1.0, amount, amount * height / 2.0, 0.0, 1.0, 0.0]),
            PolicyOp::ShearY => affine([1.0, 0.0, 0.0, amount, 1.0, amount * width / 2.0]),
            PolicyOp::TranslateX => affine([1.0, 0.0, -amount.trunc(), 0.0, 1.0, 0.0]),
            PolicyOp::TranslateY => affine([1.0, 0.0, 0.0, 0.0, 1.0, -amount.trunc()]),
            PolicyOp::Rotate => {
                let (cos, sin) = cos_sin(amount);
                affine([cos, -sin, 0.0, sin, cos, 0.0])
            }
            PolicyOp::Brightness => Step::Brightness(factor),
            PolicyOp::Color => Step::Saturation(factor),
            PolicyOp::Contrast => Step::Contrast(factor),
            PolicyOp::Sharpness => Step::Augment(AugmentStep::TensorSharpness(factor)),
            PolicyOp::Posterize => Step::Augment(AugmentStep::Posterize { bits: amount as u8 }),
            PolicyOp::Solarize => Step::Augment(AugmentStep::Solarize {
                threshold: amount as f32,
            }),
            PolicyOp::Equalize => Step::Augment(AugmentStep::Equalize),
            // The only other operation of the list.
            _ => Step::Augment(AugmentStep::TensorAutoContrast),
        }
    }
}

/// The maximum number of chains, and of operations in a chain.
const MOST: u32 = 8;

/// The maximum number of operations in a chain of random depth.
const DRAWN: u32 = 3;

/// torchvision's `_PARAMETER_MAX`.
const STRENGTHS: u32 = 10;

/// Operations without `all_ops`.
const PARTIAL: usize = 9;

const KINDS: [PolicyOp; 13] = [
    PolicyOp::ShearX,
    PolicyOp::ShearY,
    PolicyOp::TranslateX,
    PolicyOp::TranslateY,
    PolicyOp::Rotate,
    PolicyOp::Posterize,
    PolicyOp::Solarize,
    PolicyOp::AutoContrast,
    PolicyOp::Equalize,
    PolicyOp::Brightness,
    PolicyOp::Color,
    PolicyOp::Contrast,
    PolicyOp::Sharpness,
];

fn has_strength(kind: PolicyOp) -> bool {
    !matches!(kind, PolicyOp::AutoContrast | PolicyOp::Equalize)
}

fn has_sign(kind: PolicyOp) -> bool {
    has_strength(kind) && !matches!(kind, PolicyOp::Posterize | PolicyOp::Solarize)
}

/// `torch.linspace(from, to, 10)` in `f32`. Like torch, it counts from both ends.
fn linspace(from: f32, to: f32, at: u32) -> f64 {
    let step = (to - from) / (STRENGTHS - 1) as f32;
    f64::from(if at < STRENGTHS / 2 {
        from + step * at as f32
    } else {
        to - step * (STRENGTHS - 1 - at) as f32
    })
}

/// `AugMix._AUGMENTATION_SPACE`, without the sign.
fn amount(kind: PolicyOp, at: u32, size: HeightWidth) -> f64 {
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY => linspace(0.0, 0.3, at),
        PolicyOp::TranslateX | PolicyOp::TranslateY => {
            linspace(0.0, (kind.side(size) / 3.0) as f32, at)
        }
        PolicyOp::Rotate => linspace(0.0, 30.0, at),
        PolicyOp::Posterize => 4.0 - (f64::from(at) / 2.25).round_ties_even(),
        PolicyOp::Solarize => 255.0 * linspace(1.0, 0.0, at),
        PolicyOp::Brightness | PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness => {
            linspace(0.0, 0.9, at)
        }
        _ => 0.0,
    }
}
