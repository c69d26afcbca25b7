//! Images on their way from workers to a device, and the run's account of that device.
//!
//! In the consumer. Workers decode images into the store; each goes up once, before the first
//! launch that may draw from it. All of it happens within a call, no thread does it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::data::index::Index;
use crate::device::DeviceMemory;
use crate::device::cuda::{Context, SceneStage};
use crate::device::scene_launch::PixelPlace;
use crate::error::{Error, Result, SampleFault};
use crate::jobs::pictures::device_bytes::DeviceBytes;
use crate::jobs::pictures::spec::PicturesSpec;
use crate::jobs::scene::spec::named_image;
use crate::pool::engine::Engine;
use crate::pool::filled::Filled;
use crate::pool::report::PoolReport;
use crate::store::{Holding, Pictures};
use crate::sys::clock::RunningClock;
use crate::sys::shared::SharedMemory;

/// How long to sleep while every batch on the device is held.
const LOOK: Duration = Duration::from_micros(200);

/// What goes up ahead of need within one step, bytes: the step waits for it.
pub(crate) const AHEAD: usize = 32 << 20;

/// What a run on a device is told, and what it has before the device is opened.
#[derive(Debug)]
pub(crate) struct DeviceRun<'a> {
    pub(crate) ordinal: u32,
    pub(crate) pictures: &'a Pictures,
    /// Decodes pictures.
    pub(crate) engine: Engine,
    /// The files of the images.
    pub(crate) index: Index,
    /// What all of it may take.
    pub(crate) bytes: DeviceBytes,
    pub(crate) hold_timeout: Duration,
}

impl DeviceRun<'_> {
    /// The store's memory, where the device reads images in it.
    ///
    /// # Errors
    /// A store in a file, which no device reads.
    pub(crate) fn host_store(&self, places: &[PixelPlace]) -> Result<Option<SharedMemory>> {
        let is_host = |place: &PixelPlace| matches!(place, PixelPlace::Host(_));
        if !places.iter().any(is_host) {
            return Ok(None);
        }
        if self.pictures.holding() == Holding::File {
            return Err(self.bytes.no_file());
        }
        self.pictures.map_again()
    }
}

/// Images of a run on a device.
#[derive(Debug)]
pub(crate) struct DevicePictures {
    context: Arc<Context>,
    engine: Engine,
    index: Index,
    /// Of each image.
    places: Vec<PixelPlace>,
    hold_timeout: Duration,
    /// Runs while live batches hold all memory of the device.
    held: Option<RunningClock>,
    planned: u64,
    at_start: u64,
}

impl DevicePictures {
    /// Of a device whose memory is taken: `pixels` bytes of it by images.
    ///
    /// # Errors
    /// When the device does not answer.
    pub(crate) fn new(
        context: Arc<Context>,
        run: DeviceRun<'_>,
        places: Vec<PixelPlace>,
        pixels: u64,
    ) -> Result<Self> {
        let mut this = Self {
            context,
            engine: run.engine,
            index: run.index,
            places,
            hold_timeout: run.hold_timeout,
            held: None,
            planned: run.bytes.with(pixels),
            at_start: 0,
        };
        this.at_start = this.used_bytes()?;
        Ok(this)
    }

    /// Waits for the next image and puts it where the kernel reads it: its number and bytes.
    /// `coming(0)` is that image, `coming(n)` the n-th behind it, as far as they are known.
    /// None when it is not there within `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; what ends the pool; a device error.
    pub(crate) fn next(
        &mut self,
        coming: &impl Fn(usize) -> Option<u32>,
        pictures: &Pictures,
        stage: &mut SceneStage,
        limit: Duration,
    ) -> Result<Option<(u32, usize)>> {
        let places = |n: usize| coming(n).map(PicturesSpec::place);
        let Some(filled) = self.engine.next_within(&places, limit)? else {
            return Ok(None);
        };
        let put = self.put(&filled, coming(0), pictures, stage);
        if put.is_err() {
            // The next call begins anew with this image.
            self.engine.cancel();
        }
        put.map(Some)
    }

    /// Puts the image of a ticket where the kernel reads it.
    fn put(
        &self,
        filled: &Filled,
        wanted: Option<u32>,
        pictures: &Pictures,
        stage: &mut SceneStage,
    ) -> Result<(u32, usize)> {
        let image = filled.place.batch;
        if let Some(bad) = filled.bad.first() {
            let (named, fault) = named_image(&bad.fault);
            let (id, file) = named.unwrap_or((image, image));
            return Err(self.fault(id, file, fault));
        }
        let image = wanted.filter(|wanted| u64::from(*wanted) == image);
        let image = image.ok_or_else(|| Error::protocol("an image that nobody asked for"))?;
        let bytes = pictures.places().of(image as usize);
        let bytes = bytes.map_or(0, |range| (range.end - range.start) as usize);
        if let Some(PixelPlace::Device(at)) = self.places.get(image as usize).copied() {
            stage.put_pixels(at, bytes, |from, out| {
                let read = pictures.read_part(image as usize, from, out);
                read.map_err(|fault| self.fault(image.into(), image.into(), fault))
            })?;
        }
        Ok((image, bytes))
    }

    fn fault(&self, id: u64, file: u64, fault: SampleFault) -> Error {
        Error::Sample {
            id,
            path: self.index.path(file),
            fault,
        }
    }

    /// Whether images are decoded ahead of need: not in this process.
    pub(crate) fn goes_ahead(&self) -> bool {
        !matches!(self.engine, Engine::InProcess(_))
    }

    /// Images will come in another order.
    pub(crate) fn cancel(&mut self) {
        self.engine.cancel();
    }

    /// Waits until there is memory for a batch; false when that takes longer than `most`.
    ///
    /// # Errors
    /// Every batch held for too long.
    pub(crate) fn make_room(&mut self, stage: &SceneStage, most: Duration) -> Result<bool> {
        let began = Instant::now();
        while !stage.has_room() {
            let waited = self.held.get_or_insert_with(RunningClock::start).read(LOOK);
            if waited >= self.hold_timeout {
                self.held = None;
                let depth = stage.outputs();
                return Err(Error::SlotsHeld {
                    what: format!(
                        "all {depth} batches on the device are held, and none was dropped within \
                         {:?}: drop batches earlier, or raise `depth` above {depth}",
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
    pub(crate) fn memory(&self, stage: &SceneStage) -> Result<DeviceMemory> {
        Ok(DeviceMemory {
            upload: crate::device::Upload::Copied,
            planned_bytes: self.planned,
            at_context_bytes: self.context.used_bytes_at_start(),
            at_start_bytes: self.at_start,
            used_bytes: self.used_bytes()?,
            pinned_bytes: stage.pinned_bytes() as u64,
        })
    }

    /// What workers did so far.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.engine.report()
    }
}

impl Drop for DevicePictures {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}
