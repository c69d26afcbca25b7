//! Equirectangular: the whole sphere on a rectangle. Longitude runs along the rows, latitude along
//! the columns.
//!
//! `(u, v)` is the image point minus the principal point, divided by the focal lengths. The
//! longitude is `pi u` from the z axis to the right, the polar angle `pi (1/2 + v)` from straight
//! up.
//!
//! Source: nerfstudio, `cameras/cameras.py`, EQUIRECTANGULAR in `_generate_rays_from_coords`, there
//! in axes with y up and z backwards. Used in every process.

use std::f64::consts::PI;

/// The image point of a direction: `u` in -1 to 1, `v` in -1/2 to 1/2. `None` for a zero direction.
pub fn distort([x, y, z]: [f64; 3]) -> Option<[f64; 2]> {
    let across = libm::hypot(x, z);
    if across == 0.0 && y == 0.0 {
        return None;
    }
    let from_top = libm::atan2(across, -y);
    Some([libm::atan2(x, z) / PI, from_top / PI - 0.5])
}

/// The unit direction of `(u, v)`. Outside the image it continues around the sphere.
pub fn direction([u, v]: [f64; 2]) -> [f64; 3] {
    let (sine, cosine) = libm::sincos(PI * u);
    let (across, up) = libm::sincos(PI * (0.5 + v));
    [sine * across, -up, cosine * across]
}

/// Whether `(u, v)` is on the sphere's image.
pub fn covers([u, v]: [f64; 2]) -> bool {
    u.abs() <= 1.0 && v.abs() <= 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: [f64; 3], b: [f64; 3]) {
        for i in 0..3 {
            assert!((a[i] - b[i]).abs() < 1e-15, "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_middle_looks_forward_the_upper_edge_up_and_the_right_quarter_right() {
        close(direction([0.0, 0.0]), [0.0, 0.0, 1.0]);
        close(direction([0.3, -0.5]), [0.0, -1.0, 0.0]);
        close(direction([0.5, 0.0]), [1.0, 0.0, 0.0]);
        close(direction([1.0, 0.0]), [0.0, 0.0, -1.0]);
        close(direction([-1.0, 0.0]), [0.0, 0.0, -1.0]);
    }
}
