//! Batches of an epoch: which sample stands in which row.

use serde::{Deserialize, Serialize};

use super::permutation::Permutation;
use crate::error::{Error, Result};

/// Samples that are tried, one after the other, in the place of one that gives
/// no pixels.
const SUBSTITUTES: u32 = 8;

/// What happens to the samples that do not fill a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Tail {
    /// The last batch is short.
    #[default]
    Short,
    /// The last batch has full size; the rows behind the samples are zero and
    /// their status is [`RowStatus::Padding`].
    Pad,
    /// The last batch is left out when it would be short.
    Drop,
}

/// What a row of a batch is.
///
/// A row is planned as `Ok`, `Repeated` or `Padding`; `Failed` and `Substituted`
/// take the place of the first two. Whether such a row was a repeat says
/// [`Batch::repeated`](crate::Batch::repeated).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[non_exhaustive]
pub enum RowStatus {
    /// A sample, counted once in the epoch.
    Ok = 0,
    /// A sample that another rank, or an earlier row, has too: it fills this
    /// rank up to the batch count of the others. Leave it out of evaluations,
    /// and with it the repeats whose samples gave no pixels.
    Repeated = 1,
    /// No sample: fills a last batch up to full size. Zero pixels.
    Padding = 2,
    /// The sample gave no pixels; the row is zero and the batch says why.
    Failed = 3,
    /// The sample gave no pixels; pixels, id and label are those of a sample
    /// behind it in the epoch's order, which has a row of its own as well. The
    /// batch says which sample failed, and why.
    Substituted = 4,
}

impl RowStatus {
    /// True when the row has no pixels of its own.
    pub fn is_masked(self) -> bool {
        matches!(self, Self::Padding | Self::Failed)
    }
}

/// What a plan follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOptions {
    /// Rows of a batch.
    pub batch: u32,
    pub seed: u64,
    pub shuffle: bool,
    pub tail: Tail,
    /// This process's place among `world` processes that train together.
    pub rank: u32,
    pub world: u32,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            batch: 64,
            seed: 0,
            shuffle: true,
            tail: Tail::Short,
            rank: 0,
            world: 1,
        }
    }
}

/// Order, batches and rows of every epoch over `samples` samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    samples: u64,
    options: PlanOptions,
}

/// One row of a batch, before it is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPlan {
    /// Sample of the index; meaningless for padding.
    pub id: u64,
    /// Place in the epoch over all ranks: the key of the random parameters.
    pub position: u64,
    pub status: RowStatus,
}

impl Plan {
    /// # Errors
    /// When a number is out of range, or the ranks would get no batch at all.
    pub fn new(samples: u64, options: PlanOptions) -> Result<Self> {
        let o = &options;
        if samples == 0 {
            return Err(Error::config("there are 0 samples to make batches of"));
        }
        if samples > u64::MAX >> 2 {
            return Err(Error::config(format!(
                "{samples} samples are more than 2^62"
            )));
        }
        if o.batch == 0 {
            return Err(Error::config("batch is 0, it must be at least 1"));
        }
        if o.world == 0 || o.rank >= o.world {
            return Err(Error::config(format!(
                "rank is {} of world {}, it must be below it",
                o.rank, o.world
            )));
        }
        let plan = Self { samples, options };
        if plan.batches() == 0 {
            let o = &plan.options;
            return Err(Error::config(format!(
                "{samples} samples over {} ranks fill no batch of {} (lower batch, or do not drop \
                 the last)",
                o.world, o.batch
            )));
        }
        Ok(plan)
    }

    pub fn options(&self) -> &PlanOptions {
        &self.options
    }

    /// Samples of the index.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Rows that this rank (as every other) has in an epoch.
    fn rows_per_rank(&self) -> u64 {
        let world = u64::from(self.options.world);
        match self.options.tail {
            Tail::Drop => self.samples / world,
            Tail::Short | Tail::Pad => self.samples.div_ceil(world),
        }
    }

    /// Batches of an epoch: equal on every rank.
    pub fn batches(&self) -> u64 {
        let batch = u64::from(self.options.batch);
        match self.options.tail {
            Tail::Drop => self.rows_per_rank() / batch,
            Tail::Short | Tail::Pad => self.rows_per_rank().div_ceil(batch),
        }
    }

    /// Rows of a batch that hold samples: the rest of a padded batch does not.
    pub fn filled_rows(&self, batch: u64) -> u32 {
        let size = u64::from(self.options.batch);
        let before = batch.saturating_mul(size);
        self.rows_per_rank().saturating_sub(before).min(size) as u32
    }

    /// Rows of a batch as it is handed over: padding included.
    pub fn rows(&self, batch: u64) -> u32 {
        match self.options.tail {
            Tail::Pad | Tail::Drop => self.options.batch,
            Tail::Short => self.filled_rows(batch),
        }
    }

    /// What stands in a row.
    pub fn row(&self, epoch: u64, batch: u64, row: u32) -> RowPlan {
        let o = &self.options;
        // A batch that does not exist holds padding, whatever its position.
        let local = batch
            .wrapping_mul(u64::from(o.batch))
            .wrapping_add(u64::from(row));
        let position = local
            .wrapping_mul(u64::from(o.world))
            .wrapping_add(u64::from(o.rank));
        if row >= self.filled_rows(batch) {
            return RowPlan {
                id: 0,
                position,
                status: RowStatus::Padding,
            };
        }
        // Behind the end the order starts again: a rank that has no sample of
        // its own left repeats one.
        RowPlan {
            id: self.id_at(epoch, position % self.samples),
            position,
            status: if position < self.samples {
                RowStatus::Ok
            } else {
                RowStatus::Repeated
            },
        }
    }

    /// Samples that may stand in for one that gives no pixels: 8, or all the
    /// others when there are fewer.
    pub fn substitutes(&self) -> u32 {
        u64::from(SUBSTITUTES).min(self.samples - 1) as u32
    }

    /// What stands in a row at its `attempt`-th attempt: at 0 that of
    /// [`Plan::row`], at n the sample n positions behind it, with the random
    /// parameters of that position. Behind the epoch's last position comes its
    /// first.
    pub fn attempt(&self, epoch: u64, batch: u64, row: u32, attempt: u32) -> RowPlan {
        let own = self.row(epoch, batch, row);
        if attempt == 0 || own.status == RowStatus::Padding {
            return own;
        }
        let position = (own.position % self.samples + u64::from(attempt)) % self.samples;
        RowPlan {
            id: self.id_at(epoch, position),
            position,
            status: RowStatus::Substituted,
        }
    }

    /// The sample at a position below the number of samples.
    fn id_at(&self, epoch: u64, position: u64) -> u64 {
        if self.options.shuffle {
            Permutation::new(self.samples, self.options.seed, epoch).at(position)
        } else {
            position
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tail() -> impl Strategy<Value = Tail> {
        prop_oneof![Just(Tail::Short), Just(Tail::Pad), Just(Tail::Drop)]
    }

    proptest! {
        #[test]
        fn ranks_share_an_epoch(
            samples in 1u64..400, batch in 1u32..40, world in 1u32..9, seed: u64, epoch: u64,
            shuffle: bool, tail in tail(),
        ) {
            let plans: Vec<Plan> = (0..world)
                .map_while(|rank| {
                    Plan::new(samples, PlanOptions { batch, seed, shuffle, tail, rank, world }).ok()
                })
                .collect();
            prop_assume!(plans.len() == world as usize);
            let mut seen = vec![0u32; samples as usize];
            let mut positions = std::collections::HashSet::new();
            for p in &plans {
                prop_assert_eq!(p.batches(), plans[0].batches());
                for b in 0..p.batches() {
                    let rows = p.rows(b);
                    prop_assert_eq!(rows, plans[0].rows(b));
                    prop_assert!(rows >= 1 && rows <= batch);
                    prop_assert!(tail == Tail::Short || rows == batch);
                    for r in 0..rows {
                        let row = p.row(epoch, b, r);
                        if row.status != RowStatus::Padding {
                            prop_assert!(positions.insert(row.position));
                        }
                        match row.status {
                            RowStatus::Ok => seen[row.id as usize] += 1,
                            RowStatus::Repeated => prop_assert!(tail != Tail::Drop),
                            RowStatus::Padding => prop_assert!(tail == Tail::Pad),
                            _ => prop_assert!(false),
                        }
                    }
                }
            }
            let most = if tail == Tail::Drop { 0 } else { 1 };
            prop_assert!(seen.iter().all(|&n| n >= most && n <= 1), "each id once");
            if tail == Tail::Drop {
                let used: u32 = seen.iter().sum();
                let lost = samples - u64::from(used);
                prop_assert!(lost < u64::from(batch) * u64::from(world));
            }
        }
    }

    proptest! {
        /// Each attempt stands in for a row as the row of the position behind
        /// it would be, and no sample is tried twice.
        #[test]
        fn attempts_are_the_rows_behind(
            samples in 1u64..60, batch in 1u32..9, world in 1u32..5, rank in 0u32..5, seed: u64,
            epoch: u64, shuffle: bool, tail in tail(), number in 0u64..80, row in 0u32..9,
        ) {
            let options = PlanOptions {
                batch, seed, shuffle, tail, rank: rank % world, world,
            };
            let Ok(plan) = Plan::new(samples, options) else { return Ok(()) };
            // One process and one row a batch: batch n is position n.
            let alone = PlanOptions { batch: 1, seed, shuffle, ..PlanOptions::default() };
            let alone = Plan::new(samples, alone).unwrap();
            let (number, row) = (number % plan.batches(), row % batch);
            let own = plan.row(epoch, number, row);
            prop_assert_eq!(plan.attempt(epoch, number, row, 0), own);
            prop_assert_eq!(u64::from(plan.substitutes()), (samples - 1).min(8));
            let mut ids = vec![own.id];
            for attempt in 1..=plan.substitutes() {
                let a = plan.attempt(epoch, number, row, attempt);
                if own.status == RowStatus::Padding {
                    prop_assert_eq!(a, own);
                    continue;
                }
                let position = (own.position + u64::from(attempt)) % samples;
                let expected = alone.row(epoch, position, 0);
                prop_assert_eq!(a.status, RowStatus::Substituted);
                prop_assert_eq!((a.id, a.position), (expected.id, expected.position));
                prop_assert!(!ids.contains(&a.id));
                ids.push(a.id);
            }
        }

        /// Numbers out of shared memory that a decoder has scribbled on.
        #[test]
        fn any_numbers_give_some_row(
            samples in 1u64..1 << 62, world in 1u32..9, epoch: u64, number: u64, row: u32,
            attempt: u32, tail in tail(),
        ) {
            let options = PlanOptions { tail, world, ..PlanOptions::default() };
            let Ok(plan) = Plan::new(samples, options) else { return Ok(()) };
            prop_assert!(plan.attempt(epoch, number, row, attempt).id < samples);
        }
    }

    #[test]
    fn bad_numbers_are_named() {
        let o = |batch, rank, world, tail| PlanOptions {
            batch,
            rank,
            world,
            tail,
            ..PlanOptions::default()
        };
        for (samples, options, text) in [
            (0, o(1, 0, 1, Tail::Short), "0 samples"),
            (5, o(0, 0, 1, Tail::Short), "batch is 0"),
            (5, o(1, 2, 2, Tail::Short), "rank is 2"),
            (5, o(1, 0, 0, Tail::Short), "rank is 0 of world 0"),
            (5, o(6, 0, 1, Tail::Drop), "fill no batch"),
            (1, o(1, 0, 2, Tail::Drop), "fill no batch"),
        ] {
            let e = Plan::new(samples, options).unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        }
    }

    #[test]
    fn ten_million_samples_cost_nothing() {
        let p = Plan::new(10_000_000, PlanOptions::default()).unwrap();
        assert_eq!(p.batches(), 156_250);
        assert!(p.row(9, 156_249, 63).id < 10_000_000);
    }
}
