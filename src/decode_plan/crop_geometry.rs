//! Where a crop lies in its image: the box that it shows, and how it is turned.
//!
//! Pure. Follows the drawn steps. A worker computes it for each crop of a sample, and the consumer
//! hands it out.

use crate::recipe::PixelPlacement;
use crate::recipe::steps::OpStep;
use crate::recipe::{AugmentStep, Padding, Step};

/// Where one crop of a sample lies in its image.
///
/// Boxes refer to the upright image as the recipe sees it: after its orientation, and within the
/// sample's box if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct CropGeometry {
    /// The box that the crop shows: left, top, right and bottom in pixels of the image. Beyond the
    /// image if the crop was padded. NaN if an operation moved pixels in another way than crops,
    /// resizes, flips, pads and quarter turns. Zeros for a row without a sample.
    pub bounds: [f32; 4],
    /// Height and width of the image.
    pub image: [u32; 2],
    flags: u32,
    reserved: u32,
}

const FLIP_X: u32 = 1;
const FLIP_Y: u32 = 2;
const TRANSPOSE: u32 = 4;

impl CropGeometry {
    /// Bytes of a geometry in a slot.
    pub(crate) const BYTES: usize = size_of::<Self>();

    /// The geometry after these steps of an upright image of this height and width.
    pub(crate) fn of(image: (u32, u32), steps: &[OpStep]) -> Self {
        let mut at = BoxWalk::of(image);
        steps.iter().for_each(|step| at.apply(&step.step));
        let PixelPlacement {
            flip_x,
            flip_y,
            transpose,
        } = at.placement;
        let flags = [(flip_x, FLIP_X), (flip_y, FLIP_Y), (transpose, TRANSPOSE)];
        Self {
            bounds: at.bounds.map(|side| side as f32),
            image: [image.0, image.1],
            flags: (flags.iter().filter(|(is, _)| *is))
                .map(|(_, bit)| bit)
                .sum(),
            reserved: 0,
        }
    }

    /// Which pixel of the box each pixel of the crop shows.
    #[must_use]
    pub fn placement(&self) -> PixelPlacement {
        PixelPlacement {
            flip_x: self.flags & FLIP_X != 0,
            flip_y: self.flags & FLIP_Y != 0,
            transpose: self.flags & TRANSPOSE != 0,
        }
    }

    /// Whether the crop shows the box mirrored left to right.
    #[must_use]
    pub fn is_flipped(&self) -> bool {
        self.flags & FLIP_X != 0
    }

    /// Whether the crop shows the box upside down.
    #[must_use]
    pub fn is_upside_down(&self) -> bool {
        self.flags & FLIP_Y != 0
    }

    /// Whether the crop has the rows of the box as columns. The flips are those of the box, before
    /// its rows become columns.
    #[must_use]
    pub fn is_transposed(&self) -> bool {
        self.flags & TRANSPOSE != 0
    }
}

/// The box of an image while steps are applied to it.
struct BoxWalk {
    /// Left, top, right and bottom.
    bounds: [f64; 4],
    /// Pixels of the box, across and down, before it is turned.
    pixels: (f64, f64),
    placement: PixelPlacement,
}

impl BoxWalk {
    fn of((height, width): (u32, u32)) -> Self {
        let pixels = (f64::from(width), f64::from(height));
        Self {
            bounds: [0.0, 0.0, pixels.0, pixels.1],
            pixels,
            placement: PixelPlacement::default(),
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Crop(rect) => {
                let (across, down) = self.turned();
                let [left, top] = [rect.left, rect.top].map(f64::from);
                let right = across - left - f64::from(rect.width);
                let bottom = down - top - f64::from(rect.height);
                self.cut([left, top, right, bottom]);
            }
            Step::Pad { padding, .. } => {
                let Padding {
                    left,
                    top,
                    right,
                    bottom,
                } = padding;
                self.cut([left, top, right, bottom].map(|side| -f64::from(side)));
            }
            Step::Resize { size, .. } | Step::Augment(AugmentStep::Resample { size, .. }) => {
                let size = (f64::from(size.width), f64::from(size.height));
                self.pixels = match self.placement.transpose {
                    true => (size.1, size.0),
                    false => size,
                };
            }
            Step::Mirror => self.placement = self.placement.mirrored(),
            Step::UpsideDown => self.placement = self.placement.upside_down(),
            Step::Turn(quarters) => self.placement = self.placement.turned(quarters),
            Step::Rotate { size, .. } => {
                self.bounds = [f64::NAN; 4];
                self.pixels = (f64::from(size.width), f64::from(size.height));
            }
            Step::Elastic { .. }
            | Step::Augment(
                AugmentStep::Affine { .. }
                | AugmentStep::TensorAffine { .. }
                | AugmentStep::Perspective { .. }
                | AugmentStep::Rotate { .. },
            ) => self.bounds = [f64::NAN; 4],
            // These change values, not places.
            Step::Brightness(_)
            | Step::Contrast(_)
            | Step::Saturation(_)
            | Step::Hue(_)
            | Step::Shift(_)
            | Step::Permute(_)
            | Step::Luma
            | Step::Grayscale
            | Step::Convert(..)
            | Step::Blur { .. }
            | Step::Noise { .. }
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
            ) => {}
        }
    }

    /// Pixels across and down as the next step sees them.
    fn turned(&self) -> (f64, f64) {
        match self.placement.transpose {
            true => (self.pixels.1, self.pixels.0),
            false => self.pixels,
        }
    }

    /// Removes pixels at the left, top, right and bottom of the turned box.
    fn cut(&mut self, [left, top, right, bottom]: [f64; 4]) {
        let [mut x0, mut y0, mut x1, mut y1] = match self.placement.transpose {
            true => [top, left, bottom, right],
            false => [left, top, right, bottom],
        };
        if self.placement.flip_x {
            (x0, x1) = (x1, x0);
        }
        if self.placement.flip_y {
            (y0, y1) = (y1, y0);
        }
        let [l, t, r, b] = self.bounds;
        let (across, down) = ((r - l) / self.pixels.0, (b - t) / self.pixels.1);
        self.bounds = [
            l + x0 * across,
            t + y0 * down,
            r - x1 * across,
            b - y1 * down,
        ];
        self.pixels = (self.pixels.0 - x0 - x1, self.pixels.1 - y0 - y1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::geometry::PixelRect;
    use crate::recipe::{AffineStyle, InterpolationMode, RotationStyle, Size};

    fn geometry(image: (u32, u32), steps: &[Step]) -> CropGeometry {
        let steps: Vec<_> = steps.iter().map(|step| OpStep::new(0, *step)).collect();
        CropGeometry::of(image, &steps)
    }

    fn crop(left: u32, top: u32, width: u32, height: u32) -> Step {
        Step::Crop(PixelRect {
            left,
            top,
            width,
            height,
        })
    }

    fn resize(height: u32, width: u32) -> Step {
        Step::Resize {
            size: Size { height, width },
            interpolation: InterpolationMode::Bilinear,
            antialias: true,
        }
    }

    #[test]
    fn boxes_are_in_pixels_of_the_image() {
        let whole = geometry((60, 100), &[]);
        assert_eq!(
            (whole.bounds, whole.image),
            ([0.0, 0.0, 100.0, 60.0], [60, 100])
        );
        let of = geometry(
            (60, 100),
            &[crop(10, 20, 40, 30), resize(15, 10), Step::Mirror],
        );
        assert_eq!(of.bounds, [10.0, 20.0, 50.0, 50.0]);
        assert!(of.is_flipped() && !of.is_upside_down() && !of.is_transposed());
        // A crop after a resize is in pixels of the resized image.
        let of = geometry((60, 100), &[resize(30, 50), crop(5, 10, 20, 10)]);
        assert_eq!(of.bounds, [10.0, 20.0, 50.0, 40.0]);
        // A crop of a mirrored image counts from its right.
        let of = geometry((60, 100), &[Step::Mirror, crop(5, 10, 20, 10)]);
        assert_eq!(of.bounds, [75.0, 10.0, 95.0, 20.0]);
    }

    #[test]
    fn quarter_turns_and_pads_move_boxes() {
        // Counter-clockwise: the first row of the turned image is the last column.
        let of = geometry((60, 100), &[Step::Turn(1), crop(0, 0, 10, 20)]);
        assert_eq!(of.bounds, [80.0, 0.0, 100.0, 10.0]);
        assert!(of.is_transposed());
        let padding = Padding {
            left: 4,
            top: 3,
            right: 2,
            bottom: 1,
        };
        let pad = Step::Pad {
            padding,
            mode: crate::recipe::PaddingMode::Constant,
            fill: [0.0; 3],
        };
        let of = geometry((60, 100), &[pad, crop(0, 0, 50, 20)]);
        assert_eq!(of.bounds, [-4.0, -3.0, 46.0, 17.0]);
    }

    #[test]
    fn other_moves_leave_no_box() {
        let elastic = Step::Elastic {
            key: 1,
            alpha: [1.0; 2],
            sigma: [1.0; 2],
            interpolation: InterpolationMode::Bilinear,
            fill: [0.0; 3],
        };
        let of = geometry((60, 100), &[crop(1, 2, 3, 4), elastic, Step::Mirror]);
        assert!(of.bounds.iter().all(|side| side.is_nan()));
        assert!(of.is_flipped());
        let (interpolation, fill) = (InterpolationMode::Bilinear, [0; 3]);
        let size = Size {
            height: 60,
            width: 100,
        };
        let moves = [
            Step::Rotate {
                style: RotationStyle::Opencv,
                degrees: 10.0,
                size,
                interpolation,
                fill: [0.0; 3],
            },
            Step::Augment(AugmentStep::Affine {
                matrix: [1.0, 0.1, 0.0, 0.0, 1.0, 0.0],
                interpolation,
                fill,
                style: AffineStyle::Pillow,
            }),
            Step::Augment(AugmentStep::TensorAffine {
                matrix: [1.0, 0.1, 0.0, 0.0, 1.0, 0.0],
                interpolation,
                fill: None,
            }),
            Step::Augment(AugmentStep::Perspective {
                coefficients: [1.0; 8],
                interpolation,
                fill,
            }),
            Step::Augment(AugmentStep::Rotate {
                degrees: 10.0,
                interpolation,
                fill,
            }),
        ];
        for step in moves {
            let of = geometry((60, 100), &[step, crop(1, 2, 3, 4)]);
            assert!(of.bounds.iter().all(|side| side.is_nan()), "{step:?}");
        }
    }

    #[test]
    fn flips_are_those_of_the_box_before_it_is_transposed() {
        let image = [[0, 1, 2], [3, 4, 5]];
        // Counter-clockwise: the first row is the last column.
        let turned = [[2, 5], [1, 4], [0, 3]];
        let of = geometry((2, 3), &[Step::Turn(1)]);
        assert!(of.is_transposed());
        let mut box_ = image.map(|row| row.to_vec()).to_vec();
        if of.is_flipped() {
            box_.iter_mut().for_each(|row| row.reverse());
        }
        if of.is_upside_down() {
            box_.reverse();
        }
        let transposed: Vec<Vec<i32>> = (0..3)
            .map(|column| box_.iter().map(|row| row[column]).collect())
            .collect();
        assert_eq!(transposed, turned.map(|row| row.to_vec()).to_vec());
    }
}
