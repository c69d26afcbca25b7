//! The radial factor of OpenCV's rational lens: a quotient of two polynomials.
//!
//! `d = (1 + k1 r2 + k2 r4 + k3 r6) / (1 + k4 r2 + k5 r4 + k6 r6)`; `lens_coefficients` has the
//! other terms.
//!
//! Source: COLMAP, `sensor/models/opencv.h` (FULL_OPENCV). Used in every process.

use super::polynomial::first_root;
use super::radial::{BentLength, series};

/// The radius of the turning point, or where the denominator is zero; infinite if there is neither.
pub fn limit(k: &[f64; 6]) -> f64 {
    let above = [1.0, k[0], k[1], k[2]];
    let below = [1.0, k[3], k[4], k[5]];
    // d/dr of r N / D has the sign of N D + 2 s (N' D - N D') in s = r2. In it each product n[i]
    // d[j] s^(i+j) has the factor 1 + 2 (i - j).
    let mut slope = [0.0; 7];
    for (i, n) in above.iter().enumerate() {
        for (j, d) in below.iter().enumerate() {
            slope[i + j] += n * d * (1.0 + 2.0 * (i as f64 - j as f64));
        }
    }
    let turning = first_root(&slope, f64::INFINITY);
    let pole = first_root(&below, f64::INFINITY);
    let first = turning.into_iter().chain(pole);
    first.fold(f64::INFINITY, f64::min).sqrt()
}

/// The distorted length of `r`.
pub fn curve(k: &[f64; 6], r: f64) -> BentLength {
    let (d, by_r2) = radial(k, r * r);
    BentLength {
        value: r * d,
        slope: d + 2.0 * r * r * by_r2,
    }
}

/// The factor of `r`, and its derivative by `r2`.
pub fn radial(k: &[f64; 6], r2: f64) -> (f64, f64) {
    let (above, above_slope) = series(&k[..3], r2);
    let (below, below_slope) = series(&k[3..], r2);
    let d = above / below;
    (d, (above_slope - d * below_slope) / below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_where_the_slope_ends_or_the_denominator() {
        for k in [
            [-0.3, 0.02, 0.0, 0.1, 0.0, 0.0],
            [0.2, 0.0, 0.0, 0.5, 0.3, 0.1],
            [0.1, 0.3, -0.2, 0.2, 0.01, -0.05],
        ] {
            let limit = limit(&k);
            assert!(limit.is_finite() && limit > 0.5, "{k:?}: {limit}");
            for i in 0..1000 {
                let bent = curve(&k, limit * f64::from(i) / 1000.0);
                assert!(bent.slope > 0.0, "{k:?} {i}: {bent:?}");
            }
            let beyond = curve(&k, limit * 1.001);
            assert!(beyond.slope < 0.0 || beyond.value < 0.0, "{k:?} {beyond:?}");
        }
        assert_eq!(limit(&[0.0; 6]), f64::INFINITY);
        assert_eq!(limit(&[0.2, 0.1, 0.1, 0.01, 0.0, 0.0]), f64::INFINITY);
    }
}
