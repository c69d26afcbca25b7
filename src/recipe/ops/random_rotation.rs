//! A rotation by a random angle.
//!
//! Coordinates turn about the centre of the picture, which goes to the centre of the output. With
//! `style: opencv` they turn about a place half a pixel right and below of it.

use serde::{Deserialize, Serialize};

use crate::recipe::defaults::{always, is_always, is_default};
use crate::recipe::geometry::rotated_size;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{probability, range};
use crate::recipe::size_bounds::SizeBounds;
use crate::recipe::steps::{StepBounds, StepPresence};
use crate::recipe::values::{InterpolationMode, PerChannel, RotationStyle, Span};

described! {
    example: "random_rotation: {degrees: 15, interpolation: bilinear}";

    /// With probability `p`, rotates around the centre by an angle uniform in `degrees`,
    /// counter-clockwise. `degrees: d` means -d to d. For a fixed angle write it twice.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RandomRotation {
        /// Range of the angle.
        #[serde(deserialize_with = "Span::around_zero")]
        pub degrees: Span,
        /// `nearest` (torchvision's default) or `bilinear`; with `style: opencv` also
        /// `bicubic`.
        #[serde(default = "InterpolationMode::nearest")]
        pub interpolation: InterpolationMode,
        /// The output holds the whole rotated image. False: it has the size of the image.
        #[serde(default)]
        pub expand: bool,
        /// The colour outside the image, levels 0 to 255.
        #[serde(default)]
        pub fill: PerChannel,
        /// The probability, 0 to 1.
        #[serde(default = "always", skip_serializing_if = "is_always")]
        pub p: f64,
        /// The library whose arithmetic is used: `tensor` (torchvision) or `opencv`.
        #[serde(default, skip_serializing_if = "is_default")]
        pub style: RotationStyle,
    }
}

impl RandomRotation {
    /// Nearest neighbour, same size, black corners.
    pub fn new(degrees: Span) -> Self {
        Self {
            degrees,
            interpolation: InterpolationMode::Nearest,
            expand: false,
            fill: PerChannel::default(),
            p: 1.0,
            style: RotationStyle::Tensor,
        }
    }
}

impl Operation for RandomRotation {
    const PARTS: &'static [OperationPart] = &[OperationPart::Rotate];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        range("degrees", self.degrees, -360.0, 360.0)?;
        known.check_color("fill", self.fill.0)?;
        probability(self.p)?;
        self.check_style(known)?;
        if self.expand {
            known.size = None;
            known.resized = true;
        }
        Ok(())
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        let size = (height, width);
        if self.p < 1.0 && on.random.next_f64() >= self.p {
            return Ok(size);
        }
        let degrees = self.degrees.draw(on.random);
        let to = if self.expand {
            let (w, h) = rotated_size(width, height, degrees);
            (h, w)
        } else {
            size
        };
        on.steps.push(self.turn(on.known, degrees, to));
        Ok(to)
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        let to = if self.expand { around(size) } else { size };
        let reach = most.reach();
        let behind = self.expand.then(|| {
            let least = reach.low.0.min(reach.low.1).saturating_sub(1).max(1);
            SizeBounds::between((least, least), around(reach.high))
        });
        let presence = if self.p < 1.0 {
            StepPresence::Optional
        } else {
            StepPresence::Always
        };
        let over = StepBounds {
            presence,
            size_after: behind,
            ..StepBounds::default()
        };
        most.add(self.turn(known, self.degrees.1, to), over);
        to
    }

    fn sets_size(&self) -> bool {
        self.expand
    }
}

impl RandomRotation {
    fn turn(&self, known: &PixelState, degrees: f64, to: HeightWidth) -> Step {
        Step::Rotate {
            degrees,
            interpolation: self.interpolation,
            size: to.into(),
            fill: known.in_memory(self.fill.0),
            style: self.style,
        }
    }

    /// Checks that the style supports the parameters.
    fn check_style(&self, known: &PixelState) -> Result<(), String> {
        let opencv = self.style == RotationStyle::Opencv;
        let supported = match (self.interpolation, opencv) {
            (InterpolationMode::Nearest | InterpolationMode::Bilinear, _) => true,
            (InterpolationMode::Bicubic, opencv) => opencv,
            _ => false,
        };
        if !supported {
            let name = self.interpolation.name();
            return Err(format!(
                "interpolation is {name}: use nearest or bilinear, or bicubic with style: opencv"
            ));
        }
        if !opencv {
            return Ok(());
        }
        if self.expand {
            return Err("expand is true, and style: opencv does not expand: remove one".into());
        }
        if known.floats {
            return Err(
                "style: opencv works on levels in u8, and comes after an operation that makes \
                 floats: move it before that, or remove style"
                    .into(),
            );
        }
        Ok(())
    }
}

/// The bound of the size: no side is longer than the diagonal, both ends rounded outwards.
fn around((height, width): HeightWidth) -> HeightWidth {
    let diagonal = libm::hypot(f64::from(height), f64::from(width)).ceil() as u32;
    let side = diagonal.saturating_add(1);
    (side, side)
}
