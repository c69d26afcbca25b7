//! What a device makes of a crop, on the CPU: the meaning of `kernels/crops.cu`.
//!
//! In the consumer, where a check runs. The resize is two plain sums over the
//! row's own weights; colour steps and emission are those of workers, on floats.
//! Slow and readable.
//!
//! - `worker_rows`: what workers make of a file;
//! - `color_distance`: how far two ways to a row are from each other;
//! - `cpu_resize`: windows that the kernels of JPEGs resize.

pub(in crate::device) mod color_distance;
pub(in crate::device) mod cpu_resize;
mod tests;
pub(in crate::device) mod worker_rows;

use crate::decode_plan::crop_row::{CROP_HEADER, CropHeader};
use crate::pixels::canvas::{CanvasPixels, PictureCanvas};
use crate::pixels::emit::RowEmitter;
use crate::pixels::resample::ImageResampler;
use crate::recipe::{CropRowBytes, OutputFormat, Step};

/// Makes rows of a batch of what workers handed over.
#[derive(Debug)]
pub(crate) struct CpuStage {
    canvas: PictureCanvas,
    resampler: ImageResampler,
    emitter: RowEmitter,
}

impl CpuStage {
    pub(crate) fn new(emission: OutputFormat, resampler: ImageResampler) -> Self {
        Self {
            canvas: PictureCanvas::default(),
            resampler,
            emitter: RowEmitter::new(emission),
        }
    }

    /// The elements of a row. `header` was read from `row`, and checked.
    pub(crate) fn row(&mut self, row: &[u8], header: &CropHeader, room: CropRowBytes) -> Vec<u8> {
        let (width, height) = (header.out_width as usize, header.out_height as usize);
        let values = resized(row, header, room);
        let to = self.canvas.begin_floats(width, height, header.placement());
        to.copy_from_slice(&values);
        let steps = header.step.iter().take(header.steps as usize);
        let steps: Vec<Step> = steps.filter_map(|s| s.step()).collect();
        let mut done = 0;
        while done < steps.len() {
            done += self
                .canvas
                .apply(steps[done..].iter(), true, &mut self.resampler);
        }
        let mut out = vec![0; self.emitter.row_bytes(width, height)];
        if let (CanvasPixels::Floats(view), placement) = self.canvas.pixels() {
            self.emitter.emit_floats(view, placement, &mut out);
        }
        out
    }
}

/// Levels of the row as it is stored, held to 0 to 255 and not rounded.
fn resized(row: &[u8], header: &CropHeader, room: CropRowBytes) -> Vec<f32> {
    let (width, height) = (header.out_width as usize, header.out_height as usize);
    let tables = &row[CROP_HEADER..];
    let across = Table::new(tables, width, header.across_taps);
    let down = Table::new(&tables[across.bytes()..], height, header.down_taps);
    let line = 3 * header.width as usize;
    let pixels = &row[room.pixels_at()..][..line * header.height as usize];
    let mut between = Vec::with_capacity(3 * width * header.height as usize);
    for line in pixels.chunks_exact(line) {
        for o in 0..width {
            for c in 0..3 {
                between.push(across.sum(o, |x| f32::from(line[3 * x + c])));
            }
        }
    }
    let mut out = Vec::with_capacity(3 * width * height);
    for o in 0..height {
        for x in 0..3 * width {
            let sum = down.sum(o, |y| between[3 * width * y + x]);
            out.push(sum.clamp(0.0, 255.0));
        }
    }
    out
}

/// The weights of one axis, as a row has them.
struct Table<'a> {
    words: &'a [[u8; 4]],
    outputs: usize,
    taps: usize,
}

impl<'a> Table<'a> {
    fn new(bytes: &'a [u8], outputs: usize, taps: u32) -> Self {
        let taps = taps as usize;
        Self {
            words: &bytes.as_chunks().0[..outputs * (1 + taps)],
            outputs,
            taps,
        }
    }

    fn bytes(&self) -> usize {
        self.words.as_flattened().len()
    }

    /// The weighted sum of the pixels of an output pixel. Weights of 0 fill up,
    /// and may stand behind the last pixel.
    fn sum(&self, o: usize, pixel: impl Fn(usize) -> f32) -> f32 {
        let start = u32::from_ne_bytes(self.words[o]) as usize;
        let weights = (1..=self.taps).map(|tap| self.words[tap * self.outputs + o]);
        let weights = weights.map(f32::from_ne_bytes).enumerate();
        weights
            .filter(|(_, weight)| *weight != 0.0)
            .map(|(i, weight)| pixel(start + i) * weight)
            .sum()
    }
}
