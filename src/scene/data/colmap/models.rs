//! COLMAP's camera models: numbers, names, parameters, and the lens of each.
//!
//! Runs in the consumer. Pure. Numbers and parameter orders are those of pycolmap 4.2.

use std::path::PathBuf;

use crate::camera::Lens;
use crate::error::{Error, Result};
use crate::scene::data::camera_description::{CameraDescription, FocalLength};

/// One row per model: number, name, number of parameters.
const MODELS: [(i32, &str, usize); 18] = [
    (0, "SIMPLE_PINHOLE", 3),
    (1, "PINHOLE", 4),
    (2, "SIMPLE_RADIAL", 4),
    (3, "RADIAL", 5),
    (4, "OPENCV", 8),
    (5, "OPENCV_FISHEYE", 8),
    (6, "FULL_OPENCV", 12),
    (7, "FOV", 5),
    (8, "SIMPLE_RADIAL_FISHEYE", 4),
    (9, "RADIAL_FISHEYE", 5),
    (10, "THIN_PRISM_FISHEYE", 12),
    (11, "RAD_TAN_THIN_PRISM_FISHEYE", 16),
    (12, "SIMPLE_DIVISION", 4),
    (13, "DIVISION", 5),
    (14, "SIMPLE_FISHEYE", 3),
    (15, "FISHEYE", 4),
    (16, "EUCM", 6),
    (17, "EQUIRECTANGULAR", 2),
];

/// The most parameters of any model.
pub(super) const MOST_PARAMETERS: usize = 16;

/// Finds a model by its number. Returns its name and its number of parameters.
pub(super) fn by_number(number: i32) -> Option<(&'static str, usize)> {
    let model = MODELS.iter().find(|(id, ..)| *id == number);
    model.map(|(_, name, count)| (*name, *count))
}

/// Finds a model by its name.
pub(super) fn by_name(name: &str) -> Option<(&'static str, usize)> {
    let model = MODELS.iter().find(|(_, known, _)| *known == name);
    model.map(|(_, name, count)| (*name, *count))
}

/// A camera of a model.
#[derive(Debug)]
pub(super) struct ModelCamera {
    pub(super) file: PathBuf,
    pub(super) id: u32,
    pub(super) model: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) parameters: Vec<f64>,
}

impl ModelCamera {
    /// # Errors
    /// A model that none of our lenses expresses; numbers that no camera can have.
    pub(super) fn description(&self) -> Result<CameraDescription> {
        let error = |what: &str| {
            let what = format!("camera {} ({}): {what}", self.id, self.model);
            Error::dataset(&self.file, what)
        };
        let size = (self.width, self.height);
        if self.width == 0 || self.height == 0 {
            return Err(error(&format!("{} x {} pixels", self.width, self.height)));
        }
        let wrong = || error(&format!("{} parameters", self.parameters.len()));
        // Focal lengths, principal point, other parameters.
        let (focal, centre, rest): ([f64; 2], [f64; 2], &[f64]) = match self.model {
            "EQUIRECTANGULAR" => {
                let (w, h) = (f64::from(self.width), f64::from(self.height));
                // The whole sphere, with nerfstudio's scale.
                ([w / 2.0, h], [w / 2.0, h / 2.0], &[])
            }
            "SIMPLE_PINHOLE"
            | "SIMPLE_RADIAL"
            | "RADIAL"
            | "SIMPLE_RADIAL_FISHEYE"
            | "RADIAL_FISHEYE"
            | "SIMPLE_FISHEYE"
            | "SIMPLE_DIVISION" => match self.parameters.as_slice() {
                [f, cx, cy, rest @ ..] => ([*f; 2], [*cx, *cy], rest),
                _ => return Err(wrong()),
            },
            _ => match self.parameters.as_slice() {
                [fx, fy, cx, cy, rest @ ..] => ([*fx, *fy], [*cx, *cy], rest),
                _ => return Err(wrong()),
            },
        };
        let lens = match (self.model, rest) {
            ("SIMPLE_PINHOLE" | "PINHOLE", []) => Lens::Pinhole,
            ("SIMPLE_RADIAL", &[k]) => brown([k, 0.0], [0.0; 2]),
            ("RADIAL", &[k1, k2]) => brown([k1, k2], [0.0; 2]),
            ("OPENCV", &[k1, k2, p1, p2]) => brown([k1, k2], [p1, p2]),
            ("OPENCV_FISHEYE", &[k1, k2, k3, k4]) => fisheye([k1, k2, k3, k4]),
            ("SIMPLE_RADIAL_FISHEYE", &[k]) => fisheye([k, 0.0, 0.0, 0.0]),
            ("RADIAL_FISHEYE", &[k1, k2]) => fisheye([k1, k2, 0.0, 0.0]),
            ("SIMPLE_FISHEYE" | "FISHEYE", []) => fisheye([0.0; 4]),
            ("FULL_OPENCV", &[k1, k2, p1, p2, k3, k4, k5, k6]) => Lens::Rational {
                k: [k1, k2, k3, k4, k5, k6],
                p: [p1, p2],
            },
            ("FOV", &[omega]) => Lens::Fov { omega },
            ("THIN_PRISM_FISHEYE", &[k1, k2, p1, p2, k3, k4, sx1, sy1]) => Lens::ThinPrismFisheye {
                k: [k1, k2, k3, k4],
                p: [p1, p2],
                s: [sx1, sy1],
            },
            ("RAD_TAN_THIN_PRISM_FISHEYE", &[k0, k1, k2, k3, k4, k5, p0, p1, s0, s1, s2, s3]) => {
                Lens::Fisheye624 {
                    k: [k0, k1, k2, k3, k4, k5],
                    p: [p0, p1],
                    s: [s0, s1, s2, s3],
                }
            }
            ("EQUIRECTANGULAR", _) => Lens::Equirectangular,
            ("SIMPLE_DIVISION" | "DIVISION" | "EUCM", _) => {
                return Err(error(
                    "this camera model is not supported: undistort the images (colmap \
                     image_undistorter), or reconstruct with another model, such as OPENCV or \
                     OPENCV_FISHEYE",
                ));
            }
            _ => return Err(wrong()),
        };
        let declared = CameraDescription {
            size: Some(size),
            focal: focal.map(FocalLength::Pixels),
            centre: centre.map(Some),
            lens,
        };
        declared
            .check()
            .map_err(|fault| error(&fault.to_string()))?;
        Ok(declared)
    }
}

fn brown([k1, k2]: [f64; 2], p: [f64; 2]) -> Lens {
    match [k1, k2, p[0], p[1]] == [0.0; 4] {
        true => Lens::Pinhole,
        false => Lens::Brown {
            k: [k1, k2, 0.0, 0.0],
            p,
        },
    }
}

fn fisheye(k: [f64; 4]) -> Lens {
    Lens::Fisheye { k }
}

/// Maximum number of images or cameras of a model.
pub(super) const MOST_IMAGES: u64 = 1 << 22;

pub(super) struct ModelImage {
    pub(super) id: u32,
    /// World-to-camera rotation as a quaternion, w first.
    pub(super) quaternion: [f64; 4],
    pub(super) translation: [f64; 3],
    pub(super) camera: u32,
    pub(super) name: String,
    /// Location in the file, for errors.
    pub(super) at: String,
}
