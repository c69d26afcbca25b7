//! Batches of rays in order, made by a device.
//!
//! In the consumer. Images go up before the first step that may draw from them
//! (`jobs::pictures`). A step is one launch.

use std::time::{Duration, Instant};

use crate::device::DeviceMemory;
use crate::device::cuda::{Context, RayStage, Room};
use crate::error::{Error, Result};
use crate::jobs::pictures::on_device::{AHEAD, DevicePictures, DeviceRun};
use crate::jobs::rays::batch::{A_BATCH, RayBatch};
use crate::jobs::rays::fields::RayLayout;
use crate::jobs::rays::kernel_scene;
use crate::jobs::rays::spec::RaysSpec;
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::held::Held;
use crate::jobs::scene::masks::Masks;
use crate::plan::rays::RayTable;
use crate::pool::report::PoolReport;
use crate::store::Pictures;

/// What a device is told of a scene.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RayWork<'a> {
    pub(crate) frames: &'a StoredFrames,
    pub(crate) table: &'a RayTable,
    pub(crate) masks: &'a Masks,
    pub(crate) spec: &'a RaysSpec,
}

/// Rays step by step, on a device.
#[derive(Debug)]
pub(crate) struct DeviceRays {
    stage: RayStage,
    pictures: DevicePictures,
    /// The first so many of the images that are drawn from are where the kernel reads them.
    ready: usize,
    step: u64,
    spec: RaysSpec,
    /// An image that is not needed yet failed.
    failed_ahead: bool,
}

impl DeviceRays {
    /// Opens the device and takes all the memory that the run has there.
    ///
    /// # Errors
    /// No such device; what does not fit it, or the limit.
    pub(crate) fn open(work: RayWork<'_>, run: DeviceRun<'_>, step: u64) -> Result<Self> {
        let layout = RayLayout::new(work.spec.most_rays as usize, work.spec.form);
        let scene = kernel_scene::scene(work.frames, work.table, work.masks, run.bytes.room());
        let room = Room {
            outputs: run.bytes.batches as usize,
            output_bytes: layout.bytes(),
            pixel_bytes: scene.pixel_bytes,
            jpegs: run.bytes.jpegs.map(|jpegs| jpegs.limits),
        };
        let places = scene.places.clone();
        let store = run.host_store(&places)?;
        let context = Context::open(run.ordinal)?;
        let stage = RayStage::new(&context, scene, store, room)?;
        Ok(Self {
            stage,
            pictures: DevicePictures::new(context, run, places, room.pixel_bytes)?,
            ready: 0,
            step,
            spec: *work.spec,
            failed_ahead: false,
        })
    }

    /// Batches that may be on the device at a time.
    pub(crate) fn depth(&self) -> u32 {
        self.stage.stage().outputs() as u32
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
                    "{rays} rays were asked for, and there is room for {}: raise most_rays",
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
            self.failed_ahead = false;
        }
        let left = limit.saturating_sub(began.elapsed());
        if !self.pictures.make_room(self.stage.stage(), left)? {
            return Ok(None);
        }
        let layout = RayLayout::new(rays as usize, self.spec.form);
        let step = table.step(self.step, self.spec.rank);
        let launch = kernel_scene::launch(&table.numbers(&step), layout, self.spec.depth_scale);
        let rows = self.stage.submit(&launch, layout.bytes())?;
        let batch = RayBatch {
            held: Held::device(rows, A_BATCH),
            layout,
            rays: rays as usize,
            step: self.step,
        };
        self.step += 1;
        self.ahead(table, pictures);
        Ok(Some(batch))
    }

    /// Puts what workers have finished on the device ahead of need. What fails is told by the
    /// step that needs the image, and not tried before.
    fn ahead(&mut self, table: &RayTable, pictures: &Pictures) {
        let mut bytes = 0;
        while bytes < AHEAD
            && !self.failed_ahead
            && self.ready < table.drawn_images().len()
            && self.pictures.goes_ahead()
        {
            match self.one_more(table, pictures, Duration::ZERO) {
                Ok(Some(more)) => bytes += more,
                Ok(None) => break,
                Err(_) => self.failed_ahead = true,
            }
        }
    }

    /// Waits for the next image and puts it where the kernel reads it: its bytes.
    fn one_more(
        &mut self,
        table: &RayTable,
        pictures: &Pictures,
        limit: Duration,
    ) -> Result<Option<usize>> {
        let (drawn, ready) = (table.drawn_images(), self.ready);
        let coming = |n: usize| drawn.get(ready + n).copied();
        let stage = self.stage.stage_mut();
        let came = self.pictures.next(&coming, pictures, stage, limit)?;
        self.ready += usize::from(came.is_some());
        if self.ready == drawn.len() {
            stage.end_decoding();
        }
        Ok(came.map(|(_, bytes)| bytes))
    }

    /// What the device's memory is used for.
    ///
    /// # Errors
    /// When the device does not answer.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        self.pictures.memory(self.stage.stage())
    }

    /// How many of these images are decoded.
    pub(crate) fn count(&self, images: &[u32], pictures: &Pictures) -> usize {
        self.pictures.count(images, pictures)
    }

    /// Images that the device decoded.
    pub(crate) fn decoded(&self) -> u64 {
        self.pictures.decoded()
    }

    /// What workers did so far.
    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.pictures.report()
    }
}
