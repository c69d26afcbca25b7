//! Makes an image from given places of another one. Straightening images uses it.
//!
//! Places are multiples of 1/16384 pixel, so that stored and recomputed places are equal. Images
//! mix four pixels in `f32`. A mask's pixel is valid only if all mixed pixels are. A depth is that
//! of the nearest pixel. Never in here: the computation of places.

use bytemuck::{Pod, Zeroable};

/// Fraction bits of a place.
const FRACTION: u32 = 14;

const ONE: i32 = 1 << FRACTION;

/// A place outside the image.
const NOWHERE: i32 = i32::MIN;

/// The source of a pixel, to the right and down, relative to the centre of the first pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SourcePoint {
    x: i32,
    y: i32,
}

impl SourcePoint {
    /// The place (x, y), in pixels, of an image of this width and height. The centre of the first
    /// pixel is (0.5, 0.5). Places outside the image and NaN become `NOWHERE`.
    pub(crate) fn new(x: f64, y: f64, (width, height): (u32, u32)) -> Self {
        let inside =
            (0.0..=f64::from(width)).contains(&x) && (0.0..=f64::from(height)).contains(&y);
        // Within 2^31 for sides of up to 131,070 pixels; callers reject longer ones.
        let fixed = |at: f64| ((at - 0.5) * f64::from(ONE)).round() as i32;
        match inside {
            true => Self {
                x: fixed(x),
                y: fixed(y),
            },
            false => Self {
                x: NOWHERE,
                y: NOWHERE,
            },
        }
    }

    fn is_somewhere(self) -> bool {
        self.x != NOWHERE
    }

    /// The pixel before the place, and the place's distance from it, 0 to 1.
    fn split(at: i32) -> (i32, f32) {
        (at >> FRACTION, (at & (ONE - 1)) as f32 / ONE as f32)
    }
}

/// The source image, row by row without gaps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemapSource<'a, T> {
    pub(crate) pixels: &'a [T],
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The type of an output channel.
pub(crate) trait RemapOutput: Copy {
    const NONE: Self;

    /// Converts a value from 0 to 255.
    fn of(value: f32) -> Self;
}

impl RemapOutput for u8 {
    const NONE: Self = 0;

    fn of(value: f32) -> Self {
        // Halves are rounded up.
        (value + 0.5) as Self
    }
}

/// Scales to 0 to 1.
impl RemapOutput for f32 {
    const NONE: Self = 0.0;

    fn of(value: f32) -> Self {
        value / 255.0
    }
}

impl<const C: usize> RemapSource<'_, [u8; C]> {
    /// One row: interpolates the four pixels around each place. Beyond the centres of the outer
    /// pixels only those count. Outside the image the output is 0. Images have three or four
    /// channels.
    pub(crate) fn sample_bilinear<L: RemapOutput>(
        &self,
        places: &[SourcePoint],
        out: &mut [[L; C]],
    ) {
        const { assert!(C <= LANES) };
        let bytes = self.pixels.as_flattened();
        // A pixel is loaded as four bytes. The last one of a three-channel image has too few, so it
        // is excluded.
        let inner = (self.width as i32 - 1, self.height as i32 - 1);
        let last = (bytes.len() / C).saturating_sub(1);
        for (place, out) in places.iter().zip(out) {
            let ((x, right), (y, down)) =
                (SourcePoint::split(place.x), SourcePoint::split(place.y));
            let is_inner = x >= 0 && y >= 0 && x < inner.0 && y < inner.1;
            let at = (y as usize)
                .wrapping_mul(self.width)
                .wrapping_add(x as usize);
            let mixed = if is_inner && at + self.width + 1 < last {
                let below = at + self.width;
                let above = [lanes(bytes, C * at), lanes(bytes, C * (at + 1))];
                let below = [lanes(bytes, C * below), lanes(bytes, C * (below + 1))];
                mixed(above, below, right, down)
            } else if place.is_somewhere() {
                let [above, below] = self.around(x, y);
                mixed(above, below, right, down)
            } else {
                *out = [L::NONE; C];
                continue;
            };
            for (value, to) in mixed.iter().zip(out) {
                *to = L::of(*value);
            }
        }
    }

    /// The four pixels at (x, y) and after it. Outside the image they repeat the edge.
    #[cold]
    fn around(&self, x: i32, y: i32) -> [[[f32; LANES]; 2]; 2] {
        let within = |at: i32, of: usize| at.clamp(0, of as i32 - 1) as usize;
        let (x0, x1) = (within(x, self.width), within(x + 1, self.width));
        let (y0, y1) = (within(y, self.height), within(y + 1, self.height));
        let at = |row: usize, col: usize| {
            let mut lanes = [0.0; LANES];
            for (level, lane) in self.pixels[row * self.width + col].iter().zip(&mut lanes) {
                *lane = f32::from(*level);
            }
            lanes
        };
        [[at(y0, x0), at(y0, x1)], [at(y1, x0), at(y1, x1)]]
    }
}

/// Channels mixed together.
const LANES: usize = 4;

// Written out: `map` and `from_fn` of arrays become calls that cost more than the work.
#[inline]
fn lanes(bytes: &[u8], at: usize) -> [f32; LANES] {
    let b = &bytes[at..at + LANES];
    [
        f32::from(b[0]),
        f32::from(b[1]),
        f32::from(b[2]),
        f32::from(b[3]),
    ]
}

/// Mixes the pixels on the left and right, above and below. `right` and `down` are 0 to 1.
#[inline]
fn mixed(
    [a, b]: [[f32; LANES]; 2],
    [c, d]: [[f32; LANES]; 2],
    right: f32,
    down: f32,
) -> [f32; LANES] {
    let mut mixed = [0.0; LANES];
    for (i, mixed) in mixed.iter_mut().enumerate() {
        let above = a[i] + (b[i] - a[i]) * right;
        let below = c[i] + (d[i] - c[i]) * right;
        *mixed = above + (below - above) * down;
    }
    mixed
}

impl RemapSource<'_, u8> {
    /// One row of a mask, as 0 and 1: whether all pixels that contribute to a place are valid.
    /// Pixels outside the image are invalid.
    pub(crate) fn sample_mask(&self, places: &[SourcePoint], out: &mut [u8]) {
        let is_in = |x: i32, y: i32| {
            let inside =
                (0..self.width as i32).contains(&x) && (0..self.height as i32).contains(&y);
            inside && self.pixels[y as usize * self.width + x as usize] != 0
        };
        for (place, out) in places.iter().zip(out) {
            let ((x, right), (y, down)) =
                (SourcePoint::split(place.x), SourcePoint::split(place.y));
            *out = u8::from(
                place.is_somewhere()
                    && is_in(x, y)
                    && (right == 0.0 || is_in(x + 1, y))
                    && (down == 0.0 || is_in(x, y + 1))
                    && (right == 0.0 || down == 0.0 || is_in(x + 1, y + 1)),
            );
        }
    }
}

impl<T: Copy> RemapSource<'_, T> {
    /// One row: the pixel that contains each place, converted by `of`. `none` outside the image.
    pub(crate) fn sample_nearest<U>(
        &self,
        places: &[SourcePoint],
        none: U,
        of: impl Fn(T) -> U,
        out: &mut [U],
    ) where
        U: Copy,
    {
        for (place, out) in places.iter().zip(out) {
            *out = match place.is_somewhere() {
                true => {
                    let x = ((place.x + ONE / 2) >> FRACTION).clamp(0, self.width as i32 - 1);
                    let y = ((place.y + ONE / 2) >> FRACTION).clamp(0, self.height as i32 - 1);
                    of(self.pixels[y as usize * self.width + x as usize])
                }
                false => none,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (u32, u32) = (7, 5);

    fn picture() -> Vec<[u8; 3]> {
        let at = |i: u32| [(i * 7) as u8, (i * i) as u8, 255 - (i * 5) as u8];
        (0..SIZE.0 * SIZE.1).map(at).collect()
    }

    fn of<T>(pixels: &[T]) -> RemapSource<'_, T> {
        RemapSource {
            pixels,
            width: SIZE.0 as usize,
            height: SIZE.1 as usize,
        }
    }

    fn mixed(x: f64, y: f64) -> [f32; 3] {
        let pixels = picture();
        let mut out = [[-1.0; 3]];
        of(&pixels).sample_bilinear::<f32>(&[SourcePoint::new(x, y, SIZE)], &mut out);
        out[0].map(|value| value * 255.0)
    }

    #[test]
    fn the_middle_of_a_pixel_is_that_pixel() {
        let pixels = picture();
        for row in 0..SIZE.1 {
            for col in 0..SIZE.0 {
                let place = SourcePoint::new(f64::from(col) + 0.5, f64::from(row) + 0.5, SIZE);
                let mut out = [[0; 3]];
                of(&pixels).sample_bilinear::<u8>(&[place], &mut out);
                assert_eq!(out[0], pixels[(row * SIZE.0 + col) as usize]);
            }
        }
    }

    #[test]
    fn between_middles_all_four_count_by_their_distance() {
        let pixels = picture();
        let at = |row: usize, col: usize, i: usize| f64::from(pixels[row * 7 + col][i]);
        for (x, y) in [(3.0, 2.0), (1.75, 3.0), (5.9, 1.3), (2.5, 2.25)] {
            let found = mixed(x, y);
            let (left, up) = ((x - 0.5).floor(), (y - 0.5).floor());
            let (right, down) = (x - 0.5 - left, y - 0.5 - up);
            let (col, row) = (left as usize, up as usize);
            for i in 0..3 {
                let wanted = at(row, col, i) * (1.0 - right) * (1.0 - down)
                    + at(row, col + 1, i) * right * (1.0 - down)
                    + at(row + 1, col, i) * (1.0 - right) * down
                    + at(row + 1, col + 1, i) * right * down;
                assert!(
                    (f64::from(found[i]) - wanted).abs() < 0.05,
                    "{x} {y}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn beyond_the_outer_middles_the_outer_pixels_count_and_outside_is_nothing() {
        let pixels = picture();
        let near = |found: [f32; 3], wanted: [u8; 3]| {
            found
                .iter()
                .zip(wanted)
                .all(|(f, w)| (f - f32::from(w)).abs() < 1e-3)
        };
        assert!(near(mixed(0.0, 0.0), pixels[0]) && near(mixed(0.2, 0.5), pixels[0]));
        assert!(near(mixed(7.0, 5.0), pixels[34]) && near(mixed(6.9, 0.1), pixels[6]));
        for (x, y) in [
            (-0.001, 2.0),
            (7.001, 2.0),
            (3.0, -0.1),
            (3.0, 5.1),
            (f64::NAN, 1.0),
        ] {
            assert_eq!(mixed(x, y), [0.0; 3], "{x} {y}");
        }
    }

    #[test]
    fn a_mask_holds_where_all_that_is_mixed_does() {
        let mut mask = vec![1u8; 35];
        mask[2 * 7 + 3] = 0;
        let holds = |x: f64, y: f64| {
            let mut out = [9];
            of(&mask).sample_mask(&[SourcePoint::new(x, y, SIZE)], &mut out);
            out[0] == 1
        };
        // The pixel with centre (3.5, 2.5) is masked out.
        assert!(!holds(3.5, 2.5) && !holds(2.6, 2.5) && !holds(4.4, 3.4) && !holds(2.6, 1.6));
        assert!(holds(2.5, 2.5) && holds(4.5, 2.5) && holds(3.5, 1.5) && holds(4.5, 3.4));
        // Pixels outside are invalid if they contribute.
        assert!(holds(0.5, 0.5) && !holds(0.4, 0.5) && !holds(6.6, 1.5) && !holds(9.0, 1.0));
    }

    #[test]
    fn a_depth_is_that_of_the_pixel_that_the_place_lies_in() {
        let depth: Vec<u16> = (0..35).map(|i| 1000 + i).collect();
        let at = |x: f64, y: f64| {
            let mut out = [7];
            of(&depth).sample_nearest(&[SourcePoint::new(x, y, SIZE)], 0, |d| d, &mut out);
            out[0]
        };
        assert_eq!(
            [at(0.0, 0.0), at(0.99, 0.99), at(1.0, 0.5)],
            [1000, 1000, 1001]
        );
        assert_eq!(
            [at(6.999, 4.5), at(7.0, 5.0), at(3.2, 2.0)],
            [1034, 1034, 1017]
        );
        assert_eq!([at(7.1, 1.0), at(f64::NAN, f64::NAN)], [0, 0]);
    }
}
