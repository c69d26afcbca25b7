//! A camera as a file describes it, and the camera that results for an image of a given size.
//!
//! Runs in the consumer. Pure.

use crate::camera::{Camera, CameraFault, Lens, same_shape};
use crate::scene::data::bounds::shown_number;

/// A focal length as a file describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FocalLength {
    Pixels(f64),
    /// Angle of view of the image's whole side, in radians.
    Angle(f64),
    /// The same number of pixels as along the other axis.
    AsOther,
}

/// A camera as a file describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CameraDescription {
    /// Width and height; `None`: those of the image.
    pub(super) size: Option<(u32, u32)>,
    /// Along x and along y.
    pub(super) focal: [FocalLength; 2],
    /// Principal point; `None`: the middle.
    pub(super) centre: [Option<f64>; 2],
    pub(super) lens: Lens,
}

impl CameraDescription {
    /// # Errors
    /// Numbers that are invalid for every image.
    pub(super) fn check(&self) -> Result<(), CameraFault> {
        for (focal, axis) in self.focal.iter().zip(["x", "y"]) {
            if let FocalLength::Angle(angle) = *focal
                && !(angle > 0.0 && angle < std::f64::consts::PI)
            {
                return Err(CameraFault {
                    field: format!("camera_angle_{axis}"),
                    reason: format!(
                        "is {} radians: use 0 to pi, or give fl_{axis}",
                        shown_number(angle)
                    ),
                });
            }
        }
        let (w, h) = self.size.unwrap_or((1, 1));
        self.of_size(w, h).check()
    }

    /// The camera for an image of the stated size.
    fn of_size(&self, width: u32, height: u32) -> Camera {
        let side = [f64::from(width), f64::from(height)];
        let pixels = |axis: usize| match self.focal[axis] {
            FocalLength::Pixels(pixels) => Some(pixels),
            FocalLength::Angle(angle) => Some(0.5 * side[axis] / (0.5 * angle).tan()),
            FocalLength::AsOther => None,
        };
        let focal = |axis: usize| pixels(axis).or_else(|| pixels(1 - axis)).unwrap_or(1.0);
        Camera {
            width,
            height,
            fx: focal(0),
            fy: focal(1),
            cx: self.centre[0].unwrap_or(0.5 * side[0]),
            cy: self.centre[1].unwrap_or(0.5 * side[1]),
            lens: self.lens,
        }
    }

    /// The camera for an image of this size. `is_original`: the image is the one that the file
    /// describes, not one from a folder of smaller images.
    ///
    /// # Errors
    /// An image of another shape than the file states. As text.
    pub(super) fn camera(
        &self,
        (width, height): (u32, u32),
        is_turned: bool,
        is_original: bool,
    ) -> Result<Camera, String> {
        let in_pixels = self
            .focal
            .iter()
            .any(|f| matches!(f, FocalLength::Pixels(_)))
            || self.centre.iter().any(Option::is_some);
        let (w, h) = match self.size {
            Some(size) => size,
            None if is_original || !in_pixels => (width, height),
            None => {
                return Err(
                    "w and h are missing, so intrinsics cannot be scaled to smaller images: add \
                     them, or read the originals (downscale_folder: 1)"
                        .into(),
                );
            }
        };
        if !same_shape((w, h), (width, height)) {
            let turned = match is_turned && same_shape((w, h), (height, width)) {
                true => {
                    "; its EXIF orientation turns it by 90 degrees, which scenes ignore: write the \
                     images upright, or exchange w and h"
                }
                false => "",
            };
            return Err(format!(
                "w x h is {w} x {h}, but the image has {width} x {height}{turned}"
            ));
        }
        let camera = self.of_size(w, h);
        Ok(match (w, h) == (width, height) {
            true => camera,
            false => camera.scaled(width, height),
        })
    }
}
