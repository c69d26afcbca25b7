//! Batches of one bucket each, and each sample comes once an epoch. Rows of a bucket have one size, or
//! about the same number of patches.
//!
//! A bucket has as many batches as its samples need, over all ranks. The last one has fewer samples,
//! or is left out. In each epoch the samples of a bucket have another order, and so have the batches
//! of all buckets. Each batch takes a whole number of positions, also if it has fewer samples: the
//! positions after them have none. So a batch is found from its position alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::order::key::{DrawKind, OrderKey};
use crate::order::sampler::kind::Sampler;
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
    /// Rows of a full batch, over all ranks.
    rows: u64,
    kind: BucketKind,
}

/// What the rows of a bucket have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BucketKind {
    /// Height and width.
    Size(u32, u32),
    /// At most this number of patches each.
    Patches(u32),
}

impl BucketKind {
    fn size(self) -> Option<(u32, u32)> {
        match self {
            Self::Size(height, width) => Some((height, width)),
            Self::Patches(_) => None,
        }
    }
}

/// The batches of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketBatches {
    groups: Vec<BucketGroup>,
    /// Positions of a batch: at least the rows of a full one, over all ranks.
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
    /// Height and width of its rows. None: the recipe's.
    pub(crate) size: Option<(u32, u32)>,
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

/// The table for the numbers of patches of all images: its groups are buckets of a budget. `patches`:
/// the most of a batch. The images are sorted by their patches, and cut into batches that the budget
/// allows for their largest image. Batches of the same number of rows are a bucket, so all but the
/// last one are full on one rank. An image without patches goes to the bucket with most images.
///
/// # Errors
/// No image has patches; the number of one with more patches than the budget; no memory.
pub(crate) fn patch_table(
    counts: impl ExactSizeIterator<Item = Option<u64>>,
    patches: u64,
) -> Result<SamplerTable, PatchTableFault> {
    let mut known = Vec::with_capacity(counts.len());
    let mut without = Vec::new();
    for (id, count) in (0u32..).zip(counts) {
        match count {
            Some(count) if count > patches => {
                return Err(PatchTableFault::TooLarge(u64::from(id), count));
            }
            Some(count) => known.push((count.max(1), id)),
            None => without.push(id),
        }
    }
    known.sort_unstable_by_key(|(count, id)| (Reverse(*count), *id));
    // Of each bucket: rows, most patches of a row, and its images.
    let mut buckets: Vec<([u32; 2], Vec<u32>)> = Vec::new();
    let mut rest = &known[..];
    while let [(most, _), ..] = rest {
        let rows = patches / most;
        let (batch, behind) =
            rest.split_at(rest.len().min(usize::try_from(rows).unwrap_or(usize::MAX)));
        rest = behind;
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let ids = batch.iter().map(|(_, id)| *id);
        match buckets.last_mut() {
            Some(([same, _], members)) if *same == rows => members.extend(ids),
            _ => buckets.push(([rows, *most as u32], ids.collect())),
        }
    }
    let Some((_, most)) = buckets.iter_mut().max_by_key(|(_, ids)| ids.len()) else {
        return Err(PatchTableFault::NoPatches);
    };
    most.append(&mut without);
    let (pairs, groups): (Vec<_>, Vec<_>) = buckets.into_iter().unzip();
    let members = groups.concat();
    let mut end = 0;
    let ends = groups.iter().map(|ids| {
        end += ids.len() as u32;
        end
    });
    let ends: Vec<u32> = ends.collect();
    SamplerTable::paired_groups(&ends, &members, &pairs).map_err(PatchTableFault::Memory)
}

/// Why there is no table for a budget of patches.
#[derive(Debug)]
pub(crate) enum PatchTableFault {
    /// This image has this number of patches, which is over the budget.
    TooLarge(u64, u64),
    /// No image has patches.
    NoPatches,
    Memory(Error),
}

impl BucketSampler {
    /// `batch`: most rows of a batch on each of `world` ranks. None if the table has no groups.
    pub(super) fn new(
        table: Arc<SamplerTable>,
        sampler: &Sampler,
        (batch, world): (u32, u32),
        tail: EpochTail,
    ) -> Option<Self> {
        let SamplerTable::Groups(groups) = &*table else {
            return None;
        };
        let has_patches = matches!(sampler, Sampler::PatchBudget { .. });
        let bucket = |group| {
            let [first, second] = groups.pair_of(group)?;
            let (rows, kind) = match has_patches {
                true => (first.min(batch), BucketKind::Patches(second)),
                false => (batch, BucketKind::Size(first, second)),
            };
            let rows = u64::from(rows) * u64::from(world);
            Some((groups.span(group).1, rows, kind))
        };
        let all: Vec<_> = (0..groups.len()).map(bucket).collect::<Option<_>>()?;
        let mut buckets: Vec<(u64, u64, BucketKind)> = Vec::with_capacity(all.len());
        for next in all {
            match buckets.last_mut() {
                // The batch size limits both, and the first one has the larger images.
                Some(last) if has_patches && last.1 == next.1 => last.0 += next.0,
                _ => buckets.push(next),
            }
        }
        let rows = u64::from(batch) * u64::from(world);
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
    /// `buckets`: of each its samples, the rows of a full batch over all ranks, and what its rows have
    /// in common, in the order of the table. `most`: the rows of the largest batch.
    fn new(
        buckets: impl IntoIterator<Item = (u64, u64, BucketKind)>,
        most: u64,
        tail: EpochTail,
    ) -> Self {
        let most = most.max(1);
        let (mut start, mut batches) = (0, 0);
        let groups = buckets.into_iter().map(|(samples, rows, kind)| {
            let rows = rows.clamp(1, most);
            let group = BucketGroup {
                start,
                samples,
                batches_before: batches,
                rows,
                kind,
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
            rows: most,
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
            EpochTail::Drop => group.samples - group.samples % group.rows,
            EpochTail::Short | EpochTail::Pad => group.samples,
        };
        self.groups.iter().map(of).sum()
    }

    /// Rows of an epoch with a sample, on each of this number of ranks.
    pub(crate) fn rows_of_rank(&self, world: u32) -> u64 {
        let world = u64::from(world.max(1));
        let of = |group: &BucketGroup| {
            let rest = group.samples % group.rows;
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
        let is_short = |group: &&BucketGroup| !group.samples.is_multiple_of(group.rows);
        match self.tail {
            EpochTail::Drop => 0,
            EpochTail::Short | EpochTail::Pad => self.groups.iter().filter(is_short).count() as u64,
        }
    }

    /// The bucket with most images, which also has the images without one: the size of its rows.
    pub(crate) fn largest_bucket(&self) -> Option<(u32, u32)> {
        let largest = self.groups.iter().rev().max_by_key(|group| group.samples);
        largest.and_then(|group| group.kind.size())
    }

    /// Positions of each batch, over all ranks.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of buckets.
    pub(crate) fn count(&self) -> usize {
        self.groups.len()
    }

    /// The rows of the largest batch, over all ranks.
    pub(crate) fn most_rows(&self) -> u64 {
        self.groups
            .iter()
            .map(|group| group.rows)
            .max()
            .unwrap_or(0)
    }

    /// Most patches of a batch on one of this number of ranks. None if buckets have sizes.
    pub(crate) fn most_patches(&self, world: u32) -> Option<u64> {
        let of = |group: &BucketGroup| match group.kind {
            BucketKind::Size(..) => None,
            BucketKind::Patches(most) => {
                Some((group.rows / u64::from(world.max(1))).saturating_mul(most.into()))
            }
        };
        self.groups.iter().filter_map(of).max()
    }

    /// Positions of an epoch: those of all batches, also without samples.
    pub(crate) fn positions(&self) -> u64 {
        self.batches.saturating_mul(self.rows)
    }

    /// Whether the rows of each bucket have one size.
    pub(crate) fn have_sizes(&self) -> bool {
        self.sizes().next().is_some()
    }

    /// The size of each bucket that has one.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        self.groups.iter().filter_map(|group| group.kind.size())
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
        let first = (place - group.batches_before) * group.rows;
        Some(BucketBatch {
            bucket: bucket as u64,
            first,
            samples: group.samples.saturating_sub(first).min(group.rows),
            size: group.kind.size(),
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
            tail in tails(), of_patches: bool, seed: u64, epoch: u64,
        ) {
            let size = |n: usize| (n as u32 + 1, 7);
            let rows_of = |n: usize| if of_patches { rows.div_ceil(n as u64 + 1) } else { rows };
            let kind = |n| match of_patches {
                true => BucketKind::Patches(size(n).0),
                false => BucketKind::Size(size(n).0, size(n).1),
            };
            let buckets = counts.iter().enumerate();
            let buckets = buckets.map(|(n, count)| (*count, rows_of(n), kind(n)));
            let batches = BucketBatches::new(buckets, rows, tail);
            let key = key(seed, epoch);
            let mut seen = Vec::new();
            for number in 0..batches.batches() {
                let batch = batches.batch(key, number).unwrap();
                let bucket = batch.bucket as usize;
                prop_assert_eq!(batch.size, (!of_patches).then(|| size(bucket)));
                let rows = rows_of(bucket);
                prop_assert!(batch.samples >= 1 && batch.samples <= rows);
                prop_assert!(tail != EpochTail::Drop || batch.samples == rows);
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
                EpochTail::Drop => {
                    let kept = counts.iter().enumerate();
                    kept.map(|(n, count)| count - count % rows_of(n)).sum()
                }
                _ => all,
            };
            prop_assert_eq!(seen.len() as u64, kept);
            seen.sort_unstable();
            seen.dedup();
            prop_assert_eq!(seen.len() as u64, kept, "a sample comes twice");
            prop_assert_eq!(batches.samples(), kept);
            let most = counts.iter().enumerate().map(|(n, _)| rows_of(n) * (n as u64 + 1));
            prop_assert_eq!(batches.most_patches(1), of_patches.then(|| most.max().unwrap()));
        }

        #[test]
        fn buckets_of_a_budget_have_all_images_within_it(
            counts in prop::collection::vec(prop::option::of(1u64..300), 1..200),
            budget in 300u64..2000, batch in 1u32..50, world in 1u32..4, epoch: u64,
        ) {
            let made = patch_table(counts.iter().copied(), budget);
            if counts.iter().all(Option::is_none) {
                prop_assert!(matches!(made, Err(PatchTableFault::NoPatches)));
                return Ok(());
            }
            let sampler = Sampler::PatchBudget { patches: budget };
            let table = Arc::new(made.unwrap());
            let made = BucketSampler::new(table, &sampler, (batch, world), EpochTail::Short);
            let made = made.unwrap();
            let batches = made.batches();
            let key = key(1, epoch);
            let mut seen = Vec::new();
            let most = batches.most_patches(world).unwrap();
            prop_assert!(most <= budget);
            for number in 0..batches.batches() {
                let of = batches.batch(key, number).unwrap();
                prop_assert!(of.samples <= u64::from(batch) * u64::from(world));
                for rank in 0..u64::from(world) {
                    let rows = (rank..of.samples).step_by(world as usize);
                    let ids = rows.map(|n| made.id_at(key, &of, n, 0).unwrap());
                    let ids: Vec<u64> = ids.collect();
                    let patches = ids.iter().map(|id| counts[*id as usize].unwrap_or(0));
                    prop_assert!(patches.sum::<u64>() <= most);
                    seen.extend(ids);
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..counts.len() as u64).collect::<Vec<_>>());
            // On one rank, with room for all rows, only the last bucket has a batch that is not full.
            let known: Vec<_> = counts.into_iter().filter(Option::is_some).collect();
            let table = Arc::new(patch_table(known.into_iter(), budget).unwrap());
            let of = |batch| {
                let made = BucketSampler::new(table.clone(), &sampler, (batch, 1), EpochTail::Short);
                made.unwrap().batches().clone()
            };
            prop_assert!(of(u32::MAX).short_batches() <= 1);
            // A batch size that limits all of them leaves one bucket.
            prop_assert_eq!(of(1).count(), 1);
        }
    }

    #[test]
    fn an_image_over_the_budget_is_named() {
        let counts = [Some(4), None, Some(11), Some(12)];
        let made = patch_table(counts.into_iter(), 10);
        assert!(matches!(made, Err(PatchTableFault::TooLarge(2, 11))));
    }

    #[test]
    fn epochs_differ_in_batches_and_in_samples() {
        let kinds = [1, 2].map(|side| (40, 10, BucketKind::Size(side, side)));
        let batches = BucketBatches::new(kinds, 10, EpochTail::Short);
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
        let sizes = |all: &[(_, Vec<u64>)]| -> Vec<Option<(u32, u32)>> {
            all.iter().map(|batch| batch.0).collect()
        };
        assert_ne!(sizes(&first), sizes(&second));
        assert!(first.iter().all(|batch| !second.contains(batch)));
        assert_eq!(first, epoch(0));
    }
}
