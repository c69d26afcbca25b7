//! The resize of float pixels: no rounding and no clipping. It always goes across, then down.
//!
//! Sums run from the first weight to the last in `f32`, one multiplication and one addition each.
//! Weights are rounded once from the `f64` table. So the bits depend on the arguments alone. Values
//! may have any range.
//!
//! ```text
//! src row -> padded row of 4 floats a pixel --across--> ring of rows --down--> dst row
//! ```
//!
//! With the unused fourth float, a pixel fills one register. Rows that no output row needs are
//! never read.

use super::axes::{PIXEL, ResizeAxes, grow};
use super::nearest::NearestPixels;

use crate::pixels::pixel_view::{PixelView, RgbPixel};
use crate::recipe::weights::{AxisGeometry, WeightTable, clear_with_capacity};

/// Floats of a row that the pass down sums together, in registers.
const BLOCK: usize = 32;

/// A pixel, and an unused float.
type Padded = [f32; 4];

/// The weights of one axis.
#[derive(Debug, Default)]
struct FloatTable {
    exact: WeightTable,
    weights: Vec<f32>,
    /// Where the weights of each output pixel begin, and the end of the last.
    bounds: Vec<usize>,
    starts: Vec<u32>,
    taps: usize,
    /// The first input pixel that is read, and the one after the last.
    span: (usize, usize),
}

impl FloatTable {
    fn prepare(&mut self, axis: AxisGeometry) {
        if !self.exact.prepare(axis) {
            return;
        }
        let out = axis.out_size as usize;
        clear_with_capacity(&mut self.weights, out * axis.window());
        clear_with_capacity(&mut self.bounds, out + 1);
        clear_with_capacity(&mut self.starts, out);
        self.bounds.push(0);
        self.taps = 0;
        self.span = (usize::MAX, 0);
        for o in 0..out {
            let (start, weights) = self.exact.row(o);
            self.weights.extend(weights.iter().map(|&w| w as f32));
            self.bounds.push(self.weights.len());
            self.starts.push(start as u32);
            self.taps = self.taps.max(weights.len());
            self.span = (
                self.span.0.min(start),
                self.span.1.max(start + weights.len()),
            );
        }
    }

    fn bytes(&self) -> usize {
        self.exact.bytes()
            + self.weights.capacity() * size_of::<f32>()
            + self.bounds.capacity() * size_of::<usize>()
            + self.starts.capacity() * size_of::<u32>()
    }

    /// First input pixel and weights of output pixel `o`.
    fn row(&self, o: usize) -> (usize, &[f32]) {
        (
            self.starts[o] as usize,
            &self.weights[self.bounds[o]..self.bounds[o + 1]],
        )
    }
}

/// Tables and rows; a warm call allocates nothing.
#[derive(Debug, Default)]
pub(super) struct FloatResampler {
    across: FloatTable,
    down: FloatTable,
    padded: Vec<Padded>,
    ring: Vec<f32>,
    /// Offsets of the input rows of one output row.
    offsets: Vec<usize>,
}

impl FloatResampler {
    /// Bytes of rows and tables.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.padded.capacity() * size_of::<Padded>()
            + self.ring.capacity() * size_of::<f32>()
            + self.offsets.capacity() * size_of::<usize>()
            + self.across.bytes()
            + self.down.bytes()
    }

    /// Runs the pass across on a row of the source.
    fn across_row(&mut self, row: &[RgbPixel<f32>], to: &mut [RgbPixel<f32>]) {
        let (from, end) = self.across.span;
        for (padded, &[r, g, b]) in self.padded.iter_mut().zip(&row[from..end]) {
            *padded = [r, g, b, 0.0];
        }
        for (o, out) in to.iter_mut().enumerate() {
            let (start, weights) = self.across.row(o);
            let mut sum = [0.0f32; 4];
            for (pixel, &w) in self.padded[start - from..].iter().zip(weights) {
                for (sum, v) in sum.iter_mut().zip(pixel) {
                    *sum += v * w;
                }
            }
            *out = [sum[0], sum[1], sum[2]];
        }
    }

    fn across_then_down(
        &mut self,
        src: &PixelView<'_, f32>,
        dst: &mut [RgbPixel<f32>],
        width: usize,
    ) {
        let (row, slots) = (width * PIXEL, self.down.taps);
        let mut ring = std::mem::take(&mut self.ring);
        grow(&mut ring, row * slots);
        let mut next = 0;
        for (o, dst) in dst.chunks_exact_mut(width).enumerate() {
            let (start, weights) = self.down.row(o);
            let end = start + weights.len();
            // Rows from `start` on are in the ring or still to be read.
            for y in next.max(start)..end {
                let at = y % slots * row;
                let to = ring[at..at + row].as_chunks_mut::<PIXEL>().0;
                self.across_row(src.row(y), to);
            }
            next = next.max(end);
            self.aim(o, |y| y % slots * row);
            let weights = self.down.row(o).1;
            down(weights, &ring, &self.offsets, dst.as_flattened_mut());
        }
        self.ring = ring;
    }

    /// Sets `offsets` to the rows of output row `o`.
    fn aim(&mut self, o: usize, at: impl Fn(usize) -> usize) {
        let (start, weights) = self.down.row(o);
        clear_with_capacity(&mut self.offsets, self.down.taps);
        self.offsets.extend((start..start + weights.len()).map(at));
    }

    /// Fills `dst`, without gaps, from the available pixels, as `ImageResampler::resample` does for
    /// levels.
    pub(super) fn resample(
        &mut self,
        src: PixelView<'_, f32>,
        axes: ResizeAxes,
        dst: &mut [RgbPixel<f32>],
    ) {
        let (width, height) = axes.size();
        assert_eq!(
            dst.len(),
            width * height,
            "the output does not hold {height} x {width} pixels"
        );
        let ResizeAxes { x, y } = axes;
        let (copy_across, copy_down) = (x.is_identity(), y.is_identity());
        if !copy_across {
            self.across.prepare(x);
        }
        if !copy_down {
            self.down.prepare(y);
        }
        if axes.pick() {
            let across = match copy_across {
                true => NearestPixels::From(x.copies_from(), width),
                false => NearestPixels::Each(&self.across.starts),
            };
            let down = match copy_down {
                true => NearestPixels::From(y.copies_from(), height),
                false => NearestPixels::Each(&self.down.starts),
            };
            return across.rows_by(down, |y| src.row(y), dst);
        }
        if !copy_across {
            let (from, end) = self.across.span;
            grow(&mut self.padded, end - from);
        }
        match (copy_across, copy_down) {
            (_, true) => {
                for (o, dst) in dst.chunks_exact_mut(width).enumerate() {
                    self.across_row(src.row(y.copies_from() + o), dst);
                }
            }
            (true, false) => {
                let x0 = x.copies_from();
                for (o, dst) in dst.chunks_exact_mut(width).enumerate() {
                    self.aim(o, |y| (y * src.stride + x0) * PIXEL);
                    let pixels = src.pixels.as_flattened();
                    let weights = self.down.row(o).1;
                    down(weights, pixels, &self.offsets, dst.as_flattened_mut());
                }
            }
            (false, false) => self.across_then_down(&src, dst, width),
        }
    }
}

/// Computes one row down: the weighted sum of the rows at `offsets`.
fn down(weights: &[f32], src: &[f32], offsets: &[usize], dst: &mut [f32]) {
    for (b, out) in dst.chunks_mut(BLOCK).enumerate() {
        let mut sums = [0.0f32; BLOCK];
        for (&w, &offset) in weights.iter().zip(offsets) {
            let from = &src[offset + b * BLOCK..][..out.len()];
            for (sum, v) in sums.iter_mut().zip(from) {
                *sum += v * w;
            }
        }
        out.copy_from_slice(&sums[..out.len()]);
    }
}
