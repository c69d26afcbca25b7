//! Computes when this rank needs which shard, from its order: from its position to the end of the
//! next epoch.
//!
//! Runs in the fetcher. Takes 16 bytes per visit, a run of consecutive batches that use a shard.
//! There is at most one visit per sample of two epochs. If no shard is ever deleted, only the first
//! use matters, and only that is stored.

use std::collections::VecDeque;

use crate::data::index::Index;
use crate::order::{EpochMark, EpochPlan};

/// A shard is used by the batches from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Visit {
    first: u64,
    last: u64,
}

/// A batch: its mark, and its number since the start.
#[derive(Debug, Clone, Copy)]
struct Step {
    at: EpochMark,
    number: u64,
}

impl Step {
    fn next(self, plan: &EpochPlan) -> Self {
        Self {
            at: plan.next_mark(self.at),
            number: self.number + 1,
        }
    }
}

/// Next uses of shards by a rank, from its position.
#[derive(Debug)]
pub(super) struct NextUses {
    plan: EpochPlan,
    index: Index,
    /// Number of epochs of the run, if known.
    epochs: Option<u64>,
    /// Most batches between two uses of the same visit.
    gap: u64,
    now: Step,
    /// The first batch that was not examined.
    ahead: Step,
    visits: Vec<VecDeque<Visit>>,
    /// The last examined batch that used each shard.
    used: Vec<u64>,
    /// Size of each shard in bytes.
    bytes: Vec<u64>,
    most: u64,
}

impl NextUses {
    /// For a rank at position `at`. `bytes`: size of each shard. `evicts`: whether shards are
    /// deleted.
    pub(super) fn new(
        (plan, index): (EpochPlan, Index),
        bytes: Vec<u64>,
        at: EpochMark,
        epochs: Option<u64>,
        evicts: bool,
    ) -> Self {
        let begin = Step { at, number: 0 };
        Self {
            plan,
            index,
            epochs,
            gap: match evicts {
                true => 1,
                false => u64::MAX,
            },
            now: begin,
            ahead: begin,
            visits: vec![VecDeque::new(); bytes.len()],
            used: vec![u64::MAX; bytes.len()],
            bytes,
            most: 0,
        }
    }

    /// Moves to another position.
    pub(super) fn move_to(&mut self, at: EpochMark) {
        // Numbers are never reused, because readers may have old ones.
        let number = self.ahead.number + 1;
        self.now = Step { at, number };
        self.ahead = self.now;
        self.visits.iter_mut().for_each(VecDeque::clear);
    }

    /// Advances to `at`.
    pub(super) fn advance_to(&mut self, at: EpochMark) {
        while self.now.at < at {
            self.now = self.now.next(&self.plan);
        }
        if self.ahead.at < self.now.at {
            self.ahead = self.now;
        }
    }

    /// Whether [`NextUses::look_ahead`] has more to do, up to the end of the next epoch, or of the
    /// run's last. The current epoch is always examined.
    pub(super) fn can_look_further(&self) -> bool {
        let (now, ahead) = (self.now.at.epoch, self.ahead.at.epoch);
        let is_of_run = self.epochs.is_none_or(|n| ahead < n) || ahead <= now;
        ahead <= now.saturating_add(1) && is_of_run
    }

    /// Examines all batches up to the end of the current epoch, and at least one whole epoch. Later
    /// epochs do not use much more at a time.
    pub(super) fn look_ahead_over_the_epoch(&mut self) {
        let last = match self.now.at.samples {
            0 => self.now.at.epoch,
            _ => self.now.at.epoch.saturating_add(1),
        };
        while self.can_look_further() && self.ahead.at.epoch <= last {
            self.look_ahead(1);
        }
    }

    /// Examines the next batches, about `rows` rows of them.
    pub(super) fn look_ahead(&mut self, rows: u64) {
        let mut looked = 0;
        while looked < rows && self.can_look_further() {
            let (step, mut bytes) = (self.ahead, 0u64);
            let filled = self.plan.filled_rows_at(step.at);
            for row in 0..filled {
                let id = self.plan.row_at(step.at, row).id;
                let Some(shard) = self.index.part(id).map(|part| part.shard as usize) else {
                    continue;
                };
                if self.used.get(shard).is_none_or(|&last| last == step.number) {
                    continue;
                }
                self.used[shard] = step.number;
                bytes = bytes.saturating_add(self.bytes[shard]);
                let visits = &mut self.visits[shard];
                match visits.back_mut() {
                    Some(last) if step.number - last.last <= self.gap => last.last = step.number,
                    _ => visits.push_back(Visit {
                        first: step.number,
                        last: step.number,
                    }),
                }
            }
            self.most = self.most.max(bytes);
            looked += u64::from(filled).max(1);
            self.ahead = step.next(&self.plan);
        }
    }

    /// Bytes of shards of the batch that uses the most, as far as examined.
    pub(super) fn most_bytes(&self) -> u64 {
        self.most
    }

    /// Batches to the next use of each shard; [`u64::MAX`] if no use is known.
    pub(super) fn distances(&mut self) -> impl Iterator<Item = u64> {
        let now = self.now.number;
        self.visits.iter_mut().map(move |visits| {
            while visits.front().is_some_and(|visit| visit.last < now) {
                visits.pop_front();
            }
            visits
                .front()
                .map_or(u64::MAX, |visit| visit.first.saturating_sub(now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{OrderOptions, Sampler};

    fn uses(sampler: Sampler, epochs: Option<u64>) -> NextUses {
        let dir = std::path::Path::new("/cache");
        let parts = |n: u64| (0..n).map(|i| (512 + i * 1024, 10)).collect::<Vec<_>>();
        let shards: Vec<_> = ["a.tar", "b.tar", "c.tar", "d.tar"]
            .map(|name| (name, parts(100)))
            .into();
        let index = Index::of_parts(dir, &shards);
        let options = OrderOptions {
            batch: 10,
            sampler,
            ..OrderOptions::default()
        }
        .with_shard_samples(Some(100));
        let plan = EpochPlan::new(400, options).unwrap();
        let bytes = vec![1000, 2000, 4000, 8000];
        NextUses::new((plan, index), bytes, EpochMark::new(0, 0), epochs, true)
    }

    #[test]
    fn in_order_each_shard_is_needed_after_those_before_it() {
        let mut uses = uses(Sampler::Sequential, Some(2));
        while uses.can_look_further() {
            uses.look_ahead(7);
        }
        assert_eq!(uses.distances().collect::<Vec<_>>(), [0, 10, 20, 30]);
        assert_eq!(uses.most_bytes(), 8000);
        // In the middle of the second shard. The first comes again in the next epoch.
        uses.advance_to(EpochMark::new(0, 150));
        assert_eq!(uses.distances().collect::<Vec<_>>(), [25, 0, 5, 15]);
        // The last epoch: used shards are not needed again.
        uses.advance_to(EpochMark::new(1, 150));
        assert_eq!(uses.distances().collect::<Vec<_>>(), [u64::MAX, 0, 5, 15]);
        assert!(!uses.can_look_further());
        // The number was a hint: a run that advances has what it needs.
        uses.advance_to(EpochMark::new(2, 0));
        uses.look_ahead(u64::MAX);
        assert_eq!(uses.distances().collect::<Vec<_>>(), [0, 10, 20, 30]);
    }

    #[test]
    fn an_endless_run_is_known_to_the_end_of_the_next_epoch() {
        let mut uses = uses(Sampler::Sequential, None);
        uses.look_ahead(u64::MAX);
        assert!(!uses.can_look_further());
        uses.advance_to(EpochMark::new(1, 0));
        assert!(uses.can_look_further());
        uses.look_ahead(u64::MAX);
        uses.move_to(EpochMark::new(7, 390));
        assert!(uses.distances().all(|d| d == u64::MAX));
        uses.look_ahead(u64::MAX);
        assert_eq!(uses.distances().collect::<Vec<_>>(), [1, 11, 21, 0]);
    }

    #[test]
    fn a_shuffle_needs_all_shards_all_the_time() {
        let mut uses = uses(Sampler::Shuffle, None);
        uses.look_ahead(u64::MAX);
        assert!(uses.distances().all(|d| d <= 2));
        assert_eq!(uses.most_bytes(), 15_000);
    }

    /// Against looking at every batch.
    #[test]
    fn distances_are_those_of_the_plan() {
        let sampler = Sampler::ShardShuffle {
            shard: Some(100),
            window: 150,
        };
        let mut uses = uses(sampler, Some(3));
        uses.look_ahead(u64::MAX);
        let (plan, index) = (uses.plan.clone(), &uses.index);
        let mut at = EpochMark::new(0, 0);
        let mut batches = Vec::new();
        while at.epoch < 3 {
            let shards: Vec<u64> = (0..plan.filled_rows_at(at))
                .map(|row| index.part(plan.row_at(at, row).id).unwrap().shard)
                .collect();
            batches.push((at, shards));
            at = plan.next_mark(at);
        }
        for now in 0..40 {
            uses.advance_to(batches[now].0);
            let distances: Vec<_> = uses.distances().collect();
            for (shard, &distance) in (0..).zip(&distances) {
                let next = (now..batches.len()).find(|&n| batches[n].1.contains(&shard));
                let next = next.map_or(u64::MAX, |n| (n - now) as u64);
                assert_eq!(distance, next, "batch {now}, shard {shard}");
            }
        }
    }
}
