//! RandAugment's five tables.
//!
//! torchvision's table is `torchvision.transforms.autoaugment.RandAugment` with 31 strengths
//! (`_augmentation_space`, `_apply_op`), on Pillow images. The others are those of PaddleClas'
//! `RandAugment`, `RandAugmentV2`, `RandAugmentV3` and `RandAugmentV4`.
//!
//! Rotations, shears and shifts move coordinates by the inverse of their matrix, as `random_affine`.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::paddle;
use crate::recipe::augment::policy_op::{
    PolicyOp, WarpOptions, draw_chance, draw_policy_op, levels, push_largest_warps,
};
use crate::recipe::augment::torchvision::{STRONGEST, TORCHVISION, linspace, torchvision_amount};
use crate::recipe::geometry::PixelRect;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{count, pillow_filter, whole_levels};
use crate::recipe::step::AugmentStep;
use crate::recipe::values::{InterpolationMode, PerChannel, Size};

described! {
    example: "rand_augment: {num_ops: 2, magnitude: 9}";

    /// RandAugment: `num_ops` operations from a table, drawn with replacement, all with strength
    /// `magnitude` (Cubuk et al. 2020).
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandAugment {
        /// The number of operations, 1 to 16.
        pub num_ops: u32 = 2,
        /// The strength, 0 to 30 (10 is PaddleClas' usual maximum); 0 to 22 for tables paddle and
        /// paddle2.
        pub magnitude: f64 = 9.0,
        /// The table of operations, which also defines the strengths.
        pub table: RandTable = RandTable::Torchvision,
        /// How values between pixels are computed.
        pub interpolation: InterpolationMode = InterpolationMode::Nearest,
        /// The colour outside the image, levels 0 to 255.
        pub fill: PerChannel = PerChannel::default(),
        /// If batches set the size of rows: the sizes of rows with their own strength.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub sizes: Vec<Size> = Vec::new(),
        /// The strength of each of `sizes`: PaddleClas' `progress_magnitude`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub magnitudes: Vec<f64> = Vec::new(),
    }
}

/// A table of operations and their strengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RandTable {
    /// torchvision's `RandAugment` with 31 strengths.
    #[default]
    Torchvision,
    /// PaddleClas' `RandAugment`, with fixed interpolations: bicubic for shears, nearest for the
    /// rest. Rotations have grey corners.
    Paddle,
    /// PaddleClas' `RandAugmentV2` for EfficientNetV2: 16 operations, all nearest, including
    /// `solarize_add` and a box filled with the first number of `fill`. Factors only increase.
    Paddle2,
    /// PaddleClas' `RandAugmentV3`.
    Paddle3,
    /// PaddleClas' `RandAugmentV4`: two of 15 operations, each with probability 0.5 and a random
    /// strength. `num_ops`, `magnitude`, `interpolation` and `fill` have no effect.
    Paddle4,
}

impl Operation for RandAugment {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_rgb8()?;
        pillow_filter(self.interpolation)?;
        whole_levels("fill", self.fill)?;
        if self.sizes.len() != self.magnitudes.len() || self.sizes.len() > MOST_SIZES {
            return Err(format!(
                "sizes has {} values and magnitudes {}: use the same number, at most {MOST_SIZES}",
                self.sizes.len(),
                self.magnitudes.len()
            ));
        }
        // It uses neither a strength nor a number of operations.
        if self.table == RandTable::Paddle4 {
            return Ok(());
        }
        let all = std::iter::once(&self.magnitude).chain(&self.magnitudes);
        all.copied().try_for_each(|m| strength(self.table, m))?;
        count("num_ops", self.num_ops, MOST_OPS)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let size = on.size;
        match self.table {
            RandTable::Paddle4 => with_cutout(on),
            RandTable::Paddle2 => with_add(self, on),
            RandTable::Torchvision | RandTable::Paddle | RandTable::Paddle3 => plain(self, on),
        }
        Ok(size)
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

    fn with_size(&self, (height, width): HeightWidth) -> Option<Self> {
        let mut strengths = self.sizes.iter().zip(&self.magnitudes);
        let own = strengths.find(|(size, _)| (size.height, size.width) == (height, width));
        (!self.sizes.is_empty()).then(|| Self {
            magnitude: own.map_or(self.magnitude, |(_, magnitude)| *magnitude),
            sizes: Vec::new(),
            magnitudes: Vec::new(),
            ..*self
        })
    }
}

fn strength(table: RandTable, m: f64) -> Result<(), String> {
    match table {
        RandTable::Torchvision if m.fract() != 0.0 || !(0.0..=30.0).contains(&m) => Err(format!(
            "magnitude is {m}: use a whole number from 0 to 30 with table torchvision"
        )),
        // Above 22, PaddleClas' posterize keeps more than 8 bits and fails.
        RandTable::Paddle | RandTable::Paddle2 if !(0.0..=22.0).contains(&m) => Err(format!(
            "magnitude is {m}: use 0 to 22 with tables paddle and paddle2"
        )),
        RandTable::Paddle3 if !(0.0..=30.0).contains(&m) => {
            Err(format!("magnitude is {m}: use 0 to 30 with table paddle3"))
        }
        _ => Ok(()),
    }
}

/// `RandAugment._augmentation_space`.
pub(crate) fn torchvision_strength(kind: PolicyOp, at: u32, size: (u32, u32)) -> f64 {
    match kind {
        PolicyOp::ShearX | PolicyOp::ShearY => linspace(0.0, 0.3, at),
        PolicyOp::TranslateX | PolicyOp::TranslateY => {
            linspace(0.0, (150.0 / 331.0 * kind.side(size)) as f32, at)
        }
        PolicyOp::Rotate => linspace(0.0, 30.0, at),
        PolicyOp::Color | PolicyOp::Contrast | PolicyOp::Sharpness | PolicyOp::Brightness => {
            linspace(0.0, 0.9, at)
        }
        PolicyOp::Posterize => {
            8.0 - (f64::from(at) / (f64::from(STRONGEST) / 4.0)).round_ties_even()
        }
        PolicyOp::Solarize => linspace(255.0, 0.0, at),
        _ => 0.0,
    }
}

/// The operations of `RandAugmentV4`.
const WITH_CUTOUT: [PolicyOp; 15] = {
    let mut kinds = [PolicyOp::Cutout; 15];
    let mut i = 0;
    while i < paddle::KINDS.len() {
        kinds[i] = paddle::KINDS[i];
        i += 1;
    }
    kinds
};

/// The operations of `RandAugmentV2`.
const WITH_ADD: [PolicyOp; 16] = {
    let mut kinds = [PolicyOp::SolarizeAdd; 16];
    let mut i = 0;
    while i < WITH_CUTOUT.len() {
        kinds[i] = WITH_CUTOUT[i];
        i += 1;
    }
    kinds
};

fn plain(o: &RandAugment, on: DrawContext<'_>) {
    let look = WarpOptions::new(o.interpolation, o.fill);
    for _ in 0..o.num_ops {
        let kinds = match o.table {
            RandTable::Torchvision => &TORCHVISION,
            _ => &paddle::KINDS,
        };
        let kind = draw_policy_op(kinds, on.random);
        let sign = sign(on.random);
        on.steps.augment(match o.table {
            RandTable::Torchvision => {
                let strength = torchvision_strength(kind, o.magnitude as u32, on.size);
                kind.step(torchvision_amount(kind, strength, sign), look)
            }
            RandTable::Paddle => {
                let strength = paddle::scaled(kind, o.magnitude);
                paddle::step(kind, strength, sign, on.size, look.fill)
            }
            RandTable::Paddle2 | RandTable::Paddle3 | RandTable::Paddle4 => {
                let strength = paddle::scaled_v3(kind, o.magnitude);
                kind.step(paddle::amount(kind, strength, sign, on.size), look)
            }
        });
    }
}

/// EfficientNetV2's: strengths are amounts. Only moves use the sign.
fn with_add(o: &RandAugment, on: DrawContext<'_>) {
    let fill = levels(o.fill);
    for _ in 0..o.num_ops {
        let kind = draw_policy_op(&WITH_ADD, on.random);
        let sign = sign(on.random);
        let place = place(on.size, on.random);
        let strength = paddle::scaled_v2(kind, o.magnitude);
        on.steps.augment(match kind {
            PolicyOp::Cutout => Some(hole(on.size, place, strength as u32, [fill[0]; 3])),
            _ => paddle::step_v2(kind, strength, sign, fill),
        });
    }
}

/// A random point. It may equal the height or the width.
fn place((height, width): HeightWidth, random: &mut impl UniformSource) -> (u32, u32) {
    (random.next_up_to(height), random.next_up_to(width))
}

/// A square around a point, `half` pixels to each side, clipped to the image.
fn hole((height, width): (u32, u32), (y, x): (u32, u32), half: u32, color: [u8; 3]) -> AugmentStep {
    let (top, left) = (y.saturating_sub(half), x.saturating_sub(half));
    AugmentStep::Fill {
        rect: PixelRect {
            top,
            left,
            height: y.saturating_add(half).min(height) - top,
            width: x.saturating_add(half).min(width) - left,
        },
        color,
    }
}

/// Two independent draws. So all pairs have the same probability.
fn with_cutout(on: DrawContext<'_>) {
    for _ in 0..2 {
        let kind = draw_policy_op(&WITH_CUTOUT, on.random);
        let strength = paddle::strength(kind, 1 + on.random.next_up_to(8));
        let done = draw_chance(0.5, on.random);
        let sign = sign(on.random);
        let place = place(on.size, on.random);
        if done {
            on.steps.augment(match kind {
                PolicyOp::Cutout => Some(hole(on.size, place, strength as u32, [0; 3])),
                _ => paddle::step(kind, strength, sign, on.size, levels(128.0.into())),
            });
        }
    }
}

/// The maximum number of sizes with their own strength.
const MOST_SIZES: usize = 64;
/// The maximum number of operations.
const MOST_OPS: u32 = 16;
