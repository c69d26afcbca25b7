//! Keys of an epoch's order. Its random numbers are independent of the samples' parameters.

use super::permutation::KeyedPermutation;
use super::random::PositionRandom;

/// The numbers that the order of an epoch is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderKey {
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
}

/// The purpose of a draw. Each has independent random numbers. The values are part of the orders
/// and never change.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(crate) enum DrawKind {
    Shards = 1,
    Window = 2,
    Weighted = 3,
    Class = 4,
    Identities = 5,
    Members = 6,
    Sizes = 7,
    Mixing = 8,
    Rays = 9,
    Buckets = 10,
    BucketMembers = 11,
    Captions = 12,
}

impl OrderKey {
    /// The shuffle of the whole epoch.
    pub(crate) fn shuffle(self, n: u64) -> KeyedPermutation {
        KeyedPermutation::new(n, self.seed, self.epoch)
    }

    /// The `number`-th permutation of a kind.
    pub(crate) fn permutation(self, n: u64, part: DrawKind, number: u64) -> KeyedPermutation {
        KeyedPermutation::of_part(n, self.seed, self.epoch, part as u64, number)
    }

    /// The `number`-th random stream of a kind.
    pub(crate) fn random(self, part: DrawKind, number: u64) -> PositionRandom {
        PositionRandom::of_stream(self.seed, self.epoch, number, part as u32)
    }
}
