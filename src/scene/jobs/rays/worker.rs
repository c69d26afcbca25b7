//! Makes the rays of a step.
//!
//! Runs in workers, and in the consumer with zero workers. The first process that needs an image
//! decodes it into the image store. Not here: lens formulas, image decoding.

use std::ops::Range;
use std::os::fd::{OwnedFd, RawFd};

use crate::error::{Error, FaultKind, Result, SampleFault};
use crate::jobs::sample_input::InputMode;
use crate::jobs::stages;
use crate::pool::job::{Job, JobKind, JobParts};
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::StageMeter;
use crate::scene::draw::{RayTable, ScenePixel};
use crate::scene::jobs::rays::fields::RayArrays;
use crate::scene::jobs::rays::ray_tracer::RayTracer;
use crate::scene::jobs::rays::spec;
use crate::scene::jobs::rays::spec::{NAME, RayTicket, RaysSpec, corrupt_ticket_fault};
use crate::scene::jobs::shared::frames::DEPTH_BYTES;
use crate::scene::jobs::shared::image_supply::ImageSupply;
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::tag_fault;
use crate::sys::cpu::CpuLevel;

/// Rays per chunk: small enough that the arrays between two passes stay in the CPU cache.
const CHUNK: usize = 1024;

/// Where an image begins in the image store.
#[derive(Debug, Clone, Copy)]
struct Begin {
    colors: u64,
    /// `None` if the image has no depths.
    depths: Option<u64>,
    width: u32,
}

/// State of a worker, reused for every step.
struct RaysJob {
    spec: RaysSpec,
    supply: ImageSupply,
    table: RayTable,
    masks: SceneMasks,
    tracer: RayTracer,
    pixels: Vec<ScenePixel>,
    missing: Vec<u32>,
    /// Start of each image in the image store.
    begins: Vec<Begin>,
    at: Vec<u64>,
    bytes: Vec<[u8; 3]>,
    with_alpha: Vec<[u8; 4]>,
    levels_of_depth: Vec<[u8; 4]>,
    /// The rays whose images have depths.
    deep: Vec<u32>,
    /// This many of the images to draw from are known to be in the image store.
    images_ready: usize,
    /// All of them are.
    complete: bool,
    levels: [f32; 256],
}

pub(crate) const KIND: JobKind = JobKind { name: NAME, build };

fn build(mut parts: JobParts) -> Result<Box<dyn Job>> {
    // An invalid `FEATHERLOAD_CPU` ends the run before any image is decoded.
    CpuLevel::detect()?;
    let spec: RaysSpec = parts.spec()?;
    let fds = std::mem::take(&mut parts.descriptors);
    let Ok([index, files, control, content, table, masks]) = <[OwnedFd; 6]>::try_from(fds) else {
        return Err(Error::protocol(
            "the job of rays got other descriptors than those of an image store, table and masks",
        ));
    };
    let mode = InputMode::of(parts.runs_in);
    let supply = ImageSupply::open(&spec.store, mode, [index, files, control, content])?;
    let frames = &supply.frames;
    let table = RayTable::from_fd(table)?;
    let masks = SceneMasks::from_fd(frames, masks)?;
    if table.images() as usize != frames.frames.len() {
        return Err(Error::protocol(
            "the job of rays has a table with a wrong number of images",
        ));
    }
    let begins = (0..frames.frames.len()).filter_map(|image| {
        let colors = frames.places.of(image)?.start;
        let depths = frames.depth_begin(image);
        Some(Begin {
            colors,
            depths: depths.map(|begin| colors + begin as u64),
            width: frames.camera(image)?.width,
        })
    });
    let begins = begins.collect();
    Ok(Box::new(RaysJob {
        tracer: RayTracer::new(frames),
        spec,
        supply,
        table,
        masks,
        pixels: Vec::new(),
        missing: Vec::new(),
        begins,
        at: Vec::new(),
        bytes: Vec::new(),
        with_alpha: Vec::new(),
        levels_of_depth: Vec::new(),
        deep: Vec::new(),
        images_ready: 0,
        complete: false,
        levels: std::array::from_fn(|level| level as f32 / 255.0),
    }))
}

impl RaysJob {
    /// Ensures that the images of `self.pixels` are in the image store.
    fn ensure_images(&mut self, meter: &mut StageMeter) -> std::result::Result<(), SampleFault> {
        if self.complete {
            return Ok(());
        }
        self.missing.clear();
        let pictures = &self.supply.store;
        let absent = |image: &u32| !pictures.is_present(*image as usize);
        let images = self.pixels.iter().map(|pixel| pixel.image);
        self.missing.extend(images.filter(absent));
        self.missing.sort_unstable();
        self.missing.dedup();
        self.supply.ensure_images(&mut self.missing, meter)?;
        // Count only images that this run draws from. The store may hold others for other runs.
        let drawn = self.table.drawn_images();
        while drawn
            .get(self.images_ready)
            .is_some_and(|n| self.supply.store.is_present(*n as usize))
        {
            self.images_ready += 1;
        }
        self.complete = self.images_ready == drawn.len();
        if self.complete {
            self.supply.release_decoders();
        }
        Ok(())
    }

    fn read_colors(&mut self, arrays: &mut RayArrays<'_>, first: usize) -> Result<(), SampleFault> {
        let channels = self.supply.frames.channels() as u64;
        self.at.clear();
        for pixel in &self.pixels {
            let begin = self.begins.get(pixel.image as usize);
            let begin = begin.ok_or_else(corrupt_ticket_fault)?;
            let in_front = u64::from(pixel.row) * u64::from(begin.width) + u64::from(pixel.col);
            self.at.push(begin.colors + channels * in_front);
        }
        let pictures = &self.supply.store;
        let bytes: &[u8] = match self.supply.frames.alpha {
            false => {
                self.bytes.resize(self.at.len(), [0; 3]);
                pictures.gather(&self.at, &mut self.bytes)?;
                self.bytes.as_flattened()
            }
            true => {
                self.with_alpha.resize(self.at.len(), [0; 4]);
                pictures.gather(&self.at, &mut self.with_alpha)?;
                self.with_alpha.as_flattened()
            }
        };
        let colors = &mut arrays.colors[channels as usize * first..];
        for (level, color) in bytes.iter().zip(colors) {
            *color = self.levels[*level as usize];
        }
        match arrays.depths.get_mut(first..first + self.pixels.len()) {
            Some(depths) => self.read_depths(depths),
            None => Ok(()),
        }
    }

    /// Reads the depths of the current rays, in the scene's units.
    fn read_depths(&mut self, depths: &mut [f32]) -> Result<(), SampleFault> {
        depths.fill(0.0);
        self.at.clear();
        self.deep.clear();
        for (ray, pixel) in (0..).zip(&self.pixels) {
            let begin = self.begins.get(pixel.image as usize);
            let begin = begin.ok_or_else(corrupt_ticket_fault)?;
            let in_front = u64::from(pixel.row) * u64::from(begin.width) + u64::from(pixel.col);
            if let Some(depths) = begin.depths {
                self.at.push(depths + DEPTH_BYTES * in_front);
                self.deep.push(ray);
            }
        }
        self.levels_of_depth.resize(self.at.len(), [0; 4]);
        let pictures = &self.supply.store;
        pictures.gather(&self.at, &mut self.levels_of_depth)?;
        for (ray, level) in self.deep.iter().zip(&self.levels_of_depth) {
            let level = f64::from(f32::from_ne_bytes(*level));
            depths[*ray as usize] = (level * self.spec.depth_scale) as f32;
        }
        Ok(())
    }
}

impl Job for RaysJob {
    fn row_range(&mut self, ticket: &Ticket, _row: u32) -> Range<usize> {
        // A ticket never requests more rays than fit; `fill` reports one that does.
        0..(self.spec.layout(ticket.key.into())).map_or(0, |layout| layout.bytes())
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        _attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> std::result::Result<(), SampleFault> {
        let key = RayTicket::from(ticket.key);
        let layout = self.spec.layout(key).filter(|_| row == 0);
        let layout = layout.ok_or_else(corrupt_ticket_fault)?;
        let mut arrays = layout.arrays(out).ok_or_else(corrupt_ticket_fault)?;
        let step = self.table.step(key.step, self.spec.rank);
        for first in (0..layout.rays()).step_by(CHUNK) {
            let here = CHUNK.min(layout.rays() - first);
            self.pixels.resize(here, ScenePixel::default());
            let mask = |image| self.masks.of(&self.supply.frames, image);
            self.table
                .fill(&step, first as u64, mask, &mut self.pixels)
                .map_err(|wrong| {
                    let text = "its mask differs from the one in the table";
                    let fault = SampleFault::new(FaultKind::Unknown, text);
                    tag_fault(u64::from(wrong.image), u64::from(wrong.image), &fault)
                })?;
            meter.lap(spec::DRAW);
            self.ensure_images(meter)?;
            meter.lap(stages::DECODE);
            let exposure_time = |ray: u32| {
                self.table
                    .exposure_time(&step, first as u64 + u64::from(ray))
            };
            self.tracer.trace(
                &self.supply.frames,
                &self.pixels,
                exposure_time,
                &mut arrays,
                first,
            );
            meter.lap(spec::TRACE);
            self.read_colors(&mut arrays, first)?;
            meter.lap(spec::COLOR);
        }
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        self.supply.memory_limit()
    }

    fn enter_worker(&mut self, _lane: u32) -> Result<()> {
        self.supply.enter_worker()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.supply.descriptors()
    }

    fn describe(&self, ticket: &Ticket, _row: u32, _attempt: u32) -> String {
        format!("the rays of step {}", RayTicket::from(ticket.key).step)
    }
}
