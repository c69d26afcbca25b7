//! Lenses that distort a plane by a radial curve, tangential and thin-prism terms. Brown's and
//! OpenCV's rational lens distort the plane, Kannala and Brandt's fisheyes the angles.
//!
//! With `r2 = x2 + y2` (for angles `theta2`) and the radial factor `d`:
//! `x' = x d + 2 p1 x y + p2 (r2 + 2 x2) + sx1 r2`, `y' = y d + 2 p2 x y + p1 (r2 + 2 y2) + sy1
//! r2`.
//!
//! - Brown, and the fisheyes: `d = 1 + k1 r2 + k2 r4 + k3 r6 + k4 r8`;
//! - rational: the quotient of `rational`.
//!
//! Sources: nerfstudio, `cameras/camera_utils.py`, `_compute_residual_and_jacobian`, also for the
//! angles of FISHEYE; COLMAP, `sensor/models/opencv.h` (OPENCV, FULL_OPENCV), `radial.h`
//! (SIMPLE_RADIAL, RADIAL), `fisheye_radial.h` (OPENCV_FISHEYE, SIMPLE_RADIAL_FISHEYE,
//! RADIAL_FISHEYE), `thin_prism.h` (THIN_PRISM_FISHEYE). Used in every process.

use super::plane::{self, LocalDistortion};
use super::radial::{BentLength, distort_length, radially, series};
use super::rational;

/// The radial factor.
#[derive(Debug, Clone, Copy)]
pub enum RadialFactor<'a> {
    Series(&'a [f64; 4]),
    Quotient(&'a [f64; 6]),
}

impl RadialFactor<'_> {
    /// The factor and its derivative by `r2`.
    fn factor(self, r2: f64) -> (f64, f64) {
        match self {
            Self::Series(k) => series(k, r2),
            Self::Quotient(k) => rational::radial(k, r2),
        }
    }

    /// The distorted length of `r`.
    fn curve(self, r: f64) -> BentLength {
        match self {
            Self::Series(k) => distort_length(k, r),
            Self::Quotient(k) => rational::curve(k, r),
        }
    }
}

/// Coefficients of a lens; terms that it does not have are zero.
#[derive(Debug, Clone, Copy)]
pub struct LensCoefficients<'a> {
    pub radial: RadialFactor<'a>,
    pub p: [f64; 2],
    pub s: [f64; 2],
}

impl LensCoefficients<'_> {
    /// Distorts a point. `None` from `limit` on, and where the lens folds the plane over.
    pub fn distort(&self, limit: f64, point: [f64; 2]) -> Option<[f64; 2]> {
        let local = self.local(limit, point)?;
        (local.growth() > 0.0).then_some(local.at)
    }

    /// Inverts [`distort`](Self::distort).
    pub fn undistort(&self, limit: f64, point: [f64; 2]) -> Option<[f64; 2]> {
        let start = radially(|t| self.radial.curve(t), limit, point);
        if self.p == [0.0; 2] && self.s == [0.0; 2] {
            return start;
        }
        let start = start.unwrap_or([0.0; 2]);
        plane::undistort(|point| self.local(limit, point), start, point)
    }

    fn local(&self, limit: f64, [x, y]: [f64; 2]) -> Option<LocalDistortion> {
        let r2 = x * x + y * y;
        (r2 < limit * limit).then(|| plane::distort([x, y], self.radial.factor(r2), self.p, self.s))
    }
}
