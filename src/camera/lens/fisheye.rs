//! Kannala and Brandt's fisheye: a polynomial of the angle; and the one of COLMAP with
//! tangential and thin-prism terms, too.
//!
//! `theta' = theta (1 + k1 theta2 + k2 theta4 + k3 theta6 + k4 theta8)`. THIN_PRISM_FISHEYE
//! bends the angles as Brown's lens bends the plane, and adds `(sx1, sy1) theta2`.
//!
//! Source: COLMAP, `sensor/models/fisheye_radial.h` (OPENCV_FISHEYE, SIMPLE_RADIAL_FISHEYE,
//! RADIAL_FISHEYE) and `thin_prism.h` (THIN_PRISM_FISHEYE); nerfstudio's FISHEYE undistorts the
//! angles by its perspective formula. In every process.

use std::f64::consts::PI;

use super::plane::{self, Local};
use super::radial::{bend, radially, series, turning};

/// The angle at which the polynomial turns round; pi when it does not before.
pub fn limit(k: &[f64]) -> f64 {
    turning(k, PI)
}

/// The coefficients of THIN_PRISM_FISHEYE; without `p` and `s` of OPENCV_FISHEYE.
#[derive(Debug, Clone, Copy)]
pub struct Fisheye {
    pub k: [f64; 4],
    pub p: [f64; 2],
    pub s: [f64; 2],
}

impl Fisheye {
    /// Where the light of a ray with these angles arrives; none from `limit` on, and where
    /// the lens folds the image over.
    pub fn distort(&self, limit: f64, angles: [f64; 2]) -> Option<[f64; 2]> {
        let local = self.local(limit, angles)?;
        (local.growth() > 0.0).then_some(local.at)
    }

    /// The angles of the ray whose light arrives at an image point.
    pub fn undistort(&self, limit: f64, point: [f64; 2]) -> Option<[f64; 2]> {
        let start = radially(|t| bend(&self.k, t), limit, point);
        if self.p == [0.0; 2] && self.s == [0.0; 2] {
            return start;
        }
        let start = start.unwrap_or([0.0; 2]);
        plane::unbend(|point| self.local(limit, point), start, point)
    }

    fn local(&self, limit: f64, [x, y]: [f64; 2]) -> Option<Local> {
        let theta2 = x * x + y * y;
        (theta2 < limit * limit)
            .then(|| plane::bend([x, y], series(&self.k, theta2), self.p, self.s))
    }
}
