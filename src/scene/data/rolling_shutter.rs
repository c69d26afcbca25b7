//! Pose of a rolling-shutter camera at the time of a pixel.
//!
//! Runs in the consumer and in workers. Works on numbers only.
//!
//! Source: instant-ngp, `get_xform_given_rolling_shutter` and `camera_slerp` of `nerf_device.cuh`
//! and `common_device.cuh`. Rotations are interpolated spherically as quaternions on the shorter
//! way, centres linearly.

use crate::scene::data::scene::{Pose, RollingShutter, rotation};

/// Quaternions closer than this are interpolated linearly: their sine has too few digits.
const NEAR: f64 = 1.0 - 1e-12;

impl RollingShutter {
    /// The pose of the camera at the time of the point (u, v), both 0 to 1 over the image. `start`
    /// is the pose at the start. `random` is 0 to 1, for motion blur.
    #[must_use]
    pub fn pose_at(&self, start: &Pose, (u, v): (f64, f64), random: f64) -> Pose {
        let [begin, by_u, by_v, blur] = self.timing;
        let t = begin + by_u * u + by_v * v + blur * random;
        let rotation = rotation(slerp(quaternion(start), quaternion(&self.end), t));
        let (from, to) = (start.centre(), self.end.centre());
        Pose([0, 1, 2].map(|row| {
            let [a, b, c] = rotation[row];
            [a, b, c, from[row] + t * (to[row] - from[row])]
        }))
    }
}

/// Quaternion w, x, y, z of a rotation, by Shepperd's method with the largest of the four.
fn quaternion(pose: &Pose) -> [f64; 4] {
    let m = |row: usize, column: usize| pose.0[row][column];
    let trace = m(0, 0) + m(1, 1) + m(2, 2);
    let squares = [trace, m(0, 0), m(1, 1), m(2, 2)];
    let largest = (1..4).fold(
        0,
        |best, i| if squares[i] > squares[best] { i } else { best },
    );
    let q = match largest {
        0 => [
            1.0 + trace,
            m(2, 1) - m(1, 2),
            m(0, 2) - m(2, 0),
            m(1, 0) - m(0, 1),
        ],
        1 => [
            m(2, 1) - m(1, 2),
            1.0 + 2.0 * m(0, 0) - trace,
            m(0, 1) + m(1, 0),
            m(0, 2) + m(2, 0),
        ],
        2 => [
            m(0, 2) - m(2, 0),
            m(0, 1) + m(1, 0),
            1.0 + 2.0 * m(1, 1) - trace,
            m(1, 2) + m(2, 1),
        ],
        _ => [
            m(1, 0) - m(0, 1),
            m(0, 2) + m(2, 0),
            m(1, 2) + m(2, 1),
            1.0 + 2.0 * m(2, 2) - trace,
        ],
    };
    unit(q)
}

fn dot(a: [f64; 4], b: [f64; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(q: [f64; 4]) -> [f64; 4] {
    let length = dot(q, q).sqrt();
    q.map(|x| x / length)
}

fn slerp(from: [f64; 4], to: [f64; 4], t: f64) -> [f64; 4] {
    let cosine = dot(from, to);
    // Both stand for the same rotation: take the nearer one.
    let (to, cosine) = match cosine < 0.0 {
        true => (to.map(|x| -x), -cosine),
        false => (to, cosine),
    };
    let (a, b) = match cosine > NEAR {
        true => (1.0 - t, t),
        false => {
            let angle = libm::acos(cosine);
            let sine = libm::sin(angle);
            (
                libm::sin((1.0 - t) * angle) / sine,
                libm::sin(t * angle) / sine,
            )
        }
    };
    unit([0, 1, 2, 3].map(|i| a * from[i] + b * to[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turned by `angle` about an axis of the world, at a centre.
    fn turned(axis: usize, angle: f64, centre: [f64; 3]) -> Pose {
        let (sin, cos) = angle.sin_cos();
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        let mut rows = [[0.0; 4]; 3];
        rows[axis][axis] = 1.0;
        (rows[a][a], rows[a][b]) = (cos, -sin);
        (rows[b][a], rows[b][b]) = (sin, cos);
        for (row, at) in rows.iter_mut().zip(centre) {
            row[3] = at;
        }
        Pose(rows)
    }

    fn distance(a: &Pose, b: &Pose) -> f64 {
        let numbers = a.0.iter().flatten().zip(b.0.iter().flatten());
        numbers.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn a_part_of_the_time_is_a_part_of_the_turn_and_of_the_way() {
        for axis in 0..3 {
            for angle in [1e-9, 0.01, 1.0, 3.0, -2.0] {
                let start = turned(axis, 0.4, [1.0, 2.0, 3.0]);
                let shutter = RollingShutter {
                    timing: [0.1, 0.2, 0.5, 0.25],
                    end: turned(axis, 0.4 + angle, [2.0, 0.0, 3.5]),
                };
                for (u, v, random) in [
                    (0.0, 0.0, 0.0),
                    (1.0, 0.0, 0.0),
                    (0.3, 0.9, 0.7),
                    (1.0, 1.0, 4.0),
                ] {
                    let t = 0.1 + 0.2 * u + 0.5 * v + 0.25 * random;
                    let centre = [1.0 + t, 2.0 - 2.0 * t, 3.0 + 0.5 * t];
                    let wanted = turned(axis, 0.4 + t * angle, centre);
                    let found = shutter.pose_at(&start, (u, v), random);
                    assert!(distance(&found, &wanted) < 1e-9, "{axis} {angle} {t}");
                }
            }
        }
    }

    #[test]
    fn every_half_turn_has_its_quaternion() {
        for axis in 0..3 {
            for angle in [0.0, 1.5, 3.1, std::f64::consts::PI, -3.0] {
                let pose = turned(axis, angle, [0.0; 3]);
                let back = rotation(quaternion(&pose));
                let back = Pose([0, 1, 2].map(|row| {
                    let [a, b, c] = back[row];
                    [a, b, c, 0.0]
                }));
                assert!(distance(&back, &pose) < 1e-12, "{axis} {angle}");
            }
        }
    }
}
