//! Joins pictures of several samples: puts one on a canvas, mixes two, or takes pixels of another.
//!
//! Pictures are upright 8-bit RGB without gaps between rows. Sizes are height, width.

use crate::recipe::PixelRect;

/// Bytes of a pixel.
const PIXEL: usize = 3;

/// A picture that is changed.
#[derive(Debug)]
pub(crate) struct JoinedCanvas<'a> {
    pub(crate) pixels: &'a mut [u8],
    pub(crate) size: (u32, u32),
}

impl JoinedCanvas<'_> {
    /// One colour everywhere.
    pub(crate) fn fill(&mut self, color: [u8; 3]) {
        match color {
            [r, g, b] if r == g && g == b => self.pixels.fill(r),
            _ => self.pixels.as_chunks_mut::<PIXEL>().0.fill(color),
        }
    }

    /// Puts a picture with its upper left corner at `left` and `top`. What lies outside is cut off.
    pub(crate) fn paste(
        &mut self,
        picture: &[u8],
        (height, width): (u32, u32),
        [left, top]: [i64; 2],
    ) {
        let (x, columns) = overlap(left, width, self.size.1);
        let (y, rows) = overlap(top, height, self.size.0);
        if columns == 0 {
            return;
        }
        let from_x = (x as i64 - left) as usize;
        let from_y = (y as i64 - top) as usize;
        let (wide, across) = (PIXEL * self.size.1 as usize, PIXEL * width as usize);
        for row in 0..rows {
            let to = (y + row) * wide + PIXEL * x;
            let from = (from_y + row) * across + PIXEL * from_x;
            let bytes = PIXEL * columns;
            self.pixels[to..to + bytes].copy_from_slice(&picture[from..from + bytes]);
        }
    }

    /// The mean with a picture of this size, truncated to levels. `weight`: that of the canvas, 0 to
    /// 1.
    pub(crate) fn mix(&mut self, picture: &[u8], weight: f64) {
        let other = 1.0 - weight;
        for (own, new) in self.pixels.iter_mut().zip(picture) {
            *own = (f64::from(*own) * weight + f64::from(*new) * other) as u8;
        }
    }

    /// Replaces a box by that of a picture of this size. The box lies inside.
    pub(crate) fn take_box(&mut self, picture: &[u8], rect: PixelRect) {
        let wide = PIXEL * self.size.1 as usize;
        for y in rect.top..rect.top + rect.height {
            let start = y as usize * wide + PIXEL * rect.left as usize;
            let range = start..start + PIXEL * rect.width as usize;
            self.pixels[range.clone()].copy_from_slice(&picture[range]);
        }
    }

    /// Replaces pixels by those of a picture of this size. Each number is that of a pixel, row after
    /// row, and lies inside.
    pub(crate) fn take_pixels(&mut self, picture: &[u8], numbers: impl Iterator<Item = usize>) {
        let own = self.pixels.as_chunks_mut::<PIXEL>().0;
        let new = picture.as_chunks::<PIXEL>().0;
        numbers.for_each(|number| own[number] = new[number]);
    }
}

/// The first pixel of the canvas that a picture covers along one axis, and the number of pixels.
fn overlap(at: i64, length: u32, canvas: u32) -> (usize, usize) {
    let canvas = i64::from(canvas);
    let from = at.clamp(0, canvas);
    let to = at.saturating_add(i64::from(length)).clamp(from, canvas);
    (from as usize, (to - from) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture((height, width): (u32, u32), color: u8) -> Vec<u8> {
        let pixels = 0..height * width;
        let levels = pixels.flat_map(|n| [n as u8, (n >> 8) as u8 ^ 91, color]);
        levels.collect()
    }

    /// Pixel by pixel.
    #[test]
    fn pictures_lie_where_they_are_put() {
        let (canvas, size) = ((7, 9), (4, 5));
        let from = picture(size, 200);
        for left in -12..12 {
            for top in -12..12 {
                let mut got = picture(canvas, 3);
                let mut want = got.clone();
                let mut joined = JoinedCanvas {
                    pixels: &mut got,
                    size: canvas,
                };
                joined.paste(&from, size, [left, top]);
                for y in 0..i64::from(canvas.0) {
                    for x in 0..i64::from(canvas.1) {
                        let (u, v) = (x - left, y - top);
                        if (0..5).contains(&u) && (0..4).contains(&v) {
                            let (to, at) = ((y * 9 + x) as usize, (v * 5 + u) as usize);
                            want[3 * to..3 * to + 3].copy_from_slice(&from[3 * at..3 * at + 3]);
                        }
                    }
                }
                assert_eq!(got, want, "{left}, {top}");
            }
        }
    }

    #[test]
    fn means_are_truncated() {
        let mut got = vec![0, 255, 200, 10, 11, 12];
        let mut joined = JoinedCanvas {
            pixels: &mut got,
            size: (1, 2),
        };
        joined.mix(&[255, 255, 100, 11, 11, 13], 0.3);
        assert_eq!(got, [178, 255, 130, 10, 11, 12]);
    }

    #[test]
    fn a_box_comes_from_the_other_picture() {
        let (own, other) = (picture((6, 5), 1), picture((6, 5), 2));
        let mut got = own.clone();
        let rect = PixelRect {
            left: 1,
            top: 2,
            width: 3,
            height: 4,
        };
        JoinedCanvas {
            pixels: &mut got,
            size: (6, 5),
        }
        .take_box(&other, rect);
        for (n, pixel) in got.as_chunks::<3>().0.iter().enumerate() {
            let (x, y) = (n % 5, n / 5);
            let is_other = (1..4).contains(&x) && y >= 2;
            assert_eq!(pixel[2], if is_other { 2 } else { 1 });
        }
    }
}
