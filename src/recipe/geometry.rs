//! Boxes, and the random choice of boxes.
//!
//! Pure. Coordinates are pixels of the upright image, x to the right and y down. A box includes its
//! left and top edge, and excludes its right and bottom edge.

use serde::Serialize;

use super::values::{AspectDistribution, Padding, Span};

/// A box with fractional edges, in source pixels.
#[cfg(any(test, feature = "internals"))]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FractionalBox {
    pub x0: f64,
    pub y0: f64,
    pub x1: f64,
    pub y1: f64,
}

/// A box of whole pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct PixelRect {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl PixelRect {
    /// The box of a whole image with this height and width.
    pub(crate) fn whole((height, width): (u32, u32)) -> Self {
        Self {
            left: 0,
            top: 0,
            width,
            height,
        }
    }

    /// Whether the centre of a box lies inside, in `f32` as in torch's tensors.
    pub(crate) fn has_centre_of(self, [x0, y0, x1, y1]: [f64; 4]) -> bool {
        let centre = |a: f64, b: f64| 0.5 * (a as f32 + b as f32);
        let (x, y) = (centre(x0, x1), centre(y0, y1));
        let [left, top, right, bottom] = self.edges();
        left < x && x < right && top < y && y < bottom
    }

    /// The intersection with a box divided by the union, in `f32` as in torch's tensors.
    pub(crate) fn overlap_with(self, values: [f64; 4]) -> f32 {
        let [x0, y0, x1, y1] = values.map(|v| v as f32);
        let [left, top, right, bottom] = self.edges();
        let wide = (x1.min(right) - x0.max(left)).max(0.0);
        let high = (y1.min(bottom) - y0.max(top)).max(0.0);
        let both = wide * high;
        let all = (x1 - x0) * (y1 - y0) + (right - left) * (bottom - top) - both;
        both / all
    }

    fn edges(self) -> [f32; 4] {
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        [self.left, self.top, right, bottom].map(|v| v as f32)
    }
}

#[cfg(any(test, feature = "internals"))]
impl FractionalBox {
    /// The box of a whole image.
    pub fn whole(width: usize, height: usize) -> Self {
        Self {
            x0: 0.0,
            y0: 0.0,
            x1: width as f64,
            y1: height as f64,
        }
    }
}

impl Span {
    /// Draws a number from the span.
    pub(crate) fn draw(self, random: &mut impl UniformSource) -> f64 {
        self.0 + (self.1 - self.0) * random.next_f64()
    }
}

impl Padding {
    /// Height and width of an image of this height and width with the padding added.
    pub(crate) fn padded_size(self, (height, width): (u32, u32)) -> (u32, u32) {
        (
            height.saturating_add(self.top).saturating_add(self.bottom),
            width.saturating_add(self.left).saturating_add(self.right),
        )
    }
}

/// A source of uniform numbers in [0, 1). The same position gives the same numbers.
pub(crate) trait UniformSource {
    fn next_f64(&mut self) -> f64;

    /// Draws a whole number in `0..=most`.
    fn next_up_to(&mut self, most: u32) -> u32 {
        // Below 2^53 the product is exact enough that the floor never exceeds
        // `most`; the min guards the rounding of the largest draws.
        ((self.next_f64() * (f64::from(most) + 1.0)) as u32).min(most)
    }
}

/// Attempts to draw a box. After them, the largest central box of an allowed ratio is used, as in
/// torchvision.
const ATTEMPTS: usize = 10;

/// torchvision's `RandomResizedCrop.get_params`: area uniform in `scale`, ratio
/// log-uniform in `ratio`, position uniform; sizes rounded half to even.
pub(crate) fn random_box(
    width: u32,
    height: u32,
    scale: (f64, f64),
    ratio: (f64, f64),
    random: &mut impl UniformSource,
) -> PixelRect {
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
            return PixelRect {
                left,
                top,
                width: w as u32,
                height: h as u32,
            };
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
    PixelRect {
        left: (width - cw) / 2,
        top: (height - ch) / 2,
        width: cw,
        height: ch,
    }
}

/// The largest box of a crop of random area and ratio, at most the whole image.
/// [`SizeBounds`](super::size_bounds::SizeBounds) gives the bounds over all draws.
pub(crate) fn largest_box((height, width): (u32, u32), scale: Span, ratio: Span) -> PixelRect {
    let area = f64::from(height) * f64::from(width) * scale.1;
    let side = |n: u32, most: f64| (most.sqrt().ceil() as u32).clamp(1, n);
    PixelRect {
        left: 0,
        top: 0,
        height: side(height, area / ratio.0),
        width: side(width, area * ratio.1),
    }
}

/// The parts of an image of this height and width outside a box: the rows above and below, then the
/// parts to the left and right. No part is empty, and no two overlap.
pub(crate) fn outside_boxes(
    rect: PixelRect,
    (height, width): (u32, u32),
) -> impl Iterator<Item = PixelRect> {
    let PixelRect {
        left,
        top,
        width: w,
        height: h,
    } = rect;
    let part = |left, top, width, height| PixelRect {
        left,
        top,
        width,
        height,
    };
    let parts = [
        part(0, 0, width, top),
        part(0, top + h, width, height - top - h),
        part(0, top, left, h),
        part(left + w, top, width - left - w, h),
    ];
    parts.into_iter().filter(|r| r.width > 0 && r.height > 0)
}

/// The quarter turns (0 to 3) with which Pillow's `Image.rotate` replaces a rotation by this angle.
/// One or three quarters only for squares.
pub(crate) fn pillow_quarter_turns(degrees: f64, is_square: bool) -> Option<u8> {
    let degrees = degrees.rem_euclid(360.0);
    if degrees == 0.0 {
        Some(0)
    } else if degrees == 180.0 {
        Some(2)
    } else if degrees == 90.0 && is_square {
        Some(1)
    } else if degrees == 270.0 && is_square {
        Some(3)
    } else {
        None
    }
}

/// PaddleClas' `RandCropImage`. It first draws the ratio of width and height, uniform in `ratio` or
/// with a uniform logarithm. Then it draws the area, uniform in `scale`, with both ends limited to
/// what a box of this ratio can have. Sides are truncated to whole pixels, at least 1. Then left
/// and top are drawn, uniform.
pub(crate) fn bounded_box(
    width: u32,
    height: u32,
    scale: (f64, f64),
    ratio: (f64, f64),
    aspect: AspectDistribution,
    random: &mut impl UniformSource,
) -> PixelRect {
    let mut between = |low: f64, high: f64| low + (high - low) * random.next_f64();
    let aspect = match aspect {
        AspectDistribution::Uniform => between(ratio.0, ratio.1),
        AspectDistribution::Log => libm::exp(between(libm::log(ratio.0), libm::log(ratio.1))),
    };
    // Width and height of a box of area 1.
    let wide = aspect.sqrt();
    let high = 1.0 / wide;
    let (w, h) = (f64::from(width), f64::from(height));
    let bound = ((w / h) / (wide * wide)).min((h / w) / (high * high));
    let side = (w * h * between(scale.0.min(bound), scale.1.min(bound))).sqrt();
    // The cast truncates, so the box may be a pixel narrower than `side` says. The clamp keeps it at
    // least one pixel wide.
    let box_width = ((side * wide) as u32).clamp(1, width.max(1));
    let box_height = ((side * high) as u32).clamp(1, height.max(1));
    PixelRect {
        left: random.next_up_to(width.saturating_sub(box_width)),
        top: random.next_up_to(height.saturating_sub(box_height)),
        width: box_width,
        height: box_height,
    }
}

/// Cosine and sine of an angle in degrees. Exact for quarter turns.
pub(crate) fn cos_sin(degrees: f64) -> (f64, f64) {
    // As Python's `%`: in [0, 360).
    let degrees = degrees.rem_euclid(360.0);
    if degrees == 0.0 {
        (1.0, 0.0)
    } else if degrees == 90.0 {
        (0.0, 1.0)
    } else if degrees == 180.0 {
        (-1.0, 0.0)
    } else if degrees == 270.0 {
        (0.0, -1.0)
    } else {
        let angle = degrees.to_radians();
        (libm::cos(angle), libm::sin(angle))
    }
}

/// Width and height of the smallest image that holds all of an image of this size after the
/// rotation: torchvision's `expand`. As there, less than 1/10,000 of a pixel is ignored.
pub(crate) fn rotated_size(width: u32, height: u32, degrees: f64) -> (u32, u32) {
    let (cos, sin) = cos_sin(degrees);
    let (w, h) = (f64::from(width), f64::from(height));
    let pixels = |side: f64, turned: f64| {
        let cut = |v: f64| (v * 1e4).trunc() / 1e4;
        let (low, high) = (cut((side - turned) / 2.0), cut((side + turned) / 2.0));
        (high.ceil() - low.floor()) as u32
    };
    if sin == 0.0 {
        (width, height)
    } else if cos == 0.0 {
        (height, width)
    } else {
        (
            pixels(w, (w * cos).abs() + (h * sin).abs()),
            pixels(h, (w * sin).abs() + (h * cos).abs()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Vec<f64>, usize);

    impl UniformSource for Fixed {
        fn next_f64(&mut self) -> f64 {
            self.1 += 1;
            self.0[(self.1 - 1) % self.0.len()]
        }
    }

    fn box_of(width: u32, height: u32, draws: &[f64]) -> PixelRect {
        let random = &mut Fixed(draws.to_vec(), 0);
        random_box(width, height, (0.08, 1.0), (0.75, 4.0 / 3.0), random)
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
                assert!(b.width >= 1 && b.height >= 1);
                assert!(
                    b.left + b.width <= w && b.top + b.height <= h,
                    "{b:?} in {w}x{h}"
                );
            }
        }
    }

    #[test]
    fn the_largest_draws_stay_inside() {
        let b = box_of(500, 375, &[1.0 - f64::EPSILON / 2.0]);
        assert!(b.left + b.width <= 500 && b.top + b.height <= 375);
    }

    #[test]
    fn a_sliver_falls_back_to_the_central_box_of_an_allowed_ratio() {
        let b = box_of(1000, 10, &[0.99]);
        assert_eq!((b.width, b.height, b.left), (13, 10, 493));
    }
}
