//! Brown's lens: a radial polynomial and tangential terms, in the plane.
//!
//! With `r2 = x2 + y2` and `d = 1 + k1 r2 + k2 r4 + k3 r6 + k4 r8`:
//! `x' = x d + 2 p1 x y + p2 (r2 + 2 x2)`, `y' = y d + 2 p2 x y + p1 (r2 + 2 y2)`.
//!
//! Source: nerfstudio, `cameras/camera_utils.py`, `_compute_residual_and_jacobian`; COLMAP,
//! `sensor/models/opencv.h` (OPENCV) and `radial.h` (SIMPLE_RADIAL, RADIAL), of which this is
//! a superset. In every process.

use super::plane::{self, Local};
use super::radial::{bend, radially, series, turning};

/// The radius at which the radial polynomial turns round; infinite when it never does.
pub fn limit(k: &[f64; 4]) -> f64 {
    turning(k, f64::INFINITY)
}

/// Where the light of `(x, y)` arrives; none from `limit` on, and where the lens folds the
/// plane over.
pub fn distort(k: &[f64; 4], p: [f64; 2], limit: f64, point: [f64; 2]) -> Option<[f64; 2]> {
    let local = local(k, p, limit, point)?;
    (local.growth() > 0.0).then_some(local.at)
}

/// Where the light of an image point came from.
pub fn undistort(k: &[f64; 4], p: [f64; 2], limit: f64, point: [f64; 2]) -> Option<[f64; 2]> {
    let start = radially(|t| bend(k, t), limit, point);
    if p == [0.0; 2] {
        return start;
    }
    let start = start.unwrap_or([0.0; 2]);
    plane::unbend(|point| local(k, p, limit, point), start, point)
}

fn local(k: &[f64; 4], p: [f64; 2], limit: f64, [x, y]: [f64; 2]) -> Option<Local> {
    let r2 = x * x + y * y;
    (r2 < limit * limit).then(|| plane::bend([x, y], series(k, r2), p, [0.0; 2]))
}
