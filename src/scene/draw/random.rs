//! Random numbers of a ray: two words for each unit of a step, from the unit's number alone.
//!
//! Used in every process. Each step has a key, each unit a counter. One call of Philox makes both
//! words (`order::random` has the generator).

use crate::order::random::philox4x32_10;

/// What a draw is for. Each purpose has separate random numbers. The values are part of the draws
/// and never change.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub(super) enum DrawPurpose {
    /// The image, and the position in it.
    Place = 0,
    /// The second pixel of a pair.
    Partner = 1,
    /// The time within the exposure.
    Moment = 2,
}

/// Key of all draws of one step on one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepKey([u32; 2]);

impl StepKey {
    pub(super) fn new(seed: u64, step: u64, rank: u32) -> Self {
        // One call of the generator mixes in step and rank, so that steps do not overlap as seed +
        // step would. The last word is not a key of `PositionRandom`.
        let k = philox4x32_10(
            [step as u32, (step >> 32) as u32, rank, u32::MAX - 1],
            [seed as u32, (seed >> 32) as u32],
        );
        Self([k[0], k[1]])
    }

    pub(super) fn words_of_key(self) -> [u32; 2] {
        self.0
    }

    /// Two words, each of 64 random bits.
    #[inline]
    pub(super) fn words(self, unit: u64, drawn: DrawPurpose) -> [u64; 2] {
        let counter = [0, drawn as u32, unit as u32, (unit >> 32) as u32];
        let [a, b, c, d] = philox4x32_10(counter, self.0);
        let word = |high, low| u64::from(high) << 32 | u64::from(low);
        [word(a, b), word(c, d)]
    }
}

/// Returns a whole number below `n` from a random word, and a word for further draws: random again
/// for a number within the first one's share.
///
/// It is the high half of the product. No number is more likely than another by more than n / 2^64,
/// which is below 2^-32 for every `n` that fits 32 bits. Drawing a number below `a`, then one below
/// `b` from the remaining word, gives exactly the quotient and the remainder by `b` of the number
/// below `a * b`, without the division.
#[inline]
pub(super) fn below(word: u64, n: u64) -> (u64, u64) {
    let product = u128::from(word) * u128::from(n);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_two_parts_is_the_whole_number() {
        for i in 0..100_000 {
            let [word, sizes] = StepKey::new(1, 2, 3).words(i, DrawPurpose::Place);
            let (a, b) = (
                1 + (sizes as u32 >> (i % 32)),
                1 + ((sizes >> 32) as u32 >> (i % 31)),
            );
            let (a, b) = (u64::from(a), u64::from(b));
            let (first, left) = below(word, a);
            let (second, _) = below(left, b);
            let Some(both) = a.checked_mul(b) else {
                continue;
            };
            assert_eq!(first * b + second, below(word, both).0);
        }
    }

    #[test]
    fn keys_and_parts_give_other_words() {
        let of = |seed, step, rank| StepKey::new(seed, step, rank).words(5, DrawPurpose::Place);
        let all = [
            of(1, 2, 3),
            of(2, 1, 3),
            of(3, 2, 1),
            of(1, 3, 2),
            of(1, 2 + (3 << 32), 0),
            of(1, 3, 3),
            of(1, 2, 4),
            of(1 << 32, 2, 3),
            StepKey::new(1, 2, 3).words(5, DrawPurpose::Partner),
            StepKey::new(1, 2, 3).words(5 << 32, DrawPurpose::Place),
        ];
        let mut words: Vec<u64> = all.into_iter().flatten().collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 20);
    }
}
