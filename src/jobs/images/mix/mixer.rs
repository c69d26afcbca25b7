//! Mixes one batch: draws the operation, then applies it to rows and labels.
//!
//! In the consumer.

use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::jobs::images::mix::draw;
use crate::jobs::images::mix::draw::{MixOperation, RowPartners};
use crate::jobs::images::mix::mask;
use crate::jobs::images::mix::mask::MixMask;
use crate::jobs::images::mix::rows;
use crate::jobs::images::mix::rows::{MixElement, RowShape};
use crate::order::PositionRandom;
use crate::recipe::{DataType, MixOp, Mixing};

/// Mixes batches, with reused buffers.
#[derive(Debug)]
pub(crate) struct BatchMixer {
    mixing: Mixing,
    partners: RowPartners,
    mask: MixMask,
    saved: SavedRow,
}

/// A copy of one row while its place is overwritten. Only the field of its type is used.
#[derive(Debug, Default)]
struct SavedRow {
    f32: Vec<f32>,
    f16: Vec<f16>,
    bf16: Vec<bf16>,
    label: Vec<f32>,
}

impl BatchMixer {
    pub(crate) fn new(mixing: Mixing) -> Self {
        Self {
            mixing,
            partners: RowPartners::default(),
            mask: MixMask::default(),
            saved: SavedRow::default(),
        }
    }

    pub(crate) fn mixing(&self) -> &Mixing {
        &self.mixing
    }

    /// Whether pixels are mixed, not only labels.
    pub(crate) fn mixes_rows(&self) -> bool {
        self.mixing.mixer().is_some()
    }

    /// Mixes the rows with samples and their labels. `sampled`: numbers of these rows in ascending
    /// order. Labels have `num_classes` numbers per row.
    ///
    /// # Errors
    /// Rows that are not aligned for their type.
    pub(crate) fn mix(
        &mut self,
        mut random: PositionRandom,
        shape: RowShape,
        bytes: &mut [u8],
        sampled: &[usize],
        labels: &mut [f32],
    ) -> Result<()> {
        let Some(op) = self.mixing.mixer() else {
            return Ok(());
        };
        let size = (shape.height, shape.width);
        let how = draw::draw(op, sampled, size, &mut random, &mut self.partners);
        if let MixOperation::Mask {
            keep,
            decay_power,
            max_soft,
        } = how
        {
            self.mask
                .draw(keep, decay_power, max_soft, shape, &mut random);
        }
        let (partners, mask, saved) = (&self.partners, &self.mask, &mut self.saved);
        match shape.dtype {
            DataType::F32 => apply(&how, shape, partners, mask, bytes, &mut saved.f32)?,
            DataType::F16 => apply(&how, shape, partners, mask, bytes, &mut saved.f16)?,
            DataType::Bf16 => apply(&how, shape, partners, mask, bytes, &mut saved.bf16)?,
            // Rejected by the recipe's check.
            DataType::U8 => {
                return Err(Error::protocol(
                    "batches of u8 cannot be mixed: cast to f16, \
                                                     bf16 or f32",
                ));
            }
        }
        let keep = how.keep();
        if keep < 1.0 {
            let n = self.mixing.num_classes as usize;
            let saved = &mut self.saved.label;
            rows::combine_partners(labels, n, &self.partners, saved, |own, other| {
                MixElement::blend(own, other, keep);
            });
        }
        Ok(())
    }
}

fn apply<T: MixElement>(
    how: &MixOperation,
    shape: RowShape,
    partners: &RowPartners,
    mask: &MixMask,
    bytes: &mut [u8],
    saved: &mut Vec<T>,
) -> Result<()> {
    let all = bytemuck::try_cast_slice_mut(bytes).map_err(|e| {
        Error::protocol(format!("the batch is not aligned for {}: {e}", shape.dtype))
    })?;
    let elements = shape.elements();
    match how {
        MixOperation::Nothing => {}
        MixOperation::Blend { keep } => {
            if *keep < 1.0 {
                rows::combine_partners(all, elements, partners, saved, |own, other| {
                    T::blend(own, other, *keep);
                });
            }
        }
        MixOperation::Paste(at) => {
            rows::combine_partners(all, elements, partners, saved, |own, other| {
                rows::paste(own, other, at, shape);
            })
        }
        MixOperation::Mask { .. } => {
            rows::combine_partners(all, elements, partners, saved, |own, other| {
                // One mask per plane, or one for interleaved channels.
                let values = mask.values();
                for (own, other) in own
                    .chunks_exact_mut(values.len())
                    .zip(other.chunks_exact(values.len()))
                {
                    T::blend_by(own, other, values);
                }
            })
        }
    }
    Ok(())
}

/// Bytes for mixing in the consumer: once, and per row of each live batch. `row`: bytes of the
/// largest row. `pixels`: its pixels.
pub(crate) fn mixing_bytes(mixing: &Mixing, row: u64, pixels: u64) -> (u64, u64) {
    let label = u64::from(mixing.num_classes) * 4;
    let Some(op) = mixing.mixer() else {
        return (0, label);
    };
    let mask = match op.needs_mask() {
        true => mask::bytes(pixels),
        false => 0,
    };
    (row.saturating_add(label).saturating_add(mask), label)
}

/// Checks that labels with several classes can be mixed.
///
/// # Errors
/// They would be smoothed.
pub(crate) fn check_vectors(mixing: &Mixing, width: usize) -> Result<()> {
    if width as u64 != u64::from(mixing.num_classes) {
        return Err(Error::config(format!(
            "mixing: num_classes is {}, and labels are vectors of {width} numbers: use \
             num_classes {width}",
            mixing.num_classes
        )));
    }
    if mixing.smoothing() > 0.0 {
        let what = mixing
            .ops
            .iter()
            .find(|op| matches!(op, MixOp::LabelSmoothing { .. }))
            .map_or("label_smoothing of mixup_cutmix", MixOp::name);
        return Err(Error::config(format!(
            "mixing: {what} smooths class labels, and these are vectors: remove it, or set it to 0"
        )));
    }
    Ok(())
}
