//! A distorted plane: distorts a point and returns the derivatives; inverts it by Newton's method.
//!
//! Used in every process.

use super::radial::TOLERANCE;

/// A distorted point with its derivatives.
#[derive(Debug, Clone, Copy)]
pub struct LocalDistortion {
    pub at: [f64; 2],
    /// Row by row: derivatives of `at` by x and by y.
    pub slope: [[f64; 2]; 2],
}

impl LocalDistortion {
    /// Growth of area at this point. At or below 0 the plane is folded over.
    pub fn growth(&self) -> f64 {
        let [[a, b], [c, d]] = self.slope;
        a * d - b * c
    }
}

/// `(x, y) d + (2 p1 x y + p2 (r2 + 2 x2), 2 p2 x y + p1 (r2 + 2 y2)) + s r2`, where
/// `radial` is `d` and its derivative by `r2`.
///
/// COLMAP, `sensor/models/opencv.h` and `thin_prism.h` (`Distortion`); nerfstudio,
/// `camera_utils.py`, `_compute_residual_and_jacobian`.
pub fn distort(
    [x, y]: [f64; 2],
    radial: (f64, f64),
    [p1, p2]: [f64; 2],
    s: [f64; 2],
) -> LocalDistortion {
    let (d, by_r2) = radial;
    let r2 = x * x + y * y;
    let across = 2.0 * (by_r2 * x * y + p1 * x + p2 * y);
    let at = [
        x * d + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) + s[0] * r2,
        y * d + 2.0 * p2 * x * y + p1 * (r2 + 2.0 * y * y) + s[1] * r2,
    ];
    let slope = [
        [
            d + 2.0 * (by_r2 * x * x + p1 * y + 3.0 * p2 * x + s[0] * x),
            across + 2.0 * s[0] * y,
        ],
        [
            across + 2.0 * s[1] * x,
            d + 2.0 * (by_r2 * y * y + p2 * x + 3.0 * p1 * y + s[1] * y),
        ],
    ];
    LocalDistortion { at, slope }
}

/// Finds the point that `bend` distorts to `wanted`, by Newton's method from `start`. `None` if it
/// does not converge. `bend` returns `None` where the lens cannot be inverted. Points where the
/// plane is folded over count as outside too.
///
/// A step that leads outside, or away from the target, is halved until it does not.
pub fn undistort(
    bend: impl Fn([f64; 2]) -> Option<LocalDistortion>,
    start: [f64; 2],
    wanted: [f64; 2],
) -> Option<[f64; 2]> {
    let inside = |point| bend(point).filter(|local| local.growth() > 0.0);
    let missing = |local: &LocalDistortion| [wanted[0] - local.at[0], wanted[1] - local.at[1]];
    let (mut point, mut here) = match inside(start) {
        Some(local) => (start, local),
        None => ([0.0; 2], inside([0.0; 2])?),
    };
    let size = wanted[0].hypot2(wanted[1]).max(1.0);
    let mut left = missing(&here);
    let mut error = left[0].hypot2(left[1]);
    for _ in 0..STEPS {
        let [[a, b], [c, d]] = here.slope;
        let growth = here.growth();
        let step = [
            (d * left[0] - b * left[1]) / growth,
            (a * left[1] - c * left[0]) / growth,
        ];
        let good = error <= TOLERANCE * size;
        let mut part = 1.0;
        let closer = loop {
            let next = [point[0] + part * step[0], point[1] + part * step[1]];
            if let Some(local) = inside(next) {
                let left = missing(&local);
                let smaller = left[0].hypot2(left[1]);
                if smaller < error {
                    break Some((next, local, left, smaller));
                }
            }
            part *= 0.5;
            if good || part < SMALLEST_PART {
                break None;
            }
        };
        let Some(closer) = closer else { break };
        // The remaining error is rounding.
        let last = good && closer.3 > 0.5 * error;
        (point, here, left, error) = closer;
        if last || error == 0.0 {
            break;
        }
    }
    (error <= TOLERANCE * size).then_some(point)
}

/// Most points take four steps. Points close to the lens's turning point take the most.
const STEPS: usize = 64;
const SMALLEST_PART: f64 = 1e-6;

/// Length of a vector, with the same result on every CPU.
trait Hypot2 {
    fn hypot2(self, other: f64) -> f64;
}

impl Hypot2 for f64 {
    fn hypot2(self, other: f64) -> f64 {
        (self * self + other * other).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::lens::radial::series;

    #[test]
    fn the_derivatives_are_those_of_the_values() {
        let (k, p, s) = ([0.2, -0.07, 0.03, 0.01], [0.013, -0.021], [0.004, -0.017]);
        let value = |x: f64, y: f64| distort([x, y], series(&k, x * x + y * y), p, s);
        for (x, y) in [(0.0, 0.0), (0.3, -0.2), (-0.9, 0.4), (0.5, 1.1)] {
            let e = 1e-6;
            for row in 0..2 {
                let by_x = (value(x + e, y).at[row] - value(x - e, y).at[row]) / (2.0 * e);
                let by_y = (value(x, y + e).at[row] - value(x, y - e).at[row]) / (2.0 * e);
                let slope = value(x, y).slope[row];
                assert!((slope[0] - by_x).abs() < 1e-8, "{x} {y} {row}");
                assert!((slope[1] - by_y).abs() < 1e-8, "{x} {y} {row}");
            }
        }
    }

    #[test]
    fn what_lies_beyond_the_fold_has_no_answer() {
        let bent = |[x, y]: [f64; 2]| {
            let radial = series(&[-0.3], x * x + y * y);
            Some(distort([x, y], radial, [0.01, 0.0], [0.0; 2]))
        };
        assert_eq!(undistort(bent, [1.5, 1.5], [1.5, 1.5]), None);
        let inside = undistort(bent, [0.3, 0.2], [0.3, 0.2]).unwrap();
        let again = bent(inside).unwrap().at;
        assert!((again[0] - 0.3).abs() < 1e-15 && (again[1] - 0.2).abs() < 1e-15);
    }
}
