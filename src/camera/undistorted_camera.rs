//! The pinhole camera of a straightened image, and the source coordinates of its pixels in the
//! distorted image.
//!
//! Like nerfstudio for splatting (`data/utils/dataloaders.py`, `_undistort_image`), there are two
//! methods, which OpenCV calls:
//! - perspective lenses: `getOptimalNewCameraMatrix` with `alpha` 0, cropped to the rectangle that
//!   it returns as valid, which is one row and one column smaller than the image;
//! - fisheyes: `fisheye::estimateNewCameraMatrixForUndistortRectify` with `balance` 0, at the
//!   image's size.
//!
//! The middle of the first pixel is at 0 in OpenCV, and at 0.5 in this file. To compare with
//! OpenCV, subtract 0.5 from `cx` and `cy` before a call, and add 0.5 to those of the result and to
//! the coordinates of a map.
//!
//! Known differences: OpenCV's inverse stops after five iterations, and continues beyond the
//! turning point of a lens. Here the inverse is exact, or `None`. nerfstudio straightens FISHEYE624
//! with a given crop radius. Here that lens is treated like other fisheyes.
//!
//! Used in every process. Not here: pixels and their interpolation.

use super::check::CameraFault;
use super::model::{Camera, Lens};
use super::optics::CameraOptics;

/// The camera of a straightened image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UndistortedCamera {
    camera: Camera,
    source: CameraOptics,
}

impl Camera {
    /// The pinhole camera with the view of this one, without the parts that the lens distorts out
    /// of a rectangle. Unchanged if there is no distortion.
    ///
    /// # Errors
    /// Lenses without a matching pinhole camera ([`Lens::Equirectangular`],
    /// [`Lens::Orthographic`]); images with an edge where the lens cannot be inverted, or that it
    /// sees at 90 degrees to its axis or more; images that are one pixel wide or high.
    pub fn undistorted(&self) -> Result<UndistortedCamera, CameraFault> {
        self.check()?;
        let source = CameraOptics::new(self);
        let camera = match self.lens {
            Lens::Equirectangular | Lens::Orthographic => {
                Err(CameraFault::new("lens", "has no matching pinhole camera"))
            }
            _ if self.lens.is_straight() => Ok(Camera {
                lens: Lens::Pinhole,
                ..*self
            }),
            _ if self.width < 2 || self.height < 2 => Err(CameraFault::new(
                "width or height",
                "is 1: a distorted image needs at least 2 pixels",
            )),
            _ if self.lens.is_perspective() => inscribed_camera(&source),
            _ => centred_camera(&source),
        };
        camera.map(|camera| UndistortedCamera { camera, source })
    }
}

impl UndistortedCamera {
    /// The pinhole camera of the straightened image.
    pub fn camera(&self) -> &Camera {
        &self.camera
    }

    /// Whether the image stays unchanged because there is no distortion.
    pub fn is_unchanged(&self) -> bool {
        self.source.camera().lens.is_straight()
    }

    /// The point in the distorted image, in pixels, of a point of the straightened one. `None` if
    /// the lens does not see it.
    ///
    /// As in OpenCV, the rectangle comes from a few points of the image's edge. Between them a
    /// source point can be outside the centres of the outer pixels, by 0.2 pixels for a phone's
    /// lens.
    pub fn source(&self, x: f64, y: f64) -> Option<[f64; 2]> {
        let Camera { fx, fy, cx, cy, .. } = self.camera;
        self.source.project([(x - cx) / fx, (y - cy) / fy, 1.0])
    }

    /// Source points of the pixel centres of a row, starting with the first column: as many as the
    /// shorter slice holds. NaN where the lens does not see them.
    pub fn source_row(&self, row: u32, x: &mut [f64], y: &mut [f64]) {
        let down = f64::from(row) + 0.5;
        for (column, (x, y)) in x.iter_mut().zip(y).enumerate() {
            let place = self.source(column as f64 + 0.5, down);
            [*x, *y] = place.unwrap_or([f64::NAN; 2]);
        }
    }
}

/// Source: OpenCV, `calib3d/src/calibration_base.cpp`: `getUndistortRectangles` (earlier
/// `icvGetRectangles`) and `getOptimalNewCameraMatrix`.
fn inscribed_camera(source: &CameraOptics) -> Result<Camera, CameraFault> {
    let camera = source.camera();
    let (width, height) = (f64::from(camera.width), f64::from(camera.height));
    let (mut left, mut right) = (f64::NEG_INFINITY, f64::INFINITY);
    let (mut top, mut bottom) = (f64::NEG_INFINITY, f64::INFINITY);
    let last = POINTS - 1;
    for row in 0..POINTS {
        for column in 0..POINTS {
            if !([0, last].contains(&row) || [0, last].contains(&column)) {
                continue;
            }
            let x = column as f64 * (width - 1.0) / last as f64 + 0.5;
            let y = row as f64 * (height - 1.0) / last as f64 + 0.5;
            let [x, y] = straight_point(source, x, y)?;
            if column == 0 {
                left = left.max(x);
            }
            if column == last {
                right = right.min(x);
            }
            if row == 0 {
                top = top.max(y);
            }
            if row == last {
                bottom = bottom.min(y);
            }
        }
    }
    if !(left < right && top < bottom) {
        let reason = "distorts the image so much that no rectangle is left";
        return Err(CameraFault::new("lens", reason));
    }
    let fx = (width - 1.0) / (right - left);
    let fy = (height - 1.0) / (bottom - top);
    Ok(Camera {
        width: camera.width - 1,
        height: camera.height - 1,
        fx,
        fy,
        cx: 0.5 - fx * left,
        cy: 0.5 - fy * top,
        lens: Lens::Pinhole,
    })
}

/// Number of points on each edge of the image, with corners.
const POINTS: usize = 9;

/// Source: OpenCV, `calib3d/src/fisheye.cpp`, `estimateNewCameraMatrixForUndistortRectify`.
fn centred_camera(source: &CameraOptics) -> Result<Camera, CameraFault> {
    let camera = source.camera();
    let (width, height) = (f64::from(camera.width), f64::from(camera.height));
    // Like OpenCV: an integer division, and edges at the full width and height.
    let (middle_x, middle_y) = (f64::from(camera.width / 2), f64::from(camera.height / 2));
    let edges = [
        (middle_x, 0.0),
        (width, middle_y),
        (middle_x, height),
        (0.0, middle_y),
    ];
    let aspect = camera.fx / camera.fy;
    let (mut centre_x, mut centre_y) = (0.0, 0.0);
    let (mut left, mut right) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut top, mut bottom) = (f64::INFINITY, f64::NEG_INFINITY);
    for (x, y) in edges {
        let [x, y] = straight_point(source, x + 0.5, y + 0.5)?;
        let y = y * aspect;
        centre_x += x / 4.0;
        centre_y += y / 4.0;
        (left, right) = (left.min(x), right.max(x));
        (top, bottom) = (top.min(y), bottom.max(y));
    }
    let focal = [
        0.5 * width / (centre_x - left),
        0.5 * width / (right - centre_x),
        0.5 * height * aspect / (centre_y - top),
        0.5 * height * aspect / (bottom - centre_y),
    ];
    let focal = focal.into_iter().fold(0.0, f64::max);
    if !focal.is_finite() {
        let reason = "sees the whole image in one direction";
        return Err(CameraFault::new("lens", reason));
    }
    Ok(Camera {
        fx: focal,
        fy: focal / aspect,
        cx: 0.5 * width - centre_x * focal + 0.5,
        cy: (0.5 * height * aspect - centre_y * focal) / aspect + 0.5,
        lens: Lens::Pinhole,
        ..*camera
    })
}

/// `(x / z, y / z)` of the ray through a point at the edge of the image.
fn straight_point(source: &CameraOptics, x: f64, y: f64) -> Result<[f64; 2], CameraFault> {
    let refused = |why: &str| {
        let reason = format!("{why} at ({x}, {y}), at the edge of the image: crop it, or use rays");
        CameraFault::new("lens", reason)
    };
    let ray = source.unproject(x, y);
    let [x, y, z] = ray.ok_or_else(|| refused("cannot be inverted"))?.direction;
    if z > STEEPEST {
        Ok([x / z, y / z])
    } else {
        Err(refused("sees 90 degrees to its axis, or more,"))
    }
}

/// Cosine of an angle where a pinhole's image is a thousand focal lengths wide.
const STEEPEST: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;

    fn camera(lens: Lens) -> Camera {
        Camera {
            width: 801,
            height: 600,
            fx: 400.0,
            fy: 410.0,
            cx: 401.25,
            cy: 290.5,
            lens,
        }
    }

    #[test]
    fn what_is_straight_stays_as_it_is() {
        let zero = Lens::Brown {
            k: [0.0; 4],
            p: [0.0; 2],
        };
        for lens in [Lens::Pinhole, zero, Lens::Fov { omega: 0.0 }] {
            let given = camera(lens).undistorted().unwrap();
            assert!(given.is_unchanged());
            assert_eq!(given.camera(), &camera(Lens::Pinhole));
            let [x, y] = given.source(7.5, 590.5).unwrap();
            assert!((x - 7.5).abs() + (y - 590.5).abs() < 1e-12);
        }
        let (mut x, mut y) = ([0.0; 3], [0.0; 2]);
        let given = camera(Lens::Pinhole).undistorted().unwrap();
        given.source_row(4, &mut x, &mut y);
        assert!((x[0] - 0.5).abs() + (x[1] - 1.5).abs() < 1e-12 && x[2] == 0.0);
        assert!((y[0] - 4.5).abs() + (y[1] - 4.5).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_straightened_is_refused_by_name() {
        let refused = |camera: Camera| camera.undistorted().unwrap_err().to_string();
        let none = "lens has no matching pinhole camera";
        assert_eq!(refused(camera(Lens::Equirectangular)), none);
        assert_eq!(refused(camera(Lens::Orthographic)), none);
        let beyond = camera(Lens::Brown {
            k: [-0.3, 0.0, 0.0, 0.0],
            p: [0.0; 2],
        });
        let text = refused(beyond);
        assert!(
            text.starts_with("lens cannot be inverted at (0.5, 0.5)"),
            "{text}"
        );
        let wide = Camera {
            fx: 200.0,
            ..camera(Lens::Fisheye { k: [0.0; 4] })
        };
        let text = refused(wide);
        assert!(
            text.starts_with("lens sees 90 degrees to its axis"),
            "{text}"
        );
        let nan = Camera {
            cx: f64::NAN,
            ..camera(Lens::Pinhole)
        };
        assert_eq!(refused(nan), "cx is NaN: use a finite number");
        let thin = Camera {
            width: 1,
            ..camera(Lens::Fov { omega: 0.5 })
        };
        assert!(refused(thin).starts_with("width or height is 1"));
    }
}
