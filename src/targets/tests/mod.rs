//! Tests of the room.

mod geometry_tests;
mod golden_cases;
mod library_goldens;
mod mask_tests;
mod pixel_tests;
mod style_tests;
mod trainer_goldens;

use crate::recipe::geometry::PixelRect;
use crate::recipe::{
    AffineStyle, AugmentStep, InterpolationMode, Padding, PaddingMode, RotationStyle, Size, Step,
};

/// Numbers for random cases: a multiplicative sequence, the same in each run.
pub(super) struct CaseNumbers(u64);

impl CaseNumbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Uniform in 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut v = self.0;
        v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((v ^ (v >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number from `low` to `high`, both included.
    pub(super) fn whole(&mut self, low: u32, high: u32) -> u32 {
        (low + (self.unit() * f64::from(high - low + 1)) as u32).min(high)
    }
}

pub(super) const LINEAR: InterpolationMode = InterpolationMode::Bilinear;

pub(super) fn size(height: u32, width: u32) -> Size {
    Size { height, width }
}

pub(super) fn crop(left: u32, top: u32, width: u32, height: u32) -> Step {
    Step::Crop(PixelRect {
        left,
        top,
        width,
        height,
    })
}

pub(super) fn resize(height: u32, width: u32) -> Step {
    Step::Resize {
        size: size(height, width),
        interpolation: LINEAR,
        antialias: false,
    }
}

pub(super) fn pad(left: u32, top: u32, right: u32, bottom: u32) -> Step {
    Step::Pad {
        padding: Padding {
            left,
            top,
            right,
            bottom,
        },
        mode: PaddingMode::Constant,
        fill: [0.0; 3],
    }
}

pub(super) fn rotate(degrees: f64, to: Size, style: RotationStyle) -> Step {
    Step::Rotate {
        degrees,
        interpolation: LINEAR,
        size: to,
        fill: [0.0; 3],
        style,
    }
}

pub(super) fn affine(matrix: [f64; 6]) -> Step {
    Step::Augment(AugmentStep::Affine {
        matrix,
        interpolation: LINEAR,
        fill: [0; 3],
        style: AffineStyle::Pillow,
    })
}

pub(super) fn tensor_affine(matrix: [f64; 6]) -> Step {
    Step::Augment(AugmentStep::TensorAffine {
        matrix,
        interpolation: LINEAR,
        fill: Some([0; 3]),
    })
}

pub(super) fn perspective(coefficients: [f64; 8]) -> Step {
    Step::Augment(AugmentStep::Perspective {
        coefficients,
        interpolation: LINEAR,
        fill: [0; 3],
    })
}

pub(super) fn elastic(key: u64, alpha: [f64; 2], sigma: [f64; 2]) -> Step {
    Step::Elastic {
        key,
        alpha,
        sigma,
        interpolation: LINEAR,
        fill: [0.0; 3],
    }
}
