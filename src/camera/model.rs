//! The camera of an image: size, focal lengths, principal point, lens.
//!
//! Plain numbers, used in every process. Not here: the effect of a lens on a point.

use serde::{Deserialize, Serialize};

/// The intrinsics and the lens of an image.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Camera {
    /// Columns of the image.
    pub width: u32,
    /// Rows of the image.
    pub height: u32,
    /// Focal length in pixels, along the rows. [`Lens::Equirectangular`]: pixels of half a turn.
    /// [`Lens::Orthographic`]: pixels of one unit of length.
    pub fx: f64,
    /// Like `fx`, along the columns.
    pub fy: f64,
    /// Principal point in pixels, from the left edge: the middle of the first column is 0.5.
    pub cx: f64,
    /// Principal point in pixels, from the upper edge.
    pub cy: f64,
    pub lens: Lens,
}

/// The distortion model. Each formula is in its file of `camera/lens`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lens {
    /// No distortion.
    Pinhole,
    /// `1 + k1 r2 + k2 r4 + k3 r6 + k4 r8`, and tangential `p1, p2`: nerfstudio's perspective
    /// camera with distortion, COLMAP's SIMPLE_RADIAL, RADIAL and OPENCV.
    Brown { k: [f64; 4], p: [f64; 2] },
    /// `(1 + k1 r2 + k2 r4 + k3 r6) / (1 + k4 r2 + k5 r4 + k6 r6)`, and tangential: COLMAP's
    /// FULL_OPENCV, OpenCV's eight coefficients.
    Rational { k: [f64; 6], p: [f64; 2] },
    /// Kannala-Brandt: COLMAP's OPENCV_FISHEYE, SIMPLE_RADIAL_FISHEYE and RADIAL_FISHEYE,
    /// nerfstudio's FISHEYE without tangential distortion.
    Fisheye { k: [f64; 4] },
    /// nerfstudio's FISHEYE624, COLMAP's RAD_TAN_THIN_PRISM_FISHEYE, Project Aria's lens.
    Fisheye624 {
        k: [f64; 6],
        p: [f64; 2],
        s: [f64; 4],
    },
    /// COLMAP's THIN_PRISM_FISHEYE; with `s` zero nerfstudio's FISHEYE with tangential
    /// distortion.
    ThinPrismFisheye {
        k: [f64; 4],
        p: [f64; 2],
        s: [f64; 2],
    },
    /// COLMAP's FOV (Devernay and Faugeras).
    Fov { omega: f64 },
    /// The whole sphere: nerfstudio's EQUIRECTANGULAR. COLMAP's model of size `w, h` has `fx = cx =
    /// w / 2`, `fy = h`, `cy = h / 2`.
    Equirectangular,
    /// Parallel rays: nerfstudio's ORTHOPHOTO.
    Orthographic,
}

/// A ray in camera coordinates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ray {
    /// Zero, except for [`Lens::Orthographic`].
    pub origin: [f64; 3],
    /// Perspective lenses: `z` is 1. Other lenses: of length 1.
    pub direction: [f64; 3],
}

impl Ray {
    /// The direction, normalised.
    pub fn unit(&self) -> [f64; 3] {
        let [x, y, z] = self.direction;
        let length = (x * x + y * y + z * z).sqrt();
        [x / length, y / length, z / length]
    }
}

impl Camera {
    /// The camera of the same image at another size. `fx` and `cx` scale with the width, `fy` and
    /// `cy` with the height. A side of 0 counts as 1.
    pub fn scaled(&self, width: u32, height: u32) -> Camera {
        let across = f64::from(width) / f64::from(self.width.max(1));
        let down = f64::from(height) / f64::from(self.height.max(1));
        Camera {
            width,
            height,
            fx: self.fx * across,
            fy: self.fy * down,
            cx: self.cx * across,
            cy: self.cy * down,
            lens: self.lens,
        }
    }
}

impl Lens {
    /// Whether the lens is perspective: rays have `z = 1` and never go sideways.
    pub(super) fn is_perspective(&self) -> bool {
        matches!(
            self,
            Lens::Pinhole | Lens::Brown { .. } | Lens::Rational { .. } | Lens::Fov { .. }
        )
    }

    /// Whether the lens has no distortion.
    pub(super) fn is_straight(&self) -> bool {
        let fisheye = matches!(
            self,
            Lens::Fisheye { .. } | Lens::Fisheye624 { .. } | Lens::ThinPrismFisheye { .. }
        );
        !fisheye && self.coefficients().iter().all(|(_, value)| *value == 0.0)
    }

    /// The coefficients with their names, in the order of the definition.
    pub(super) fn coefficients(&self) -> Vec<(String, f64)> {
        let named = |name: &str, first: usize, values: &[f64]| {
            let pairs = values.iter().enumerate();
            pairs
                .map(|(i, value)| (format!("{name}{}", i + first), *value))
                .collect::<Vec<_>>()
        };
        match self {
            Lens::Pinhole | Lens::Equirectangular | Lens::Orthographic => Vec::new(),
            Lens::Brown { k, p } => [named("k", 1, k), named("p", 1, p)].concat(),
            Lens::Rational { k, p } => [named("k", 1, k), named("p", 1, p)].concat(),
            Lens::Fisheye { k } => named("k", 1, k),
            Lens::Fisheye624 { k, p, s } => {
                [named("k", 0, k), named("p", 0, p), named("s", 0, s)].concat()
            }
            Lens::ThinPrismFisheye { k, p, s } => {
                let mut all = [named("k", 1, k), named("p", 1, p)].concat();
                all.extend([("sx1".into(), s[0]), ("sy1".into(), s[1])]);
                all
            }
            Lens::Fov { omega } => vec![("omega".into(), *omega)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_size_scales_each_axis_by_its_own_ratio() {
        let camera = Camera {
            width: 1081,
            height: 1920,
            fx: 1375.5,
            fy: 1374.5,
            cx: 554.5,
            cy: 965.25,
            lens: Lens::Pinhole,
        };
        let half = camera.scaled(540, 960);
        assert_eq!((half.width, half.height), (540, 960));
        let across = 540.0 / 1081.0;
        assert_eq!((half.fx, half.cx), (1375.5 * across, 554.5 * across));
        assert_eq!((half.fy, half.cy), (687.25, 482.625));
    }

    #[test]
    fn a_camera_comes_back_from_text_as_it_was() {
        let camera = Camera {
            width: 3,
            height: 5,
            fx: 0.1,
            fy: 1.0 / 3.0,
            cx: 1.5,
            cy: 2.5,
            lens: Lens::Brown {
                k: [0.1, 0.2, 0.0, -0.3],
                p: [1e-9, 0.0],
            },
        };
        let text = serde_json::to_string(&camera).unwrap();
        assert_eq!(serde_json::from_str::<Camera>(&text).unwrap(), camera);
    }
}
