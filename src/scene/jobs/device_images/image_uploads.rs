//! Images on their way from workers to a device, and the run's account of that device.
//!
//! In the consumer. Each image goes up once, before the first launch that may draw from it: as
//! pixels that a worker has decoded into the store, or as a coded JPEG that the device decodes. A
//! JPEG that the device flags is asked for once more, as pixels: the verdict is a worker's. All of
//! it happens within a call, no thread does it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::data::index::Index;
use crate::device::DeviceMemory;
use crate::device::cuda::{CudaContext, SceneStage, SceneStageSize};
use crate::device::jpeg_part::PartLimits;
use crate::device::scene_launch::PixelPlace;
use crate::error::{Error, Result, SampleFault};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::pool::filled_batch::{FilledBatch, RowMemory};
use crate::pool::pool_report::PoolReport;
use crate::pool::row_filler::RowFiller;
use crate::scene::image_store::{ImageStore, StoreBacking};
use crate::scene::jobs::device_images::device_bytes::SceneDeviceBytes;
use crate::scene::jobs::device_images::pending_images::{PendingImages, PendingState};
use crate::scene::jobs::device_images::spec::{DeviceImagesSpec, HEAD, coded_bytes};
use crate::scene::jobs::shared::spec::untag_fault;
use crate::sys::clock::RunningClock;
use crate::sys::shared_memory::SharedMemory;

/// How long to sleep while every batch on the device is held.
const LOOK: Duration = Duration::from_micros(200);

/// Between two looks at parts that the device decodes, which take about a millisecond.
const DECODING: Duration = Duration::from_micros(50);

/// What goes up ahead of need within one step, bytes: the step waits for it.
pub(crate) const AHEAD: usize = 32 << 20;

/// What a run on a device is told, and what it has before the device is opened.
#[derive(Debug)]
pub(crate) struct DeviceRun<'a> {
    pub(crate) ordinal: u32,
    pub(crate) store: &'a ImageStore,
    /// Decodes pictures.
    pub(crate) engine: RowFiller,
    /// The files of the images.
    pub(crate) index: Index,
    /// What all of it may take.
    pub(crate) bytes: SceneDeviceBytes,
    pub(crate) hold_timeout: Duration,
}

impl DeviceRun<'_> {
    /// What a stage takes for batches of at most `batch` bytes, and for `pixels` bytes of images.
    pub(crate) fn kernel_room(&self, batch: usize, pixels: u64) -> SceneStageSize {
        SceneStageSize {
            outputs: self.bytes.batches as usize,
            output_bytes: batch,
            pixel_bytes: pixels,
            jpegs: self.bytes.jpegs.map(|jpegs| jpegs.limits),
        }
    }

    /// The store's memory, where the device reads images in it.
    ///
    /// # Errors
    /// A store in a file, which no device reads.
    pub(crate) fn host_store(&self, places: &[PixelPlace]) -> Result<Option<SharedMemory>> {
        let is_host = |place: &PixelPlace| matches!(place, PixelPlace::Host(_));
        if !places.iter().any(is_host) {
            return Ok(None);
        }
        if self.store.backing() == StoreBacking::File {
            return Err(self.bytes.no_file());
        }
        self.store.map_copy()
    }
}

/// Images of a run on a device.
#[derive(Debug)]
pub(crate) struct DeviceImages {
    context: Arc<CudaContext>,
    engine: RowFiller,
    index: Index,
    /// Of each image.
    places: Vec<PixelPlace>,
    /// What a part of JPEGs may hold; none = workers decode all images.
    limits: Option<PartLimits>,
    under_way: PendingImages,
    /// A coded image that the part under way has no room for. Images follow it.
    left: Option<FilledBatch>,
    /// Parts under way are of images that will be asked for again.
    given_up: bool,
    /// Images that the device flagged.
    flagged: HashSet<u32>,
    /// Of each image, whether kernels may read it.
    ready: Vec<bool>,
    /// Images that the device decoded.
    decoded: u64,
    hold_timeout: Duration,
    /// Runs while live batches hold all memory of the device.
    held: Option<RunningClock>,
    planned: u64,
    at_start: u64,
}

impl DeviceImages {
    /// Of a device whose memory is taken: `pixels` bytes of it by images.
    ///
    /// # Errors
    /// When the device does not answer.
    pub(crate) fn new(
        context: Arc<CudaContext>,
        run: DeviceRun<'_>,
        places: Vec<PixelPlace>,
        pixels: u64,
    ) -> Result<Self> {
        let mut this = Self {
            context,
            engine: run.engine,
            index: run.index,
            ready: vec![false; places.len()],
            places,
            limits: run.bytes.jpegs.map(|jpegs| jpegs.limits),
            under_way: PendingImages::default(),
            left: None,
            given_up: false,
            flagged: HashSet::new(),
            decoded: 0,
            hold_timeout: run.hold_timeout,
            held: None,
            planned: run.bytes.bytes_with_images(pixels),
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
        pictures: &ImageStore,
        stage: &mut SceneStage,
        limit: Duration,
    ) -> Result<Option<(u32, usize)>> {
        let began = Instant::now();
        loop {
            if std::mem::take(&mut self.given_up) {
                stage.cancel_coded()?;
            }
            while let Some(errors) = stage.poll_decoded()? {
                self.under_way.finish_decoding(&errors);
                self.decoded += errors.iter().filter(|error| **error == 0).count() as u64;
            }
            if let Some(image) = self.under_way.take_first() {
                match image.state {
                    PendingState::Failed(e) => {
                        // The next call begins anew with this image.
                        self.cancel();
                        return Err(e);
                    }
                    PendingState::Flagged => {
                        self.flagged.insert(image.number);
                        self.cancel();
                        continue;
                    }
                    PendingState::Ready | PendingState::Decoding => {
                        if let Some(ready) = self.ready.get_mut(image.number as usize) {
                            *ready = true;
                        }
                        return Ok(Some((image.number, image.bytes)));
                    }
                }
            }
            let left = limit.saturating_sub(began.elapsed());
            let look = match self.under_way.is_empty() {
                true => left,
                false => DECODING.min(left),
            };
            let came = self.fetch(coming, pictures, stage, look);
            // After an error too: what was added is forgotten with all that is under way.
            stage.submit_coded()?;
            if came.is_err() {
                self.cancel();
            }
            if !came? {
                if left.is_zero() {
                    return Ok(None);
                }
                if !self.under_way.is_empty() {
                    std::thread::sleep(DECODING);
                }
            }
        }
    }

    /// Takes images that workers are done with, the first within `limit`, and adds coded ones to
    /// the part that is decoded next. Whether there was one.
    fn fetch(
        &mut self,
        coming: &impl Fn(usize) -> Option<u32>,
        pictures: &ImageStore,
        stage: &mut SceneStage,
        mut limit: Duration,
    ) -> Result<bool> {
        let mut came = false;
        while self.under_way.takes_more()
            && stage.can_add_coded()
            && (self.uploads_ahead() || self.under_way.is_empty())
        {
            let before = self.under_way.len();
            let Some(image) = coming(before) else {
                break;
            };
            let filled = match self.left.take() {
                Some(filled) => filled,
                None => {
                    let flagged = &self.flagged;
                    let places = |n: usize| {
                        let image = coming(before + n)?;
                        Some(DeviceImagesSpec::place(image, flagged.contains(&image)))
                    };
                    match self.engine.next_within(&places, limit)? {
                        Some(filled) => filled,
                        None => break,
                    }
                }
            };
            limit = Duration::ZERO;
            self.left = self.take(filled, image, pictures, stage)?;
            if self.left.is_some() {
                break;
            }
            came = true;
        }
        Ok(came)
    }

    /// Puts the image of a ticket on its way to where the kernel reads it. Gives it back if it is
    /// coded and the part that is put together has no room for it.
    ///
    /// # Errors
    /// Another image than the one that was asked for; a row that no worker writes.
    fn take(
        &mut self,
        filled: FilledBatch,
        image: u32,
        pictures: &ImageStore,
        stage: &mut SceneStage,
    ) -> Result<Option<FilledBatch>> {
        if filled.place.number != u64::from(image) {
            return Err(Error::protocol("an image that nobody asked for"));
        }
        let range = pictures.layout().of(image as usize);
        let bytes = range.map_or(0, |range| (range.end - range.start) as usize);
        let state = match (filled.bad.first(), self.places.get(image as usize).copied()) {
            (Some(bad), _) => {
                let (named, fault) = untag_fault(&bad.fault);
                let (id, file) = named.unwrap_or((image.into(), image.into()));
                PendingState::Failed(self.fault(id, file, fault))
            }
            (None, Some(PixelPlace::Device(at))) => match coded_in(&filled.rows)? {
                Some(coded) => {
                    if !self.add_coded((&filled.rows, coded), bytes, at, stage)? {
                        return Ok(Some(filled));
                    }
                    PendingState::Decoding
                }
                None => {
                    let put = stage.upload_pixels(at, bytes, |from, out| {
                        let read = pictures.read_part(image as usize, from, out);
                        read.map_err(|fault| self.fault(image.into(), image.into(), fault))
                    });
                    put.map_or_else(PendingState::Failed, |()| PendingState::Ready)
                }
            },
            (None, _) => PendingState::Ready,
        };
        self.under_way.push(image, bytes, state);
        Ok(None)
    }

    /// Adds an image to those that the device decodes next: `coded` bytes of a row, which give so
    /// many bytes of pixels. False if it has no room beside them.
    ///
    /// # Errors
    /// A row that no worker writes.
    fn add_coded(
        &self,
        (rows, coded): (&RowMemory, usize),
        bytes: usize,
        at: u64,
        stage: &mut SceneStage,
    ) -> Result<bool> {
        let wrong = || Error::protocol("a coded image is not as its worker states");
        let limits = self.limits.ok_or_else(wrong)?;
        let copy = |from: usize, to: &mut [u8]| rows.copy(HEAD + from, to);
        let picture = CodedPicture::copied(coded, copy).map_err(|_| wrong())?;
        let (width, height) = picture.picture.size();
        if 3 * width as usize * height as usize != bytes {
            return Err(wrong());
        }
        let data = |to: &mut [u8]| copy(picture.data.start, to);
        let added = stage.add_coded(&picture, data, at)?;
        match added || limits.hold(&picture) {
            true => Ok(added),
            false => Err(wrong()),
        }
    }

    fn fault(&self, id: u64, file: u64, fault: SampleFault) -> Error {
        Error::Sample {
            id,
            path: self.index.path(file),
            fault,
        }
    }

    /// Whether images are decoded ahead of need: not in this process.
    pub(crate) fn uploads_ahead(&self) -> bool {
        !matches!(self.engine, RowFiller::InProcess(_))
    }

    /// Images will come in another order.
    pub(crate) fn cancel(&mut self) {
        self.engine.cancel();
        self.under_way.clear();
        self.left = None;
        self.given_up = true;
    }

    /// How many of these images kernels may read, or are in the store.
    pub(crate) fn count(&self, images: &[u32], pictures: &ImageStore) -> usize {
        let is_ready = |image: u32| self.ready.get(image as usize) == Some(&true);
        let there = |image: &&u32| is_ready(**image) || pictures.is_present(**image as usize);
        images.iter().filter(there).count()
    }

    /// Images that the device decoded.
    pub(crate) fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Waits until there is memory for a batch; false when that takes longer than `most`.
    ///
    /// # Errors
    /// Every batch held for too long.
    pub(crate) fn wait_for_memory(&mut self, stage: &SceneStage, most: Duration) -> Result<bool> {
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
            upload: crate::device::UploadMode::Copied,
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

/// How many bytes behind the head of a row are a coded picture; none where the image is in the store.
///
/// # Errors
/// A row without a head.
fn coded_in(rows: &RowMemory) -> Result<Option<usize>> {
    let mut head = [0; HEAD];
    match rows.copy(0, &mut head) {
        true => Ok(coded_bytes(head)),
        false => Err(Error::protocol("a row is too short for its head")),
    }
}

impl Drop for DeviceImages {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}
