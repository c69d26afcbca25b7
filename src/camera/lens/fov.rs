//! The field-of-view lens of Devernay and Faugeras, in the plane.
//!
//! `r' = atan(2 r tan(omega / 2)) / omega`.
//!
//! Source: COLMAP, `sensor/models/fov.h` (FOV). For `omega2 < 1e-4` COLMAP uses a series, which has
//! the sign of the inverse. We use the formula. Used in every process.

use std::f64::consts::FRAC_PI_2;

/// Distorts a point of the plane. Every point has a result.
pub fn distort(omega: f64, [x, y]: [f64; 2]) -> [f64; 2] {
    let r = (x * x + y * y).sqrt();
    if omega == 0.0 || r == 0.0 {
        return scaled([x, y], slope(omega));
    }
    let spread = 2.0 * libm::tan(0.5 * omega);
    scaled([x, y], libm::atan(r * spread) / (r * omega))
}

/// Inverts [`distort`]. `None` at 90 degrees to the axis and beyond.
pub fn undistort(omega: f64, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
    let r = (x * x + y * y).sqrt();
    if omega == 0.0 || r == 0.0 {
        return Some(scaled([x, y], 1.0 / slope(omega)));
    }
    let angle = r * omega.abs();
    if angle >= FRAC_PI_2 {
        return None;
    }
    let spread = 2.0 * libm::tan(0.5 * omega.abs());
    Some(scaled([x, y], libm::tan(angle) / (r * spread)))
}

/// `r' / r` at the axis.
fn slope(omega: f64) -> f64 {
    if omega == 0.0 {
        1.0
    } else {
        2.0 * libm::tan(0.5 * omega) / omega
    }
}

fn scaled([x, y]: [f64; 2], scale: f64) -> [f64; 2] {
    [x * scale, y * scale]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_omega_is_nearly_a_pinhole_and_zero_is_one() {
        let point = [0.7, -0.4];
        assert_eq!(distort(0.0, point), point);
        assert_eq!(undistort(0.0, point), Some(point));
        for omega in [1e-9, 1e-5, 5e-3] {
            let bent = distort(omega, point);
            // r'/r = 1 + omega2 (1/12 - r2/3) + ...
            let expected = 1.0 + omega * omega * (1.0 / 12.0 - 0.65 / 3.0);
            assert!((bent[0] / 0.7 - expected).abs() < 1e-9, "{omega}");
            let back = undistort(omega, bent).unwrap();
            assert!((back[0] - 0.7).abs() < 1e-14 && (back[1] + 0.4).abs() < 1e-14);
        }
    }

    #[test]
    fn the_edge_of_the_half_space_has_no_answer() {
        let edge = FRAC_PI_2 / 0.9;
        assert_eq!(undistort(0.9, [edge, 0.0]), None);
        assert_eq!(undistort(-0.9, [0.0, 1.1 * edge]), None);
        assert!(undistort(0.9, [edge * 0.999, 0.0]).is_some());
    }
}
