//! Decides the leader's next action: which shard to download, and which to delete for it.
//!
//! Runs in the fetcher. Pure. The rule is Belady's (1966): delete the shard that is used last. The
//! next uses of all ranks on the machine are known, so nothing is guessed. Only a little is
//! downloaded ahead, so that no shard is deleted that would be used up soon.

use crate::remote::fetch::shard_space::total;

/// Parallel downloads.
const AT_A_TIME: usize = 8;

/// Fraction of the space for shards ahead of their use. If a batch uses more, as with consecutive
/// windows, the largest fraction.
const AHEAD: u64 = 16;
const MOST_AHEAD: u64 = 8;

/// Bytes that may always be ahead, if nothing must be deleted for them.
const AHEAD_BYTES: u64 = 1 << 30;

/// State of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShardState {
    /// Only in the store.
    Remote,
    Downloading,
    Local,
    /// It cannot be downloaded.
    Unavailable,
}

/// Input of a decision.
#[derive(Debug)]
pub(super) struct LeaderView<'a> {
    pub(super) bytes: &'a [u64],
    pub(super) places: &'a [ShardState],
    /// Batches to the next use of each shard, over all ranks; [`u64::MAX`] if none is known.
    pub(super) distances: &'a [u64],
    /// Most bytes of shards. A running download counts as complete.
    pub(super) room: u64,
    /// Leased shards, which cannot be deleted now.
    pub(super) leased: &'a [bool],
    /// Most bytes that a batch uses, all needed at once.
    pub(super) at_once: u64,
    /// Bytes of local parts, for remote shards. A complete part was left by an earlier run, and
    /// only needs verification.
    pub(super) parts: &'a [u64],
}

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaderAction {
    Fetch(usize),
    Remove(usize),
    /// Of a remote shard.
    RemovePart(usize),
    /// Nothing is needed now.
    Rest,
    /// This shard is needed now, but nothing may be deleted for it.
    Stuck(usize),
}

impl LeaderView<'_> {
    fn used_bytes(&self) -> u64 {
        total((0..self.bytes.len()).map(|n| match self.places[n] {
            ShardState::Remote | ShardState::Unavailable => self.parts[n],
            ShardState::Downloading | ShardState::Local => self.bytes[n],
        }))
    }

    /// Whether a complete part is here but not verified yet.
    fn is_unverified(&self, n: usize) -> bool {
        self.places[n] == ShardState::Remote && self.parts[n] > 0 && self.parts[n] >= self.bytes[n]
    }

    /// What to delete to make space for something that is needed in `distance` batches: first parts
    /// except that of `but`, then the shard that is needed last.
    fn next_deletion(&self, but: Option<usize>, distance: Option<u64>) -> Option<LeaderAction> {
        let by_distance = |n: &usize| self.distances[*n];
        let all = || (0..self.bytes.len()).filter(|n| Some(*n) != but);
        let parts = all().filter(|&n| {
            matches!(self.places[n], ShardState::Remote | ShardState::Unavailable)
                && self.parts[n] > 0
                && !self.is_unverified(n)
        });
        if let Some(part) = parts.max_by_key(by_distance) {
            return Some(LeaderAction::RemovePart(part));
        }
        let here = all().filter(|&n| {
            let is_free = self.places[n] == ShardState::Local && !self.leased[n];
            (is_free || self.is_unverified(n))
                && distance.is_none_or(|soon| self.distances[n] > soon)
        });
        let last = here.max_by_key(by_distance)?;
        Some(match self.places[last] {
            ShardState::Local => LeaderAction::Remove(last),
            _ => LeaderAction::RemovePart(last),
        })
    }

    /// The next action.
    pub(super) fn next(&self) -> LeaderAction {
        // The folder had more space before.
        if self.used_bytes() > self.room
            && let Some(act) = self.next_deletion(None, None)
        {
            return act;
        }
        let coming = |place: &&ShardState| **place == ShardState::Downloading;
        let coming = self.places.iter().filter(coming).count();
        if coming >= AT_A_TIME {
            return LeaderAction::Rest;
        }
        let away = (0..self.bytes.len()).filter(|&n| self.places[n] == ShardState::Remote);
        let Some(soonest) = away.min_by_key(|&n| self.distances[n]) else {
            return LeaderAction::Rest;
        };
        let (bytes, distance) = (self.bytes[soonest], self.distances[soonest]);
        if distance == u64::MAX {
            return LeaderAction::Rest;
        }
        let others = self.used_bytes().saturating_sub(self.parts[soonest]);
        let fits = others.saturating_add(bytes) <= self.room;
        if distance > 0 && self.has_enough_ahead(soonest, fits) {
            return LeaderAction::Rest;
        }
        if fits {
            return LeaderAction::Fetch(soonest);
        }
        match self.next_deletion(Some(soonest), Some(distance)) {
            Some(act) => act,
            None if distance == 0 && coming == 0 => LeaderAction::Stuck(soonest),
            None => LeaderAction::Rest,
        }
    }

    /// Whether enough shards are here ahead of their use: those needed later than now, but not
    /// later than `shard`. If nothing must be deleted, more is allowed.
    fn has_enough_ahead(&self, shard: usize, fits: bool) -> bool {
        let before = (0..self.bytes.len()).filter(|&n| {
            matches!(self.places[n], ShardState::Downloading | ShardState::Local)
                && self.distances[n] > 0
                && self.distances[n] <= self.distances[shard]
        });
        let bytes = total(before.map(|n| self.bytes[n]));
        let burst = self.at_once.min(self.room / MOST_AHEAD);
        let enough = (self.room / AHEAD).max(burst);
        let enough = match fits {
            true => enough.max(AHEAD_BYTES),
            false => enough,
        };
        bytes > 0 && bytes >= enough
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn view<'a>(
        places: &'a [ShardState],
        distances: &'a [u64],
        leased: &'a [bool],
        room: u64,
    ) -> LeaderView<'a> {
        LeaderView {
            bytes: &[10; 4],
            places,
            distances,
            room,
            leased,
            at_once: 0,
            parts: &[0; 4],
        }
    }

    #[test]
    fn the_soonest_comes_and_the_latest_goes() {
        use ShardState::{Downloading, Local, Remote};
        let free = [false; 4];
        let never = u64::MAX;
        let at = |places: [ShardState; 4], distances: [u64; 4], room| {
            view(&places, &distances, &free, room).next()
        };
        assert_eq!(
            at([Remote; 4], [5, 0, 9, never], 40),
            LeaderAction::Fetch(1)
        );
        assert_eq!(at([Remote; 4], [never; 4], 40), LeaderAction::Rest);
        assert_eq!(
            at([Local, Remote, Local, Local], [1, 0, 9, 4], 30),
            LeaderAction::Remove(2)
        );
        assert_eq!(
            at([Local, Remote, Local, Local], [1, 0, never, 4], 30),
            LeaderAction::Remove(2)
        );
        // Nothing is needed later than this.
        assert_eq!(
            at([Local, Remote, Local, Local], [1, 9, 8, 4], 30),
            LeaderAction::Rest
        );
        assert_eq!(
            at([Local, Remote, Local, Local], [0; 4], 30),
            LeaderAction::Stuck(1)
        );
        assert_eq!(
            at([Local, Remote, Downloading, Local], [0; 4], 30),
            LeaderAction::Rest
        );
        // What is held does not go.
        let leased = [false, false, true, false];
        let places = [Local, Remote, Local, Local];
        let next = view(&places, &[1, 0, 9, 4], &leased, 30).next();
        assert_eq!(next, LeaderAction::Remove(3));
        // With less space than before, something is deleted at once.
        assert_eq!(at([Local; 4], [1, 2, 9, 4], 30), LeaderAction::Remove(2));
    }

    #[test]
    fn parts_count_and_go_first() {
        use ShardState::{Local, Remote};
        let of = |parts: [u64; 4], room| {
            LeaderView {
                parts: &parts,
                ..view(
                    &[Local, Remote, Remote, Local],
                    &[1, 0, 3, 4],
                    &[false; 4],
                    room,
                )
            }
            .next()
        };
        // A shard's own part is no hindrance.
        assert_eq!(of([0, 9, 0, 0], 30), LeaderAction::Fetch(1));
        assert_eq!(of([0, 0, 9, 0], 30), LeaderAction::RemovePart(2));
        assert_eq!(of([0, 0, 9, 0], 39), LeaderAction::Fetch(1));
        assert_eq!(of([0, 0, 0, 0], 20), LeaderAction::Remove(3));
        // A complete part is deleted by its next use, like a verified shard.
        assert_eq!(of([0, 0, 10, 0], 30), LeaderAction::Remove(3));
        assert_eq!(of([0, 10, 10, 0], 30), LeaderAction::Remove(3));
        assert_eq!(of([0, 10, 10, 0], 40), LeaderAction::Fetch(1));
        let last = LeaderView {
            parts: &[0, 0, 10, 0],
            ..view(
                &[Local, Remote, Remote, Local],
                &[1, 0, 9, 4],
                &[false; 4],
                30,
            )
        };
        assert_eq!(last.next(), LeaderAction::RemovePart(2));
        let places = [Local, ShardState::Unavailable, Remote, Local];
        let lost = LeaderView {
            parts: &[0, 9, 0, 0],
            ..view(&places, &[1, 0, 0, 4], &[false; 4], 30)
        };
        assert_eq!(lost.next(), LeaderAction::RemovePart(1));
    }

    /// Runs `order` through a folder with space for `room` shards of one byte. Returns the number
    /// of downloads.
    fn fetched(order: &[usize], shards: usize, room: u64) -> usize {
        let bytes = vec![1; shards];
        let mut places = vec![ShardState::Remote; shards];
        let (leased, parts) = (vec![false; shards], vec![0; shards]);
        let mut count = 0;
        for now in 0..order.len() {
            let distances: Vec<u64> = (0..shards)
                .map(|shard| {
                    let next = order[now..].iter().position(|&s| s == shard);
                    next.map_or(u64::MAX, |n| n as u64)
                })
                .collect();
            loop {
                let view = LeaderView {
                    bytes: &bytes,
                    places: &places,
                    distances: &distances,
                    room,
                    leased: &leased,
                    at_once: 0,
                    parts: &parts,
                };
                match view.next() {
                    // Comes at once.
                    LeaderAction::Fetch(n) => {
                        places[n] = ShardState::Local;
                        count += 1;
                    }
                    LeaderAction::Remove(n) => places[n] = ShardState::Remote,
                    LeaderAction::Rest => break,
                    LeaderAction::RemovePart(n) => panic!("shard {n} has no part"),
                    LeaderAction::Stuck(n) => panic!("shard {n} cannot come"),
                }
                let here = places.iter().filter(|p| **p == ShardState::Local).count();
                assert!(here as u64 <= room);
            }
            assert_eq!(places[order[now]], ShardState::Local, "at {now}");
        }
        count
    }

    /// The fewest downloads that any order of deletions allows.
    fn fewest(order: &[usize], room: usize) -> usize {
        let mut here = HashSet::new();
        let mut count = 0;
        for (now, &shard) in order.iter().enumerate() {
            if here.contains(&shard) {
                continue;
            }
            count += 1;
            if here.len() == room {
                let next = |s: usize| order[now..].iter().position(|&o| o == s);
                let last = here
                    .iter()
                    .copied()
                    .max_by_key(|&s| next(s).unwrap_or(usize::MAX));
                here.remove(&last.unwrap());
            }
            here.insert(shard);
        }
        count
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// With little space nothing is downloaded ahead, and the number is optimal.
        #[test]
        fn no_order_of_removal_fetches_less(
            order in prop::collection::vec(0usize..12, 1..120),
            room in 1u64..12,
        ) {
            let best = fewest(&order, room as usize);
            let got = fetched(&order, 12, room);
            prop_assert!(got >= best);
            // One shard may be here ahead of its use.
            let with_less = fewest(&order, (room as usize - 1).max(1));
            prop_assert!(got <= with_less.max(best), "{got}, {best}, {with_less}");
        }
    }

    /// Three epochs of 500 shards in different orders, with space for 80.
    #[test]
    fn epochs_are_fetched_almost_as_rarely_as_can_be() {
        let mut order = Vec::new();
        let mut random = 7u64;
        for _ in 0..3 {
            let mut epoch: Vec<usize> = (0..500).collect();
            for i in (1..500).rev() {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                epoch.swap(i, (random >> 33) as usize % (i + 1));
            }
            order.extend(epoch);
        }
        let (got, best) = (fetched(&order, 500, 80), fewest(&order, 80));
        assert!(
            got as f64 <= best as f64 * 1.02,
            "{got} fetched, {best} is the fewest"
        );
    }
}
