//! The formulas of lenses, in numbers without a unit: the image point minus the principal point,
//! divided by the focal lengths.
//!
//! Perspective families distort the *plane*, `(x / z, y / z)`. Fisheyes distort the *angles*,
//! `theta * (cos phi, sin phi)`, where `theta` is between the ray and the z axis. Each family has
//! `distort` (from ray to image, with derivatives) and `undistort` (back).
//!
//! Used in every process. Not here: cameras, pixels, principal points.
//!
//! - `lens_coefficients`: Brown's lens, the rational one, fisheyes; `rational`: the radial factor
//!   of the second; `fisheye624`: Project Aria's, of angles; `fov`: perspective;
//! - `equirectangular`, `orthographic`: neither plane nor angles;
//! - `angle`: converts between rays and angles; `plane`: a distorted plane, and its inverse;
//! - `radial`: distortion of lengths; `polynomial`: its turning point.

mod angle;
pub(super) mod equirectangular;
pub(super) mod fisheye624;
pub(super) mod fov;
pub(super) mod lens_coefficients;
pub(super) mod orthographic;
mod plane;
mod polynomial;
mod radial;
pub(super) mod rational;

pub(super) use angle::{from_angles, to_angles};
pub(super) use radial::turning;
