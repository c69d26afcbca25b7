//! Camera models: converts image points to rays, points in space to image points, and distorted
//! images to straight ones.
//!
//! Axes are OpenCV's: x to the right, y down, z forward. The pixel in row `r` and column `c` has
//! its centre at `(c + 0.5, r + 0.5)`, so the image covers `0..width` and `0..height`. Lengths in
//! the image are in pixels, angles in radians. A point without a result is `None`, never a number
//! that diverged.
//!
//! Pure, with bit-identical results on every x86-64 CPU: the crate `libm` computes sines and
//! similar functions, and products and sums are never fused. Used in every process. Not here:
//! files, pixels, poses, threads.
//!
//! - `model`: `Camera`, `Lens`, `Ray`; `check`: checks a camera's numbers;
//! - `lens`: the formulas of all families;
//! - `optics`: one point at a time, and the limit of inversion; `unprojector`: many points;
//!   `lanes`: its vectorised loops;
//! - `shape`: compares the shapes of two sizes;
//! - `footprint`: how much of the world a pixel sees;
//! - `undistorted_camera`: the pinhole camera of a straightened image, and its source coordinates.

mod check;
mod footprint;
mod lanes;
mod lens;
mod model;
mod optics;
mod shape;
mod undistorted_camera;
mod unprojector;

#[cfg(test)]
mod tests;

pub use check::CameraFault;
pub use footprint::PixelFootprint;
pub use model::{Camera, Lens, Ray};
pub use optics::{CameraOptics, LensLimits};
pub(crate) use shape::same_shape;
pub use undistorted_camera::UndistortedCamera;
pub use unprojector::{CameraUnprojector, RayBundle, RayDirections};
