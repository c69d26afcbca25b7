//! Operations on whole batches, as data: they mix rows with each other, and the labels with them.
//!
//! Names and meaning follow the papers, torchvision's `MixUp` and `CutMix`, timm's `Mixup` and
//! PaddleClas' `batch_transform_ops`. `check` holds the range checks. Never in here: pixels, random
//! numbers.

mod check;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::defaults::{always, half};

/// Operations on batches. Class labels become vectors of `num_classes` numbers that sum to 1, in
/// every batch, whatever is drawn. Rows without a sample stay zero, have zero labels, and are never
/// mixed with another row.
///
/// At most one operation mixes. [`MixOp::LabelSmoothing`] may be added to it. The order is fixed:
/// classes become vectors, vectors are smoothed, then pixels and vectors are mixed. Without
/// operations only the labels become vectors.
///
/// Mixing needs pixels of one size, in floats. It computes `f16` and `bf16` in `f32` and rounds
/// once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mixing {
    /// 1 to 2^24. Every label is below it. Labels that are vectors have this many numbers, and are
    /// mixed unchanged.
    pub num_classes: u32,
    pub ops: Vec<MixOp>,
}

/// One operation on a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "mixing op", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum MixOp {
    /// Mixes each row with a random partner. The weight is drawn from beta(alpha, alpha).
    Mixup { alpha: f64 },
    /// Copies a box of the partner's pixels into each row. The box is the same in all rows. Its
    /// sides are those of the row times sqrt(1 - w), where w is drawn from beta(alpha, alpha). Its
    /// centre is uniform, and the box is clipped to the row. The clipped area is the weight of the
    /// partner's label.
    Cutmix { alpha: f64 },
    /// Copies the partner's pixels outside a mask of low frequencies. The mask is the same in all
    /// rows. Its mean is drawn from beta(alpha, alpha).
    Fmix {
        alpha: f64,
        /// The noise decreases with this power of the frequency. The paper uses 3.
        #[serde(default = "three")]
        decay_power: f64,
        /// The share of pixels, on each side of the edge, over which the mask decreases linearly. 0
        /// to 0.5. 0: every pixel comes from one of both rows.
        #[serde(default)]
        max_soft: f64,
    },
    /// At most one of several operations, each with its probability. The probabilities sum to at
    /// most 1. The rest is the probability of no mixing.
    OneOf(Vec<MixChoice>),
    /// timm's `Mixup`: with probability `p` it mixes the whole batch, by cutmix with probability
    /// `switch_p`, by mixup otherwise. The partner rows are the batch in reverse order. Labels are
    /// smoothed in every batch. An alpha of 0 disables that kind.
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
    /// Labels as vectors, without any operation.
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

    /// The number of operations, including those inside `OneOf`.
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
        // The check allows at most one value that is not 0.
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

    /// Whether it mixes rows, not only labels.
    pub(crate) fn mixes(&self) -> bool {
        !matches!(self, Self::LabelSmoothing { .. })
    }

    /// Whether it needs a mask with one number per pixel.
    pub(crate) fn needs_mask(&self) -> bool {
        match self {
            Self::Fmix { .. } => true,
            Self::OneOf(choices) => choices.iter().any(|c| c.op.needs_mask()),
            _ => false,
        }
    }
}

impl fmt::Display for MixOp {
    /// With its numbers, as `featherload plan` prints it.
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
