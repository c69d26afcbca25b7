//! Randomness of an epoch's order, apart from that of its samples' parameters.

use super::permutation::KeyedPermutation;
use super::random::PositionRandom;

/// What the draws of an epoch's order follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderKey {
    pub(crate) seed: u64,
    pub(crate) epoch: u64,
}

/// What is drawn. Each has randomness of its own; the numbers are part of the
/// orders and never change.
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
}

impl OrderKey {
    /// The shuffle of the whole epoch.
    pub(crate) fn shuffle(self, n: u64) -> KeyedPermutation {
        KeyedPermutation::new(n, self.seed, self.epoch)
    }

    /// The `number`-th permutation of a part.
    pub(crate) fn permutation(self, n: u64, part: DrawKind, number: u64) -> KeyedPermutation {
        KeyedPermutation::of_part(n, self.seed, self.epoch, part as u64, number)
    }

    /// The `number`-th stream of numbers of a part.
    pub(crate) fn random(self, part: DrawKind, number: u64) -> PositionRandom {
        PositionRandom::of_stream(self.seed, self.epoch, number, part as u32)
    }
}
