//! Position and rotation of a camera. The rotation is a quaternion, from which follow the matrix of
//! `transforms.json` and COLMAP's pose.
//!
//! Pure. The camera's axes are OpenCV's: x right, y down, z forward; the world's z is up.

/// From the camera to the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CameraPlace {
    /// A unit quaternion, w first.
    quaternion: [f64; 4],
    centre: [f64; 3],
}

/// The motion of a camera while an image is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CameraMotion {
    /// A unit axis in the world.
    pub(super) axis: [f64; 3],
    /// Angle about the axis, in radians.
    pub(super) angle: f64,
    /// Translation in the world.
    pub(super) way: [f64; 3],
}

/// A camera that looks along the world's x, upright.
const FORWARD: [f64; 4] = [0.5, -0.5, 0.5, -0.5];

impl CameraPlace {
    /// A camera that looks along x, rolled, then pitched, then turned by `yaw`; radians.
    pub(super) fn new(centre: [f64; 3], [yaw, pitch, roll]: [f64; 3]) -> Self {
        let rolled = multiply(axis_rotation([1.0, 0.0, 0.0], roll), FORWARD);
        let pitched = multiply(axis_rotation([0.0, 1.0, 0.0], pitch), rolled);
        Self {
            quaternion: multiply(axis_rotation([0.0, 0.0, 1.0], yaw), pitched),
            centre,
        }
    }

    /// The place after this part of a motion, which turns and moves evenly.
    pub(super) fn moved(&self, motion: &CameraMotion, part: f64) -> Self {
        let turn = axis_rotation(motion.axis, part * motion.angle);
        Self {
            quaternion: multiply(turn, self.quaternion),
            centre: [0, 1, 2].map(|axis| self.centre[axis] + part * motion.way[axis]),
        }
    }

    pub(super) fn point(&self, point: [f64; 3]) -> [f64; 3] {
        let turned = self.direction(point);
        [0, 1, 2].map(|axis| turned[axis] + self.centre[axis])
    }

    pub(super) fn direction(&self, d: [f64; 3]) -> [f64; 3] {
        self.rotation()
            .map(|[a, b, c]| a * d[0] + b * d[1] + c * d[2])
    }

    /// The matrix of `transforms.json`: from OpenGL's camera, which has y up and looks along -z.
    pub(super) fn opengl(&self) -> [[f64; 4]; 4] {
        let rows = self.rotation();
        let row = |axis: usize| {
            let [x, y, z] = rows[axis];
            [x, -y, -z, self.centre[axis]]
        };
        [row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]]
    }

    /// COLMAP's quaternion and translation: from the world to the camera.
    pub(super) fn colmap(&self) -> ([f64; 4], [f64; 3]) {
        let [w, x, y, z] = self.quaternion;
        let rows = self.rotation();
        let translation = [0, 1, 2].map(|column| {
            let sum = |axis: usize| rows[axis][column] * self.centre[axis];
            -(sum(0) + sum(1) + sum(2))
        });
        ([w, -x, -y, -z], translation)
    }

    fn rotation(&self) -> [[f64; 3]; 3] {
        let [w, x, y, z] = self.quaternion;
        [
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - w * z),
                2.0 * (x * z + w * y),
            ],
            [
                2.0 * (x * y + w * z),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - w * x),
            ],
            [
                2.0 * (x * z - w * y),
                2.0 * (y * z + w * x),
                1.0 - 2.0 * (x * x + y * y),
            ],
        ]
    }
}

/// A rotation about a unit axis.
fn axis_rotation(axis: [f64; 3], angle: f64) -> [f64; 4] {
    let (sine, cosine) = libm::sincos(0.5 * angle);
    let [x, y, z] = axis.map(|part| sine * part);
    [cosine, x, y, z]
}

fn multiply(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    let ([aw, ax, ay, az], [bw, bx, by, bz]) = (a, b);
    [
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: [f64; 3], b: [f64; 3]) {
        for axis in 0..3 {
            assert!((a[axis] - b[axis]).abs() < 1e-14, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_camera_that_is_not_turned_looks_along_x_upright() {
        let place = CameraPlace::new([1.0, 2.0, 3.0], [0.0; 3]);
        close(place.direction([0.0, 0.0, 1.0]), [1.0, 0.0, 0.0]);
        close(place.direction([1.0, 0.0, 0.0]), [0.0, -1.0, 0.0]);
        close(place.point([0.0, 1.0, 0.0]), [1.0, 2.0, 2.0]);
    }

    #[test]
    fn angles_turn_left_down_and_clockwise() {
        let looks = |angles| CameraPlace::new([0.0; 3], angles).direction([0.0, 0.0, 1.0]);
        let half = std::f64::consts::FRAC_PI_2;
        close(looks([half, 0.0, 0.0]), [0.0, 1.0, 0.0]);
        close(looks([0.0, half, 0.0]), [0.0, 0.0, -1.0]);
        let right = CameraPlace::new([0.0; 3], [0.0, 0.0, half]).direction([1.0, 0.0, 0.0]);
        close(right, [0.0, 0.0, -1.0]);
    }

    #[test]
    fn a_motion_turns_about_the_worlds_axis_and_goes_straight() {
        let half = std::f64::consts::FRAC_PI_2;
        let motion = CameraMotion {
            axis: [0.0, 0.0, 1.0],
            angle: 2.0 * half,
            way: [4.0, 0.0, -2.0],
        };
        let start = CameraPlace::new([1.0, 2.0, 3.0], [0.0; 3]);
        close(start.moved(&motion, 0.25).point([0.0; 3]), [2.0, 2.0, 2.5]);
        let looks = |part| start.moved(&motion, part).direction([0.0, 0.0, 1.0]);
        close(looks(0.0), [1.0, 0.0, 0.0]);
        close(looks(0.5), [0.0, 1.0, 0.0]);
        close(looks(1.0), [-1.0, 0.0, 0.0]);
    }

    #[test]
    fn colmaps_pose_is_the_way_back() {
        let place = CameraPlace::new([0.3, -0.2, 0.7], [0.9, -0.2, 0.1]);
        let (quaternion, translation) = place.colmap();
        let back = CameraPlace {
            quaternion,
            centre: translation,
        };
        close(back.point(place.point([0.1, 0.2, 0.3])), [0.1, 0.2, 0.3]);
    }
}
