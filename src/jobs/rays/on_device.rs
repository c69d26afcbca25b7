//! Batches of rays in order, made by a device.
//!
//! In the consumer. Workers decode images into the store; each goes up to the device once,
//! before the first step that may draw from it. A step is one launch. All of it happens
//! within `next`, no thread does it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::getpid;

use crate::data::index::Index;
use crate::device::DeviceMemory;
use crate::device::cuda::{Context, RayStage};
use crate::device::ray_launch::{PixelPlace, RayScene};
use crate::error::{Error, Result};
use crate::jobs::pictures::spec::PicturesSpec;
use crate::jobs::rays::batch::{RayBatch, RayMemory};
use crate::jobs::rays::device_bytes::RayDeviceBytes;
use crate::jobs::rays::fields::RayLayout;
use crate::jobs::rays::kernel_scene;
use crate::jobs::rays::spec::RaysSpec;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::masks::Masks;
use crate::jobs::scene::spec::named_image;
use crate::plan::rays::RayTable;
use crate::pool::engine::Engine;
use crate::pool::filled::Filled;
use crate::pool::report::PoolReport;
use crate::store::{Holding, Pictures};
use crate::sys::clock::RunningClock;

/// How long to sleep while every batch on the device is held.
const LOOK: Duration = Duration::from_micros(200);

/// What goes up ahead of need within one step, bytes: the step waits for it.
const AHEAD: usize = 32 << 20;

/// What a device is opened for.
pub(crate) struct RayWork<'a> {
    pub(crate) frames: &'a StoredFrames,
    pub(crate) table: &'a RayTable,
    pub(crate) masks: &'a Masks,
    pub(crate) pictures: &'a Pictures,
    pub(crate) spec: &'a RaysSpec,
    /// What all of it may take.
    pub(crate) bytes: RayDeviceBytes,
    pub(crate) hold_timeout: Duration,
}

/// Rays step by step, on a device.
#[derive(Debug)]
pub(crate) struct DeviceRays {
    stage: RayStage,
    context: Arc<Context>,
    engine: Engine,
    index: Index,
    /// The scene's, for faults that are of no image.
    root: PathBuf,
    /// Of each image.
    places: Vec<PixelPlace>,
    /// The first so many of the images that are drawn from are where the kernel reads them.
    ready: usize,
    step: u64,
    spec: RaysSpec,
    hold_timeout: Duration,
    /// Runs while live batches hold all memory of the device.
    held: Option<RunningClock>,
    planned: u64,
    at_start: u64,
}

impl DeviceRays {
    /// Opens the device and takes all the memory that the run has there. `engine` decodes
    /// pictures.
    ///
    /// # Errors
    /// No such device; what does not fit it, or the limit.
    pub(crate) fn open(
        ordinal: u32,
        work: &RayWork<'_>,
        engine: Engine,
        (index, root): (Index, PathBuf),
        step: u64,
    ) -> Result<Self> {
        let layout = RayLayout::new(work.spec.most_rays as usize, work.spec.form);
        let outputs = work.bytes.batches as usize;
        let room = work.bytes.room();
        let scene = kernel_scene::scene(work.frames, work.table, work.masks, room);
        let planned = work.bytes.beside() + scene.pixel_bytes;
        let store = host_store(work, &scene)?;
        let places = scene.places.clone();
        let context = Context::open(ordinal)?;
        let stage = RayStage::new(&context, scene, store, outputs, layout.bytes())?;
        let mut this = Self {
            stage,
            engine,
            index,
            root,
            places,
            ready: 0,
            step,
            spec: *work.spec,
            hold_timeout: work.hold_timeout,
            held: None,
            planned,
            at_start: 0,
            context,
        };
        this.at_start = this.used_bytes()?;
        Ok(this)
    }

    /// Batches that may be on the device at a time.
    pub(crate) fn depth(&self) -> u32 {
        self.stage.outputs() as u32
    }

    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Goes on at another step: images that are on the device stay.
    pub(crate) fn go_to(&mut self, step: u64) {
        self.step = step;
    }

    /// The next step's first `rays` rays; none when its images, or memory for it, are not
    /// there within `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; every batch held for too long; what ends the pool; a
    /// device error.
    pub(crate) fn next_within(
        &mut self,
        (table, pictures): (&RayTable, &Pictures),
        rays: u64,
        limit: Duration,
    ) -> Result<Option<RayBatch>> {
        if rays > self.spec.most_rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "{rays} rays were asked for and there is room for {}: raise most_rays",
                    self.spec.most_rays
                ),
            ));
        }
        let began = Instant::now();
        let needed = table.images_at(self.step) as usize;
        while self.ready < needed {
            let left = limit.saturating_sub(began.elapsed());
            if self.one_more(table, pictures, left)?.is_none() {
                return Ok(None);
            }
        }
        if !self.make_room(limit.saturating_sub(began.elapsed()))? {
            return Ok(None);
        }
        let layout = RayLayout::new(rays as usize, self.spec.form);
        let step = table.step(self.step, self.spec.rank);
        let launch = kernel_scene::launch(&table.numbers(&step), layout, self.spec.depth_scale);
        let rows = self.stage.submit(&launch, layout.bytes())?;
        let batch = RayBatch {
            memory: RayMemory::Device(rows),
            layout,
            rays: rays as usize,
            step: self.step,
            owner: getpid(),
        };
        self.step += 1;
        self.ahead(table, pictures)?;
        Ok(Some(batch))
    }

    /// Puts what workers have finished on the device ahead of need. A fault is told by the
    /// step that needs the image.
    fn ahead(&mut self, table: &RayTable, pictures: &Pictures) -> Result<()> {
        if matches!(self.engine, Engine::InProcess(_)) {
            return Ok(());
        }
        let mut bytes = 0;
        while bytes < AHEAD && self.ready < table.drawn_images().len() {
            match self.one_more(table, pictures, Duration::ZERO) {
                Ok(Some(more)) => bytes += more,
                Ok(None) | Err(Error::Sample { .. }) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Waits for the next image and puts it where the kernel reads it: its bytes.
    fn one_more(
        &mut self,
        table: &RayTable,
        pictures: &Pictures,
        limit: Duration,
    ) -> Result<Option<usize>> {
        let drawn = table.drawn_images();
        let ready = self.ready;
        let coming = |n: usize| drawn.get(ready + n).copied().map(PicturesSpec::place);
        let Some(filled) = self.engine.next_within(&coming, limit)? else {
            return Ok(None);
        };
        let image = self.there(filled)?;
        let bytes = pictures.places().of(image as usize);
        let bytes = bytes.map_or(0, |range| (range.end - range.start) as usize);
        if let Some(PixelPlace::Device(at)) = self.places.get(image as usize).copied() {
            let (root, index) = (&self.root, &self.index);
            self.stage.put_pixels(at, bytes, |from, out| {
                let read = pictures.read_part(image as usize, from, out);
                read.map_err(|fault| {
                    fault_of(index, root, Some((image.into(), image.into())), fault)
                })
            })?;
        }
        self.ready += 1;
        Ok(Some(bytes))
    }

    /// The image of a ticket, where it is in the store.
    fn there(&mut self, filled: Filled) -> Result<u32> {
        let Some(bad) = filled.bad.first() else {
            return Ok(filled.place.batch as u32);
        };
        // The next call begins anew with this image.
        self.engine.cancel();
        let (image, fault) = named_image(&bad.fault);
        Err(fault_of(&self.index, &self.root, image, fault))
    }

    /// Waits until there is memory for a batch; false when that takes longer than `most`.
    fn make_room(&mut self, most: Duration) -> Result<bool> {
        let began = Instant::now();
        while !self.stage.has_room() {
            let waited = self.held.get_or_insert_with(RunningClock::start).read(LOOK);
            if waited >= self.hold_timeout {
                self.held = None;
                let depth = self.stage.outputs();
                return Err(Error::SlotsHeld {
                    what: format!(
                        "all {depth} batches on the device are held by live batches and none was \
                         dropped within {:?}: drop batches earlier, or raise depth above {depth}",
                        self.hold_timeout
                    ),
                });
            }
            if began.elapsed() >= most {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
        self.held = None;
        Ok(true)
    }

    fn used_bytes(&self) -> Result<u64> {
        let free = self.context.free_bytes()?;
        Ok(self.context.free_bytes_at_start().saturating_sub(free))
    }

    /// What the device's memory is used for.
    ///
    /// # Errors
    /// When the device does not answer.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        Ok(DeviceMemory {
            upload: crate::device::Upload::Copied,
            planned_bytes: self.planned,
            at_context_bytes: self.context.used_bytes_at_start(),
            at_start_bytes: self.at_start,
            used_bytes: self.used_bytes()?,
            pinned_bytes: self.stage.pinned_bytes() as u64,
        })
    }

    /// What workers did so far.
    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.engine.report()
    }
}

impl Drop for DeviceRays {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}

/// The store's memory, where the device reads images in it.
fn host_store(
    work: &RayWork<'_>,
    scene: &RayScene<'_>,
) -> Result<Option<crate::sys::shared::SharedMemory>> {
    let is_host = |place: &PixelPlace| matches!(place, PixelPlace::Host(_));
    if !scene.places.iter().any(is_host) {
        return Ok(None);
    }
    if work.pictures.holding() == Holding::File {
        return Err(work.bytes.no_file());
    }
    work.pictures.map_again()
}

fn fault_of(
    index: &Index,
    root: &std::path::Path,
    image: Option<(u64, u64)>,
    fault: crate::error::SampleFault,
) -> Error {
    match image {
        Some((id, file)) => Error::Sample {
            id,
            path: index.path(file),
            fault,
        },
        None => Error::Dataset {
            path: root.to_owned(),
            line: None,
            what: format!("an image of the scene: {fault}"),
        },
    }
}
