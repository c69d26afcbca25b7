//! Pillow's `ImageFilter.GaussianBlur`: three box blurs along the rows, then three along the
//! columns (`BoxBlur.c`). Levels are rounded after each. Edge pixels are repeated.

use crate::decode_plan::canvas_memory::{BLURRED_COLUMNS, box_blur_bytes};
use crate::pixels::pixel_view::RgbPixel;

/// Values of the columns that are blurred at a time.
const LANES: usize = 3 * BLURRED_COLUMNS;

/// Boxes along each axis.
const PASSES: f32 = 3.0;

/// Blurs upright, tight pixels of this width and height. `spare` grows to
/// `canvas_memory::box_blur_bytes`.
pub(crate) fn gaussian(
    pixels: &mut [RgbPixel<u8>],
    (width, height): (usize, usize),
    radius: f32,
    spare: &mut Vec<u8>,
) {
    let needed = box_blur_bytes((width as u32, height as u32)) as usize;
    if spare.len() < needed {
        spare.clear();
        spare.reserve_exact(needed);
        spare.resize(needed, 0);
    }
    let (one, other) = spare[..needed].split_at_mut(needed / 2);
    let line = BoxLine::of_gaussian(radius);
    for row in pixels.chunks_exact_mut(width) {
        let line_in = &mut one.as_chunks_mut::<3>().0[..width];
        let line_out = &mut other.as_chunks_mut::<3>().0[..width];
        line.blur(row, line_out);
        line.blur(line_out, line_in);
        line.blur(line_in, row);
    }
    let whole = width - width % BLURRED_COLUMNS;
    for x in (0..whole).step_by(BLURRED_COLUMNS) {
        blur_columns::<LANES>(pixels, (width, height), x, &line, (&mut *one, &mut *other));
    }
    for x in whole..width {
        blur_columns::<3>(pixels, (width, height), x, &line, (&mut *one, &mut *other));
    }
}

/// Blurs `L` values across, from the pixel in column `x` on, along the columns.
fn blur_columns<const L: usize>(
    pixels: &mut [RgbPixel<u8>],
    (width, height): (usize, usize),
    x: usize,
    line: &BoxLine,
    (one, other): (&mut [u8], &mut [u8]),
) {
    let one = &mut one.as_chunks_mut::<L>().0[..height];
    let other = &mut other.as_chunks_mut::<L>().0[..height];
    let values = pixels.as_flattened_mut();
    for (to, row) in one.iter_mut().zip(values.chunks_exact(3 * width)) {
        to.copy_from_slice(&row[3 * x..3 * x + L]);
    }
    line.blur(one, other);
    line.blur(other, one);
    line.blur(one, other);
    for (from, row) in other.iter().zip(values.chunks_exact_mut(3 * width)) {
        row[3 * x..3 * x + L].copy_from_slice(from);
    }
}

/// A box blur of a line: whole pixels at each side, the weight of a pixel inside the box, and the
/// weight of those just outside. Weights have 24 bits of fraction.
pub(crate) struct BoxLine {
    radius: usize,
    inside: u32,
    edge: u32,
}

impl BoxLine {
    /// The box of which three make the Gaussian with this deviation (`_gaussian_blur_radius`), in
    /// Pillow's precisions.
    pub(crate) fn of_gaussian(deviation: f32) -> Self {
        let variance = deviation * deviation / PASSES;
        let length = (12.0 * f64::from(variance) + 1.0).sqrt() as f32;
        let whole = ((f64::from(length) - 1.0) / 2.0).floor() as f32;
        let part = (2.0 * whole + 1.0) * (whole * (whole + 1.0) - 3.0 * variance);
        let part = part / (6.0 * (variance - (whole + 1.0) * (whole + 1.0)));
        Self::new(whole + part)
    }

    /// Whole pixels at each side, the weight inside of the box, and that of the pixels outside.
    pub(crate) fn numbers(&self) -> [u32; 3] {
        [self.radius as u32, self.inside, self.edge]
    }

    fn new(radius: f32) -> Self {
        const ONE: u32 = 1 << 24;
        let whole = radius as u32;
        let inside = (ONE as f32 / (radius * 2.0 + 1.0)) as u32;
        Self {
            radius: whole as usize,
            inside,
            edge: ONE.saturating_sub((whole * 2 + 1) * inside) / 2,
        }
    }

    /// Blurs a line of groups of `L` values.
    fn blur<const L: usize>(&self, from: &[[u8; L]], to: &mut [[u8; L]]) {
        let Some(last) = from.len().checked_sub(1) else {
            return;
        };
        // The box around the pixel before the first.
        let mut sum = from[0].map(|v| u32::from(v) * (self.radius as u32 + 1));
        for x in 0..self.radius {
            add(&mut sum, &from[x.min(last)]);
        }
        for (x, to) in to.iter_mut().enumerate().take(from.len()) {
            let before = &from[x.saturating_sub(self.radius + 1)];
            let end = &from[(x + self.radius).min(last)];
            let after = &from[(x + self.radius + 1).min(last)];
            for i in 0..L {
                sum[i] = sum[i] + u32::from(end[i]) - u32::from(before[i]);
                let far = u32::from(before[i]) + u32::from(after[i]);
                let value = sum[i] * self.inside + far * self.edge;
                to[i] = ((value + (1 << 23)) >> 24) as u8;
            }
        }
    }
}

fn add<const L: usize>(sum: &mut [u32; L], values: &[u8; L]) {
    for (sum, v) in sum.iter_mut().zip(values) {
        *sum += u32::from(*v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also radii beyond the image, and the largest of a recipe.
    #[test]
    fn one_colour_stays_whatever_the_radius() {
        let mut spare = Vec::new();
        for (w, h) in [(1, 1), (2, 9), (17, 3), (33, 20)] {
            for radius in [0.01, 0.3, 1.0, 7.7, 300.0, 1000.0] {
                let mut pixels = vec![[0, 128, 255]; w * h];
                gaussian(&mut pixels, (w, h), radius, &mut spare);
                assert_eq!(pixels, vec![[0, 128, 255]; w * h], "{w} x {h}, {radius}");
            }
        }
    }

    /// The definition: the mean of the box around each pixel, with parts of pixels at its ends.
    #[test]
    fn lines_are_means_of_boxes() {
        let from: Vec<[u8; 1]> = (0..23u32).map(|i| [(i * i * 37 % 251) as u8]).collect();
        let at = |i: isize| f64::from(from[i.clamp(0, 22) as usize][0]);
        for radius in [0.2f32, 1.0, 2.75, 11.5, 40.0] {
            let line = BoxLine::new(radius);
            let mut to = vec![[0]; 23];
            line.blur(&from, &mut to);
            let (whole, part) = (radius.floor() as isize, f64::from(radius.fract()));
            for (x, to) in (0..).zip(&to) {
                let inside: f64 = (x - whole..=x + whole).map(at).sum();
                let ends = at(x - whole - 1) + at(x + whole + 1);
                let mean = (inside + part * ends) / (2.0 * f64::from(radius) + 1.0);
                assert!((f64::from(to[0]) - mean).abs() < 0.51, "{radius} at {x}");
            }
        }
    }
}
