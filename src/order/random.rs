//! Random numbers of one position. They are counter-based, so they depend on (seed, epoch,
//! position) only, not on processes, order or history.
//!
//! Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
//! (SC 2011), the generator of JAX-like frameworks and cuRAND. It is small, and no maintained crate
//! implements it.

use crate::recipe::geometry::UniformSource;
use crate::recipe::random::{CropStreams, RandomStreams};

const MULTIPLIERS: (u32, u32) = (0xD251_1F53, 0xCD9E_8D57);
const WEYL: (u32, u32) = (0x9E37_79B9, 0xBB67_AE85);

#[inline]
pub(crate) fn philox4x32_10(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL.0), key[1].wrapping_add(WEYL.1)];
        }
        let a = u64::from(MULTIPLIERS.0) * u64::from(counter[0]);
        let b = u64::from(MULTIPLIERS.1) * u64::from(counter[2]);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
    }
    counter
}

/// Set in streams of samplers, not in those of operations.
const SAMPLER: u32 = 1 << 31;

/// Random numbers of one position in one epoch.
#[derive(Debug, Clone)]
pub(crate) struct PositionRandom {
    key: [u32; 2],
    position: [u32; 2],
    stream: u32,
    block: u32,
    drawn: [u32; 4],
    left: usize,
}

impl PositionRandom {
    pub(crate) fn new(seed: u64, epoch: u64, position: u64) -> Self {
        // The generator mixes the epoch into the key, so that (seed, epoch) pairs do not overlap as
        // seed + epoch would.
        let k = philox4x32_10(
            [epoch as u32, (epoch >> 32) as u32, 0, u32::MAX],
            [seed as u32, (seed >> 32) as u32],
        );
        Self {
            key: [k[0], k[1]],
            position: [position as u32, (position >> 32) as u32],
            stream: 0,
            block: 0,
            drawn: [0; 4],
            left: 0,
        }
    }

    /// Random numbers for another purpose than a sample's parameters, at the same position. Each
    /// `stream` is independent, also of those of operations.
    pub(crate) fn of_stream(seed: u64, epoch: u64, position: u64, stream: u32) -> Self {
        Self {
            stream: stream | SAMPLER,
            ..Self::new(seed, epoch, position)
        }
    }

    /// A whole number below `n`, by the high half of a product. The bias is at most n / 2^64.
    /// Returns 0 for an `n` of 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let high = u64::from(self.next_u32());
        let drawn = high << 32 | u64::from(self.next_u32());
        ((u128::from(drawn) * u128::from(n)) >> 64) as u64
    }

    fn next_u32(&mut self) -> u32 {
        if self.left == 0 {
            let [low, high] = self.position;
            let counter = [self.block, self.stream, low, high];
            self.drawn = philox4x32_10(counter, self.key);
            self.block += 1;
            self.left = 4;
        }
        self.left -= 1;
        self.drawn[3 - self.left]
    }
}

/// Streams do not overlap, because the stream is the second word of the counter. A block of the
/// generator is two numbers.
impl RandomStreams for PositionRandom {
    fn number(&self, stream: u32, place: u32) -> f64 {
        let [low, high] = self.position;
        let [a, b, c, d] = philox4x32_10([place / 2, stream, low, high], self.key);
        match place % 2 {
            0 => uniform(a, b),
            _ => uniform(c, d),
        }
    }
}

/// Each crop has a key of its own. The counter with these words belongs to no number of a position:
/// no position is that large.
impl CropStreams for PositionRandom {
    fn of_crop(&self, crop: u32) -> Self {
        let key = match crop {
            0 => self.key,
            crop => {
                let [first, second, ..] = philox4x32_10([crop, 0, 0, u32::MAX], self.key);
                [first, second]
            }
        };
        Self {
            key,
            ..self.clone()
        }
    }
}

/// 53 random bits: every multiple of 2^-53 in [0, 1) is equally likely.
fn uniform(high: u32, low: u32) -> f64 {
    let bits = (u64::from(high) << 32 | u64::from(low)) >> 11;
    bits as f64 * (1.0 / (1u64 << 53) as f64)
}

impl UniformSource for PositionRandom {
    fn next_f64(&mut self) -> f64 {
        let high = self.next_u32();
        uniform(high, self.next_u32())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers from the authors' test suite (Random123, kat_vectors).
    #[test]
    fn known_answers() {
        assert_eq!(
            philox4x32_10([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox4x32_10([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32_10(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn positions_epochs_and_seeds_give_other_numbers() {
        let first = |s, e, p| PositionRandom::new(s, e, p).next_f64();
        let stream = |n| PositionRandom::of_stream(1, 2, 3, n).next_f64();
        let base = first(1, 2, 3);
        let of_op = |n| PositionRandom::new(1, 2, 3).number(n, 0);
        assert_eq!(base, of_op(0));
        // Streams of samplers differ from those of operations.
        let all = [
            stream(0),
            stream(1),
            stream(2),
            of_op(0),
            of_op(1),
            of_op(2),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{all:?}");
        }
        assert_eq!(base, first(1, 2, 3));
        for other in [
            first(1, 2, 4),
            first(1, 3, 3),
            first(2, 2, 3),
            first(2, 1, 3),
        ] {
            assert_ne!(base, other);
        }
    }

    /// The first crop has the numbers of a recipe with one crop, and each other has its own.
    #[test]
    fn crops_have_numbers_of_their_own() {
        let base = PositionRandom::new(1, 2, 3);
        let first = |crop| base.of_crop(crop).number(7, 1);
        assert_eq!(first(0), base.number(7, 1));
        let mut all: Vec<_> = (0..256).map(|crop| first(crop).to_bits()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 256);
        // The numbers of two crops of the same positions do not depend on each other.
        let n = 20_000;
        let product = |p| {
            let base = PositionRandom::new(1, 2, p);
            (base.of_crop(1).number(7, 0) - 0.5) * (base.of_crop(2).number(7, 0) - 0.5)
        };
        let mean = (0..n).map(product).sum::<f64>() / n as f64;
        assert!(mean.abs() < 4.0 / 12.0 / (n as f64).sqrt(), "{mean}");
    }

    /// Random access and sequential access agree.
    #[test]
    fn a_stream_is_the_same_either_way() {
        let by_place = PositionRandom::new(1, 2, 3);
        let mut in_turn = by_place.clone();
        for place in 0..9 {
            assert_eq!(by_place.number(0, place), in_turn.next_f64(), "{place}");
        }
    }

    #[test]
    fn numbers_below_a_limit_are_uniform() {
        let mut bins = [0f64; 7];
        for p in 0..70_000 {
            bins[PositionRandom::of_stream(5, 1, p, 3).below(7) as usize] += 1.0;
        }
        let chi: f64 = bins.iter().map(|b| (b - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 6.0 + 6.0 * 12f64.sqrt(), "chi-square {chi}");
        let mut r = PositionRandom::of_stream(5, 1, 0, 3);
        assert_eq!((r.below(0), r.below(1)), (0, 0));
        assert!(r.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn numbers_are_uniform_along_positions_and_within_one() {
        let n = 100_000;
        let mut bins = [0f64; 64];
        for p in 0..n / 2 {
            let mut r = PositionRandom::new(5, 1, p);
            for _ in 0..2 {
                let x = r.next_f64();
                assert!((0.0..1.0).contains(&x));
                bins[(x * 64.0) as usize] += 1.0;
            }
        }
        let expected = n as f64 / 64.0;
        let chi: f64 = bins.iter().map(|b| (b - expected).powi(2) / expected).sum();
        assert!(chi < 63.0 + 6.0 * 126f64.sqrt(), "chi-square {chi}");
    }
}
