//! Draws by weight, with replacement.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::order::key::{DrawKind, OrderKey};
use crate::order::table::SamplerTable;
use crate::recipe::geometry::UniformSource;

/// Finds a draw among running sums. An alias table would need one look instead of log2(samples),
/// which is 24 for ten million, and 1.5 times the memory. Both costs are small compared to a
/// decode.
#[derive(Debug, Clone)]
pub(crate) struct WeightedSampler {
    pub(super) table: Arc<SamplerTable>,
}

impl WeightedSampler {
    pub(super) fn id_at(&self, key: OrderKey, position: u64) -> u64 {
        let SamplerTable::Sums(table) = &*self.table else {
            return u64::MAX;
        };
        let sums = table.sums();
        let total = sums.last().copied().unwrap_or(0.0);
        let drawn = key.random(DrawKind::Weighted, position).next_f64() * total;
        let id = sums.partition_point(|&sum| sum <= drawn);
        if id < sums.len() {
            return id as u64;
        }
        // The product was rounded up to the total: take the last sample with a weight.
        sums.partition_point(|&sum| sum < total) as u64
    }
}

/// The table for given weights.
///
/// # Errors
/// The number of weights differs from that of samples; a weight is negative or not a number; all
/// are 0.
pub(crate) fn weight_table(weights: &[f64], samples: u64) -> Result<SamplerTable> {
    if weights.len() as u64 != samples {
        return Err(Error::config(format!(
            "there are {} sample weights for {samples} samples: give one for each",
            weights.len()
        )));
    }
    let mut sum = 0.0;
    let mut sums = Vec::with_capacity(weights.len());
    for (id, &weight) in weights.iter().enumerate() {
        if !(weight >= 0.0 && weight.is_finite()) {
            return Err(Error::config(format!(
                "the weight of sample {id} is {weight}: use 0 or more, and finite numbers"
            )));
        }
        sum += weight;
        sums.push(sum);
    }
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(Error::config(format!(
            "the weights of {samples} samples add up to {sum}: use at least one above 0, and a \
             finite sum"
        )));
    }
    SamplerTable::sums(&sums)
}

/// 1 / number of samples of its class, for each sample.
pub(crate) fn inverse_class_frequency(labels: &[i64]) -> Vec<f64> {
    let mut count: HashMap<i64, u64> = HashMap::new();
    for label in labels {
        *count.entry(*label).or_default() += 1;
    }
    let weight = |label| count.get(label).map_or(0.0, |&n| 1.0 / n as f64);
    labels.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weighted(weights: &[f64]) -> WeightedSampler {
        let table = weight_table(weights, weights.len() as u64).unwrap();
        WeightedSampler {
            table: Arc::new(table),
        }
    }

    fn drawn(weights: &[f64], draws: u64) -> Vec<f64> {
        let weighted = weighted(weights);
        let mut count = vec![0.0; weights.len()];
        for n in 0..draws {
            let key = OrderKey {
                seed: 8,
                epoch: n % 10,
            };
            count[weighted.id_at(key, n / 10) as usize] += 1.0;
        }
        count
    }

    #[test]
    fn weights_are_followed_and_what_weighs_nothing_never_comes() {
        let weights = [0.0, 3.0, 0.5, 0.0, 0.0, 7.25, 1e-9, 2.0, 0.0];
        let draws = 100_000;
        let count = drawn(&weights, draws);
        let total: f64 = weights.iter().sum();
        let mut chi = 0.0;
        for (count, weight) in count.iter().zip(weights) {
            let expected = weight / total * draws as f64;
            if weight == 0.0 {
                assert_eq!(*count, 0.0);
            } else if weight > 1e-6 {
                chi += (count - expected).powi(2) / expected;
            }
        }
        assert!(chi < 3.0 + 6.0 * 6f64.sqrt(), "chi-square {chi}");
    }

    #[test]
    fn classes_come_equally_often() {
        let labels: Vec<i64> = (0..300)
            .map(|i| [5, -2, 9][usize::from(i > 9) + usize::from(i > 99)])
            .collect();
        let count = drawn(&inverse_class_frequency(&labels), 90_000);
        for class in [0..10, 10..100, 100..300] {
            let n: f64 = count[class].iter().sum();
            // The deviation of 90,000 draws of a third is 141.
            assert!((n - 30_000.0).abs() < 850.0, "{n}");
        }
    }

    proptest! {
        #[test]
        fn draws_are_samples_of_weight(
            weights in prop::collection::vec(prop_oneof![Just(0.0), 0.0f64..1e300], 1..50),
            seed: u64, epoch: u64, position: u64,
        ) {
            prop_assume!(weights.iter().sum::<f64>() > 0.0);
            prop_assume!(weights.iter().sum::<f64>().is_finite());
            let weighted = weighted(&weights);
            let key = OrderKey { seed, epoch };
            let id = weighted.id_at(key, position);
            prop_assert!(weights[id as usize] > 0.0);
            prop_assert_eq!(id, weighted.id_at(key, position));
        }
    }

    #[test]
    fn bad_weights_are_named() {
        for (weights, samples, text) in [
            (&[1.0, 2.0][..], 3, "there are 2 sample weights for 3"),
            (&[1.0, -2.0], 2, "sample 1 is -2"),
            (&[f64::NAN], 1, "sample 0 is NaN"),
            (&[1.0, f64::INFINITY], 2, "sample 1 is inf"),
            (&[0.0, 0.0], 2, "add up to 0"),
            (&[f64::MAX, f64::MAX], 2, "add up to inf"),
        ] {
            let e = weight_table(weights, samples).unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        }
    }
}
