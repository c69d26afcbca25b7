//! Lenses as numbers: from an image point to a ray, from a point of space to an
//! image point, and from a bent image to a straight one.
//!
//! Axes are OpenCV's: x to the right, y down, z forward. The pixel in row `r` and
//! column `c` has its centre at `(c + 0.5, r + 0.5)`, so the image covers `0..width`
//! and `0..height`. Lengths in the image are pixels, angles are radians. What has no
//! answer is `None`, never a number that diverged.
//!
//! Pure, and the same bits on every x86-64 CPU: sines and the like come from the crate
//! `libm`, products and sums are never fused. In every process. Never in here: files,
//! pixels, poses, threads.
//!
//! - `model`: `Camera`, `Lens`, `Ray`; `check`: what is wrong with a camera's numbers;
//! - `lens`: the formulas of all families;
//! - `optics`: one point at a time, and how far a lens can be inverted; `unprojector`: many;
//!   `lanes`: the loops of that;
//! - `shape`: whether two sizes have one shape;
//! - `footprint`: how much of the world a pixel sees;
//! - `undistorted`: the pinhole camera of a straightened image, and where its pixels come from.

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
