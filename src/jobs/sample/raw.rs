//! A sample whose file has uncompressed pixels. Nothing is decoded. Each needed pixel is read once:
//! by the resize, by the emission, or by a copy into the canvas for further steps.
//!
//! Runs where `sample` does.

use crate::decode_plan::stored_picture::DecodePlan;
use crate::jobs::sample::{PIXEL, PartMaker, SampleDecoder, SampleFault, emit_levels};
use crate::jobs::stages;
use crate::pixels::pixel_view::PixelView;
use crate::pixels::resample::{PixelSource, ResizeAxes};
use crate::pool::worker::meter::StageMeter;

impl SampleDecoder {
    /// As [`SampleDecoder::fill_from_raw`] from pixels that are not needed afterwards: steps after the
    /// decoding work in `buffer`, which then has other pixels.
    pub(crate) fn fill_from_buffer(
        &mut self,
        part: usize,
        (buffer, width): (&mut Vec<u8>, usize),
        plan: &DecodePlan,
        size: Option<(u32, u32)>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        if plan.axes.is_some() || self.parts[part].device.is_some() {
            return self.fill_from_raw(part, (buffer, width), plan, size, out, meter);
        }
        let want = plan.window;
        let first = want.y as usize * width + want.x as usize;
        let seen = (want.w as usize, want.h as usize);
        let held = buffer.capacity();
        self.canvas
            .adopt_buffer(buffer, (first, width), seen, plan.fold.placement);
        let finished = self.finish(part, plan, size, out, meter);
        self.canvas.return_buffer(buffer);
        if buffer.capacity() > held {
            // Later steps needed more. The plan does not count that for this buffer.
            *buffer = Vec::new();
        }
        finished
    }

    /// Fills the row from the stored pixels of an image that is `width` pixels wide. `part`: the
    /// crop, if a sample has several.
    pub(crate) fn fill_from_raw(
        &mut self,
        part: usize,
        (pixels, width): (&[u8], usize),
        plan: &DecodePlan,
        size: Option<(u32, u32)>,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let want = plan.window;
        let first = want.y as usize * width + want.x as usize;
        let seen = PixelView {
            pixels: &pixels.as_chunks::<PIXEL>().0[first..],
            width: want.w as usize,
            height: want.h as usize,
            stride: width,
        };
        let PartMaker {
            program,
            emitter,
            steps,
            device,
        } = &mut self.parts[part];
        if let Some(crops) = device
            && let Some(to) = crops.begin(plan, steps, size, out)?
        {
            seen.copy_to(to);
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let placement = plan.fold.placement;
        let rest = (&steps[plan.fold.steps..], program.fuses);
        if plan.axes.is_none() && emit_levels(emitter, rest, seen, placement, out) {
            meter.lap(stages::EMIT);
            return Ok(());
        }
        let (width, height) = (plan.size.0 as usize, plan.size.1 as usize);
        let to = self.canvas.begin(width, height, placement);
        match plan.axes {
            Some(_) if (self.shared_resize.as_mut()).is_some_and(|s| s.copy_to(plan, to)) => {}
            Some((x, y)) => {
                let source = PixelSource {
                    pixels: seen.pixels.as_flattened(),
                    width: seen.width,
                    height: seen.height,
                    stride: PIXEL * seen.stride,
                };
                self.resampler.resample(source, ResizeAxes { x, y }, to);
                if let Some(shared) = &mut self.shared_resize {
                    shared.keep(plan, to);
                }
            }
            None => seen.copy_to(to),
        }
        meter.lap(stages::RESAMPLE);
        self.finish(part, plan, size, out, meter)
    }
}

#[cfg(test)]
mod tests;
