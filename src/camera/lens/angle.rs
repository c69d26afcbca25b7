//! Converts between rays and the angles that fisheyes distort: `theta (cos phi, sin phi)`.
//!
//! Used in every process.

/// The angles of a ray. `None` for a zero direction, and for straight backwards, where phi is
/// undefined.
///
/// Source: COLMAP, `sensor/models/base.h` (`FisheyeFromNormal`), but with atan2, so that sideways
/// and backward rays have angles too.
pub fn to_angles([x, y, z]: [f64; 3]) -> Option<[f64; 2]> {
    let across = libm::hypot(x, y);
    if across == 0.0 {
        return (z > 0.0).then_some([0.0; 2]);
    }
    let scale = libm::atan2(across, z) / across;
    Some([x * scale, y * scale])
}

/// The unit ray with these angles.
///
/// Source: nerfstudio, `cameras/cameras.py`, FISHEYE in `_generate_rays_from_coords`. There the
/// principal point divides zero by zero; here it has a ray.
pub fn from_angles([x, y]: [f64; 2]) -> [f64; 3] {
    let theta = (x * x + y * y).sqrt();
    let (sine, cosine) = libm::sincos(theta);
    // Below 1e-10 the sine equals theta in f64.
    let scale = if theta < 1e-10 { 1.0 } else { sine / theta };
    [x * scale, y * scale, cosine]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_has_angle_zero_and_no_nan() {
        assert_eq!(to_angles([0.0, 0.0, 2.0]), Some([0.0, 0.0]));
        assert_eq!(from_angles([0.0, 0.0]), [0.0, 0.0, 1.0]);
        assert_eq!(to_angles([0.0, 0.0, -1.0]), None);
        assert_eq!(to_angles([0.0; 3]), None);
    }

    #[test]
    fn rays_come_back_also_from_behind() {
        for ray in [[0.6, 0.0, 0.8], [0.0, -1.0, 0.0], [0.48, -0.36, -0.8]] {
            let back = from_angles(to_angles(ray).unwrap());
            for i in 0..3 {
                assert!((back[i] - ray[i]).abs() < 1e-15, "{ray:?} {back:?}");
            }
        }
    }
}
