//! Orients and centres the world: nerfstudio's `auto_orient_and_center_poses`
//! (`cameras/camera_utils.py`), in f64.
//!
//! Pure. nerfstudio uses OpenGL's axes, where up is the camera's +y and it looks along -z. In
//! OpenCV's axes these are -y and z.
//!
//! Known difference: if `pca` finds the world upside down, nerfstudio negates rows 1 and 2 of the
//! returned transform, but frames 1 and 2 instead of those rows of all poses (`oriented_poses[1:3,
//! :]`). Here all poses are transformed by the returned transform.

use crate::scene::data::eigen;
use crate::scene::data::options::{CenterMethod, OrientationMethod};
use crate::scene::data::scene::Pose;

type Vector = [f64; 3];
type Rows = [[f64; 3]; 3];

const IDENTITY: Rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Returns the rotation and translation (R and t of R x + t) that orient and centre these poses.
///
/// # Errors
/// Poses without such an orientation. As text.
pub(super) fn orient_and_center(
    poses: &[Pose],
    orientation: OrientationMethod,
    center: CenterMethod,
) -> Result<[[f64; 4]; 3], String> {
    let middle = mean(poses.iter().map(Pose::centre));
    let origin = match center {
        CenterMethod::Poses => middle,
        CenterMethod::Focus => focus(poses, middle),
        CenterMethod::None => [0.0; 3],
    };
    let mut rotation = match orientation {
        OrientationMethod::None => IDENTITY,
        OrientationMethod::Pca => principal_axes(poses, middle),
        OrientationMethod::Up => rotation_between(mean_up(poses)?, [0.0, 0.0, 1.0]),
        OrientationMethod::Vertical => {
            rotation_between(vertical(poses, mean_up(poses)?)?, [0.0, 0.0, 1.0])
        }
    };
    if orientation == OrientationMethod::Pca {
        let upward = mean(poses.iter().map(|pose| pose.axis(1).map(|v| -v)));
        if dot(rotation[2], upward) < 0.0 {
            rotation = [rotation[0], negated(rotation[1]), negated(rotation[2])];
        }
    }
    Ok([0, 1, 2].map(|i| {
        let [a, b, c] = rotation[i];
        [a, b, c, -dot(rotation[i], origin)]
    }))
}

/// The largest coordinate of all centres, the divisor of automatic scaling.
pub(super) fn largest(poses: impl Iterator<Item = Pose>) -> f64 {
    let sizes = poses.flat_map(|pose| pose.centre().map(f64::abs));
    sizes.fold(0.0, f64::max)
}

fn mean(all: impl ExactSizeIterator<Item = Vector>) -> Vector {
    let count = all.len() as f64;
    let sum = all.fold([0.0; 3], |sum, v| [0, 1, 2].map(|i| sum[i] + v[i]));
    sum.map(|v| v / count)
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

fn negated(a: Vector) -> Vector {
    a.map(|v| -v)
}

fn unit(a: Vector) -> Option<Vector> {
    let length = dot(a, a).sqrt();
    (length > 1e-12).then(|| a.map(|v| v / length))
}

/// The mean of the images' up directions.
fn mean_up(poses: &[Pose]) -> Result<Vector, String> {
    let mean = mean(poses.iter().map(|pose| negated(pose.axis(1))));
    unit(mean).ok_or_else(|| {
        "the up vectors of the cameras cancel out, so there is no common up: use orientation \
         none or pca"
            .into()
    })
}

/// The direction that is closest to vertical in all images.
fn vertical(poses: &[Pose], mean_up: Vector) -> Result<Vector, String> {
    let mut moments = [[0.0; 3]; 3];
    for pose in poses {
        let x = pose.axis(0);
        for (i, row) in moments.iter_mut().enumerate() {
            for (j, moment) in row.iter_mut().enumerate() {
                *moment += x[i] * x[j];
            }
        }
    }
    let (values, vectors) = eigen::symmetric(&moments);
    let column = |j: usize| vectors.map(|row| row[j]);
    // The second of three singular values. If the vectors lie almost along one axis, it is small.
    // Then keep `mean_up`, without its component along the first axis.
    let second = values[1].max(0.0).sqrt();
    if second > 0.17 * (poses.len() as f64).sqrt() {
        let least = column(0);
        return Ok(match dot(least, mean_up) > 0.0 {
            true => least,
            false => negated(least),
        });
    }
    let first = column(2);
    let along = dot(mean_up, first);
    unit([0, 1, 2].map(|i| mean_up[i] - first[i] * along)).ok_or_else(|| {
        "the up vectors of the cameras are parallel to their right vectors: use orientation up or \
         none"
            .into()
    })
}

/// The point closest to the viewing axes of the cameras that have it in front of them.
fn focus(poses: &[Pose], first: Vector) -> Vector {
    let ahead = |rays: &[(Vector, Vector)], point: Vector| -> Vec<(Vector, Vector)> {
        let is_ahead = |(direction, origin): &&(Vector, Vector)| {
            dot(*direction, [0, 1, 2].map(|i| point[i] - origin[i])) > 0.0
        };
        rays.iter().filter(is_ahead).copied().collect()
    };
    let rays: Vec<(Vector, Vector)> = (poses.iter())
        .map(|pose| (pose.axis(2), pose.centre()))
        .collect();
    let mut point = first;
    let mut active = ahead(&rays, point);
    while active.len() > 1 {
        let mut matrix = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        let count = active.len() as f64;
        for (direction, origin) in &active {
            let off =
                [0, 1, 2].map(|i| [0, 1, 2].map(|j| IDENTITY[i][j] - direction[i] * direction[j]));
            for i in 0..3 {
                for j in 0..3 {
                    let squared =
                        off[0][i] * off[0][j] + off[1][i] * off[1][j] + off[2][i] * off[2][j];
                    matrix[i][j] += squared / count;
                    right[i] += squared * origin[j] / count;
                }
            }
        }
        let Some(nearest) = solve(&matrix, right) else {
            // All cameras look in the same direction.
            return point;
        };
        point = nearest;
        let still = ahead(&active, point);
        if still.len() == active.len() {
            return point;
        }
        active = still;
    }
    point
}

/// Solves matrix x = right; `None` if there is no unique solution.
fn solve(matrix: &Rows, right: Vector) -> Option<Vector> {
    let [a, b, c] = *matrix;
    let inverse = [cross(b, c), cross(c, a), cross(a, b)];
    let determinant = dot(a, inverse[0]);
    if determinant.abs() < 1e-14 {
        return None;
    }
    Some([0, 1, 2].map(|i| {
        (inverse[0][i] * right[0] + inverse[1][i] * right[1] + inverse[2][i] * right[2])
            / determinant
    }))
}

/// Eigenvectors of the distribution of the centres, the widest first, as columns like in
/// nerfstudio.
fn principal_axes(poses: &[Pose], middle: Vector) -> Rows {
    let mut spread = [[0.0; 3]; 3];
    for pose in poses {
        let centre = pose.centre();
        let off = [0, 1, 2].map(|i| centre[i] - middle[i]);
        for (i, row) in spread.iter_mut().enumerate() {
            for (j, sum) in row.iter_mut().enumerate() {
                *sum += off[i] * off[j];
            }
        }
    }
    let (_, vectors) = eigen::symmetric(&spread);
    let mut axes = vectors.map(|[a, b, c]| [c, b, a]);
    if dot(axes[0], cross(axes[1], axes[2])) < 0.0 {
        for row in &mut axes {
            row[2] = -row[2];
        }
    }
    axes
}

/// The rotation from one unit vector to another, by Rodrigues' formula.
fn rotation_between(a: Vector, b: Vector) -> Rows {
    const EPS: f64 = 1e-6;
    let mut axis = cross(a, b);
    if axis.iter().map(|v| v.abs()).sum::<f64>() < EPS {
        // Parallel or opposite: any perpendicular axis will do.
        let beside = match a[0].abs() < EPS {
            true => [1.0, 0.0, 0.0],
            false => [0.0, 1.0, 0.0],
        };
        axis = cross(a, beside);
    }
    let [x, y, z] = unit(axis).unwrap_or([1.0, 0.0, 0.0]);
    let k = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]];
    let angle = dot(a, b).clamp(-1.0, 1.0).acos();
    let (sine, rest) = (angle.sin(), 1.0 - angle.cos());
    [0, 1, 2].map(|i| {
        [0, 1, 2].map(|j| {
            let squared = k[i][0] * k[0][j] + k[i][1] * k[1][j] + k[i][2] * k[2][j];
            IDENTITY[i][j] + sine * k[i][j] + rest * squared
        })
    })
}
