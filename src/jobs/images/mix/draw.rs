//! The random choices for a batch: the operation, partners, weights and boxes.
//!
//! Pure functions of the batch's position, in a fixed order, so that a batch can be drawn again.
//! Never here: pixels.

use std::f64::consts::LN_2;
use std::ops::Range;

use crate::order::PositionRandom;
use crate::recipe::MixOp;
use crate::recipe::geometry::UniformSource;

/// The operation on the rows of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MixOperation {
    Nothing,
    /// Own pixels times `keep` plus the partner's times `1 - keep`.
    Blend {
        keep: f64,
    },
    /// The partner's pixels in a box.
    Paste(PasteBox),
    /// The partner's pixels outside of a mask, whose mean is `keep`.
    Mask {
        keep: f64,
        decay_power: f64,
        max_soft: f64,
    },
}

/// A box, and the fraction of the row outside of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PasteBox {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
    pub(crate) keep: f64,
}

impl MixOperation {
    /// The weight of a row's own label.
    pub(crate) fn keep(&self) -> f64 {
        match self {
            Self::Nothing => 1.0,
            Self::Blend { keep } | Self::Mask { keep, .. } => *keep,
            Self::Paste(at) => at.keep,
        }
    }
}

/// The partner of each row, among the rows with samples.
#[derive(Debug, Default)]
pub(crate) struct RowPartners {
    /// Numbers of these rows in the batch.
    pub(crate) rows: Vec<usize>,
    /// For each of them, the index in `rows` of its partner. A permutation.
    pub(crate) partner_of: Vec<usize>,
}

impl RowPartners {
    /// Fisher-Yates: all permutations are equally likely, including those in which a row is its own
    /// partner.
    fn shuffle(&mut self, random: &mut PositionRandom) {
        for last in (1..self.partner_of.len()).rev() {
            let other = random.below(last as u64 + 1) as usize;
            self.partner_of.swap(last, other);
        }
    }
}

/// Draws the operation for a batch of rows of this height and width.
pub(crate) fn draw(
    op: &MixOp,
    sampled: &[usize],
    size: (usize, usize),
    random: &mut PositionRandom,
    partners: &mut RowPartners,
) -> MixOperation {
    partners.rows.clear();
    partners.rows.extend(sampled);
    partners.partner_of.clear();
    partners.partner_of.extend(0..sampled.len());
    match op {
        MixOp::OneOf(choices) => {
            let at = random.next_f64();
            let mut sum = 0.0;
            let chosen = choices.iter().find(|c| {
                sum += c.p;
                at < sum
            });
            match chosen {
                Some(chosen) => shuffled(&chosen.op, size, random, partners),
                None => MixOperation::Nothing,
            }
        }
        MixOp::MixupCutmix {
            mixup_alpha,
            cutmix_alpha,
            p,
            switch_p,
            ..
        } => {
            if random.next_f64() >= *p {
                return MixOperation::Nothing;
            }
            let cuts = match (*mixup_alpha > 0.0, *cutmix_alpha > 0.0) {
                (true, true) => random.next_f64() < *switch_p,
                (_, cuts) => cuts,
            };
            partners.partner_of.reverse();
            match cuts {
                true => paste(beta(*cutmix_alpha, random), size, random),
                false => MixOperation::Blend {
                    keep: beta(*mixup_alpha, random),
                },
            }
        }
        op => shuffled(op, size, random, partners),
    }
}

/// An operation with random partners.
fn shuffled(
    op: &MixOp,
    size: (usize, usize),
    random: &mut PositionRandom,
    partners: &mut RowPartners,
) -> MixOperation {
    partners.shuffle(random);
    match op {
        MixOp::Mixup { alpha } => MixOperation::Blend {
            keep: beta(*alpha, random),
        },
        MixOp::Cutmix { alpha } => paste(beta(*alpha, random), size, random),
        MixOp::Fmix {
            alpha,
            decay_power,
            max_soft,
        } => MixOperation::Mask {
            keep: beta(*alpha, random),
            decay_power: *decay_power,
            max_soft: *max_soft,
        },
        // Rejected by the recipe's check, or resolved above.
        _ => MixOperation::Nothing,
    }
}

/// The box of CutMix's authors, timm and PaddleClas: its sides and half sides are rounded down to
/// whole pixels, and it is clipped to the row. Labels are weighted by the pixels that it really
/// covers.
fn paste(keep: f64, (height, width): (usize, usize), random: &mut PositionRandom) -> MixOperation {
    let cut = (1.0 - keep).sqrt();
    let mut along = |length: usize| {
        let half = (length as f64 * cut) as usize / 2;
        let middle = random.below(length as u64) as usize;
        middle.saturating_sub(half)..(middle + half).min(length)
    };
    let (rows, columns) = (along(height), along(width));
    let area = rows.len() as f64 * columns.len() as f64;
    MixOperation::Paste(PasteBox {
        rows,
        columns,
        keep: 1.0 - area / (height as f64 * width as f64),
    })
}

/// A draw of beta(a, a), with exp and log of `libm`. As in NumPy: for `a` up to 1 by Jöhnk
/// ("Erzeugung von betaverteilten und gammaverteilten Zufallszahlen", Metrika 8, 1964), above by
/// algorithm BB of Cheng ("Generating beta variates with nonintegral shape parameters",
/// Communications of the ACM 21, 1978).
pub(crate) fn beta(a: f64, random: &mut PositionRandom) -> f64 {
    loop {
        let drawn = match a <= 1.0 {
            true => johnk(a, random),
            false => cheng(a, random),
        };
        if let Some(drawn) = drawn {
            return drawn;
        }
    }
}

/// One attempt. At least half of them succeed. Uses logarithms, since for small `a` both powers may
/// underflow.
fn johnk(a: f64, random: &mut PositionRandom) -> Option<f64> {
    let mut power = || libm::log(nonzero_uniform(random)) / a;
    let (x, y) = (power(), power());
    if libm::exp(x) + libm::exp(y) > 1.0 {
        return None;
    }
    Some(match y - x {
        // Both logarithms are infinite: the greater one decides.
        difference if difference.is_nan() => f64::from(u8::from(x > y)),
        difference => 1.0 / (1.0 + libm::exp(difference)),
    })
}

/// One attempt, for equal parameters above 1.
fn cheng(a: f64, random: &mut PositionRandom) -> Option<f64> {
    let sum = 2.0 * a;
    let slope = ((sum - 2.0) / (2.0 * a * a - sum)).sqrt();
    let gamma = a + 1.0 / slope;
    let (u, v) = (nonzero_uniform(random), nonzero_uniform(random));
    let v1 = slope * libm::log(u / (1.0 - u));
    let w = a * libm::exp(v1);
    let z = u * u * v;
    let r = gamma * v1 - 2.0 * LN_2;
    let s = a + r - w;
    let log_z = libm::log(z);
    let accepted = s + 1.0 + libm::log(5.0) >= 5.0 * z
        || s >= log_z
        || r + sum * libm::log(sum / (a + w)) >= log_z;
    accepted.then(|| w / (a + w))
}

/// Uniform, never 0.
fn nonzero_uniform(random: &mut PositionRandom) -> f64 {
    random.next_f64().max(1.0 / (1u64 << 53) as f64)
}

/// Two numbers of a normal distribution, by Box and Muller.
pub(crate) fn normals(random: &mut PositionRandom) -> (f64, f64) {
    let radius = (-2.0 * libm::log(nonzero_uniform(random))).sqrt();
    let (sin, cos) = libm::sincos(std::f64::consts::TAU * random.next_f64());
    (radius * cos, radius * sin)
}
