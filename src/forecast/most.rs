//! The most memory that a sample may take, whatever is drawn for it.
//!
//! Pure. No single draw takes the most: of a picture that is decoded smaller the
//! largest crop is not the one of which most pixels are decoded. So the steps are
//! followed with bounds of their sizes instead of sizes. Never less than
//! `cut::Stored::scratch` of any drawn steps, buffer by buffer; a test holds the
//! two together.

use super::cut::{Scratch, Stored};
use super::shrink::{Shape, Shrink, Sides, Turned, area};
use crate::picture::header::Decoding;
use crate::recipe::draw::OpStep;
use crate::recipe::needs::{Buffer, Buffers, RGB8, RGB32, RGB64, blur_floats};
use crate::recipe::weights::Filter;
use crate::recipe::{
    Augment, DecodeMode, Dtype, Op, Padding, Resize, ResizeTo, SampleProgram, Size, Span, Step,
};

impl Stored {
    /// The most that a sample takes. `steps` is room to work in; `size`: that of
    /// the row, where the batch sets it.
    pub(crate) fn most(
        self,
        program: &SampleProgram,
        size: Option<Sides>,
        steps: &mut Vec<OpStep>,
    ) -> Scratch {
        let [all, some] = self.mosts(program, size, steps);
        match all.bytes() >= some.bytes() {
            true => all,
            false => some,
        }
    }

    /// The most with every step that may be drawn, and without those that need not
    /// be: fewer steps on pixels let more of them be part of the decoding.
    pub(crate) fn mosts(
        self,
        program: &SampleProgram,
        size: Option<Sides>,
        steps: &mut Vec<OpStep>,
    ) -> [Scratch; 2] {
        program.largest_steps(self.upright(), size, steps);
        if !draws(program) {
            let cut = self.cut(program, steps);
            return [self.scratch(&cut, program, steps); 2];
        }
        let all = self.bound(program, steps);
        let ops = &program.recipe().ops;
        steps.retain(|s| {
            !matches!(
                ops.get(s.op),
                Some(
                    Op::ColorJitter(_)
                        | Op::RandomGrayscale(_)
                        | Op::RandomErasing(_)
                        | Op::CropWithPadding(_)
                        | Op::AutoAugment(_)
                        | Op::RandAugment(_)
                        | Op::TrivialAugment(_)
                        | Op::AugMix(_)
                        | Op::TimmAugment(_)
                        | Op::Cutout(_)
                )
            ) && !matches!(ops.get(s.op), Some(Op::RandomRotation(o)) if o.p < 1.0)
        });
        [all, self.bound(program, steps)]
    }

    fn bound(self, program: &SampleProgram, steps: &[OpStep]) -> Scratch {
        let mut bounds = Bounds::of(self);
        let mut rest = steps;
        let mut decoder = None;
        while let Some(step) = rest.first() {
            let folds = decoder.is_none() && program.fuses;
            let most = if program.fuses { rest.len() } else { 1 };
            if decoder.is_none() && !folds {
                decoder = Some(bounds.decode(self, program, None));
            }
            if matches!(
                step.step,
                Step::Crop(_)
                    | Step::Mirror
                    | Step::UpsideDown
                    | Step::Turn(_)
                    | Step::Resize { .. }
            ) {
                let (done, shrink) = bounds.fold(program, &rest[..most]);
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
                bounds.follow(program, step);
                rest = &rest[1..];
            }
        }
        let decoder = decoder.unwrap_or_else(|| bounds.decode(self, program, None));
        Scratch {
            decoder,
            buffers: bounds.buffers,
            steep: None,
        }
    }
}

/// Whether samples of the same size may take different amounts.
pub(crate) fn draws(program: &SampleProgram) -> bool {
    program.recipe().ops.iter().any(Op::draws)
}

struct Bounds {
    low: Sides,
    high: Sides,
    /// The most pixels.
    area: u64,
    turned: Turned,
    floats: bool,
    first: [bool; 2],
    /// Which of two buffers is in use is not known, for each type.
    lost: [bool; 2],
    /// The sides of what the decoder's buffer holds, where the first is that.
    adopted: Option<Sides>,
    buffers: Buffers,
    /// A random crop has padded.
    padded_by: Option<usize>,
}

impl Bounds {
    fn of(stored: Stored) -> Self {
        let sides = stored.upright();
        Self {
            low: sides,
            high: sides,
            area: area(sides),
            turned: match stored.orientation.placement().transpose {
                true => Turned::Yes,
                false => Turned::No,
            },
            floats: false,
            first: [true, true],
            lost: [false, false],
            adopted: None,
            buffers: Buffers::default(),
            padded_by: None,
        }
    }

    fn is_certain(&self) -> bool {
        self.low == self.high
    }

    fn becomes(&mut self, low: Sides, high: Sides) {
        (self.low, self.high) = (low, high);
        self.area = area(high);
    }

    fn turn(&mut self, op: &Op, quarters: u8) {
        if matches!(op, Op::RandomRotate90(_)) {
            let (low, high) = (self.low, self.high);
            let (least, most) = (low.0.min(low.1), high.0.max(high.1));
            (self.low, self.high) = ((least, least), (most, most));
            self.turned = Turned::Maybe;
        } else if quarters % 2 == 1 {
            self.low = (self.low.1, self.low.0);
            self.high = (self.high.1, self.high.0);
            self.turned.turn();
        }
    }

    /// Crops, flips, turns and one resize. How many steps, and the resize.
    fn fold(&mut self, program: &SampleProgram, steps: &[OpStep]) -> (usize, Option<Shrink>) {
        let mut shrink: Option<Shrink> = None;
        let mut since = Turned::No;
        let mut crop = None;
        let mut done = 0;
        for step in steps {
            let op = &program.recipe().ops[step.op.min(program.recipe().ops.len() - 1)];
            match step.step {
                Step::Crop(rect) => {
                    match op {
                        Op::RandomResizedCrop(o) => {
                            self.random_crop(o.scale, o.ratio);
                            crop = Some((step.op, Shape::rounded(o.ratio)));
                        }
                        Op::BoundedResizedCrop(o) => {
                            self.random_crop(o.scale, o.ratio);
                            crop = Some((step.op, Shape::cut(o.ratio)));
                        }
                        Op::RandomCrop(o) if o.pad_if_needed && !self.is_certain() => {
                            if self.padded_by != Some(step.op) {
                                if done > 0 {
                                    // The pad that may stand in front of it.
                                    return (done, shrink);
                                }
                                self.pad_for(step.op, o.size, o.padding);
                            }
                            let size = (rect.height, rect.width);
                            self.becomes(size, size);
                        }
                        Op::CenterCrop(o) if !self.is_certain() => {
                            self.becomes(o.output(self.low), o.output(self.high));
                        }
                        _ => {
                            let size = (rect.height, rect.width);
                            self.becomes(size, size);
                        }
                    }
                    if let Some(shrink) = &mut shrink {
                        for (h, w) in since.stored(self.high) {
                            let (wh, ww) = shrink.window;
                            shrink.window = match since {
                                Turned::Maybe => (wh.min(h.max(w)), ww.min(h.max(w))),
                                _ => (h.min(wh), w.min(ww)),
                            };
                        }
                    }
                }
                Step::Mirror | Step::UpsideDown => {}
                Step::Turn(quarters) => {
                    self.turn(op, quarters);
                    match op {
                        Op::RandomRotate90(_) => since = Turned::Maybe,
                        _ if quarters % 2 == 1 => since.turn(),
                        _ => {}
                    }
                }
                Step::Resize {
                    size,
                    interpolation,
                    antialias,
                } if shrink.is_none() => {
                    let (low, high) = match op {
                        // Both sides stand in the step: the batch may have set them.
                        Op::Resize(o)
                            if !self.is_certain()
                                && !matches!(o.size, Some(ResizeTo::Exact(_))) =>
                        {
                            self.resized(o)
                        }
                        _ => ((size.height, size.width), (size.height, size.width)),
                    };
                    let filter = Filter::of(interpolation, antialias);
                    shrink = Some(Shrink {
                        from: (self.low, self.high),
                        area: self.area,
                        shape: crop
                            .filter(|(of, _)| *of == step.op)
                            .map(|(_, shape)| shape),
                        full: (low, high),
                        window: high,
                        filter,
                        averages: match filter.0 {
                            Filter::Nearest => false,
                            Filter::Area => true,
                            _ => filter.1,
                        },
                        turned: self.turned,
                    });
                    since = Turned::No;
                    self.becomes(low, high);
                }
                _ => break,
            }
            done += 1;
        }
        (done, shrink)
    }

    /// The crop of a random size, its sides rounded or cut.
    fn random_crop(&mut self, scale: Span, ratio: Span) {
        let all = self.area as f64 * scale.1;
        let sides = |area: f64| {
            let h = (area / ratio.0).sqrt().round_ties_even();
            let w = (area * ratio.1).sqrt().round_ties_even();
            (h, w)
        };
        let (h, w) = sides(all);
        let (least_h, least_w) = {
            let least = self.area as f64 * scale.0;
            ((least / ratio.1).sqrt(), (least * ratio.0).sqrt())
        };
        let (height, width) = self.high;
        let fits = self.is_certain()
            && h <= f64::from(height)
            && w <= f64::from(width)
            && least_h > 0.5
            && least_w > 0.5;
        if fits {
            let most = (h as u32, w as u32);
            let rounded = all as u64 + u64::from(most.0) + u64::from(most.1) + 1;
            (self.low, self.high) = ((1, 1), most);
            self.area = area(most).min(rounded);
        } else {
            // Where no draw fits, it is a part in the middle: all, as a bound.
            self.low = (1, 1);
        }
    }

    fn pad_for(&mut self, op: usize, size: Size, padding: Padding) {
        let padded = |side: u32, by: u32, want: u32| {
            let side = side.saturating_add(by);
            match want.checked_sub(side) {
                Some(missing) => want.saturating_add(missing),
                None => side,
            }
        };
        let both = |h: u32, w: u32| {
            (
                padded(h, padding.top.saturating_add(padding.bottom), size.height),
                padded(w, padding.left.saturating_add(padding.right), size.width),
            )
        };
        let (a, b) = (both(self.low.0, self.low.1), both(self.high.0, self.high.1));
        let high = (a.0.max(b.0), a.1.max(b.1));
        self.becomes((size.height.min(high.0), size.width.min(high.1)), high);
        self.padded_by = Some(op);
        self.lose();
    }

    /// Bounds of a resize that goes by the picture's shape.
    fn resized(&self, o: &Resize) -> (Sides, Sides) {
        let short = self.low.0.min(self.low.1).max(1);
        let long = self.high.0.max(self.high.1);
        let scaled = |side: u32| {
            let v = (u64::from(side) * u64::from(long)).div_ceil(u64::from(short));
            u32::try_from(v).unwrap_or(u32::MAX)
        };
        match (o.size, o.max_size) {
            (Some(ResizeTo::Exact(size)), _) => {
                let size = (size.height, size.width);
                (size, size)
            }
            (Some(ResizeTo::Shorter(side)), None) => ((side, side), (scaled(side), scaled(side))),
            (Some(ResizeTo::Shorter(side)), Some(max)) => {
                let most = scaled(side).min(max.max(side));
                ((1, 1), (most, most))
            }
            (None, Some(max)) => ((1, 1), (max, max)),
            (None, None) => (self.low, self.high),
        }
    }

    /// The decoding of the picture, up to a resize that is part of it: what the
    /// decoder takes.
    fn decode(&mut self, stored: Stored, program: &SampleProgram, shrink: Option<&Shrink>) -> u64 {
        let is_jpeg = matches!(stored.decoding, Decoding::Jpeg { .. });
        let Some(shrink) = shrink else {
            self.adopted = is_jpeg.then_some(self.high);
            self.hold();
            return stored.decoder_bytes(self.area);
        };
        self.hold();
        let scaled = is_jpeg && program.decode == DecodeMode::Scaled && shrink.averages;
        let mut pixels = 0;
        for way in shrink.ways(scaled) {
            pixels = pixels.max(shrink.pixels(&way));
            shrink.hold(&way, false, &mut self.buffers);
        }
        stored.decoder_bytes(pixels)
    }

    fn resize(&mut self, shrink: &Shrink) {
        for way in shrink.ways(false) {
            shrink.hold(&way, self.floats, &mut self.buffers);
        }
    }

    /// Any other step.
    fn follow(&mut self, program: &SampleProgram, step: &OpStep) {
        let op = program.recipe().ops.get(step.op);
        match step.step {
            Step::Pad { padding: p, .. } => {
                if let Some(Op::RandomCrop(o)) = op
                    && o.pad_if_needed
                    && !self.is_certain()
                {
                    return self.pad_for(step.op, o.size, o.padding);
                }
                if let Some(Op::PadTo(o)) = op {
                    self.becomes(o.output(self.low), o.output(self.high));
                    return self.write_other();
                }
                let more = |(h, w): Sides| {
                    (
                        h.saturating_add(p.top).saturating_add(p.bottom),
                        w.saturating_add(p.left).saturating_add(p.right),
                    )
                };
                // As much as before, and the frame.
                let (high, before) = (more(self.high), area(self.high));
                let frame = area(high) - before.min(area(high));
                let most = self.area.saturating_add(frame).min(area(high));
                (self.low, self.high) = (more(self.low), high);
                self.area = most;
                self.write_other();
            }
            Step::Rotate { .. } => {
                let expands = matches!(op, Some(Op::RandomRotation(o)) if o.expand);
                let always = !matches!(op, Some(Op::RandomRotation(o)) if o.p < 1.0);
                if expands {
                    let (h, w) = (f64::from(self.high.0), f64::from(self.high.1));
                    // Both ends are rounded outwards.
                    let most = libm::hypot(h, w).ceil() as u32;
                    let most = most.saturating_add(1);
                    let least = self.low.0.min(self.low.1).saturating_sub(1).max(1);
                    self.becomes((least, least), (most, most));
                }
                if always {
                    self.turned = Turned::No;
                    self.write_other();
                } else {
                    self.turned.or_not();
                    self.lose();
                }
            }
            Step::Blur { kernel, .. } => {
                let turned = self.turned;
                for (high, kernel) in turned
                    .stored(self.high)
                    .zip(turned.stored((kernel.height, kernel.width)))
                {
                    let bytes = blur_floats((high.1, high.0), kernel.into()).saturating_mul(4);
                    self.buffers.raise(Buffer::Blur, bytes);
                }
                self.write_other();
            }
            Step::Convert(..)
            | Step::Normalize { .. }
            | Step::Cast(Dtype::F16 | Dtype::Bf16 | Dtype::F32) => {
                self.floats = true;
                self.hold();
            }
            Step::Cast(Dtype::U8) => {
                self.floats = false;
                self.hold();
            }
            Step::Augment(step) => self.augment(step),
            _ => {}
        }
    }

    /// An operation of a policy, which may be drawn, or another of its table, or none.
    fn augment(&mut self, step: Augment) {
        match step {
            Augment::Affine { .. } | Augment::Rotate { .. } | Augment::Sharpness(_) => {
                self.turned.or_not();
                self.lose();
            }
            Augment::Keep => {
                let kept = self.area.saturating_mul(RGB8);
                self.buffers.raise(Buffer::Kept, kept);
                let sum = self.area.saturating_mul(RGB64);
                self.buffers.raise(Buffer::Sum, sum);
            }
            Augment::Add { .. } | Augment::Blend { .. } => self.turned.or_not(),
            _ => {}
        }
    }

    /// From here on the picture may lie in either buffer.
    fn lose(&mut self) {
        self.lost[usize::from(self.floats)] = true;
        self.hold();
    }

    /// The decoder's buffer has room for the picture, whatever was drawn.
    fn fits_adopted(&self) -> bool {
        self.adopted.is_some_and(|sides| {
            let as_it_was = self.is_certain() && self.high == sides;
            as_it_was || self.buffers == Buffers::default()
        })
    }

    fn write_other(&mut self) {
        let first = &mut self.first[usize::from(self.floats)];
        *first = !*first;
        self.hold();
    }

    fn hold(&mut self) {
        let other = !self.first[usize::from(self.floats)];
        for which in [false, true] {
            if which != other && !self.lost[usize::from(self.floats)] {
                continue;
            }
            match self.floats {
                true => {
                    let bytes = self.area.saturating_mul(RGB32);
                    self.buffers.raise(Buffer::Floats(which), bytes);
                }
                // What was adopted is the decoder's, until it must grow.
                false if !which && self.fits_adopted() => {}
                false => {
                    let bytes = self.area.saturating_mul(RGB8);
                    self.buffers.raise(Buffer::Bytes(which), bytes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
