//! Batches with a few samples of each of a few identities.
//!
//! Batch b of rank r is draw b x world + r of the epoch. Ranks draw independently, so their batches
//! may overlap. The key of a row's random parameters is draw x batch + row, so it is unique in an
//! epoch.

use std::sync::{Arc, Mutex, PoisonError};

use super::kind::{IdentityProb, IdentityRatio};
use crate::error::{Error, Result};
use crate::order::key::{DrawKind, OrderKey};
use crate::order::table::{GroupTable, SamplerTable};

/// Groups are the identities, sorted by label.
#[derive(Debug)]
pub(crate) struct IdentitySampler {
    table: Arc<SamplerTable>,
    per_id: u64,
    per_batch: u64,
    prob: IdentityProb,
    /// The last draw, cached because its rows are requested one by one. It never changes a result.
    last: Mutex<IdentityDraw>,
}

/// The identities of a batch.
#[derive(Debug, Default)]
struct IdentityDraw {
    drawn_for: Option<(OrderKey, u64)>,
    groups: Vec<u64>,
    /// Ranges of the drawn identities among all weights: start and length, sorted by start.
    taken: Vec<(u64, u64)>,
}

/// A row of a draw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawPosition {
    pub(crate) draw: u64,
    pub(crate) row: u32,
}

impl IdentitySampler {
    pub(super) fn new(
        table: Arc<SamplerTable>,
        batch: u32,
        per_id: u32,
        prob: IdentityProb,
    ) -> Result<Self> {
        let (per_id, per_batch) = (u64::from(per_id), u64::from(batch / per_id.max(1)));
        let identities = match &*table {
            SamplerTable::Groups(t) => t.len(),
            SamplerTable::Sums(_) | SamplerTable::Orders(_) => 0,
        };
        if identities < per_batch {
            return Err(Error::config(format!(
                "a batch of {batch} with per_id = {per_id} has {per_batch} identities, and there \
                 are {identities}: lower `batch_size`, or raise per_id"
            )));
        }
        Ok(Self {
            table,
            per_id,
            per_batch,
            prob,
            last: Mutex::default(),
        })
    }

    /// The sample in a row. Attempt n is the n-th further sample of the same identity: first those
    /// without a row in the batch, then the others. `None` if there are no more.
    pub(crate) fn id_at(&self, key: OrderKey, at: DrawPosition, attempt: u32) -> Option<u64> {
        let SamplerTable::Groups(table) = &*self.table else {
            return None;
        };
        let (turn, place) = (
            u64::from(at.row) / self.per_id,
            u64::from(at.row) % self.per_id,
        );
        let group = self.group(key, table, at.draw, turn)?;
        let (start, length) = table.span(group);
        let attempt = u64::from(attempt);
        if attempt >= length {
            return None;
        }
        let within = if length >= self.per_id {
            let unused = length - self.per_id;
            let place = match attempt {
                0 => place,
                n if n <= unused => self.per_id + (place + n - 1) % unused,
                n => (place + n - unused) % self.per_id,
            };
            let number = at.draw.wrapping_mul(self.per_batch).wrapping_add(turn);
            key.permutation(length, DrawKind::Members, number).at(place)
        } else {
            let number = at.draw.wrapping_mul(self.per_batch * self.per_id);
            let number = number.wrapping_add(u64::from(at.row));
            let drawn = key.random(DrawKind::Members, number).below(length);
            (drawn + attempt) % length
        };
        Some(table.member(start + within))
    }

    /// Rows of all identities, each rounded up to whole groups of `per_id`.
    pub(crate) fn rows_in_whole_groups(&self) -> u64 {
        let SamplerTable::Groups(table) = &*self.table else {
            return 0;
        };
        let rows = |group| table.span(group).1.div_ceil(self.per_id) * self.per_id;
        (0..table.len()).map(rows).sum()
    }

    /// Most rows of a batch that one sample may fill: all rows of its identity.
    pub(crate) fn rows_of_one_sample(&self) -> u64 {
        self.per_id
    }

    /// The identity at an index of a draw.
    fn group(&self, key: OrderKey, table: &GroupTable, draw: u64, turn: u64) -> Option<u64> {
        if turn >= self.per_batch {
            return None;
        }
        match self.prob {
            IdentityProb::IdAvg if !table.is_weighted() => {
                let order = key.permutation(table.len(), DrawKind::Identities, draw);
                Some(order.at(turn))
            }
            IdentityProb::SampleAvg | IdentityProb::IdAvg => {
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.drawn_for != Some((key, draw)) {
                    last.draw(key, table, draw, self.per_batch);
                }
                last.groups.get(turn as usize).copied()
            }
        }
    }
}

impl IdentityDraw {
    /// Draws samples of the remaining identities. The identity of each is the next one. An identity
    /// with a weight counts as that number of samples. No draw is rejected, so a few huge
    /// identities take no longer than many small ones.
    fn draw(&mut self, key: OrderKey, table: &GroupTable, draw: u64, count: u64) {
        let mut random = key.random(DrawKind::Identities, draw);
        self.groups.clear();
        self.taken.clear();
        let mut left = table.weight();
        for _ in 0..count {
            let mut place = random.below(left);
            for &(start, length) in &self.taken {
                if start > place {
                    break;
                }
                place += length;
            }
            let (group, start, length) = table.at_weight(place);
            let at = self.taken.partition_point(|&(taken, _)| taken < start);
            self.taken.insert(at, (start, length));
            self.groups.push(group);
            left = left.saturating_sub(length);
        }
        self.drawn_for = Some((key, draw));
    }
}

/// The table for the classes of all samples; some classes may be drawn more often.
///
/// # Errors
/// No memory; the weights add up to more than 2^62.
pub(crate) fn identity_table(
    labels: &[i64],
    prob: IdentityProb,
    ratios: &[IdentityRatio],
) -> Result<SamplerTable> {
    let mut members: Vec<u32> = (0..labels.len() as u32).collect();
    let label = |id: u32| labels[id as usize];
    members.sort_unstable_by_key(|&id| (label(id), id));
    let mut ends: Vec<u32> = (1..members.len())
        .filter(|&i| label(members[i - 1]) != label(members[i]))
        .map(|i| i as u32)
        .collect();
    ends.push(members.len() as u32);
    if ratios.is_empty() {
        return SamplerTable::groups(&ends, &members);
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let starts: Vec<u32> = starts.take(ends.len()).collect();
    // Number of each group by first occurrence in the index. A group's first member has its lowest
    // id.
    let mut come_up: Vec<u32> = (0..ends.len() as u32).collect();
    come_up.sort_unstable_by_key(|&group| members[starts[group as usize] as usize]);
    let mut number = vec![0u64; ends.len()];
    for (n, group) in (0..).zip(&come_up) {
        number[*group as usize] = n;
    }
    let mut sum = 0u64;
    let mut sums = Vec::with_capacity(ends.len());
    for ((start, end), number) in starts.iter().zip(&ends).zip(number) {
        let ratio = ratios.iter().find(|r| (r.first..=r.last).contains(&number));
        let alone = match prob {
            IdentityProb::SampleAvg => u64::from(end - start),
            IdentityProb::IdAvg => 1,
        };
        sum += alone * ratio.map_or(1, |r| u64::from(r.ratio));
        if sum > u64::MAX >> 2 {
            return Err(Error::config(
                "the ratios of identities times their samples add up to more than 2^62: use \
                 smaller ratios",
            ));
        }
        sums.push(sum);
    }
    SamplerTable::weighted_groups(&ends, &members, &sums)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    const KEY: OrderKey = OrderKey { seed: 5, epoch: 1 };

    fn identities(labels: &[i64], batch: u32, per_id: u32, prob: IdentityProb) -> IdentitySampler {
        let table = Arc::new(identity_table(labels, prob, &[]).unwrap());
        IdentitySampler::new(table, batch, per_id, prob).unwrap()
    }

    fn prob() -> impl Strategy<Value = IdentityProb> {
        prop_oneof![Just(IdentityProb::SampleAvg), Just(IdentityProb::IdAvg)]
    }

    proptest! {
        #[test]
        fn each_batch_has_its_identities_and_each_identity_its_samples(
            labels in prop::collection::vec(-3i64..20, 1..200), per_id in 1u32..6, count in 1u32..9,
            seed: u64, epoch: u64, draw: u64, prob in prob(),
        ) {
            let mut of: HashMap<i64, usize> = HashMap::new();
            for l in &labels {
                *of.entry(*l).or_default() += 1;
            }
            prop_assume!(of.len() >= count as usize);
            let batch = per_id * count;
            let ids = identities(&labels, batch, per_id, prob);
            let key = OrderKey { seed, epoch };
            let rows: Vec<u64> = (0..batch)
                .map(|row| ids.id_at(key, DrawPosition { draw, row }, 0).unwrap())
                .collect();
            let mut drawn = Vec::new();
            for rows in rows.chunks(per_id as usize) {
                let label = labels[rows[0] as usize];
                prop_assert!(rows.iter().all(|&id| labels[id as usize] == label));
                prop_assert!(!drawn.contains(&label));
                drawn.push(label);
                let mut unlike = rows.to_vec();
                unlike.sort_unstable();
                unlike.dedup();
                prop_assert!(unlike.len() == rows.len() || of[&label] < rows.len());
            }
            // Rows in any order, mixed with those of another batch, are the same.
            for row in (0..batch).rev() {
                ids.id_at(key, DrawPosition { draw: draw ^ 1, row: 0 }, 0);
                let again = ids.id_at(key, DrawPosition { draw, row }, 0).unwrap();
                prop_assert_eq!(again, rows[row as usize]);
                // Substitutes: every sample of the identity once.
                let label = labels[again as usize];
                let mut tried: Vec<u64> = (0..of[&label] as u32)
                    .map(|a| ids.id_at(key, DrawPosition { draw, row }, a).unwrap())
                    .collect();
                prop_assert_eq!(tried[0], again);
                if of[&label] > per_id as usize {
                    prop_assert!(!rows.contains(&tried[1]), "one without a row first");
                }
                tried.sort_unstable();
                tried.dedup();
                prop_assert_eq!(tried.len(), of[&label]);
                prop_assert!(tried.iter().all(|&id| labels[id as usize] == label));
                prop_assert_eq!(ids.id_at(key, DrawPosition { draw, row }, of[&label] as u32), None);
            }
            prop_assert_eq!(ids.id_at(key, DrawPosition { draw, row: batch }, 0), None);
        }
    }

    /// 1, 2, 3 and 4 samples of four identities, ten times over.
    fn uneven() -> Vec<i64> {
        [0, 1, 1, 2, 2, 2, 3, 3, 3, 3].repeat(10)
    }

    fn drawn(prob: IdentityProb, draws: u64) -> (Vec<f64>, Vec<f64>) {
        let labels = uneven();
        let ids = identities(&labels, 4, 2, prob);
        let (mut first, mut second) = (vec![0.0; 4], vec![0.0; 4]);
        for draw in 0..draws {
            let label =
                |row| labels[ids.id_at(KEY, DrawPosition { draw, row }, 0).unwrap() as usize];
            first[label(0) as usize] += 1.0;
            second[label(2) as usize] += 1.0;
        }
        (first, second)
    }

    fn assert_follows(count: &[f64], expected: &[f64]) {
        let all: f64 = count.iter().sum();
        let chi: f64 = count
            .iter()
            .zip(expected)
            .map(|(n, p)| (n - p * all).powi(2) / (p * all))
            .sum();
        assert!(chi < 3.0 + 6.0 * 6f64.sqrt(), "chi-square {chi}: {count:?}");
    }

    #[test]
    fn identities_come_by_their_samples_or_all_alike() {
        let p = [0.1, 0.2, 0.3, 0.4];
        let (first, second) = drawn(IdentityProb::SampleAvg, 40_000);
        assert_follows(&first, &p);
        // The second is drawn by weight among the remaining ones.
        let behind: Vec<f64> = (0..4)
            .map(|b| {
                let others = (0..4).filter(|a| *a != b);
                others.map(|a| p[a] * p[b] / (1.0 - p[a])).sum()
            })
            .collect();
        assert_follows(&second, &behind);
        let (first, second) = drawn(IdentityProb::IdAvg, 40_000);
        assert_follows(&first, &[0.25; 4]);
        assert_follows(&second, &[0.25; 4]);
    }

    /// Identities are numbered by first occurrence, not by label. Without replacement, the second
    /// is drawn by weight among the remaining ones.
    #[test]
    fn ratios_make_identities_likelier() {
        let labels = [7, 7, 7, 7, 1, 1, 4, 4, 4, 9];
        let ratio = |first, last, ratio| IdentityRatio { first, last, ratio };
        // 7 and 1 occur first and second; of two ranges the first counts.
        let ratios = [ratio(0, 1, 3), ratio(1, 2, 5)];
        for (prob, weights) in [
            (IdentityProb::IdAvg, [1.0 * 3.0, 5.0, 1.0 * 3.0, 1.0]),
            (IdentityProb::SampleAvg, [2.0 * 3.0, 15.0, 4.0 * 3.0, 1.0]),
        ] {
            let all: f64 = weights.iter().sum();
            let p: Vec<f64> = weights.iter().map(|w| w / all).collect();
            let table = Arc::new(identity_table(&labels, prob, &ratios).unwrap());
            let ids = IdentitySampler::new(table, 4, 2, prob).unwrap();
            // By label: 1, 4, 7, 9.
            let place = |id: u64| [1, 4, 7, 9].iter().position(|l| *l == labels[id as usize]);
            let (mut first, mut second) = (vec![0.0; 4], vec![0.0; 4]);
            for draw in 0..40_000 {
                let at =
                    |row| place(ids.id_at(KEY, DrawPosition { draw, row }, 0).unwrap()).unwrap();
                assert_eq!(at(0), at(1));
                assert_ne!(at(0), at(2));
                first[at(0)] += 1.0;
                second[at(2)] += 1.0;
            }
            assert_follows(&first, &p);
            let behind: Vec<f64> = (0..4)
                .map(|b| {
                    let others = (0..4).filter(|a| *a != b);
                    others.map(|a| p[a] * p[b] / (1.0 - p[a])).sum()
                })
                .collect();
            assert_follows(&second, &behind);
        }
    }

    #[test]
    fn a_ratio_of_one_draws_as_none_does() {
        let labels = uneven();
        let ratios = [IdentityRatio {
            first: 0,
            last: 9,
            ratio: 1,
        }];
        let prob = IdentityProb::SampleAvg;
        let plain = identities(&labels, 4, 2, prob);
        let table = Arc::new(identity_table(&labels, prob, &ratios).unwrap());
        let weighted = IdentitySampler::new(table, 4, 2, prob).unwrap();
        for draw in 0..500 {
            for row in 0..4 {
                let at = DrawPosition { draw, row };
                assert_eq!(plain.id_at(KEY, at, 0), weighted.id_at(KEY, at, 0));
            }
        }
    }

    #[test]
    fn samples_of_an_identity_come_equally_often() {
        // 7 of one identity, with and without replacement.
        for per_id in [3, 7, 9] {
            let ids = identities(&[4; 7], per_id, per_id, IdentityProb::SampleAvg);
            let mut count = [0.0; 7];
            for draw in 0..20_000 {
                for row in 0..per_id {
                    let id = ids.id_at(KEY, DrawPosition { draw, row }, 0).unwrap();
                    count[id as usize] += 1.0;
                }
            }
            let expected = 20_000.0 * f64::from(per_id) / 7.0;
            let chi: f64 = count
                .iter()
                .map(|n| (n - expected).powi(2) / expected)
                .sum();
            assert!(chi < 6.0 + 6.0 * 12f64.sqrt(), "{per_id}: chi-square {chi}");
        }
    }

    #[test]
    fn too_few_identities_are_named() {
        let labels = [1, 1, 2, 2, 3];
        let table = || Arc::new(identity_table(&labels, IdentityProb::IdAvg, &[]).unwrap());
        assert!(IdentitySampler::new(table(), 6, 2, IdentityProb::IdAvg).is_ok());
        let e = IdentitySampler::new(table(), 8, 2, IdentityProb::IdAvg).unwrap_err();
        let e = e.to_string();
        for part in ["batch of 8", "per_id = 2", "4 identities", "there are 3"] {
            assert!(e.contains(part), "{e} lacks {part}");
        }
    }
}
