//! The first positive root of a polynomial, for the turning point of a distortion.
//!
//! Used in every process.

/// The smallest root in `(0, most]` where the sign changes, of `c[0] + c[1] x + c[2] x2 + ...`. The
/// value at 0 must be positive. `None` if there is no root.
///
/// Between two roots of its derivative, a polynomial has at most one root. So roots are found
/// degree by degree with bisection, and none can be missed.
pub fn first_root(coefficients: &[f64], most: f64) -> Option<f64> {
    let most = most.min(farthest(coefficients));
    roots(coefficients, most).first().copied()
}

/// The value at `x`.
pub fn value(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// No root is farther from 0 than this (Fujiwara's bound).
fn farthest(coefficients: &[f64]) -> f64 {
    let Some(degree) = coefficients.iter().rposition(|c| *c != 0.0) else {
        return 0.0;
    };
    let lead = coefficients[degree];
    let terms = coefficients[..degree].iter().enumerate();
    let bound = terms.map(|(i, c)| libm::pow((c / lead).abs(), 1.0 / (degree - i) as f64));
    2.0 * bound.fold(0.0, f64::max)
}

fn roots(coefficients: &[f64], most: f64) -> Vec<f64> {
    if coefficients.len() < 2 {
        return Vec::new();
    }
    let steeper = coefficients[1..].iter().enumerate();
    let derivative: Vec<f64> = steeper.map(|(i, c)| c * (i + 1) as f64).collect();
    let mut found = Vec::new();
    let mut low = 0.0;
    for high in roots(&derivative, most).into_iter().chain([most]) {
        let (from, to) = (value(coefficients, low), value(coefficients, high));
        if (from > 0.0) != (to > 0.0) {
            found.push(between(coefficients, low, high, from > 0.0));
        }
        low = high;
    }
    found
}

fn between(coefficients: &[f64], mut low: f64, mut high: f64, falls: bool) -> f64 {
    loop {
        let middle = 0.5 * (low + high);
        if !(low < middle && middle < high) {
            return high;
        }
        if (value(coefficients, middle) > 0.0) == falls {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(roots: &[f64]) -> Vec<f64> {
        let mut all = vec![1.0];
        for root in roots {
            let mut next = vec![0.0; all.len() + 1];
            for (i, c) in all.iter().enumerate() {
                next[i] += c;
                next[i + 1] -= c / root;
            }
            all = next;
        }
        all
    }

    #[test]
    fn the_first_of_several_roots_is_found_however_close_the_next_one_is() {
        for roots in [
            vec![0.5],
            vec![3.0, 0.25, -1.0],
            vec![0.7, 0.701, 9.0],
            vec![-2.0, -0.1, 1e-3, 1.1e-3, 5.0, 40.0],
            vec![1e6, -3.0],
        ] {
            let first = roots.iter().copied().filter(|r| *r > 0.0);
            let first = first.fold(f64::INFINITY, f64::min);
            let found = first_root(&product(&roots), f64::INFINITY).unwrap();
            assert!((found / first - 1.0).abs() < 1e-9, "{roots:?}: {found}");
        }
    }

    #[test]
    fn no_positive_root_is_none() {
        assert_eq!(first_root(&[1.0], f64::INFINITY), None);
        assert_eq!(first_root(&[1.0, 0.0, 0.0], f64::INFINITY), None);
        assert_eq!(first_root(&[1.0, 0.3, 0.0, 2.0], f64::INFINITY), None);
        assert_eq!(first_root(&product(&[-1.0, -4.0]), f64::INFINITY), None);
        assert_eq!(first_root(&product(&[4.0]), 3.9), None);
    }
}
