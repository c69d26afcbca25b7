//! From a step's number to its rays.
//!
//! Runs in workers, and in the consumer with zero workers. Images that are not in the
//! store yet are decoded by whoever needs them first. Never in here: how a lens bends, how
//! a picture is decoded.

use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::data::index::Index;
use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::input::InputMode;
use crate::jobs::rays::fields::RayArrays;
use crate::jobs::rays::frames::RayFrames;
use crate::jobs::rays::masks::Masks;
use crate::jobs::rays::pixels::PixelMaker;
use crate::jobs::rays::spec;
use crate::jobs::rays::spec::{NAME, RaysSpec, name_image, scribbled};
use crate::jobs::rays::trace::Tracer;
use crate::jobs::sample;
use crate::jobs::stages;
use crate::plan::rays::{Pixel, RayTable};
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::Meter;
use crate::store::{Holding, Patience, Pictures};
use crate::sys::cpu;

/// Rays that are made at once: what lies in arrays between two passes stays in the cache.
const CHUNK: usize = 1024;

/// Everything that a worker keeps from step to step.
struct RaysJob {
    spec: RaysSpec,
    index: Index,
    frames: RayFrames,
    table: RayTable,
    masks: Masks,
    pictures: Pictures,
    maker: PixelMaker,
    tracer: Tracer,
    pixels: Vec<Pixel>,
    missing: Vec<u32>,
    /// Where the pixels of each image begin in the store, and its width.
    begins: Vec<(u64, u32)>,
    at: Vec<u64>,
    bytes: Vec<[u8; 3]>,
    /// So many of the pictures that are drawn from are known to be there.
    there: usize,
    /// All of them.
    complete: bool,
    levels: [f32; 256],
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    cpu::prepare_decoder()?;
    let spec: RaysSpec = parts.spec()?;
    let fds = std::mem::take(&mut parts.descriptors);
    let Ok([index, frames, table, masks, control, content]) = <[OwnedFd; 6]>::try_from(fds) else {
        return Err(Error::protocol(
            "a job that makes rays came with other descriptors than index, frames, table, masks \
             and the two of the store",
        ));
    };
    let index = Index::from_fd(index)?;
    let frames = RayFrames::from_fd(frames)?;
    let table = RayTable::from_fd(table)?;
    let masks = Masks::from_fd(&frames, masks)?;
    let pictures = Pictures::open(
        frames.places.clone(),
        spec.holding,
        control,
        content,
        spec.key,
    )?;
    let images = frames.frames.len() as u64;
    if index.len() != images || u64::from(table.images()) != images {
        return Err(Error::protocol(
            "a job that makes rays has another number of files than of frames",
        ));
    }
    let begins = (0..frames.frames.len()).filter_map(|image| {
        let begin = frames.places.of(image)?.start;
        Some((begin, frames.camera(image)?.width))
    });
    let begins = begins.collect();
    let mode = InputMode::of(parts.runs_in);
    Ok(Box::new(RaysJob {
        maker: PixelMaker::new(&spec, mode)?,
        tracer: Tracer::new(&frames),
        spec,
        index,
        frames,
        table,
        masks,
        pictures,
        pixels: Vec::new(),
        missing: Vec::new(),
        begins,
        at: Vec::new(),
        bytes: Vec::new(),
        there: 0,
        complete: false,
        levels: std::array::from_fn(|level| level as f32 / 255.0),
    }))
}

impl RaysJob {
    /// Sees to it that the images of `self.pixels` are in the store.
    fn gather(&mut self, meter: &mut Meter) -> std::result::Result<(), SampleFault> {
        if self.complete {
            return Ok(());
        }
        self.missing.clear();
        let absent = |image: &u32| !self.pictures.is_there(*image as usize);
        let images = self.pixels.iter().map(|pixel| pixel.image);
        self.missing.extend(images.filter(absent));
        self.missing.sort_unstable();
        self.missing.dedup();
        // First what nobody is at, then what others should have made by now.
        for patience in [Patience::Skip, Patience::Wait] {
            let Self {
                index,
                frames,
                pictures,
                maker,
                missing,
                ..
            } = self;
            let mut left = Vec::new();
            for &image in missing.iter() {
                let (Some(frame), Some(camera)) = (
                    frames.frames.get(image as usize),
                    frames.camera(image as usize),
                ) else {
                    return Err(scribbled());
                };
                let size = (camera.height, camera.width);
                let make = |out: &mut [u8]| maker.make(index, image, frame, size, out, meter);
                let made = pictures.make(image as usize, patience, make);
                if !made.map_err(|fault| name_image(image, &fault))? {
                    left.push(image);
                }
            }
            *missing = left;
        }
        // Of the images that this run draws from: others may be there for other runs.
        let drawn = self.table.drawn_images();
        while drawn
            .get(self.there)
            .is_some_and(|n| self.pictures.is_there(*n as usize))
        {
            self.there += 1;
        }
        self.complete = self.there == drawn.len();
        if self.complete {
            self.maker.rest();
        }
        Ok(())
    }

    fn color(&mut self, arrays: &mut RayArrays<'_>, first: usize) -> Result<(), SampleFault> {
        self.at.clear();
        for pixel in &self.pixels {
            let (begin, width) = *self
                .begins
                .get(pixel.image as usize)
                .ok_or_else(scribbled)?;
            let in_front = u64::from(pixel.row) * u64::from(width) + u64::from(pixel.col);
            self.at.push(begin + 3 * in_front);
        }
        self.bytes.resize(self.at.len(), [0; 3]);
        self.pictures.gather(&self.at, &mut self.bytes)?;
        for (bytes, color) in self.bytes.iter().zip(&mut arrays.colors[first..]) {
            *color = bytes.map(|level| self.levels[level as usize]);
        }
        Ok(())
    }
}

impl Job for RaysJob {
    fn place(&mut self, ticket: &Ticket, _row: u32) -> Range<usize> {
        // Nobody posts a ticket with more rays than there is room for: `fill` says so.
        0..self.spec.layout(ticket).map_or(0, |layout| layout.bytes())
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        let layout = self.spec.layout(ticket).filter(|_| row == 0);
        let layout = layout.ok_or_else(scribbled)?;
        let mut arrays = layout.arrays(out).ok_or_else(scribbled)?;
        let step = self.table.step(ticket.batch, self.spec.rank);
        for first in (0..layout.rays()).step_by(CHUNK) {
            let here = CHUNK.min(layout.rays() - first);
            self.pixels.resize(here, Pixel::default());
            let mask = |image| self.masks.of(&self.frames, image);
            self.table
                .fill(&step, first as u64, mask, &mut self.pixels)
                .map_err(|wrong| {
                    let text = "its mask is not the one that was counted";
                    name_image(wrong.image, &SampleFault::new(FaultKind::Unknown, text))
                })?;
            meter.lap(spec::DRAW);
            self.gather(meter)?;
            meter.lap(stages::DECODE);
            let moment = |ray: u32| self.table.moment(&step, first as u64 + u64::from(ray));
            self.tracer
                .trace(&self.frames, &self.pixels, moment, &mut arrays, first);
            meter.lap(spec::TRACE);
            self.color(&mut arrays, first)?;
            meter.lap(spec::COLOR);
        }
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        let places = self.pictures.places();
        let largest = (0..places.len()).filter_map(|n| places.of(n));
        let largest = largest
            .map(|range| range.end - range.start)
            .max()
            .unwrap_or(0);
        let buffer = match self.spec.holding {
            Holding::Memory => 0,
            Holding::File => largest,
        };
        self.spec
            .limits
            .max_scratch
            .saturating_add(sample::KEEP as u64)
            .saturating_add(sample::BESIDE_SCRATCH)
            .saturating_add(buffer)
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let store = self.pictures.descriptors();
        store.iter().map(|fd| fd.as_raw_fd()).collect()
    }

    fn describe(&self, ticket: &Ticket, _row: u32, _attempt: u32) -> String {
        format!("the rays of step {}", ticket.batch)
    }
}
