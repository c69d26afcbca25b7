//! The random numbers of an image: a hash of a key and a counter. So no image depends on another,
//! or on the order in which they are made.
//!
//! This is not the library's generator, which belongs to the numeric profile. A change there must
//! not change the demo's bytes, nor the reverse.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A hash of two numbers, whose order matters.
pub(super) fn hash(key: u64, n: u64) -> u64 {
    mix(key ^ mix(n.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// 24 bits of a hash as a number in [0, 1): exact in f32.
pub(super) fn unit(hash: u64) -> f32 {
    (hash >> 40) as f32 * (1.0 / 16_777_216.0)
}

/// The numbers hash(key, 0), hash(key, 1), ...
pub(super) struct RandomStream {
    key: u64,
    count: u64,
}

impl RandomStream {
    pub(super) fn new(key: u64) -> Self {
        Self { key, count: 0 }
    }

    pub(super) fn next(&mut self) -> u64 {
        let h = hash(self.key, self.count);
        self.count += 1;
        h
    }

    /// A number from 0 to n - 1.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }

    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * unit(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// splitmix64 seeded with 1234567, as its reference implementation returns it.
    #[test]
    fn the_finaliser_is_splitmix64s() {
        let mut state = 1_234_567u64;
        let drawn: Vec<u64> = (0..3)
            .map(|_| {
                state = state.wrapping_add(GOLDEN);
                mix(state)
            })
            .collect();
        let known = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(drawn, known);
    }

    #[test]
    fn numbers_stay_in_their_range_and_fill_it() {
        let mut s = RandomStream::new(3);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            seen[s.below(7) as usize] += 1;
            let x = s.between(-2.0, 5.0);
            assert!((-2.0..5.0).contains(&x));
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
