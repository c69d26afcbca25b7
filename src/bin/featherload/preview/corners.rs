//! The part of the original that a row shows: the row's corners, mapped back through the drawn
//! steps.
//!
//! Coordinates are continuous: (0, 0) is the upper left corner of the upper left pixel.

use featherload::recipe::{AugmentStep, Step};

/// The row's corners on the original: x and y, clockwise, starting with the row's upper left.
pub type RowCorners = [[f64; 2]; 4];

/// Maps coordinates after the steps up to now to coordinates on the original.
#[derive(Clone, Copy)]
struct Back([[f64; 3]; 3]);

impl Back {
    const NOTHING: Self = Self([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);

    /// Adds a step. Its inverse is applied first.
    fn then(self, step: [[f64; 3]; 3]) -> Self {
        let cell = |i: usize, j: usize| (0..3).map(|k| self.0[i][k] * step[k][j]).sum();
        Self([0, 1, 2].map(|i| [0, 1, 2].map(|j| cell(i, j))))
    }

    fn of(self, [x, y]: [f64; 2]) -> [f64; 2] {
        let [u, v, w] = self.0.map(|row| row[0] * x + row[1] * y + row[2]);
        [u / w, v / w]
    }
}

/// The corners on an original of this width and height.
pub fn of((width, height): (u32, u32), steps: &[(String, Step)]) -> RowCorners {
    let (mut w, mut h) = (f64::from(width), f64::from(height));
    let mut back = Back::NOTHING;
    // Mixed images have no single place on the original.
    let mut mixes = false;
    for (_, step) in steps {
        let undone = match step {
            Step::Crop(rect) => {
                (w, h) = (f64::from(rect.width), f64::from(rect.height));
                moved(f64::from(rect.left), f64::from(rect.top))
            }
            Step::Resize { size, .. } => {
                let (to_w, to_h) = (f64::from(size.width), f64::from(size.height));
                let scaled = [[w / to_w, 0.0, 0.0], [0.0, h / to_h, 0.0], [0.0, 0.0, 1.0]];
                (w, h) = (to_w, to_h);
                scaled
            }
            Step::Pad { padding: p, .. } => {
                w += f64::from(p.left) + f64::from(p.right);
                h += f64::from(p.top) + f64::from(p.bottom);
                moved(-f64::from(p.left), -f64::from(p.top))
            }
            Step::Mirror => [[-1.0, 0.0, w], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            Step::UpsideDown => [[1.0, 0.0, 0.0], [0.0, -1.0, h], [0.0, 0.0, 1.0]],
            Step::Turn(quarters) => {
                for _ in 0..*quarters {
                    back = back.then([[0.0, -1.0, w], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
                    (w, h) = (h, w);
                }
                continue;
            }
            Step::Rotate { degrees, size, .. } => {
                let to = (f64::from(size.width), f64::from(size.height));
                let turned = turned(*degrees, (w, h), to);
                (w, h) = to;
                turned
            }
            Step::Augment(augment) => match augment {
                AugmentStep::Keep => {
                    mixes = true;
                    continue;
                }
                AugmentStep::Total | AugmentStep::BlendTotal { .. } | AugmentStep::Blend { .. } => {
                    mixes = false;
                    continue;
                }
                _ if mixes => continue,
                AugmentStep::Affine { matrix: m, .. } => {
                    [[m[0], m[1], m[2]], [m[3], m[4], m[5]], [0.0, 0.0, 1.0]]
                }
                AugmentStep::Perspective {
                    coefficients: c, ..
                } => [[c[0], c[1], c[2]], [c[3], c[4], c[5]], [c[6], c[7], 1.0]],
                AugmentStep::Rotate { degrees, .. } => turned(*degrees, (w, h), (w, h)),
                _ => continue,
            },
            // These move no pixel, or each pixel differently.
            _ => continue,
        };
        back = back.then(undone);
    }
    [[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]].map(|corner| back.of(corner))
}

fn moved(x: f64, y: f64) -> [[f64; 3]; 3] {
    [[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]]
}

/// Rotates counter-clockwise about the image's middle, which is the middle of the output.
fn turned(degrees: f64, (w, h): (f64, f64), (to_w, to_h): (f64, f64)) -> [[f64; 3]; 3] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [
        [cos, -sin, (w - cos * to_w + sin * to_h) / 2.0],
        [sin, cos, (h - sin * to_w - cos * to_h) / 2.0],
        [0.0, 0.0, 1.0],
    ]
}

#[cfg(test)]
mod tests {
    use featherload::recipe::{AffineStyle, InterpolationMode, PixelRect, RotationStyle, Size};

    use super::*;

    fn corners(steps: &[Step]) -> RowCorners {
        let steps: Vec<_> = steps.iter().map(|step| (String::new(), *step)).collect();
        of((200, 100), &steps).map(|corner| corner.map(|x| (x * 1e6).round() / 1e6 + 0.0))
    }

    const CROP: Step = Step::Crop(PixelRect {
        left: 20,
        top: 10,
        width: 60,
        height: 40,
    });

    fn resize(width: u32, height: u32) -> Step {
        Step::Resize {
            size: Size { height, width },
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    #[test]
    fn boxes_are_led_back_through_what_came_before_them() {
        let plain = [[20.0, 10.0], [80.0, 10.0], [80.0, 50.0], [20.0, 50.0]];
        assert_eq!(corners(&[CROP, resize(30, 30)]), plain);
        // The box of an image at half size is twice as large.
        assert_eq!(corners(&[resize(100, 50), CROP])[2], [160.0, 100.0]);
        // The row's upper left is the box's upper right.
        assert_eq!(corners(&[CROP, Step::Mirror])[0], [80.0, 10.0]);
        // In a mirrored image the box lies at the other side.
        assert_eq!(corners(&[Step::Mirror, CROP])[0], [180.0, 10.0]);
    }

    #[test]
    fn quarter_turns_are_counter_clockwise() {
        // The upper right becomes the upper left.
        assert_eq!(corners(&[Step::Turn(1)])[0], [200.0, 0.0]);
        assert_eq!(corners(&[Step::Turn(3)])[0], [0.0, 100.0]);
        let rotate = Step::Rotate {
            degrees: 90.0,
            interpolation: InterpolationMode::Nearest,
            size: Size {
                height: 200,
                width: 100,
            },
            fill: [0.0; 3],
            style: RotationStyle::Tensor,
        };
        assert_eq!(corners(&[rotate]), corners(&[Step::Turn(1)]));
    }

    #[test]
    fn chains_that_are_mixed_leave_the_place_as_it_was() {
        let affine = Step::Augment(AugmentStep::Affine {
            matrix: [1.0, 0.0, 50.0, 0.0, 1.0, 0.0],
            interpolation: InterpolationMode::Nearest,
            fill: [0; 3],
            style: AffineStyle::Pillow,
        });
        assert_eq!(corners(&[affine])[0], [50.0, 0.0]);
        let mixed = [
            Step::Augment(AugmentStep::Keep),
            affine,
            Step::Augment(AugmentStep::Blend { by: 0.5 }),
        ];
        assert_eq!(corners(&mixed), corners(&[]));
    }
}
