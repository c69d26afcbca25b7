//! How far a lens can be inverted.
//!
//! Beyond its first turning point a distortion comes back on itself: two rays meet in one
//! pixel, and Newton's method ends at either, or nowhere. In every process.

use super::lens::{brown, fisheye, rational};
use super::model::{Camera, Lens};

/// Where a lens stops to be invertible, by its radial part. Tangential terms move the edge a
/// little: that is looked at point by point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Perspective lenses: the first radius `r` of `(x / z, y / z)` that is not valid, which
    /// may be infinite. Fisheyes: the first angle to the axis, pi at most.
    pub radius: f64,
}

impl Camera {
    /// Roots of a polynomial: some microseconds. [`Optics`](super::Optics) keeps them.
    pub fn limits(&self) -> Limits {
        let radius = match &self.lens {
            Lens::Pinhole | Lens::Fov { .. } | Lens::Equirectangular | Lens::Orthographic => {
                f64::INFINITY
            }
            Lens::Brown { k, .. } => brown::limit(k),
            Lens::Rational { k, .. } => rational::limit(k),
            Lens::Fisheye { k } | Lens::ThinPrismFisheye { k, .. } => fisheye::limit(k),
            Lens::Fisheye624 { k, .. } => fisheye::limit(k),
        };
        Limits { radius }
    }
}
