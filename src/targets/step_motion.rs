//! What one step does to coordinates.
//!
//! Coordinates are continuous: the pixel in column `c` and row `r` has its centre at `(c + 0.5, r +
//! 0.5)`. Steps state their matrices from output to input, each in its library's convention. Here
//! they are inverted and brought to this one.

use super::displacement::DisplacementMap;
use super::matrix::PointMatrix;
use crate::recipe::geometry::cos_sin;
use crate::recipe::{AugmentStep, RotationStyle, Size, Step};

/// What a step is, for libraries whose results depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MotionKind {
    /// Changes values and moves no pixel.
    Still,
    /// Pixels removed at the left and at the top.
    Crop {
        left: u32,
        top: u32,
    },
    /// Pixels added at the left and at the top.
    Pad {
        left: u32,
        top: u32,
    },
    Resize,
    /// Left to right.
    Mirror,
    /// Top to bottom.
    UpsideDown,
    /// Quarter turns counter-clockwise, 1 to 3.
    Turn(u8),
    /// Around the centres of both pictures, counter-clockwise.
    Rotate {
        degrees: f64,
    },
    /// Any other map that keeps lines parallel.
    Affine,
    /// A map with vanishing points.
    Perspective,
    /// A displacement of every pixel: noise from this key, as in
    /// [`Step::Elastic`].
    Elastic {
        key: u64,
        alpha: [f64; 2],
        sigma: [f64; 2],
    },
}

/// What a step does to coordinates, and the size of the picture before and after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepMotion {
    /// The number of the operation that drew the step.
    pub op: usize,
    pub kind: MotionKind,
    pub before: Size,
    pub after: Size,
    matrix: PointMatrix,
}

impl StepMotion {
    /// What a step does to a picture of this size.
    #[must_use]
    pub fn of(op: usize, step: &Step, before: Size) -> Self {
        let (w, h) = (f64::from(before.width), f64::from(before.height));
        let still = Self {
            op,
            kind: MotionKind::Still,
            before,
            after: before,
            matrix: PointMatrix::IDENTITY,
        };
        let moved = |kind, after, matrix| Self {
            kind,
            after,
            matrix,
            ..still
        };
        // From a matrix from output to input.
        let from_inverse = |kind, after, inverse: PointMatrix| {
            let matrix = inverse.inverse().unwrap_or(PointMatrix::NOWHERE);
            moved(kind, after, matrix)
        };
        match *step {
            Step::Crop(rect) => {
                let (left, top) = (rect.left, rect.top);
                let after = Size {
                    height: rect.height,
                    width: rect.width,
                };
                let matrix = PointMatrix::shift(-f64::from(left), -f64::from(top));
                moved(MotionKind::Crop { left, top }, after, matrix)
            }
            Step::Pad { padding, .. } => {
                let (left, top) = (padding.left, padding.top);
                let after = padding.padded_size((before.height, before.width)).into();
                let matrix = PointMatrix::shift(f64::from(left), f64::from(top));
                moved(MotionKind::Pad { left, top }, after, matrix)
            }
            Step::Resize { size, .. } | Step::Augment(AugmentStep::Resample { size, .. }) => {
                let across = f64::from(size.width) / w;
                let down = f64::from(size.height) / h;
                moved(MotionKind::Resize, size, PointMatrix::scale(across, down))
            }
            Step::Mirror => {
                let matrix = PointMatrix::affine([-1.0, 0.0, w, 0.0, 1.0, 0.0]);
                moved(MotionKind::Mirror, before, matrix)
            }
            Step::UpsideDown => {
                let matrix = PointMatrix::affine([1.0, 0.0, 0.0, 0.0, -1.0, h]);
                moved(MotionKind::UpsideDown, before, matrix)
            }
            Step::Turn(quarters) => {
                let turned = Size {
                    height: before.width,
                    width: before.height,
                };
                let (after, matrix) = match quarters % 4 {
                    0 => return still,
                    // The last column becomes the first row.
                    1 => (turned, [0.0, 1.0, 0.0, -1.0, 0.0, w]),
                    2 => (before, [-1.0, 0.0, w, 0.0, -1.0, h]),
                    _ => (turned, [0.0, -1.0, h, 1.0, 0.0, 0.0]),
                };
                let kind = MotionKind::Turn(quarters % 4);
                moved(kind, after, PointMatrix::affine(matrix))
            }
            Step::Rotate {
                degrees,
                size,
                style: RotationStyle::Tensor,
                ..
            } => {
                let matrix = rotation(degrees, before, size);
                moved(MotionKind::Rotate { degrees }, size, matrix)
            }
            Step::Rotate {
                degrees,
                size,
                style: RotationStyle::Opencv,
                ..
            } => {
                // About (width / 2, height / 2), with pixel centres at whole numbers.
                let about = rotation(degrees, before, before);
                moved(MotionKind::Affine, size, about.with_offset(-0.5))
            }
            Step::Augment(AugmentStep::Rotate { degrees, .. }) => {
                let matrix = rotation(degrees, before, before);
                moved(MotionKind::Rotate { degrees }, before, matrix)
            }
            Step::Augment(AugmentStep::Affine { matrix, .. }) => {
                from_inverse(MotionKind::Affine, before, PointMatrix::affine(matrix))
            }
            Step::Augment(AugmentStep::TensorAffine { matrix, .. }) => {
                let to_middle = PointMatrix::shift(-w / 2.0, -h / 2.0);
                let from_middle = PointMatrix::shift(w / 2.0, h / 2.0);
                let inverse = to_middle
                    .then(&PointMatrix::affine(matrix))
                    .then(&from_middle);
                from_inverse(MotionKind::Affine, before, inverse)
            }
            Step::Augment(AugmentStep::Perspective { coefficients, .. }) => {
                let inverse = PointMatrix::perspective(coefficients);
                from_inverse(MotionKind::Perspective, before, inverse)
            }
            Step::Elastic {
                key, alpha, sigma, ..
            } => moved(
                MotionKind::Elastic { key, alpha, sigma },
                before,
                PointMatrix::IDENTITY,
            ),
            Step::Brightness(_)
            | Step::Contrast(_)
            | Step::Saturation(_)
            | Step::Hue(_)
            | Step::Shift(_)
            | Step::Permute(_)
            | Step::Noise { .. }
            | Step::Luma
            | Step::Grayscale
            | Step::Convert(..)
            | Step::Blur { .. }
            | Step::Erase { .. }
            | Step::Normalize { .. }
            | Step::Standardize { .. }
            | Step::Cast(_)
            | Step::Augment(
                AugmentStep::AutoContrast
                | AugmentStep::Equalize
                | AugmentStep::Invert
                | AugmentStep::Posterize { .. }
                | AugmentStep::Solarize { .. }
                | AugmentStep::SolarizeAdd { .. }
                | AugmentStep::Brightness(_)
                | AugmentStep::Contrast(_)
                | AugmentStep::Color(_)
                | AugmentStep::Sharpness(_)
                | AugmentStep::Hue(_)
                | AugmentStep::Hsv { .. }
                | AugmentStep::Fill { .. }
                | AugmentStep::BoxBlurs { .. }
                | AugmentStep::Jpeg { .. }
                | AugmentStep::TensorAutoContrast
                | AugmentStep::TensorSharpness(_)
                | AugmentStep::GaussianBlur { .. }
                | AugmentStep::MotionBlur { .. }
                | AugmentStep::Keep
                | AugmentStep::Add { .. }
                | AugmentStep::AddSingle { .. }
                | AugmentStep::MixIn { .. }
                | AugmentStep::Total
                | AugmentStep::BlendTotal { .. }
                | AugmentStep::Blend { .. },
            ) => still,
        }
    }

    /// The matrix from source to output. None for a displacement.
    #[must_use]
    pub fn matrix(&self) -> Option<&PointMatrix> {
        match self.kind {
            MotionKind::Elastic { .. } => None,
            _ => Some(&self.matrix),
        }
    }

    /// The displacement of each pixel. None for a matrix. It takes [`DisplacementMap::bytes`] bytes
    /// and the time of moving the picture.
    #[must_use]
    pub fn displacement(&self) -> Option<DisplacementMap> {
        match self.kind {
            MotionKind::Elastic { key, alpha, sigma } => {
                Some(DisplacementMap::of_noise(self.before, key, alpha, sigma))
            }
            _ => None,
        }
    }
}

/// A rotation counter-clockwise that brings the centre of a picture to that of another size.
fn rotation(degrees: f64, before: Size, after: Size) -> PointMatrix {
    let (cos, sin) = cos_sin(degrees);
    let middle = |size: Size| (f64::from(size.width) / 2.0, f64::from(size.height) / 2.0);
    let (from, to) = (middle(before), middle(after));
    PointMatrix::shift(-from.0, -from.1)
        .then(&PointMatrix::affine([cos, sin, 0.0, -sin, cos, 0.0]))
        .then(&PointMatrix::shift(to.0, to.1))
}
