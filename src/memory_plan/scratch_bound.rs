//! An upper bound of the memory of a sample, over all random values.
//!
//! Pure. No single draw needs the most memory: the largest crop may be decoded at a smaller scale
//! than a smaller crop. So bounds of the image's size are followed through the steps. Each
//! operation reports its largest case. The result is never less than
//! `decode_plan::StoredPicture::scratch` for any drawn steps, buffer by buffer. A test checks that.

use crate::decode_plan::canvas_memory::{
    CanvasBuffer, CanvasBufferBytes, RGB8, RGB32, RGB64, scratch,
};
use crate::decode_plan::stored_picture::{DecoderMemory, SampleMemory, StoredPicture};
use crate::memory_plan::resize_bound::{AxisSwap, ResizeBound};
use crate::picture::read_header::DecodeCost;
use crate::recipe::buffer_effect::{BufferEffect, CopyShape, StepScratch};
use crate::recipe::size_bounds::{HeightWidth, SizeBounds};
use crate::recipe::steps::{LargestStep, OpStep, StepPresence};
use crate::recipe::weights::ResizeFilter;
use crate::recipe::{DecodeMode, HullRule, PixelPlacement, SampleProgram, Step};

impl StoredPicture {
    /// The upper bound for a sample. `steps`: working memory. `size`: the row's size, if the batch
    /// sets it.
    pub(crate) fn scratch_bound(
        self,
        program: &SampleProgram,
        size: Option<HeightWidth>,
        steps: &mut Vec<LargestStep>,
    ) -> SampleMemory {
        let [all, some] = self.scratch_bounds(program, size, steps);
        match all.bytes() >= some.bytes() {
            true => all,
            false => some,
        }
    }

    /// The bounds with all optional steps, and without them. Fewer steps on pixels let more of them
    /// be part of the decoding.
    pub(crate) fn scratch_bounds(
        self,
        program: &SampleProgram,
        size: Option<HeightWidth>,
        steps: &mut Vec<LargestStep>,
    ) -> [SampleMemory; 2] {
        if program.is_crop_set() || program.has_tiles() {
            return self.crop_bounds(program, steps);
        }
        program.largest_steps(self.upright_size(), size, true, steps);
        if !program.draws() {
            let steps: Vec<OpStep> = steps.iter().map(|s| s.of).collect();
            let plan = self.plan_decode(program, &steps);
            return [self.sample_memory(&plan, program, &steps); 2];
        }
        let all = self.bound(program, steps);
        program.largest_steps(self.upright_size(), size, false, steps);
        [all, self.bound(program, steps)]
    }

    /// The bounds of several crops, or of a canvas and its overview. They share the buffers, and one
    /// decoded image, which is at most all of it. Each crop is made from the finest scale that any of
    /// them needs. So both its own scales and the full image are counted.
    fn crop_bounds(
        self,
        program: &SampleProgram,
        steps: &mut Vec<LargestStep>,
    ) -> [SampleMemory; 2] {
        let pixels = u64::from(self.size.0) * u64::from(self.size.1);
        let decoder = self.shared_decoder_memory(pixels);
        let tables = program.hulls.as_ref().map_or(0, HullRule::worker_bytes);
        let mut most = [SampleMemory::default(); 2];
        for of_crop in program.crop_programs() {
            for stored in [self, self.in_memory()] {
                let bounds = stored.scratch_bounds(of_crop, None, steps);
                for (most, of_crop) in most.iter_mut().zip(&bounds) {
                    most.raise_all(&SampleMemory {
                        decoder,
                        tables,
                        ..*of_crop
                    });
                }
            }
        }
        if program.hulls.is_none() && program.shares_operations() {
            // A copy of the resized image.
            for most in &mut most {
                most.tables = most.buffers.of_bytes();
            }
        }
        most
    }

    fn bound(self, program: &SampleProgram, steps: &[LargestStep]) -> SampleMemory {
        let mut bounds = ScratchBounds::of(self);
        let mut rest = steps;
        let mut decoder = None;
        while let Some(step) = rest.first() {
            let folds = decoder.is_none() && program.fuses;
            let most = if program.fuses { rest.len() } else { 1 };
            if decoder.is_none() && !folds {
                decoder = Some(bounds.decode(self, program, None));
            }
            if matches!(step.of.step.effect(None), BufferEffect::Folds) {
                let (done, shrink) = bounds.fold(&rest[..most]);
                if decoder.is_none() {
                    decoder = Some(bounds.decode(self, program, shrink.as_ref()));
                } else if let Some(shrink) = shrink {
                    bounds.resize(&shrink);
                    bounds.write_other();
                }
                rest = &rest[done..];
            } else {
                if decoder.is_none() {
                    decoder = Some(bounds.decode(self, program, None));
                }
                bounds.add_step(step);
                rest = &rest[1..];
            }
        }
        let decoder = decoder.unwrap_or_else(|| bounds.decode(self, program, None));
        SampleMemory {
            decoder,
            buffers: bounds.buffers,
            steep: None,
            tables: 0,
        }
    }
}

struct ScratchBounds {
    at: SizeBounds,
    turned: AxisSwap,
    /// Whether the image may be mirrored or turned in its buffer.
    placed: bool,
    floats: bool,
    first: [bool; 2],
    /// For each type: it is not known which of the two buffers holds the image.
    lost: [bool; 2],
    /// The sides of the image in the decoder's buffer, if the first buffer is that one.
    adopted: Option<HeightWidth>,
    buffers: CanvasBufferBytes,
}

impl ScratchBounds {
    fn of(stored: StoredPicture) -> Self {
        Self {
            at: SizeBounds::exactly(stored.upright_size()),
            turned: match stored.orientation.placement().transpose {
                true => AxisSwap::Yes,
                false => AxisSwap::No,
            },
            placed: stored.orientation.placement() != PixelPlacement::default(),
            floats: false,
            first: [true, true],
            lost: [false, false],
            adopted: None,
            buffers: CanvasBufferBytes::default(),
        }
    }

    /// Crops, flips, rotations and one resize. Returns how many steps, and the resize.
    fn fold(&mut self, steps: &[LargestStep]) -> (usize, Option<ResizeBound>) {
        let mut shrink: Option<ResizeBound> = None;
        let mut since = AxisSwap::No;
        let mut crop = None;
        let mut done = 0;
        for LargestStep {
            of,
            over,
            size_after: behind,
        } in steps
        {
            let behind = |at: SizeBounds| behind.unwrap_or(at);
            match of.step {
                Step::Crop(_) => {
                    if let Some(padded) = over.padded_before {
                        if done > 0 {
                            // A pad may come before this crop.
                            return (done, shrink);
                        }
                        self.at = padded;
                        self.mix_buffers();
                    }
                    if let Some(shape) = over.shape {
                        crop = Some((of.op, shape));
                    }
                    self.at = behind(self.at);
                    if let Some(shrink) = &mut shrink {
                        for (h, w) in since.stored(self.at.high) {
                            let (wh, ww) = shrink.window;
                            shrink.window = match since {
                                AxisSwap::Maybe => (wh.min(h.max(w)), ww.min(h.max(w))),
                                _ => (h.min(wh), w.min(ww)),
                            };
                        }
                    }
                }
                Step::Mirror | Step::UpsideDown => self.placed = true,
                Step::Turn(quarters) => {
                    self.placed = true;
                    self.at = behind(self.at);
                    if over.any_quarter {
                        (self.turned, since) = (AxisSwap::Maybe, AxisSwap::Maybe);
                    } else if quarters % 2 == 1 {
                        self.turned.swap();
                        since.swap();
                    }
                }
                Step::Resize {
                    interpolation,
                    antialias,
                    ..
                } if shrink.is_none() => {
                    let to = behind(self.at);
                    let filter = ResizeFilter::of(interpolation, antialias);
                    shrink = Some(ResizeBound {
                        from: (self.at.low, self.at.high),
                        area: self.at.area,
                        shape: crop.filter(|(op, _)| *op == of.op).map(|(_, shape)| shape),
                        full: (to.low, to.high),
                        window: to.high,
                        filter,
                        averages: match filter.0 {
                            filter if filter.copies() => false,
                            ResizeFilter::Area => true,
                            _ => filter.1,
                        },
                        turned: self.turned,
                    });
                    since = AxisSwap::No;
                    self.at = to;
                }
                _ => break,
            }
            done += 1;
        }
        (done, shrink)
    }

    /// The decoding, up to a resize that is part of it. Returns the decoder's bytes.
    fn decode(
        &mut self,
        stored: StoredPicture,
        program: &SampleProgram,
        shrink: Option<&ResizeBound>,
    ) -> DecoderMemory {
        let is_jpeg = matches!(stored.cost, DecodeCost::Jpeg { .. });
        let Some(shrink) = shrink else {
            self.adopted = is_jpeg.then_some(self.at.high);
            self.record_size();
            return stored.decoder_memory(self.at.area);
        };
        self.record_size();
        let scaled = is_jpeg && program.decode == DecodeMode::Scaled && shrink.averages;
        let mut pixels = 0;
        for way in shrink.decode_scales(scaled) {
            pixels = pixels.max(shrink.pixels(&way));
            shrink.record_buffers(&way, false, &mut self.buffers);
        }
        stored.decoder_memory(pixels)
    }

    fn resize(&mut self, shrink: &ResizeBound) {
        for way in shrink.decode_scales(false) {
            shrink.record_buffers(&way, self.floats, &mut self.buffers);
        }
    }

    /// Any other step.
    fn add_step(&mut self, step: &LargestStep) {
        let maybe = step.over.presence != StepPresence::Always;
        self.at = step.size_after.unwrap_or(self.at);
        match step.of.step.effect(None) {
            BufferEffect::Folds | BufferEffect::InPlace => {}
            BufferEffect::Turns(_) => self.placed = true,
            BufferEffect::Copies { to, scratch: extra } => {
                let first = to == CopyShape::UprightFirst;
                if first && (self.placed || self.turned != AxisSwap::No) {
                    self.copy(true, true);
                }
                let is_upright = first || matches!(to, CopyShape::Upright | CopyShape::Sized(_));
                let turned = match is_upright {
                    true => AxisSwap::No,
                    false => self.turned,
                };
                if let Some(extra) = extra {
                    self.add_scratch(extra, turned);
                }
                self.copy(maybe, is_upright);
            }
            BufferEffect::Converts { floats } => {
                self.floats = floats;
                self.record_size();
            }
            BufferEffect::Keeps => {
                let kept = self.at.area.saturating_mul(RGB8);
                self.buffers.raise(CanvasBuffer::Kept, kept);
                let sum = self.at.area.saturating_mul(RGB64);
                self.buffers.raise(CanvasBuffer::Sum, sum);
            }
            BufferEffect::Uprights => self.make_upright(maybe),
        }
    }

    /// Memory in addition to the image, for either axis order.
    fn add_scratch(&mut self, extra: StepScratch, turned: AxisSwap) {
        let (h, w) = self.at.high;
        let lies = [(AxisSwap::Yes, (w, h)), (AxisSwap::No, (h, w))];
        for (other, stored) in lies.into_iter().filter(|(other, _)| turned != *other) {
            let transposed = other == AxisSwap::No;
            let (buffer, bytes) = scratch(stored, extra, transposed);
            self.buffers.raise(buffer, bytes);
        }
    }

    /// The image becomes upright, or may.
    fn make_upright(&mut self, maybe: bool) {
        match maybe {
            true => self.turned.make_maybe(),
            false => (self.turned, self.placed) = (AxisSwap::No, false),
        }
    }

    /// The other buffer holds the image, or may.
    fn copy(&mut self, maybe: bool, is_upright: bool) {
        if is_upright {
            self.make_upright(maybe);
        }
        match maybe {
            true => self.mix_buffers(),
            false => self.write_other(),
        }
    }

    /// From here on the image may be in either buffer.
    fn mix_buffers(&mut self) {
        self.lost[usize::from(self.floats)] = true;
        self.record_size();
    }

    /// The decoder's buffer has room for the image, for all random values.
    fn fits_adopted(&self) -> bool {
        self.adopted.is_some_and(|sides| {
            let as_it_was = self.at.is_fixed() && self.at.high == sides;
            as_it_was || self.buffers == CanvasBufferBytes::default()
        })
    }

    fn write_other(&mut self) {
        let first = &mut self.first[usize::from(self.floats)];
        *first = !*first;
        self.record_size();
    }

    fn record_size(&mut self) {
        let other = !self.first[usize::from(self.floats)];
        for which in [false, true] {
            if which != other && !self.lost[usize::from(self.floats)] {
                continue;
            }
            match self.floats {
                true => {
                    let bytes = self.at.area.saturating_mul(RGB32);
                    self.buffers.raise(CanvasBuffer::Floats(which), bytes);
                }
                // An adopted buffer is the decoder's until it must grow.
                false if !which && self.fits_adopted() => {}
                false => {
                    let bytes = self.at.area.saturating_mul(RGB8);
                    self.buffers.raise(CanvasBuffer::Bytes(which), bytes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
