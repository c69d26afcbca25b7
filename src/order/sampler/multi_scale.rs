//! Batches of several output sizes, with nearly the same number of pixels.
//!
//! A batch has the most rows for which rows x height x width does not exceed that of the first
//! size. Batches come in cycles. In each cycle every listed size comes once, in a random order. So
//! the first row of a batch is a sum over whole cycles and at most one partial one. Sizes depend on
//! seed, epoch and batch number only, so all ranks have the same.
//!
//! If an epoch continues with other ranks or another batch size, a mark may lie inside a batch of
//! the cycles. Then that batch is delivered in full. So one size may come once more, and others
//! once less.
//!
//! The epoch's last cycle may be partial. Its order depends on the seed only, so that every epoch
//! has the same number of batches.
//!
//! With `first_epochs` there are no cycles: each size is used for all batches of some epochs, and
//! batches have the same number of rows in each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::order::key::{DrawKind, OrderKey};
use crate::order::tail::EpochTail;

/// Alternating output sizes: PaddleClas's MultiScaleSampler. The recipe's own output size is not
/// used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiScale {
    /// Heights and widths. A batch of the first size has
    /// [`OrderOptions::batch`](crate::order::OrderOptions::batch) rows. A size that is listed twice
    /// comes twice as often.
    pub sizes: Vec<(u32, u32)>,
    /// Sizes are rounded down to multiples of this.
    pub divided_by: u32,
    /// First epoch of each size, from 0: PaddleClas' `progress_size`. Empty: sizes alternate within
    /// each epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_epochs: Vec<u64>,
}

impl MultiScale {
    /// Sizes in multiples of 32.
    pub fn new(sizes: impl Into<Vec<(u32, u32)>>) -> Self {
        Self {
            sizes: sizes.into(),
            divided_by: 32,
            first_epochs: Vec::new(),
        }
    }

    /// Sizes, each with its first epoch.
    pub fn by_epoch(stages: impl IntoIterator<Item = (u64, (u32, u32))>) -> Self {
        let (first_epochs, sizes) = stages.into_iter().unzip();
        Self {
            sizes,
            divided_by: 1,
            first_epochs,
        }
    }
}

impl fmt::Display for MultiScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (height, width)) in self.sizes.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{height}x{width}")?;
            if let Some(epoch) = self.first_epochs.get(i) {
                write!(f, " from epoch {epoch}")?;
            }
        }
        match self.first_epochs.is_empty() {
            true => write!(f, " in multiples of {}", self.divided_by),
            false => Ok(()),
        }
    }
}

/// A size, and the rows of its batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchScale {
    pub(crate) size: (u32, u32),
    pub(crate) rows: u32,
}

/// The sizes of batches on one rank.
#[derive(Debug, Clone)]
pub(crate) struct ScaleCycle {
    scales: Vec<BatchScale>,
    /// First epoch of each size; empty: they alternate.
    first_epochs: Vec<u64>,
    /// Rows of a whole cycle.
    cycle_rows: u64,
    rows_per_rank: u64,
}

impl ScaleCycle {
    /// # Errors
    /// There is no size; a size is below a multiple; a batch has too many rows.
    pub(crate) fn new(of: &MultiScale, batch: u32, rows_per_rank: u64) -> Result<Self> {
        let multiple = of.divided_by;
        if multiple == 0 {
            return Err(Error::config("divided_by is 0: use at least 1"));
        }
        let Some(&first) = of.sizes.first() else {
            return Err(Error::config("multi_scale has no sizes: use at least one"));
        };
        let rounded = |(height, width): (u32, u32)| {
            (height / multiple * multiple, width / multiple * multiple)
        };
        let stages = &of.first_epochs;
        if !stages.is_empty()
            && (stages.len() != of.sizes.len() || stages.first() != Some(&0) || !stages.is_sorted())
        {
            return Err(Error::config(format!(
                "multi_scale has {} sizes and the first epochs {stages:?}: use one for each size, \
                 from 0 on, in ascending order",
                of.sizes.len()
            )));
        }
        let area = |(height, width): (u32, u32)| u128::from(height) * u128::from(width);
        let pixels = area(rounded(first)) * u128::from(batch);
        let scale = |&(height, width): &(u32, u32)| {
            let size = rounded((height, width));
            if area(size) == 0 {
                return Err(Error::config(format!(
                    "multi_scale has the size {height}x{width}, which is rounded down to \
                     multiples of {multiple}: use at least {multiple}x{multiple}"
                )));
            }
            let rows = match stages.is_empty() {
                true => (pixels / area(size)).max(1),
                false => batch.into(),
            };
            let rows = u32::try_from(rows).map_err(|_| {
                Error::config(format!(
                    "a batch of size {height}x{width} would have {rows} rows: lower `batch_size`"
                ))
            })?;
            Ok(BatchScale { size, rows })
        };
        let scales = of.sizes.iter().map(scale).collect::<Result<Vec<_>>>()?;
        let cycle_rows = match stages.is_empty() {
            true => scales.iter().map(|s| u64::from(s.rows)).sum(),
            false => batch.into(),
        };
        Ok(Self {
            cycle_rows,
            scales,
            first_epochs: stages.clone(),
            rows_per_rank,
        })
    }

    /// Batches per cycle.
    fn batches_per_cycle(&self) -> u64 {
        match self.first_epochs.is_empty() {
            true => self.scales.len() as u64,
            false => 1,
        }
    }

    /// Index of the size for all batches of an epoch, if there is one.
    fn stage(&self, epoch: u64) -> Option<usize> {
        let started = self.first_epochs.iter().filter(|first| **first <= epoch);
        started.count().checked_sub(1)
    }

    /// Every size with its rows.
    pub(crate) fn all(&self) -> &[BatchScale] {
        &self.scales
    }

    /// The sizes of a cycle in order.
    fn cycle(&self, key: OrderKey, cycle: u64) -> impl Iterator<Item = BatchScale> {
        let stage = self.stage(key.epoch);
        let broken = cycle >= self.rows_per_rank / self.cycle_rows;
        let key = OrderKey {
            epoch: if broken { u64::MAX } else { key.epoch },
            ..key
        };
        let order = key.permutation(self.scales.len() as u64, DrawKind::Sizes, cycle);
        (0..self.batches_per_cycle()).map(move |turn| {
            let at = stage.unwrap_or_else(|| order.at(turn) as usize);
            self.scales[at]
        })
    }

    /// Rows before a batch.
    pub(crate) fn before(&self, key: OrderKey, batch: u64) -> u64 {
        let count = self.batches_per_cycle();
        let (cycle, turn) = (batch / count, batch % count);
        let of_cycle = self.cycle(key, cycle).take(turn as usize);
        let of_cycle: u64 = of_cycle.map(|scale| u64::from(scale.rows)).sum();
        let cycles = cycle.saturating_mul(self.cycle_rows);
        cycles.saturating_add(of_cycle)
    }

    /// The last batch with at most `rows` rows before it, and its size.
    pub(crate) fn at(&self, key: OrderKey, rows: u64) -> (u64, BatchScale) {
        let (cycle, mut left) = (rows / self.cycle_rows, rows % self.cycle_rows);
        let first = cycle * self.batches_per_cycle();
        let mut found = (first, self.scales[0]);
        for (turn, scale) in (0..).zip(self.cycle(key, cycle)) {
            found = (first + turn, scale);
            match left.checked_sub(u64::from(scale.rows)) {
                Some(behind) => left = behind,
                None => break,
            }
        }
        found
    }

    /// Batches per epoch.
    pub(crate) fn batches(&self, seed: u64, tail: EpochTail) -> u64 {
        let cycles = self.rows_per_rank / self.cycle_rows;
        let mut left = self.rows_per_rank % self.cycle_rows;
        let mut batches = cycles * self.batches_per_cycle();
        let key = OrderKey { seed, epoch: 0 };
        for scale in self.cycle(key, cycles) {
            let rows = u64::from(scale.rows);
            if left == 0 || (tail == EpochTail::Drop && left < rows) {
                break;
            }
            left = left.saturating_sub(rows);
            batches += 1;
        }
        batches
    }
}
