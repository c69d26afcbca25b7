//! What is done to a batch as a whole, as data: its rows mixed with each other, and
//! their labels with them.
//!
//! Names and meaning are those of the papers and of torchvision's `MixUp` and `CutMix`,
//! timm's `Mixup` and PaddleClas' `batch_transform_ops`. `check`: every number in
//! its range. Never here: pixels, random numbers.

mod check;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::defaults::{always, half};

/// Operations on batches; labels that are classes become vectors of `num_classes`
/// that sum to one, in every batch, whatever was drawn for it. Rows that hold no sample stay zero,
/// have zero labels, and are nobody's partner.
///
/// At most one of the operations mixes, and [`MixOp::LabelSmoothing`] may stand
/// beside it: first classes become vectors, then these are smoothed, then pixels
/// and vectors are mixed, in whatever order they are written. Without operations
/// classes become vectors, and that is all.
///
/// Pixels of one size, in floats, are mixed; `f16` and `bf16` in `f32`, rounded once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mixing {
    /// 1 to 2^24; every label lies below it. Labels that are vectors have as many
    /// numbers, and are mixed as they are.
    pub num_classes: u32,
    pub ops: Vec<MixOp>,
}

/// One operation on a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "mixing op", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum MixOp {
    /// Each row and its partner, a random one, weighted by a draw of
    /// beta(alpha, alpha).
    Mixup { alpha: f64 },
    /// A box of the partner's pixels in each row, the same in all. Its sides are
    /// those of the row times the root of one less a draw of beta(alpha, alpha),
    /// its middle is uniform; what lies outside is cut off, and labels are
    /// weighted by the area that is left.
    Cutmix { alpha: f64 },
    /// The partner's pixels outside of a mask of low frequencies, the same in all
    /// rows; its mean is a draw of beta(alpha, alpha).
    Fmix {
        alpha: f64,
        /// Noise falls off with this power of the frequency. The paper's is 3.
        #[serde(default = "three")]
        decay_power: f64,
        /// The part of the pixels, on either side of the edge, over which the mask
        /// goes down evenly. 0 to 0.5; 0: each pixel is the one or the other.
        #[serde(default)]
        max_soft: f64,
    },
    /// At most one of several, each with its probability; they sum to at most 1,
    /// and what is left leaves the batch as it is.
    OneOf(Vec<MixChoice>),
    /// timm's `Mixup`: with probability `p` mixup or, with `switch_p`, cutmix for
    /// the whole batch, the partner is the batch turned round; labels are
    /// smoothed, mixed or not. An alpha of 0 leaves that kind out.
    MixupCutmix {
        mixup_alpha: f64,
        cutmix_alpha: f64,
        #[serde(default = "always")]
        p: f64,
        #[serde(default = "half")]
        switch_p: f64,
        #[serde(default = "tenth")]
        label_smoothing: f64,
    },
    /// One-hot labels become `1 - epsilon + epsilon / n` and `epsilon / n`.
    LabelSmoothing { epsilon: f64 },
}

fn three() -> f64 {
    3.0
}

fn tenth() -> f64 {
    0.1
}

/// One of [`MixOp::OneOf`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixChoice {
    pub p: f64,
    pub op: MixOp,
}

impl Mixing {
    /// One-hot labels, until operations are added.
    pub fn new(num_classes: u32) -> Self {
        Self {
            num_classes,
            ops: Vec::new(),
        }
    }

    /// The same with one more operation.
    pub fn then(mut self, op: MixOp) -> Self {
        self.ops.push(op);
        self
    }

    /// How many operations these are, those to choose from included.
    pub(crate) fn operations(&self) -> usize {
        let of = |op: &MixOp| match op {
            MixOp::OneOf(choices) => 1 + choices.len(),
            _ => 1,
        };
        self.ops.iter().map(of).sum()
    }

    /// The operation that mixes, if there is one.
    pub(crate) fn mixer(&self) -> Option<&MixOp> {
        self.ops.iter().find(|op| op.mixes())
    }

    /// How much one-hot labels are smoothed: 0 to 1.
    pub(crate) fn smoothing(&self) -> f64 {
        let of = |op: &MixOp| match op {
            MixOp::LabelSmoothing { epsilon } => *epsilon,
            MixOp::MixupCutmix {
                label_smoothing, ..
            } => *label_smoothing,
            _ => 0.0,
        };
        // The check leaves one that is not 0.
        self.ops.iter().map(of).fold(0.0, f64::max)
    }
}

impl MixOp {
    /// As in a recipe file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mixup { .. } => "mixup",
            Self::Cutmix { .. } => "cutmix",
            Self::Fmix { .. } => "fmix",
            Self::OneOf(_) => "one_of",
            Self::MixupCutmix { .. } => "mixup_cutmix",
            Self::LabelSmoothing { .. } => "label_smoothing",
        }
    }

    /// Whether rows are mixed, not labels alone.
    pub(crate) fn mixes(&self) -> bool {
        !matches!(self, Self::LabelSmoothing { .. })
    }

    /// Whether it, or what it chooses from, needs a mask of a number a pixel.
    pub(crate) fn needs_mask(&self) -> bool {
        match self {
            Self::Fmix { .. } => true,
            Self::OneOf(choices) => choices.iter().any(|c| c.op.needs_mask()),
            _ => false,
        }
    }
}

impl fmt::Display for MixOp {
    /// With its numbers, as `featherload plan` says it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mixup { alpha } => write!(f, "mixup (alpha {alpha})"),
            Self::Cutmix { alpha } => write!(f, "cutmix (alpha {alpha})"),
            Self::Fmix {
                alpha,
                decay_power,
                max_soft,
            } => write!(
                f,
                "fmix (alpha {alpha}, decay_power {decay_power}, max_soft {max_soft})"
            ),
            Self::OneOf(choices) => {
                f.write_str("one of: ")?;
                for (i, c) in choices.iter().enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    write!(f, "{comma}{} with p {}", c.op, c.p)?;
                }
                let sum: f64 = choices.iter().map(|c| c.p).sum();
                f.write_str(if sum < 1.0 { ", or none" } else { "" })
            }
            Self::MixupCutmix {
                mixup_alpha,
                cutmix_alpha,
                p,
                switch_p,
                label_smoothing,
            } => write!(
                f,
                "mixup_cutmix (mixup_alpha {mixup_alpha}, cutmix_alpha {cutmix_alpha}, p {p}, \
                 switch_p {switch_p}, label_smoothing {label_smoothing})"
            ),
            Self::LabelSmoothing { epsilon } => write!(f, "label_smoothing (epsilon {epsilon})"),
        }
    }
}

impl fmt::Display for Mixing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "labels of {} numbers", self.num_classes)?;
        for op in &self.ops {
            write!(f, "; {op}")?;
        }
        Ok(())
    }
}
