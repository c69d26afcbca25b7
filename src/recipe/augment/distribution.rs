//! Random numbers of non-uniform distributions, computed from uniform ones.
//!
//! All transcendental functions come from `libm`, so every machine computes the same numbers.
//! Square roots are exact everywhere.

use std::f64::consts::TAU;

use crate::recipe::geometry::UniformSource;

/// -1 or 1 with equal probability.
pub(crate) fn sign(random: &mut impl UniformSource) -> f64 {
    if random.next_f64() < 0.5 { -1.0 } else { 1.0 }
}

/// Mean 0 and deviation 1; two draws. Box and Muller, "A note on the generation of
/// random normal deviates" (1958), as Python's `random.gauss` has it.
pub(crate) fn gauss(random: &mut impl UniformSource) -> f64 {
    let angle = random.next_f64() * TAU;
    // 1 - u is never 0.
    let radius = (-2.0 * libm::log(1.0 - random.next_f64())).sqrt();
    libm::cos(angle) * radius
}

/// The maximum number of rejections. Each has a probability below 0.05.
const TRIES: usize = 64;

/// The logarithm of a gamma-distributed number with this shape (above 0) and scale 1. Marsaglia and
/// Tsang, "A simple method for generating gamma variables" (2000). For shapes below 1 it uses their
/// G(a) = G(a + 1) U^(1/a), whose logarithm does not underflow.
fn ln_gamma_variate(shape: f64, random: &mut impl UniformSource) -> f64 {
    let boosted = if shape < 1.0 { shape + 1.0 } else { shape };
    let d = boosted - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let mut ln = libm::log(d);
    for _ in 0..TRIES {
        let x = gauss(random);
        let u = 1.0 - random.next_f64();
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let (v, ln_v) = (root * root * root, 3.0 * libm::log(root));
        if libm::log(u) <= 0.5 * x * x + d - d * v + d * ln_v {
            ln += ln_v;
            break;
        }
    }
    if shape < 1.0 {
        ln += libm::log(1.0 - random.next_f64()) / shape;
    }
    ln
}

/// Draws from the symmetric Dirichlet distribution: `count` numbers of at least 0 that sum to 1.
/// Gamma numbers divided by their sum (Devroye, "Non-uniform random variate generation", 1986,
/// XI.4).
pub(crate) fn dirichlet<const N: usize>(
    alpha: f64,
    count: usize,
    random: &mut impl UniformSource,
) -> [f64; N] {
    let count = count.min(N);
    let mut v = [f64::NEG_INFINITY; N];
    for x in v.iter_mut().take(count) {
        *x = ln_gamma_variate(alpha, random);
    }
    // Relative to the largest, which becomes 1, however small all are.
    let most = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let v = v.map(|x| {
        if x == f64::NEG_INFINITY {
            0.0
        } else {
            libm::exp(x - most)
        }
    });
    let sum: f64 = v.iter().sum();
    v.map(|x| if sum > 0.0 { x / sum } else { 0.0 })
}

/// Draws from the symmetric beta distribution: one of two Dirichlet numbers.
pub(crate) fn beta(alpha: f64, random: &mut impl UniformSource) -> f64 {
    let [x, _] = dirichlet::<2>(alpha, 2, random);
    x
}
