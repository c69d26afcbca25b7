//! Radial distortion of lengths: `t` becomes `t (1 + k1 t2 + k2 t4 + ...)`, and back.
//!
//! `t` is the radius in the plane, or the angle. Used in every process.

use super::polynomial::first_root;

/// A distorted length and its derivative.
#[derive(Debug, Clone, Copy)]
pub struct BentLength {
    pub value: f64,
    pub slope: f64,
}

/// `1 + k1 s + k2 s2 + ...` of `s = t2`, and its derivative by `s`.
pub fn series(k: &[f64], s: f64) -> (f64, f64) {
    let (mut sum, mut slope) = (0.0, 0.0);
    for c in k.iter().rev() {
        slope = slope * s + sum;
        sum = sum * s + c;
    }
    (1.0 + s * sum, sum + s * slope)
}

/// The distorted length of `t`.
pub fn distort_length(k: &[f64], t: f64) -> BentLength {
    let s = t * t;
    let (value, slope) = series(k, s);
    BentLength {
        value: t * value,
        slope: value + 2.0 * s * slope,
    }
}

/// The turning point: the first `t` up to `most` where the distorted length stops growing.
/// Infinite, or `most`, if there is none.
pub fn turning(k: &[f64], most: f64) -> f64 {
    // The derivative by t, in s = t2: 1 + 3 k1 s + 5 k2 s2 + ...
    let factors = k.iter().zip(1..).map(|(c, i)| f64::from(2 * i + 1) * c);
    let slope: Vec<f64> = [1.0].into_iter().chain(factors).collect();
    first_root(&slope, most * most).map_or(most, f64::sqrt)
}

/// The `t` in `[0, limit)` that `curve` distorts to `bent`; `None` if it is beyond the limit.
///
/// `curve` must grow on all of `[0, limit)`. Uses Newton's method within bounds, and bisects them
/// if a step would leave them.
pub fn invert_curve(curve: impl Fn(f64) -> BentLength, bent: f64, limit: f64) -> Option<f64> {
    if bent == 0.0 {
        return Some(0.0);
    }
    let (mut low, mut high) = (0.0, limit.min(2.0 * bent));
    while high < limit && curve(high).value < bent {
        (low, high) = (high, limit.min(2.0 * high));
        if !high.is_finite() || high > FARTHEST {
            return None;
        }
    }
    // The turning point is at the limit itself.
    if curve(high).value <= bent && high >= limit {
        return None;
    }
    let mut t = bent.clamp(low, high);
    for _ in 0..STEPS {
        let BentLength { value, slope } = curve(t);
        let missing = bent - value;
        if missing == 0.0 {
            break;
        }
        if missing > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let step = t + missing / slope;
        let next = if slope > 0.0 && low < step && step < high {
            step
        } else {
            0.5 * (low + high)
        };
        if next == t {
            break;
        }
        t = next;
    }
    let residual = (curve(t).value - bent).abs();
    (t < limit && residual <= TOLERANCE * bent.max(1.0)).then_some(t)
}

/// The point in the same direction whose length `curve` distorts to that of `point`.
pub fn radially(
    curve: impl Fn(f64) -> BentLength,
    limit: f64,
    [x, y]: [f64; 2],
) -> Option<[f64; 2]> {
    let bent = (x * x + y * y).sqrt();
    if bent == 0.0 {
        return Some([0.0; 2]);
    }
    let scale = invert_curve(curve, bent, limit)? / bent;
    Some([x * scale, y * scale])
}

/// Enough bisections to leave no f64 inside any interval.
const STEPS: usize = 128;
/// Largest residual: 1e-9 pixels at a focal length of 1,000.
pub const TOLERANCE: f64 = 1e-12;
/// Larger than any image: 90 degrees minus 1e-9.
const FARTHEST: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_value() {
        let k = [0.2, -0.05, 0.03, -0.01, 0.002, 0.001];
        for i in 1..30 {
            let t = 0.05 * f64::from(i);
            let by_difference =
                (distort_length(&k, t + 1e-6).value - distort_length(&k, t - 1e-6).value) / 2e-6;
            assert!((distort_length(&k, t).slope - by_difference).abs() < 1e-8);
        }
    }

    #[test]
    fn a_length_comes_back_up_to_the_limit_and_not_beyond() {
        for k in [
            vec![0.1, 0.02],
            vec![-0.3],
            vec![-0.2, 0.05, -0.02],
            vec![0.3, -0.4],
        ] {
            let limit = turning(&k, 1e3);
            for i in 0..1000 {
                let t = limit.min(3.0) * f64::from(i) / 1000.0;
                let back = invert_curve(
                    |t| distort_length(&k, t),
                    distort_length(&k, t).value,
                    limit,
                )
                .unwrap();
                let slope = distort_length(&k, t).slope;
                assert!(
                    (back - t).abs() * slope < 1e-12,
                    "{k:?} {t}: {back}, slope {slope}"
                );
            }
            if limit < 1e3 {
                let edge = distort_length(&k, limit).value;
                assert_eq!(
                    invert_curve(|t| distort_length(&k, t), edge * 1.0001, limit),
                    None
                );
            }
        }
    }

    #[test]
    fn a_barrel_turns_round_where_its_derivative_is_zero() {
        assert!((turning(&[-0.3], 1e9) - (1.0f64 / 0.9).sqrt()).abs() < 1e-12);
        assert_eq!(turning(&[0.3, 0.1], f64::INFINITY), f64::INFINITY);
        assert_eq!(turning(&[0.0; 4], 3.0), 3.0);
    }
}
