//! From an image's size and the random numbers of a position to boxes: which
//! part of the image is used, at which decoding scale.
//!
//! Pure. Coordinates are those of the upright image, pixels, x to the right and
//! y down; a box is half-open.

use serde::Serialize;

use super::ops::DecodeMode;
use super::program::{Crop, SampleProgram};

/// A box with fractional edges, in source pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxF {
    pub x0: f64,
    pub y0: f64,
    pub x1: f64,
    pub y1: f64,
}

/// A box of whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Rect {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl BoxF {
    /// All of an image.
    #[cfg(any(test, feature = "bench-internals"))]
    pub fn whole(width: usize, height: usize) -> Self {
        Self {
            x0: 0.0,
            y0: 0.0,
            x1: width as f64,
            y1: height as f64,
        }
    }

    pub(crate) fn width(&self) -> f64 {
        self.x1 - self.x0
    }

    pub(crate) fn height(&self) -> f64 {
        self.y1 - self.y0
    }
}

/// A source of numbers uniform in [0, 1), the same for the same position.
pub(crate) trait Uniform {
    fn next_f64(&mut self) -> f64;

    /// A whole number in `0..=most`.
    fn next_up_to(&mut self, most: u32) -> u32 {
        // Below 2^53 the product is exact enough that the floor never exceeds
        // `most`; the min guards the rounding of the largest draws.
        ((self.next_f64() * (f64::from(most) + 1.0)) as u32).min(most)
    }
}

/// What one sample's pixels are made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleGeometry {
    /// The box that becomes the output.
    pub(crate) source: BoxF,
    /// Whether the filter may use pixels outside of the box.
    pub(crate) sees_outside: bool,
    /// Whether the output is mirrored left to right.
    pub(crate) flip: bool,
}

/// Attempts at a random box before the largest central one of an allowed ratio
/// is taken, as in torchvision.
const ATTEMPTS: usize = 10;

/// Draws the parameters of one sample, in a fixed order and number for each
/// recipe, so that a later operation never shifts an earlier one's numbers.
pub(crate) fn sample_geometry(
    program: &SampleProgram,
    width: u32,
    height: u32,
    random: &mut impl Uniform,
) -> SampleGeometry {
    // First the flip: its draw must not depend on how many attempts the box took.
    let flip = program.flip > 0.0 && random.next_f64() < program.flip;
    let (source, sees_outside) = match program.crop {
        Crop::RandomResized { scale, ratio } => {
            (random_box(width, height, scale, ratio, random), false)
        }
        Crop::ShorterThenCenter { shorter } => {
            let size = program.extent.of((height, width));
            (centre_box(width, height, shorter, size), true)
        }
        Crop::Whole => (whole_box(0, 0, width, height), false),
    };
    SampleGeometry {
        source,
        sees_outside,
        flip,
    }
}

/// torchvision's `RandomResizedCrop.get_params`: area uniform in `scale`, ratio
/// log-uniform in `ratio`, position uniform; sizes rounded half to even.
fn random_box(
    width: u32,
    height: u32,
    scale: (f64, f64),
    ratio: (f64, f64),
    random: &mut impl Uniform,
) -> BoxF {
    let area = f64::from(width) * f64::from(height);
    let log_ratio = (libm::log(ratio.0), libm::log(ratio.1));
    for _ in 0..ATTEMPTS {
        let target = area * (scale.0 + (scale.1 - scale.0) * random.next_f64());
        let aspect = libm::exp(log_ratio.0 + (log_ratio.1 - log_ratio.0) * random.next_f64());
        let w = (target * aspect).sqrt().round_ties_even();
        let h = (target / aspect).sqrt().round_ties_even();
        if w >= 1.0 && h >= 1.0 && w <= f64::from(width) && h <= f64::from(height) {
            let top = random.next_up_to(height - h as u32);
            let left = random.next_up_to(width - w as u32);
            return whole_box(left, top, w as u32, h as u32);
        }
    }
    let (w, h) = (f64::from(width), f64::from(height));
    let (cw, ch) = if w / h < ratio.0 {
        (w, (w / ratio.0).round_ties_even())
    } else if w / h > ratio.1 {
        ((h * ratio.1).round_ties_even(), h)
    } else {
        (w, h)
    };
    let cw = (cw as u32).clamp(1, width);
    let ch = (ch as u32).clamp(1, height);
    whole_box((width - cw) / 2, (height - ch) / 2, cw, ch)
}

fn whole_box(left: u32, top: u32, width: u32, height: u32) -> BoxF {
    BoxF {
        x0: f64::from(left),
        y0: f64::from(top),
        x1: f64::from(left) + f64::from(width),
        y1: f64::from(top) + f64::from(height),
    }
}

/// torchvision's `Resize(shorter)` and `CenterCrop(size)`: the resized size is
/// `shorter` by the longer side scaled and cut to a whole number, the crop's
/// offset is half the rest, rounded half to even. The offset is carried back to
/// source pixels without rounding.
fn centre_box(width: u32, height: u32, shorter: u32, size: (u32, u32)) -> BoxF {
    let (w, h) = (f64::from(width), f64::from(height));
    let s = f64::from(shorter);
    // In whole numbers, as torchvision's int(): a float quotient may fall just
    // below the whole number that it stands for.
    let long =
        |long: u32, short: u32| (u64::from(shorter) * u64::from(long) / u64::from(short)) as f64;
    let (rw, rh) = if width <= height {
        (s, long(height, width))
    } else {
        (long(width, height), s)
    };
    let (th, tw) = (f64::from(size.0), f64::from(size.1));
    let left = ((rw - tw) / 2.0).round_ties_even();
    let top = ((rh - th) / 2.0).round_ties_even();
    let (sx, sy) = (w / rw, h / rh);
    BoxF {
        x0: left * sx,
        y0: top * sy,
        x1: (left + tw) * sx,
        y1: (top + th) * sy,
    }
}

/// The decoding scale's denominator: the largest of 1, 2, 4, 8 that leaves the
/// box at least as large as the target on both axes. (3/4 and the like are
/// slower than full, so they are not tried.)
pub(crate) fn scale_denominator(mode: DecodeMode, source: &BoxF, size: (u32, u32)) -> u32 {
    if mode == DecodeMode::Full {
        return 1;
    }
    let shrink = (source.height() / f64::from(size.0)).min(source.width() / f64::from(size.1));
    [8, 4, 2]
        .into_iter()
        .find(|d| shrink >= f64::from(*d))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    struct Fixed(Vec<f64>, usize);

    impl Uniform for Fixed {
        fn next_f64(&mut self) -> f64 {
            self.1 += 1;
            self.0[(self.1 - 1) % self.0.len()]
        }
    }

    fn box_of(width: u32, height: u32, draws: &[f64]) -> BoxF {
        let p = SampleProgram::compile(&Recipe::train224()).unwrap();
        sample_geometry(&p, width, height, &mut Fixed(draws.to_vec(), 0)).source
    }

    #[test]
    fn random_boxes_lie_inside_whatever_the_size() {
        for (w, h) in [
            (1, 1),
            (1, 1000),
            (1000, 1),
            (3, 2),
            (640, 480),
            (65_535, 2),
        ] {
            for i in 0..200u32 {
                let f = |k: u32| f64::from((i * 7 + k * 13) % 101) / 101.0;
                let b = box_of(w, h, &[f(0), f(1), f(2), f(3), f(4)]);
                assert!(b.x0 >= 0.0 && b.y0 >= 0.0 && b.width() >= 1.0 && b.height() >= 1.0);
                assert!(
                    b.x1 <= f64::from(w) && b.y1 <= f64::from(h),
                    "{b:?} in {w}x{h}"
                );
            }
        }
    }

    #[test]
    fn the_largest_draws_stay_inside() {
        let b = box_of(500, 375, &[1.0 - f64::EPSILON / 2.0]);
        assert!(b.x1 <= 500.0 && b.y1 <= 375.0);
    }

    #[test]
    fn a_sliver_falls_back_to_the_central_box_of_an_allowed_ratio() {
        let b = box_of(1000, 10, &[0.99]);
        assert_eq!((b.width(), b.height()), (13.0, 10.0));
        assert_eq!(b.x0, 493.0);
    }

    #[test]
    fn the_centre_box_is_torchvisions() {
        // 500x375 -> 341x256 -> offsets round(58.5) = 58 and 16.
        let b = centre_box(500, 375, 256, (224, 224));
        let (sx, sy) = (500.0 / 341.0, 375.0 / 256.0);
        assert_eq!(b.x0, 58.0 * sx);
        assert_eq!(b.y1, 240.0 * sy);
        let b = centre_box(256, 256, 256, (224, 224));
        assert_eq!((b.x0, b.y0, b.x1, b.y1), (16.0, 16.0, 240.0, 240.0));
    }

    #[test]
    fn scales_never_leave_less_than_the_target() {
        let b = |w: f64, h: f64| BoxF {
            x0: 0.0,
            y0: 0.0,
            x1: w,
            y1: h,
        };
        for (w, h, d) in [
            (224.0, 224.0, 1),
            (447.0, 900.0, 1),
            (448.0, 448.0, 2),
            (1000.0, 895.0, 2),
            (896.0, 900.0, 4),
            (1792.0, 1792.0, 8),
            (99_999.0, 1792.0, 8),
            (10.0, 10.0, 1),
        ] {
            assert_eq!(
                scale_denominator(DecodeMode::Scaled, &b(w, h), (224, 224)),
                d
            );
            assert_eq!(scale_denominator(DecodeMode::Full, &b(w, h), (224, 224)), 1);
        }
    }

    #[test]
    fn the_flip_does_not_depend_on_the_box() {
        let p = SampleProgram::compile(&Recipe::train224()).unwrap();
        for (w, h) in [(500, 375), (1000, 10)] {
            assert!(sample_geometry(&p, w, h, &mut Fixed(vec![0.4], 0)).flip);
            assert!(!sample_geometry(&p, w, h, &mut Fixed(vec![0.6], 0)).flip);
        }
    }
}
