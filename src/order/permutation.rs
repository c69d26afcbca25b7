//! A keyed permutation of 0..n in O(1) memory: the shuffle of an epoch.
//!
//! A balanced Feistel network permutes the smallest square power of two that is at least n. Results
//! outside of 0..n go through it again ("cycle walking", Black and Rogaway, "Ciphers with Arbitrary
//! Finite Domains", CT-RSA 2002), on average fewer than four times.

/// Rounds of the network. With a random round function, four are indistinguishable from a random
/// permutation (Luby and Rackoff). Our round function is a good mixer, not a cipher, so there are
/// more.
const ROUNDS: u64 = 8;

/// A permutation of `0..n`, chosen by a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedPermutation {
    n: u64,
    half_bits: u32,
    key: u64,
}

impl KeyedPermutation {
    pub(crate) fn new(n: u64, seed: u64, epoch: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).max(1),
            key: mix(mix(seed).wrapping_add(mix(epoch ^ 0x9e37_79b9_7f4a_7c15))),
        }
    }

    /// One of many permutations of an epoch: the `number`-th of a kind of draw. All of them differ,
    /// also from [`KeyedPermutation::new`].
    pub(crate) fn of_part(n: u64, seed: u64, epoch: u64, part: u64, number: u64) -> Self {
        let whole = Self::new(n, seed, epoch);
        Self {
            key: mix(whole.key ^ mix(mix(number).wrapping_add(part))),
            ..whole
        }
    }

    /// The value at position `i`, which must be below n.
    pub(crate) fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut x = i;
        loop {
            x = self.network(x);
            if x < self.n {
                return x;
            }
        }
    }

    /// The position of value `to`, which must be below n: the inverse of [`KeyedPermutation::at`].
    pub(crate) fn position_of(&self, to: u64) -> u64 {
        debug_assert!(to < self.n);
        let mut x = to;
        loop {
            x = self.network_back(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn network(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.scrambled(round, right) & mask);
        }
        left << self.half_bits | right
    }

    fn network_back(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.scrambled(round, left) & mask, left);
        }
        left << self.half_bits | right
    }

    fn scrambled(&self, round: u64, half: u64) -> u64 {
        mix(self.key ^ mix(half ^ round << 56))
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014; Stafford's variant 13).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_id_exactly_once(n in 1u64..3000, seed: u64, epoch: u64) {
            let p = KeyedPermutation::new(n, seed, epoch);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let to = p.at(i) as usize;
                prop_assert!(!seen[to]);
                prop_assert_eq!(p.position_of(to as u64), i);
                seen[to] = true;
            }
        }

        #[test]
        fn huge_sets_stay_in_range(n in 1u64..1 << 40, i: u64, seed: u64) {
            prop_assert!(KeyedPermutation::new(n, seed, 0).at(i % n) < n);
        }
    }

    #[test]
    fn parts_and_numbers_give_other_orders() {
        let order = |part, number| {
            let p = KeyedPermutation::of_part(1000, 1, 2, part, number);
            (0..1000).map(|i| p.at(i)).collect::<Vec<_>>()
        };
        let whole = KeyedPermutation::new(1000, 1, 2);
        let orders = [
            (0..1000).map(|i| whole.at(i)).collect(),
            order(0, 0),
            order(0, 1),
            order(1, 0),
            order(1, 1),
        ];
        for (i, a) in orders.iter().enumerate() {
            for b in &orders[..i] {
                let same = a.iter().zip(b).filter(|(x, y)| x == y).count();
                assert!(same < 12, "{same} places alike");
            }
        }
    }

    /// Resumed runs depend on these orders. They were computed by separate code from the
    /// description above.
    #[test]
    fn orders_stay_what_they_are() {
        let p = KeyedPermutation::new(12, 7, 3);
        let order: Vec<u64> = (0..12).map(|i| p.at(i)).collect();
        assert_eq!(order, [8, 2, 7, 6, 9, 4, 1, 3, 11, 0, 5, 10]);
        let p = KeyedPermutation::new(1_000_003, 11, 1);
        let order: Vec<u64> = (0..4).map(|i| p.at(i)).collect();
        assert_eq!(order, [826_521, 659_173, 426_635, 749_552]);
    }

    #[test]
    fn the_largest_domain_works() {
        let n = u64::MAX >> 2;
        assert!(KeyedPermutation::new(n, 1, 2).at(n - 1) < n);
    }

    #[test]
    fn epochs_and_seeds_give_other_orders() {
        let order = |seed, epoch| {
            let p = KeyedPermutation::new(1000, seed, epoch);
            (0..1000).map(|i| p.at(i)).collect::<Vec<_>>()
        };
        let same = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(x, y)| x == y).count();
        for (s, e) in [(0, 1), (1, 0), (1, 1), (u64::MAX, 0)] {
            // Two random orders of 1,000 agree in one place on average.
            assert!(same(&order(0, 0), &order(s, e)) < 12);
        }
        assert!(same(&order(0, 0), &(0..1000).collect::<Vec<_>>()) < 12);
    }

    /// Over many epochs each id comes at each position equally often: chi-square over n x n cells,
    /// for sizes small enough to show a bias.
    #[test]
    fn positions_are_uniform() {
        for n in [2usize, 3, 5, 8, 13, 66] {
            let epochs = 20_000u64;
            let mut count = vec![0f64; n * n];
            for epoch in 0..epochs {
                let p = KeyedPermutation::new(n as u64, 7, epoch);
                for i in 0..n {
                    count[i * n + p.at(i as u64) as usize] += 1.0;
                }
            }
            let expected = epochs as f64 / n as f64;
            let chi: f64 = count
                .iter()
                .map(|c| (c - expected).powi(2) / expected)
                .sum();
            let freedom = ((n - 1) * (n - 1)) as f64;
            // Mean = freedom, variance = 2 x freedom: six deviations.
            assert!(
                chi < freedom + 6.0 * (2.0 * freedom).sqrt() + 6.0,
                "n = {n}: chi-square {chi:.1} for {freedom} degrees of freedom"
            );
        }
    }

    /// Neighbours in one epoch are not neighbours in the data more often than
    #[test]
    fn neighbours_are_torn_apart() {
        let n = 10_000u64;
        let adjacent: usize = (0..50)
            .map(|epoch| {
                let p = KeyedPermutation::new(n, 3, epoch);
                (1..n)
                    .filter(|&i| p.at(i).abs_diff(p.at(i - 1)) == 1)
                    .count()
            })
            .sum();
        // Two in an epoch on average: 100 in fifty.
        assert!((50..160).contains(&adjacent), "{adjacent}");
    }
}
