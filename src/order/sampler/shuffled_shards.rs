//! Shuffles shards, and samples within windows.

use crate::order::key::{DrawKind, OrderKey};

/// Shards are runs of the index. All have the same length except the last. Only
/// [`ShuffledShards::in_shard_order`] computes the start of a shard, so shards of varying length
/// would need a table of running sums only there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShuffledShards {
    pub(super) samples: u64,
    pub(super) shard: u64,
    pub(super) window: u64,
}

impl ShuffledShards {
    /// The sample at a position. Windows are consecutive, the last may be shorter, and samples stay
    /// in their window.
    pub(super) fn id_at(&self, key: OrderKey, position: u64) -> u64 {
        let number = position / self.window;
        let start = number * self.window;
        let length = self.window.min(self.samples - start);
        let within = key.permutation(length, DrawKind::Window, number);
        self.in_shard_order(key, start + within.at(position - start))
    }

    /// The sample at an index of the shard order.
    fn in_shard_order(&self, key: OrderKey, place: u64) -> u64 {
        let shards = self.samples.div_ceil(self.shard);
        let order = key.permutation(shards, DrawKind::Shards, 0);
        // The short shard is somewhere in the middle, so everything after it moves up.
        let short_turn = order.position_of(shards - 1);
        let short_length = self.samples - (shards - 1) * self.shard;
        let before = short_turn * self.shard;
        let (turn, offset) = if place < before {
            (place / self.shard, place % self.shard)
        } else if place - before < short_length {
            (short_turn, place - before)
        } else {
            let behind = place - before - short_length;
            (short_turn + 1 + behind / self.shard, behind % self.shard)
        };
        order.at(turn) * self.shard + offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_are_whole_and_samples_stay_in_their_windows(
            samples in 1u64..700, shard in 1u64..90, window in 1u64..120, seed: u64, epoch: u64,
        ) {
            let shards = ShuffledShards { samples, shard, window };
            let key = OrderKey { seed, epoch };
            let in_order: Vec<u64> =
                (0..samples).map(|place| shards.in_shard_order(key, place)).collect();
            let mut sorted = in_order.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..samples).collect::<Vec<_>>());
            // The samples of a shard are consecutive.
            for pair in in_order.windows(2) {
                let at_end = pair[0] % shard == shard - 1 || pair[0] == samples - 1;
                let follows = if at_end {
                    pair[1].is_multiple_of(shard)
                } else {
                    pair[1] == pair[0] + 1
                };
                prop_assert!(follows);
            }
            prop_assert!(in_order[0].is_multiple_of(shard));
            let mut seen = vec![false; samples as usize];
            for position in 0..samples {
                let id = shards.id_at(key, position);
                prop_assert!(!std::mem::replace(&mut seen[id as usize], true));
                let place = in_order.iter().position(|&i| i == id).unwrap() as u64;
                prop_assert_eq!(place / window, position / window);
            }
        }
    }

    #[test]
    fn orders_of_shards_and_windows_change_with_the_epoch() {
        let shards = ShuffledShards {
            samples: 1000,
            shard: 10,
            window: 50,
        };
        let order = |epoch| {
            let key = OrderKey { seed: 3, epoch };
            (0..1000).map(|p| shards.id_at(key, p)).collect::<Vec<_>>()
        };
        let same = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(x, y)| x == y).count();
        assert!(same(&order(0), &order(1)) < 12);
        // Within a window, neighbours of a shard are separated.
        let follow = order(0).windows(2).filter(|p| p[1] == p[0] + 1).count();
        assert!(follow < 60, "{follow} of 999 pairs follow each other");
    }

    #[test]
    fn huge_numbers_stay_in_range() {
        for (samples, shard, window) in [
            (1 << 62, 1 << 61, u64::MAX),
            ((1 << 62) - 1, 10_000, 1 << 20),
            (5, u64::MAX, u64::MAX),
        ] {
            let shards = ShuffledShards {
                samples,
                shard,
                window,
            };
            let key = OrderKey { seed: 1, epoch: 2 };
            for position in [0, samples / 2, samples - 1] {
                assert!(shards.id_at(key, position) < samples);
            }
        }
    }
}
