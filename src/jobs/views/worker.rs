//! From a step's number to its image.
//!
//! Runs in workers, and in the consumer with zero workers. An image that is not in the
//! store yet is decoded by whoever needs it first. Never in here: how a picture is decoded.

use std::ops::Range;
use std::os::fd::{OwnedFd, RawFd};

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::input::InputMode;
use crate::jobs::scene::masks::Masks;
use crate::jobs::scene::spec::name_image;
use crate::jobs::scene::supply::Supply;
use crate::jobs::stages;
use crate::jobs::views::fields::ViewArrays;
use crate::jobs::views::shown::ShownImages;
use crate::jobs::views::spec;
use crate::jobs::views::spec::{NAME, ViewsSpec};
use crate::picture::grow;
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::Meter;
use crate::sys::cpu;

/// Everything that a worker keeps from view to view.
struct ViewsJob {
    spec: ViewsSpec,
    supply: Supply,
    masks: Masks,
    shown: ShownImages,
    /// The pixels of the image at hand, where they do not go to the row as they are.
    pixels: Vec<u8>,
    /// All images are in the store.
    complete: bool,
    missing: Vec<u32>,
    levels: [f32; 256],
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    cpu::prepare_decoder()?;
    let spec: ViewsSpec = parts.spec()?;
    let fds = std::mem::take(&mut parts.descriptors);
    let Ok([index, files, control, content, masks]) = <[OwnedFd; 5]>::try_from(fds) else {
        return Err(Error::protocol(
            "a job that shows images came with other descriptors than those of a store and masks",
        ));
    };
    let mode = InputMode::of(parts.runs_in);
    let supply = Supply::open(&spec.store, mode, [index, files, control, content])?;
    let masks = Masks::from_fd(&supply.frames, masks)?;
    Ok(Box::new(ViewsJob {
        shown: ShownImages::new(&supply.frames, spec.form),
        spec,
        supply,
        masks,
        pixels: Vec::new(),
        complete: false,
        missing: Vec::new(),
        levels: std::array::from_fn(|level| level as f32 / 255.0),
    }))
}

impl ViewsJob {
    /// The image of a ticket.
    fn image(&self, ticket: &Ticket) -> usize {
        // At most as many as there are frames: a pure function of any number.
        self.spec.order.image(ticket.batch) as usize
    }

    /// Sees to it that an image is in the store.
    fn fetch(&mut self, image: usize, meter: &mut Meter) -> std::result::Result<(), SampleFault> {
        if self.complete {
            return Ok(());
        }
        self.missing.clear();
        self.missing.push(image as u32);
        self.supply.see_to(&mut self.missing, meter)?;
        let images = self.supply.frames.frames.len();
        self.complete = (0..images).all(|image| self.supply.pictures.is_there(image));
        if self.complete {
            self.supply.rest();
        }
        Ok(())
    }

    /// Copies an image to its arrays.
    fn copy(&mut self, image: usize, arrays: &mut ViewArrays<'_>) -> Result<(), SampleFault> {
        let pictures = &self.supply.pictures;
        match self.spec.form.float {
            false => pictures.read(image, arrays.image)?,
            true => {
                let len = arrays.image.len() / size_of::<f32>();
                grow(&mut self.pixels, len)?;
                pictures.read(image, &mut self.pixels[..len])?;
                let floats = arrays.image.as_chunks_mut::<4>().0;
                for (level, to) in self.pixels[..len].iter().zip(floats) {
                    *to = self.levels[usize::from(*level)].to_ne_bytes();
                }
            }
        }
        let mask = self.masks.of(&self.supply.frames, image as u32);
        if let Some(mask) = mask.filter(|_| !arrays.mask.is_empty()) {
            mask.unpack(arrays.mask);
        }
        Ok(())
    }
}

impl Job for ViewsJob {
    fn place(&mut self, ticket: &Ticket, _row: u32) -> Range<usize> {
        let layout = self.shown.layout(&self.supply.frames, self.image(ticket));
        0..layout.map_or(0, |layout| layout.bytes())
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        let image = self.image(ticket);
        let layout = self.shown.layout(&self.supply.frames, image);
        let mut arrays = layout
            .filter(|_| row == 0)
            .and_then(|layout| layout.arrays(out))
            .ok_or_else(|| SampleFault::new(FaultKind::Unknown, "its row is none of a view"))?;
        self.fetch(image, meter)?;
        meter.lap(stages::DECODE);
        let shown = self.copy(image, &mut arrays);
        shown.map_err(|fault| name_image(image as u32, &fault))?;
        meter.lap(spec::SHOW);
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        self.supply
            .memory_limit()
            .saturating_add(self.supply.frames.places.largest())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.supply.descriptors()
    }

    fn describe(&self, ticket: &Ticket, _row: u32, _attempt: u32) -> String {
        format!("the view of step {}", ticket.batch)
    }
}
