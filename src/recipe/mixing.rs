//! What is done to a batch as a whole, as data: its rows mixed with each other, and
//! their labels with them.
//!
//! Names and meaning are those of the papers and of torchvision's `MixUp` and `CutMix`,
//! timm's `Mixup` and PaddleClas' `batch_transform_ops`.

use serde::{Deserialize, Serialize};

/// Operations on batches; labels become vectors of `num_classes` that sum to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mixing {
    pub num_classes: u32,
    pub ops: Vec<MixOp>,
}

/// One operation on a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MixOp {
    /// Each row and its partner, weighted by a draw of beta(alpha, alpha).
    Mixup { alpha: f64 },
    /// A box of the partner's pixels in each row; its area is one less a draw of
    /// beta(alpha, alpha).
    Cutmix { alpha: f64 },
    /// The partner's pixels where a mask of low frequencies is set.
    Fmix {
        alpha: f64,
        decay_power: f64,
        max_soft: f64,
    },
    /// At most one of several, each with its probability; they sum to at most 1.
    OneOf(Vec<Choice>),
    /// timm's `Mixup`: one of mixup and cutmix for the batch, the partner is the
    /// batch turned round, labels are smoothed.
    MixupCutmix {
        mixup_alpha: f64,
        cutmix_alpha: f64,
        p: f64,
        switch_p: f64,
        label_smoothing: f64,
    },
    /// One-hot labels become `1 - epsilon + epsilon / n` and `epsilon / n`.
    LabelSmoothing { epsilon: f64 },
}

/// One of [`MixOp::OneOf`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    pub p: f64,
    pub op: MixOp,
}
