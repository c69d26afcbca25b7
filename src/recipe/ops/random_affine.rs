//! A random rotation, shift, zoom and shear.
//!
//! The step has the matrix from output to source, from pixel centres at (0.5, 0.5). Coordinates go
//! through its inverse.

use serde::{Deserialize, Serialize};

use crate::error::FaultKind;
use crate::recipe::augment::policy_op::levels;
use crate::recipe::defaults::is_default;
use crate::recipe::operation::{
    DrawContext, HeightWidth, Operation, OperationPart, PixelState, SampleFault, Step,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{MAX_SIDE, number, pillow_filter, range, whole_levels};
use crate::recipe::step::AugmentStep;
use crate::recipe::values::{AffineStyle, InterpolationMode, PerChannel, Shear, Span};

/// Places have 15 binary places in 32 bits.
const OPENCV_SIDE: u32 = 65_535;

described! {
    example: "random_affine: {degrees: 15, translate: [0.1, 0.1], scale: [0.8, 1.2], shear: 10}";

    /// Rotates clockwise, shifts, zooms and shears around the centre, each by an amount uniform in
    /// its range. The size stays. Works on 8-bit levels.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomAffine {
        /// Range of the angle. A number d is -d to d.
        #[serde(deserialize_with = "Span::around_zero")]
        pub degrees: Span,
        /// The maximum shift along the width and the height, as shares of them, 0 to 1. Shifts are
        /// whole pixels.
        #[serde(default)]
        pub translate: [f64; 2],
        /// Range of the zoom factor.
        #[serde(default = "RandomAffine::no_scale")]
        pub scale: Span,
        /// Ranges of the shear angles in degrees: a number d or `[low, high]` for rows, or `[low,
        /// high, low, high]` for rows and columns.
        #[serde(default)]
        pub shear: Shear,
        /// `nearest`, `bilinear` or `bicubic`.
        #[serde(default = "InterpolationMode::nearest")]
        pub interpolation: InterpolationMode,
        /// The colour outside the image, whole levels 0 to 255.
        #[serde(default)]
        pub fill: PerChannel,
        /// The centre of rotation, zoom and shear: pixels from the left and from the top.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub center: Option<[f64; 2]>,
        /// The library whose arithmetic is used: `pillow`, or `opencv`. OpenCV's is only
        /// `bilinear`, and several times as fast. It mixes the edge with the colour outside.
        #[serde(default, skip_serializing_if = "is_default")]
        pub style: AffineStyle,
    }
}

impl RandomAffine {
    fn no_scale() -> Span {
        Span(1.0, 1.0)
    }

    /// Only a rotation: nearest neighbour, black corners.
    pub fn new(degrees: Span) -> Self {
        Self {
            degrees,
            translate: [0.0; 2],
            scale: Self::no_scale(),
            shear: Shear::default(),
            interpolation: InterpolationMode::Nearest,
            fill: PerChannel::default(),
            center: None,
            style: AffineStyle::default(),
        }
    }
}

impl Operation for RandomAffine {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        range("degrees", self.degrees, -360.0, 360.0)?;
        for part in self.translate {
            number("translate", part, 0.0, 1.0)?;
        }
        range("scale", self.scale, 0.0, MOST_SCALE)?;
        range("shear", self.shear.x, -MOST_SHEAR, MOST_SHEAR)?;
        range("shear", self.shear.y, -MOST_SHEAR, MOST_SHEAR)?;
        for place in self.center.into_iter().flatten() {
            number("center", place, -f64::from(MAX_SIDE), f64::from(MAX_SIDE))?;
        }
        pillow_filter(self.interpolation)?;
        if self.style == AffineStyle::Opencv && self.interpolation != InterpolationMode::Bilinear {
            let name = self.interpolation.name();
            return Err(format!(
                "interpolation is {name}, and style: opencv has only bilinear: use it, or remove \
                 style"
            ));
        }
        known.check_color("fill", self.fill.0)?;
        whole_levels("fill", self.fill)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        if self.style == AffineStyle::Opencv && height.max(width) > OPENCV_SIDE {
            return Err(FaultKind::TooLarge.fault(format!(
                "random_affine with style opencv has sides of at most {OPENCV_SIDE} pixels, and the \
                 image has {width} x {height} there: resize it before, or use style pillow"
            )));
        }
        let (w, h) = (f64::from(width), f64::from(height));
        let degrees = self.degrees.draw(on.random);
        let mut shift = |most: f64| Span(-most, most).draw(on.random).round_ties_even();
        let translate = [shift(self.translate[0] * w), shift(self.translate[1] * h)];
        let turn = AffineDraw {
            degrees,
            translate,
            scale: self.scale.draw(on.random),
            shear: [self.shear.x.draw(on.random), self.shear.y.draw(on.random)],
            center: self.center.unwrap_or([w * 0.5, h * 0.5]),
        };
        on.steps.push(Step::Augment(AugmentStep::Affine {
            matrix: turn.matrix(),
            interpolation: self.interpolation,
            fill: levels(PerChannel(on.known.in_memory(self.fill.0))),
            style: self.style,
        }));
        Ok((height, width))
    }
}

/// A larger zoom shows nothing.
const MOST_SCALE: f64 = 1000.0;
/// At 90 degrees the image becomes a line.
const MOST_SHEAR: f64 = 89.0;

/// The drawn amounts.
struct AffineDraw {
    degrees: f64,
    translate: [f64; 2],
    scale: f64,
    shear: [f64; 2],
    center: [f64; 2],
}

impl AffineDraw {
    /// The matrix from an output pixel's centre to its source: torchvision's
    /// `_get_inverse_affine_matrix`, with the same sequence of operations.
    fn matrix(&self) -> [f64; 6] {
        let rotation = self.degrees.to_radians();
        let [sx, sy] = self.shear.map(f64::to_radians);
        let ([cx, cy], [tx, ty]) = (self.center, self.translate);
        let (cos_sy, tan_sx) = (libm::cos(sy), libm::tan(sx));
        let a = libm::cos(rotation - sy) / cos_sy;
        let b = -(a * tan_sx + libm::sin(rotation));
        let c = libm::sin(rotation - sy) / cos_sy;
        let d = libm::cos(rotation) - c * tan_sx;
        let by = [d, -b, -c, a].map(|v| v / self.scale);
        let (right, down) = (cx + tx, cy + ty);
        [
            by[0],
            by[1],
            cx - by[0] * right - by[1] * down,
            by[2],
            by[3],
            cy - by[2] * right - by[3] * down,
        ]
    }
}
