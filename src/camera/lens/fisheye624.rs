//! The fisheye lens of Project Aria: six radial, two tangential, four thin-prism terms. Tangential
//! and prism terms apply to the result of the radial ones.
//!
//! `(x, y) = angles (1 + k0 theta2 + ... + k5 theta12)`, `r2 = x2 + y2`, then
//! `x' = x + p0 (r2 + 2 x2) + 2 p1 x y + s0 r2 + s1 r4`,
//! `y' = y + p1 (r2 + 2 y2) + 2 p0 x y + s2 r2 + s3 r4`.
//!
//! Source: nerfstudio, `cameras/camera_utils.py`, `fisheye624_project`; COLMAP,
//! `sensor/models/thin_prism.h` (RAD_TAN_THIN_PRISM_FISHEYE). Used in every process.

use super::plane::{self, LocalDistortion};
use super::radial::{distort_length, radially, series};

/// Coefficients in the order of nerfstudio and COLMAP.
#[derive(Debug, Clone, Copy)]
pub struct Fisheye624Coefficients {
    pub k: [f64; 6],
    pub p: [f64; 2],
    pub s: [f64; 4],
}

impl Fisheye624Coefficients {
    /// The image point of a ray with these angles. `None` from `limit` on, and where the lens folds
    /// the image over.
    pub fn distort(&self, limit: f64, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let theta2 = x * x + y * y;
        if theta2 >= limit * limit {
            return None;
        }
        let (d, _) = series(&self.k, theta2);
        let local = self.tangential([x * d, y * d]);
        (local.growth() > 0.0).then_some(local.at)
    }

    /// The angles of the ray of an image point.
    pub fn undistort(&self, limit: f64, point: [f64; 2]) -> Option<[f64; 2]> {
        let bent = if self.p == [0.0; 2] && self.s == [0.0; 4] {
            point
        } else {
            plane::undistort(|point| Some(self.tangential(point)), point, point)?
        };
        radially(|t| distort_length(&self.k, t), limit, bent)
    }

    fn tangential(&self, [x, y]: [f64; 2]) -> LocalDistortion {
        let [s0, s1, s2, s3] = self.s;
        let r2 = x * x + y * y;
        // Here the first coefficient belongs to x; in Brown's formula the second does.
        let [p0, p1] = self.p;
        let mut local = plane::distort([x, y], (1.0, 0.0), [p1, p0], [s0, s2]);
        for (row, s) in [s1, s3].into_iter().enumerate() {
            local.at[row] += s * r2 * r2;
            local.slope[row][0] += 4.0 * s * r2 * x;
            local.slope[row][1] += 4.0 * s * r2 * y;
        }
        local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derivatives_are_those_of_the_values() {
        let lens = Fisheye624Coefficients {
            k: [0.0; 6],
            p: [0.013, -0.021],
            s: [0.004, -0.017, 0.02, 0.003],
        };
        for [x, y] in [[0.0, 0.0], [0.3, -0.2], [-0.9, 0.4], [0.5, 1.1]] {
            let e = 1e-6;
            let slope = lens.tangential([x, y]).slope;
            for (row, slope) in slope.iter().enumerate() {
                let at = |x, y| lens.tangential([x, y]).at[row];
                let by_x = (at(x + e, y) - at(x - e, y)) / (2.0 * e);
                let by_y = (at(x, y + e) - at(x, y - e)) / (2.0 * e);
                assert!((slope[0] - by_x).abs() < 1e-8, "{x} {y} {row}");
                assert!((slope[1] - by_y).abs() < 1e-8, "{x} {y} {row}");
            }
        }
    }
}
