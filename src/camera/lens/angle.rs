//! Between rays and the angles that fisheyes bend: `theta (cos phi, sin phi)`.
//!
//! In every process.

/// The angles of a ray; none for no direction, and straight backwards, which has no phi.
///
/// Source: COLMAP, `sensor/models/base.h` (`FisheyeFromNormal`), but by atan2, so that rays
/// that go sideways or backwards have angles too.
pub fn to_angles([x, y, z]: [f64; 3]) -> Option<[f64; 2]> {
    let across = libm::hypot(x, y);
    if across == 0.0 {
        return (z > 0.0).then_some([0.0; 2]);
    }
    let scale = libm::atan2(across, z) / across;
    Some([x * scale, y * scale])
}

/// The ray of length 1 with these angles.
///
/// Source: nerfstudio, `cameras/cameras.py`, FISHEYE in `_generate_rays_from_coords`, but
/// with an answer at the principal point, where that divides zero by zero.
pub fn from_angles([x, y]: [f64; 2]) -> [f64; 3] {
    let theta = (x * x + y * y).sqrt();
    let (sine, cosine) = libm::sincos(theta);
    // At 1e-10 the sine is theta to the last bit.
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
