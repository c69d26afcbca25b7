//! RandAugment's five tables.
//!
//! torchvision's is `torchvision.transforms.autoaugment.RandAugment` with 31
//! strengths (`_augmentation_space`, `_apply_op`), on Pillow pictures; the others
//! are PaddleClas' `RandAugment`, `RandAugmentV2`, `RandAugmentV3` and `RandAugmentV4`.

use serde::{Deserialize, Serialize};

use crate::error::SampleFault;
use crate::recipe::augment::distribution::sign;
use crate::recipe::augment::kind::{Kind, Look, happens, levels, moved, one_of};
use crate::recipe::augment::paddle;
use crate::recipe::augment::torchvision::{STRONGEST, TORCHVISION, linspace, torchvision_amount};
use crate::recipe::described::described;
use crate::recipe::geometry::{Rect, Uniform};
use crate::recipe::known::Known;
use crate::recipe::operation::Operation;
use crate::recipe::random::Numbers;
use crate::recipe::ranges::{count, pillow_filter, whole_levels};
use crate::recipe::reach::Sides;
use crate::recipe::step::{Augment, Step};
use crate::recipe::steps::{Largest, Sink};
use crate::recipe::unit::Part;
use crate::recipe::values::{Interpolation, PerChannel, Size};

described! {
    example: "rand_augment: {num_ops: 2, magnitude: 9}";

    /// RandAugment: `num_ops` operations out of a table, with replacement, all of
    /// strength `magnitude` (Cubuk et al. 2020).
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandAugment {
        /// 1 to 16.
        pub num_ops: u32,
        /// The strength: 0 to 30, 10 being PaddleClas' usual strongest; 0 to 22 of tables
        /// paddle and paddle2.
        pub magnitude: f64,
        /// Which operations there are, and what a strength means to each.
        pub table: RandTable,
        /// How pixels between pixels are found.
        pub interpolation: Interpolation,
        /// The colour where there is no picture, levels 0 to 255.
        pub fill: PerChannel,
        /// Where batches set the size of rows: sizes of rows that have a strength of their
        /// own.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub sizes: Vec<Size>,
        /// The strength of each of `sizes`: PaddleClas' `progress_magnitude`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub magnitudes: Vec<f64>,
    }
}

/// Which operations, and what a strength means to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RandTable {
    /// torchvision's `RandAugment`, of 31 strengths.
    #[default]
    Torchvision,
    /// PaddleClas' `RandAugment`, whose interpolations are its own: bicubic shears, the
    /// rest nearest. Rotations have grey corners.
    Paddle,
    /// PaddleClas' `RandAugmentV2`, EfficientNetV2's: 16 operations, all nearest, with
    /// `solarize_add` and a box of the first number of `fill`; factors only rise.
    Paddle2,
    /// PaddleClas' `RandAugmentV3`.
    Paddle3,
    /// PaddleClas' `RandAugmentV4`: two of 15, each with probability 0.5 and a drawn
    /// strength; `num_ops`, `magnitude`, `interpolation` and `fill` mean nothing.
    Paddle4,
}

impl Default for RandAugment {
    fn default() -> Self {
        Self {
            num_ops: 2,
            magnitude: 9.0,
            table: RandTable::Torchvision,
            interpolation: Interpolation::Nearest,
            fill: PerChannel::default(),
            sizes: Vec::new(),
            magnitudes: Vec::new(),
        }
    }
}

impl Operation for RandAugment {
    fn check(&self, known: &mut Known) -> Result<(), String> {
        known.is_rgb8()?;
        pillow_filter(self.interpolation)?;
        whole_levels("fill", self.fill)?;
        if self.sizes.len() != self.magnitudes.len() || self.sizes.len() > MOST_SIZES {
            return Err(format!(
                "sizes has {} values and magnitudes {}: use as many of both, {MOST_SIZES} at most",
                self.sizes.len(),
                self.magnitudes.len()
            ));
        }
        // Which has no use for a strength, nor for a number of operations.
        if self.table == RandTable::Paddle4 {
            return Ok(());
        }
        let all = std::iter::once(&self.magnitude).chain(&self.magnitudes);
        all.copied().try_for_each(|m| strength(self.table, m))?;
        count("num_ops", self.num_ops, MOST_OPS)
    }

    fn parts(&self) -> &'static [Part] {
        &[Part::Augment]
    }

    fn draw(
        &self,
        _known: &Known,
        size: Sides,
        random: &mut Numbers<'_>,
        steps: &mut dyn Sink,
    ) -> Result<Sides, SampleFault> {
        draw(self, size, random, &mut |step| {
            steps.push(Step::Augment(step))
        });
        Ok(size)
    }

    fn largest(&self, _known: &Known, size: Sides, most: &mut Largest<'_>) -> Sides {
        most.optionally(|most| moved(2, most));
        size
    }

    fn draws(&self) -> bool {
        true
    }

    fn with_size(&self, (height, width): Sides) -> Option<Self> {
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
        // Above it PaddleClas' posterize keeps more than 8 bits, and fails.
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
pub(crate) fn torchvision_strength(kind: Kind, at: u32, size: (u32, u32)) -> f64 {
    match kind {
        Kind::ShearX | Kind::ShearY => linspace(0.0, 0.3, at),
        Kind::TranslateX | Kind::TranslateY => {
            linspace(0.0, (150.0 / 331.0 * kind.side(size)) as f32, at)
        }
        Kind::Rotate => linspace(0.0, 30.0, at),
        Kind::Color | Kind::Contrast | Kind::Sharpness | Kind::Brightness => linspace(0.0, 0.9, at),
        Kind::Posterize => 8.0 - (f64::from(at) / (f64::from(STRONGEST) / 4.0)).round_ties_even(),
        Kind::Solarize => linspace(255.0, 0.0, at),
        _ => 0.0,
    }
}

/// `RandAugmentV4`'s.
const WITH_CUTOUT: [Kind; 15] = {
    let mut kinds = [Kind::Cutout; 15];
    let mut i = 0;
    while i < paddle::KINDS.len() {
        kinds[i] = paddle::KINDS[i];
        i += 1;
    }
    kinds
};

/// `RandAugmentV2`'s.
const WITH_ADD: [Kind; 16] = {
    let mut kinds = [Kind::SolarizeAdd; 16];
    let mut i = 0;
    while i < WITH_CUTOUT.len() {
        kinds[i] = WITH_CUTOUT[i];
        i += 1;
    }
    kinds
};

fn draw(
    o: &RandAugment,
    size: (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
) {
    if o.table == RandTable::Paddle4 {
        return with_cutout(size, random, push);
    }
    if o.table == RandTable::Paddle2 {
        return with_add(o, size, random, push);
    }
    let look = Look::new(o.interpolation, o.fill);
    for _ in 0..o.num_ops {
        let kinds = match o.table {
            RandTable::Torchvision => &TORCHVISION,
            _ => &paddle::KINDS,
        };
        let kind = one_of(kinds, random);
        let sign = sign(random);
        let step = match o.table {
            RandTable::Torchvision => {
                let strength = torchvision_strength(kind, o.magnitude as u32, size);
                kind.step(torchvision_amount(kind, strength, sign), look)
            }
            RandTable::Paddle => {
                let strength = paddle::scaled(kind, o.magnitude);
                paddle::step(kind, strength, sign, size, look.fill)
            }
            RandTable::Paddle2 | RandTable::Paddle3 | RandTable::Paddle4 => {
                let strength = paddle::scaled_v3(kind, o.magnitude);
                kind.step(paddle::amount(kind, strength, sign, size), look)
            }
        };
        step.into_iter().for_each(&mut *push);
    }
}

/// EfficientNetV2's: strengths are what is done, but for the sign of what moves.
fn with_add(
    o: &RandAugment,
    (height, width): (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
) {
    let fill = levels(o.fill);
    for _ in 0..o.num_ops {
        let kind = one_of(&WITH_ADD, random);
        let sign = sign(random);
        // The height and the width themselves may come.
        let (y, x) = (random.next_up_to(height), random.next_up_to(width));
        let strength = paddle::scaled_v2(kind, o.magnitude);
        if kind == Kind::Cutout {
            push(hole((height, width), (y, x), strength as u32, [fill[0]; 3]));
            continue;
        }
        let step = paddle::step_v2(kind, strength, sign, fill);
        step.into_iter().for_each(&mut *push);
    }
}

/// A square about a place, `half` pixels to each side, cut to the picture.
fn hole((height, width): (u32, u32), (y, x): (u32, u32), half: u32, color: [u8; 3]) -> Augment {
    let (top, left) = (y.saturating_sub(half), x.saturating_sub(half));
    Augment::Fill {
        rect: Rect {
            top,
            left,
            height: y.saturating_add(half).min(height) - top,
            width: x.saturating_add(half).min(width) - left,
        },
        color,
    }
}

/// Every one of the 135 squared pairs is equally likely: two that are drawn alike.
fn with_cutout(
    (height, width): (u32, u32),
    random: &mut impl Uniform,
    push: &mut impl FnMut(Augment),
) {
    for _ in 0..2 {
        let kind = one_of(&WITH_CUTOUT, random);
        let strength = paddle::strength(kind, 1 + random.next_up_to(8));
        let done = happens(0.5, random);
        let sign = sign(random);
        // The height and the width themselves may come.
        let (y, x) = (random.next_up_to(height), random.next_up_to(width));
        if !done {
            continue;
        }
        if kind == Kind::Cutout {
            push(hole((height, width), (y, x), strength as u32, [0; 3]));
        } else {
            paddle::step(kind, strength, sign, (height, width), levels(128.0.into()))
                .into_iter()
                .for_each(&mut *push);
        }
    }
}

/// Most sizes with a strength of their own.
const MOST_SIZES: usize = 64;
/// Most operations.
const MOST_OPS: u32 = 16;
