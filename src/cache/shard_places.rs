//! The missing shards of a cache, and the places of its order that they are made of.
//!
//! Runs in the consumer. Only arithmetic.

use std::ops::Range;

use crate::cache::options::BuildOptions;

/// Consecutive shards that are to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardRun {
    /// The places of the cache's order that the shards are made of.
    pub(super) places: Range<u64>,
    /// The id of the first sample in the cache.
    pub(super) first_id: u64,
    pub(super) first_shard: u64,
}

/// The missing shards of one part of a cache.
#[derive(Debug)]
pub(super) struct MissingShards {
    pub(super) runs: Vec<ShardRun>,
    /// The numbers of the missing shards. Only the first, if a shard depends on the shards before
    /// it.
    pub(super) numbers: Vec<u64>,
    /// Places of the whole part.
    pub(super) places: u64,
    /// Places of its complete shards.
    pub(super) done: u64,
}

/// The shards of a cache with a fixed number of places per shard. Each can be made alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndependentShards {
    /// Places per shard; the last may have fewer.
    each: u64,
    samples: u64,
}

impl IndependentShards {
    /// The shards for a source of `samples` samples; `None` if the size in bytes divides the
    /// shards.
    pub(super) fn of(options: &BuildOptions, samples: u64) -> Option<Self> {
        let each = options.shard_samples?;
        Some(Self { each, samples })
    }

    pub(super) fn len(self) -> u64 {
        self.samples.div_ceil(self.each)
    }

    /// The places of consecutive shards.
    pub(super) fn places(self, shards: Range<u64>) -> Range<u64> {
        let begin = |number: u64| number.saturating_mul(self.each).min(self.samples);
        begin(shards.start)..begin(shards.end)
    }

    /// The number of places of these shards.
    pub(super) fn samples_of(self, shards: Range<u64>) -> u64 {
        let places = self.places(shards);
        places.end - places.start
    }

    /// These shards in as few runs as possible. The id of a sample is its place.
    pub(super) fn runs(self, numbers: &[u64]) -> Vec<ShardRun> {
        let mut runs: Vec<ShardRun> = Vec::new();
        for &number in numbers {
            let places = self.places(number..number + 1);
            match runs.last_mut() {
                Some(last) if last.places.end == places.start => last.places.end = places.end,
                _ => runs.push(ShardRun {
                    first_id: places.start,
                    first_shard: number,
                    places,
                }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_missing_shards_are_few_runs() {
        let shards = IndependentShards {
            each: 10,
            samples: 47,
        };
        assert_eq!((shards.len(), shards.samples_of(3..5)), (5, 17));
        assert_eq!(shards.places(4..5), 40..47);
        let run = |places: Range<u64>| ShardRun {
            first_id: places.start,
            first_shard: places.start / 10,
            places,
        };
        assert_eq!(shards.runs(&[0, 1, 3, 4]), [run(0..20), run(30..47)]);
        assert_eq!(shards.runs(&[]), []);
        let one = IndependentShards {
            each: u64::MAX,
            samples: 3,
        };
        assert_eq!((one.len(), one.places(0..1)), (1, 0..3));
    }
}
