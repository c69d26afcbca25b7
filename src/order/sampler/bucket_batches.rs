//! Batches of one bucket each: rows of a batch have one size, and each sample comes once an epoch.
//!
//! A bucket has as many batches as its samples need, over all ranks. The last one has fewer samples,
//! or is left out. In each epoch the samples of a bucket have another order, and so have the batches
//! of all buckets. Each batch takes a whole number of positions, also if it has fewer samples: the
//! positions after them have none. So a batch is found from its position alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::order::key::{DrawKind, OrderKey};
use crate::order::table::SamplerTable;
use crate::order::tail::EpochTail;
use crate::recipe::BucketRule;

/// A bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BucketGroup {
    /// Offset of its first sample in the table.
    start: u64,
    samples: u64,
    /// Batches of the buckets before it.
    batches_before: u64,
    /// Height and width of its rows.
    size: (u32, u32),
}

/// The batches of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketBatches {
    groups: Vec<BucketGroup>,
    /// Rows of a full batch, over all ranks.
    rows: u64,
    tail: EpochTail,
    batches: u64,
}

/// Batches of an epoch, and the samples in them.
#[derive(Debug)]
pub(crate) struct BucketSampler {
    table: Arc<SamplerTable>,
    batches: BucketBatches,
}

/// A batch of an epoch, over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketBatch {
    /// Number of its bucket.
    bucket: u64,
    /// Number of its first sample in the bucket's order.
    first: u64,
    pub(crate) samples: u64,
    /// Height and width of its rows.
    pub(crate) size: (u32, u32),
}

/// The table for the sizes of all images: its groups are the buckets, by height and width. An image
/// without a bucket goes to the one with most images.
///
/// # Errors
/// The rule is wrong; no image has a bucket; no memory.
pub(crate) fn bucket_table(
    sizes: impl ExactSizeIterator<Item = Option<(u32, u32)>>,
    rule: &BucketRule,
) -> Result<SamplerTable> {
    let fitter = rule.fitter()?;
    let samples = sizes.len();
    let mut buckets: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    let mut without = Vec::new();
    for (id, size) in (0..).zip(sizes) {
        match size.and_then(|size| fitter.fit(size)) {
            Some(fit) => buckets.entry(fit.row).or_default().push(id),
            None => without.push(id),
        }
    }
    let Some(most) = buckets.values_mut().rev().max_by_key(|ids| ids.len()) else {
        return Err(Error::option(
            "sampler",
            format!(
                "none of {samples} images fits a bucket: each cannot be read, or is too small for a \
                 side of {} pixels",
                rule.step()
            ),
        ));
    };
    most.append(&mut without);
    let sizes: Vec<_> = buckets.keys().copied().collect();
    let mut ends = Vec::with_capacity(buckets.len());
    let mut members = Vec::with_capacity(samples);
    for ids in buckets.into_values() {
        members.extend(ids);
        ends.push(members.len() as u32);
    }
    SamplerTable::sized_groups(&ends, &members, &sizes)
}

impl BucketSampler {
    /// `rows`: of a full batch, over all ranks, at least 1. None if the table has no groups.
    pub(super) fn new(table: Arc<SamplerTable>, rows: u64, tail: EpochTail) -> Option<Self> {
        let SamplerTable::Groups(groups) = &*table else {
            return None;
        };
        let bucket = |group| Some((groups.span(group).1, groups.size(group)?));
        let buckets: Vec<_> = (0..groups.len()).map(bucket).collect::<Option<_>>()?;
        let batches = BucketBatches::new(buckets, rows, tail);
        Some(Self { table, batches })
    }

    pub(crate) fn batches(&self) -> &BucketBatches {
        &self.batches
    }

    /// Sample `n` of a batch, over all ranks. Numbers from its samples on go on in its bucket, and
    /// begin again there after the last one. None if attempt `attempt` of it, counted from 0, would
    /// be a sample that an earlier attempt had.
    pub(crate) fn id_at(
        &self,
        key: OrderKey,
        batch: &BucketBatch,
        n: u64,
        attempt: u32,
    ) -> Option<u64> {
        let SamplerTable::Groups(groups) = &*self.table else {
            return None;
        };
        let attempt = u64::from(attempt);
        let is_new = attempt < self.batches.samples_of_bucket(batch);
        let offset = is_new.then(|| self.batches.offset(key, batch, n + attempt))?;
        Some(groups.member(offset))
    }
}

impl BucketBatches {
    /// `buckets`: samples and size of each, in the order of the table. `rows`: of a full batch, over
    /// all ranks, at least 1.
    fn new(
        buckets: impl IntoIterator<Item = (u64, (u32, u32))>,
        rows: u64,
        tail: EpochTail,
    ) -> Self {
        let rows = rows.max(1);
        let (mut start, mut batches) = (0, 0);
        let groups = buckets.into_iter().map(|(samples, size)| {
            let group = BucketGroup {
                start,
                samples,
                batches_before: batches,
                size,
            };
            start += samples;
            batches += match tail {
                EpochTail::Drop => samples / rows,
                EpochTail::Short | EpochTail::Pad => samples.div_ceil(rows),
            };
            group
        });
        let groups = groups.collect();
        Self {
            groups,
            rows,
            tail,
            batches,
        }
    }

    /// Batches of an epoch.
    #[cfg(test)]
    fn batches(&self) -> u64 {
        self.batches
    }

    /// Samples of an epoch: those of all batches.
    pub(crate) fn samples(&self) -> u64 {
        let of = |group: &BucketGroup| match self.tail {
            EpochTail::Drop => group.samples - group.samples % self.rows,
            EpochTail::Short | EpochTail::Pad => group.samples,
        };
        self.groups.iter().map(of).sum()
    }

    /// Rows of an epoch with a sample, on each of this number of ranks.
    pub(crate) fn rows_of_rank(&self, world: u32) -> u64 {
        let world = u64::from(world.max(1));
        let of = |group: &BucketGroup| {
            let rest = group.samples % self.rows;
            let full = (group.samples - rest) / world;
            match self.tail {
                EpochTail::Drop => full,
                EpochTail::Short | EpochTail::Pad => full + rest.div_ceil(world),
            }
        };
        self.groups.iter().map(of).sum()
    }

    /// Batches of an epoch with fewer samples than a full one.
    pub(crate) fn short_batches(&self) -> u64 {
        let is_short = |group: &&BucketGroup| !group.samples.is_multiple_of(self.rows);
        match self.tail {
            EpochTail::Drop => 0,
            EpochTail::Short | EpochTail::Pad => self.groups.iter().filter(is_short).count() as u64,
        }
    }

    /// The bucket with most images, which also has the images without one: the size of its rows.
    pub(crate) fn largest_bucket(&self) -> Option<(u32, u32)> {
        let largest = self.groups.iter().rev().max_by_key(|group| group.samples);
        largest.map(|group| group.size)
    }

    /// Rows of a full batch, over all ranks.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Positions of an epoch: those of all batches, also without samples.
    pub(crate) fn positions(&self) -> u64 {
        self.batches.saturating_mul(self.rows)
    }

    /// The size of each bucket.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.groups.iter().map(|group| group.size)
    }

    /// The batch with this number in an epoch. None after the last one.
    pub(crate) fn batch(&self, key: OrderKey, number: u64) -> Option<BucketBatch> {
        if number >= self.batches {
            return None;
        }
        let place = key
            .permutation(self.batches, DrawKind::Buckets, 0)
            .at(number);
        let after = |group: &BucketGroup| group.batches_before <= place;
        let bucket = self.groups.partition_point(after).checked_sub(1)?;
        let group = self.groups[bucket];
        let first = (place - group.batches_before) * self.rows;
        Some(BucketBatch {
            bucket: bucket as u64,
            first,
            samples: group.samples.saturating_sub(first).min(self.rows),
            size: group.size,
        })
    }

    /// The number of samples of a batch's bucket.
    fn samples_of_bucket(&self, batch: &BucketBatch) -> u64 {
        let group = self.groups.get(batch.bucket as usize);
        group.map_or(0, |group| group.samples)
    }

    /// The offset in the table of sample `n` of a batch.
    fn offset(&self, key: OrderKey, batch: &BucketBatch, n: u64) -> u64 {
        let Some(group) = self.groups.get(batch.bucket as usize) else {
            return u64::MAX;
        };
        let within = key.permutation(group.samples.max(1), DrawKind::BucketMembers, batch.bucket);
        group.start + within.at((batch.first + n) % group.samples.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(seed: u64, epoch: u64) -> OrderKey {
        OrderKey { seed, epoch }
    }

    fn tails() -> impl Strategy<Value = EpochTail> {
        prop_oneof![
            Just(EpochTail::Short),
            Just(EpochTail::Pad),
            Just(EpochTail::Drop)
        ]
    }

    proptest! {
        #[test]
        fn each_sample_comes_once_in_batches_of_one_bucket(
            counts in prop::collection::vec(0u64..50, 1..12), rows in 1u64..20,
            tail in tails(), seed: u64, epoch: u64,
        ) {
            let size = |n: usize| (n as u32 + 1, 7);
            let buckets = counts.iter().enumerate().map(|(n, count)| (*count, size(n)));
            let batches = BucketBatches::new(buckets, rows, tail);
            let key = key(seed, epoch);
            let mut seen = Vec::new();
            for number in 0..batches.batches() {
                let batch = batches.batch(key, number).unwrap();
                prop_assert!(batch.samples >= 1 && batch.samples <= rows);
                prop_assert!(tail != EpochTail::Drop || batch.samples == rows);
                let bucket = batch.size.0 as usize - 1;
                let start: u64 = counts[..bucket].iter().sum();
                // Also those that follow its own stay in the bucket.
                for n in 0..2 * rows {
                    let offset = batches.offset(key, &batch, n);
                    prop_assert!((start..start + counts[bucket]).contains(&offset));
                }
                seen.extend((0..batch.samples).map(|n| batches.offset(key, &batch, n)));
            }
            prop_assert_eq!(batches.batch(key, batches.batches()), None);
            let all: u64 = counts.iter().sum();
            let kept: u64 = match tail {
                EpochTail::Drop => counts.iter().map(|count| count - count % rows).sum(),
                _ => all,
            };
            prop_assert_eq!(seen.len() as u64, kept);
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len() as u64, kept, "a sample comes twice");
        }
    }

    #[test]
    fn epochs_differ_in_batches_and_in_samples() {
        let batches = BucketBatches::new([(40, (1, 1)), (40, (2, 2))], 10, EpochTail::Short);
        let epoch = |epoch| {
            let key = key(3, epoch);
            let of = |number| {
                let batch = batches.batch(key, number).unwrap();
                let samples = (0..batch.samples).map(|n| batches.offset(key, &batch, n));
                (batch.size, samples.collect::<Vec<_>>())
            };
            (0..8).map(of).collect::<Vec<_>>()
        };
        let (first, second) = (epoch(0), epoch(1));
        let sizes = |all: &[((u32, u32), Vec<u64>)]| all.iter().map(|b| b.0).collect::<Vec<_>>();
        assert_ne!(sizes(&first), sizes(&second));
        assert!(first.iter().all(|batch| !second.contains(batch)));
        assert_eq!(first, epoch(0));
    }
}
