//! A random change of perspective.
//!
//! The step has the coefficients from output to source, from pixel centres at (0.5, 0.5).
//! Coordinates go through the inverse. A point at the horizon or behind it has no place.

use serde::{Deserialize, Serialize};

use crate::recipe::augment::policy_op::levels;
use crate::recipe::operation::{
    DrawContext, HeightWidth, LargestCase, Operation, OperationPart, PixelState, SampleFault, Step,
    UniformSource,
};
use crate::recipe::operation_docs::described;
use crate::recipe::ranges::{number, pillow_filter, probability, whole_levels};
use crate::recipe::step::AugmentStep;
use crate::recipe::steps::StepSink;
use crate::recipe::values::{InterpolationMode, PerChannel};

described! {
    example: "random_perspective: {distortion_scale: 0.5, p: 0.5, fill: 128}";

    /// With probability `p`, moves each corner inwards by a whole number of pixels, uniform up to
    /// half a side times `distortion_scale`. The size stays. If three corners then lie on a line,
    /// the image stays unchanged. Pillow's arithmetic, on 8-bit levels.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RandomPerspective {
        /// The strength, 0 to 1.
        pub distortion_scale: f64 = 0.5,
        /// The probability, 0 to 1.
        pub p: f64 = 0.5,
        /// `nearest`, `bilinear` or `bicubic`.
        pub interpolation: InterpolationMode = InterpolationMode::Bilinear,
        /// The colour outside the image, whole levels 0 to 255.
        pub fill: PerChannel = PerChannel::default(),
    }
}

impl Operation for RandomPerspective {
    const PARTS: &'static [OperationPart] = &[OperationPart::Augment];

    fn check(&self, known: &mut PixelState) -> Result<(), String> {
        known.check_levels8()?;
        number("distortion_scale", self.distortion_scale, 0.0, 1.0)?;
        probability(self.p)?;
        pillow_filter(self.interpolation)?;
        known.check_color("fill", self.fill.0)?;
        whole_levels("fill", self.fill)
    }

    fn draw(&self, on: DrawContext<'_>) -> Result<HeightWidth, SampleFault> {
        let (height, width) = on.size;
        if on.random.next_f64() >= self.p {
            return Ok((height, width));
        }
        let most = |side: u32| (self.distortion_scale * f64::from(side / 2)) as u32;
        let mut inwards = |side: u32, far: bool| {
            let by = i64::from(on.random.next_up_to(most(side)));
            // Starts at the largest possible shift of the far corner.
            let first = i64::from(side) - 1 - i64::from(most(side));
            if far { first + by } else { by }
        };
        let mut corners = [[0; 2]; 4];
        let far = [[false, false], [true, false], [true, true], [false, true]];
        for (corner, [right, bottom]) in corners.iter_mut().zip(far) {
            *corner = [inwards(width, right), inwards(height, bottom)];
        }
        if let Some(coefficients) = from_corners(corners, (height, width)) {
            on.steps.push(self.step(on.known, coefficients));
        }
        Ok((height, width))
    }

    fn largest(
        &self,
        known: &PixelState,
        size: HeightWidth,
        most: &mut LargestCase<'_>,
    ) -> HeightWidth {
        most.optionally(|most| most.push(self.step(known, [0.0; 8])));
        size
    }
}

impl RandomPerspective {
    fn step(&self, known: &PixelState, coefficients: [f64; 8]) -> Step {
        Step::Augment(AugmentStep::Perspective {
            coefficients,
            interpolation: self.interpolation,
            fill: levels(PerChannel(known.in_memory(self.fill.0))),
        })
    }
}

/// A point: x to the right, y down.
type Point = [i64; 2];

/// The coefficients that map output pixels to input pixels, if the image's corners (top left, top
/// right, bottom right, bottom left) move to these points: torchvision's `_get_perspective_coeffs`,
/// rounded to `f32` as there. None: three corners lie on a line.
fn from_corners(corners: [Point; 4], (height, width): HeightWidth) -> Option<[f64; 8]> {
    let on_a_line = (0..4).any(|left_out| {
        let at = |i: usize| corners[(left_out + 1 + i) % 4];
        let [p, q, r] = [at(0), at(1), at(2)];
        (q[0] - p[0]) * (r[1] - p[1]) == (q[1] - p[1]) * (r[0] - p[0])
    });
    if on_a_line {
        return None;
    }
    let (right, bottom) = (f64::from(width) - 1.0, f64::from(height) - 1.0);
    let from = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
    let mut rows = [[0.0; 9]; 8];
    for (i, (corner, [u, v])) in corners.into_iter().zip(from).enumerate() {
        let [x, y] = corner.map(|v| v as f64);
        rows[2 * i] = [x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, u];
        rows[2 * i + 1] = [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, v];
    }
    let solved = solve(rows)?;
    Some(solved.map(|v| f64::from(v as f32)))
}

/// Solves eight equations by elimination with pivoting. The last column is the right side.
fn solve(mut rows: [[f64; 9]; 8]) -> Option<[f64; 8]> {
    for i in 0..8 {
        let largest = (i..8).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs()))?;
        rows.swap(i, largest);
        let pivot = rows[i];
        for row in &mut rows[i + 1..] {
            let by = row[i] / pivot[i];
            for (v, p) in row.iter_mut().zip(pivot) {
                *v -= by * p;
            }
        }
    }
    let mut out = [0.0; 8];
    for i in (0..8).rev() {
        let known: f64 = (i + 1..8).map(|j| rows[i][j] * out[j]).sum();
        out[i] = (rows[i][8] - known) / rows[i][i];
    }
    out.iter().all(|v: &f64| v.is_finite()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_come_from_the_pictures_corners() {
        let corners = [[3, 2], [27, 1], [24, 17], [2, 15]];
        let [a, b, c, d, e, f, g, h] = from_corners(corners, (19, 31)).unwrap();
        for ([x, y], want) in corners
            .into_iter()
            .zip([[0, 0], [30, 0], [30, 18], [0, 18]])
        {
            let (x, y) = (x as f64, y as f64);
            let depth = g * x + h * y + 1.0;
            let got = [(a * x + b * y + c) / depth, (d * x + e * y + f) / depth];
            for (got, want) in got.into_iter().zip(want) {
                assert!((got - f64::from(want)).abs() < 1e-3, "{got}, not {want}");
            }
        }
    }

    #[test]
    fn corners_in_place_leave_the_picture() {
        for (h, w) in [(2, 2), (11, 17), (600, 801)] {
            let (right, bottom) = (i64::from(w) - 1, i64::from(h) - 1);
            let corners = [[0, 0], [right, 0], [right, bottom], [0, bottom]];
            let same = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
            assert_eq!(from_corners(corners, (h, w)), Some(same), "{h} x {w}");
        }
    }

    #[test]
    fn corners_on_a_line_have_no_answer() {
        let line = [[0, 0], [4, 0], [8, 0], [0, 9]];
        let point = [[0, 0]; 4];
        let crossed = [[5, 5], [5, 5], [9, 9], [0, 9]];
        for corners in [line, point, crossed] {
            assert_eq!(from_corners(corners, (10, 9)), None, "{corners:?}");
        }
    }
}
