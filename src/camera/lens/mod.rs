//! The formulas of lenses, on numbers without a unit: the image point
//! less the principal point, over the focal lengths.
//!
//! Perspective families bend the *plane*, `(x / z, y / z)`; fisheyes the *angles*,
//! `theta * (cos phi, sin phi)` with `theta` between the ray and the z axis. Each family
//! has `distort` (the way of the light, with its derivatives) and `undistort` (back).
//!
//! In every process. Never in here: cameras, pixels, principal points.
//!
//! - `bending`: Brown's lens, the rational one, fisheyes; `rational`: the factor of the second;
//!   `fisheye624`: Project Aria's, of angles; `fov`: perspective;
//! - `equirectangular`, `orthographic`: neither;
//! - `angle`: between rays and angles; `plane`: a bent plane, and its inverse;
//! - `radial`: how a lens bends lengths; `polynomial`: where that turns round.

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
