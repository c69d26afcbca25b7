//! Uploads images from workers to a device, and reports the device's memory.
//!
//! Runs in the consumer. Each image is uploaded once, before the first launch that may read it: as
//! pixels that a worker decoded into the image store, or as a coded JPEG that the device decodes.
//! If the device flags a JPEG, a worker decodes it instead, and the worker's result counts. All
//! uploads happen within calls; there is no thread.

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

/// Sleep between checks while every batch on the device is held.
const LOOK: Duration = Duration::from_micros(200);

/// Sleep between checks of parts that the device decodes. A part takes about a millisecond.
const DECODING: Duration = Duration::from_micros(50);

/// Maximum bytes uploaded ahead of need within one step. The step waits for them.
pub(crate) const AHEAD: usize = 32 << 20;

/// Inputs of a run on a device, before the device is opened.
#[derive(Debug)]
pub(crate) struct DeviceRun<'a> {
    pub(crate) ordinal: u32,
    pub(crate) store: &'a ImageStore,
    /// The workers that decode images.
    pub(crate) filler: RowFiller,
    /// The image files.
    pub(crate) index: Index,
    /// Planned device memory.
    pub(crate) bytes: SceneDeviceBytes,
    pub(crate) hold_timeout: Duration,
}

impl DeviceRun<'_> {
    /// Sizes of a stage for batches of up to `batch` bytes and `pixels` bytes of images.
    pub(crate) fn kernel_room(&self, batch: usize, pixels: u64) -> SceneStageSize {
        SceneStageSize {
            outputs: self.bytes.batches as usize,
            output_bytes: batch,
            pixel_bytes: pixels,
            jpegs: self.bytes.jpegs.map(|jpegs| jpegs.limits),
        }
    }

    /// The memory of the image store, if the device reads images in it.
    ///
    /// # Errors
    /// A store in a file: no device can read it.
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

/// The images of a run on a device.
#[derive(Debug)]
pub(crate) struct DeviceImages {
    context: Arc<CudaContext>,
    filler: RowFiller,
    index: Index,
    /// Where the kernel reads each image.
    places: Vec<PixelPlace>,
    /// Maximum sizes of a part of JPEGs; `None` if workers decode all images.
    limits: Option<PartLimits>,
    pending: PendingImages,
    /// A coded image that did not fit in the current part. It comes before all later images.
    postponed: Option<FilledBatch>,
    /// Images of the parts in progress will be requested again, so their results are dropped.
    is_cancelled: bool,
    /// Images that the device flagged.
    flagged: HashSet<u32>,
    /// For each image, whether kernels may read it.
    ready: Vec<bool>,
    /// Number of images that the device decoded.
    decoded: u64,
    hold_timeout: Duration,
    /// Runs while live batches hold all batch memory.
    held_since: Option<RunningClock>,
    planned: u64,
    at_start: u64,
}

impl DeviceImages {
    /// `pixels`: bytes of device memory that the images take. The stage has already allocated its
    /// memory.
    ///
    /// # Errors
    /// A device that does not answer.
    pub(crate) fn new(
        context: Arc<CudaContext>,
        run: DeviceRun<'_>,
        places: Vec<PixelPlace>,
        pixels: u64,
    ) -> Result<Self> {
        let mut this = Self {
            context,
            filler: run.filler,
            index: run.index,
            ready: vec![false; places.len()],
            places,
            limits: run.bytes.jpegs.map(|jpegs| jpegs.limits),
            pending: PendingImages::default(),
            postponed: None,
            is_cancelled: false,
            flagged: HashSet::new(),
            decoded: 0,
            hold_timeout: run.hold_timeout,
            held_since: None,
            planned: run.bytes.bytes_with_images(pixels),
            at_start: 0,
        };
        this.at_start = this.used_bytes()?;
        Ok(this)
    }

    /// Waits for the next image and makes it readable by the kernel. Returns its number and bytes,
    /// or `None` if it is not ready within `limit`. `upcoming(0)` is that image, and `upcoming(n)`
    /// the n-th image after it, if known.
    ///
    /// # Errors
    /// An image that cannot be read; an error that ends the pool; a device error.
    pub(crate) fn next(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<u32>,
        pictures: &ImageStore,
        stage: &mut SceneStage,
        limit: Duration,
    ) -> Result<Option<(u32, usize)>> {
        let began = Instant::now();
        loop {
            if std::mem::take(&mut self.is_cancelled) {
                stage.cancel_coded()?;
            }
            while let Some(errors) = stage.poll_decoded()? {
                self.pending.finish_decoding(&errors);
                self.decoded += errors.iter().filter(|error| **error == 0).count() as u64;
            }
            if let Some(image) = self.pending.take_first() {
                match image.state {
                    PendingState::Failed(e) => {
                        // The next call restarts with this image.
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
            let look = match self.pending.is_empty() {
                true => left,
                false => DECODING.min(left),
            };
            let came = self.collect_images(upcoming, pictures, stage, look);
            // Submit after an error, too. The cancel drops these images with all others in
            // progress.
            stage.submit_coded()?;
            if came.is_err() {
                self.cancel();
            }
            if !came? {
                if left.is_zero() {
                    return Ok(None);
                }
                if !self.pending.is_empty() {
                    std::thread::sleep(DECODING);
                }
            }
        }
    }

    /// Takes finished images from the workers. Waits for the first one up to `limit`. Adds coded
    /// images to the next part. Returns whether any image arrived.
    fn collect_images(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<u32>,
        pictures: &ImageStore,
        stage: &mut SceneStage,
        mut limit: Duration,
    ) -> Result<bool> {
        let mut came = false;
        while self.pending.accepts_more()
            && stage.can_add_coded()
            && (self.uploads_ahead() || self.pending.is_empty())
        {
            let before = self.pending.len();
            let Some(image) = upcoming(before) else {
                break;
            };
            let filled = match self.postponed.take() {
                Some(filled) => filled,
                None => {
                    let flagged = &self.flagged;
                    let places = |n: usize| {
                        let image = upcoming(before + n)?;
                        Some(DeviceImagesSpec::place(image, flagged.contains(&image)))
                    };
                    match self.filler.next_within(&places, limit)? {
                        Some(filled) => filled,
                        None => break,
                    }
                }
            };
            limit = Duration::ZERO;
            self.postponed = self.route_image(filled, image, pictures, stage)?;
            if self.postponed.is_some() {
                break;
            }
            came = true;
        }
        Ok(came)
    }

    /// Uploads the image of a ticket, or adds it to the next part. Returns the image if it is coded
    /// and the next part has no space for it.
    ///
    /// # Errors
    /// An unexpected image; a row that no worker writes.
    fn route_image(
        &mut self,
        filled: FilledBatch,
        image: u32,
        pictures: &ImageStore,
        stage: &mut SceneStage,
    ) -> Result<Option<FilledBatch>> {
        if filled.place.number != u64::from(image) {
            return Err(Error::protocol("an image that was not requested"));
        }
        let range = pictures.layout().of(image as usize);
        let bytes = range.map_or(0, |range| (range.end - range.start) as usize);
        let state = match (filled.bad.first(), self.places.get(image as usize).copied()) {
            (Some(bad), _) => {
                let (named, fault) = untag_fault(&bad.fault);
                let (id, file) = named.unwrap_or((image.into(), image.into()));
                PendingState::Failed(self.fault(id, file, fault))
            }
            (None, Some(PixelPlace::Device(at))) => match coded_len(&filled.rows)? {
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
        self.pending.push(image, bytes, state);
        Ok(None)
    }

    /// Adds an image to the next part: `coded` bytes of a row, which decode to `bytes` bytes of
    /// pixels. Returns false if the part has no space for it.
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
        let wrong = || Error::protocol("a coded image differs from its worker's statement");
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

    /// Whether images are decoded ahead of need. With zero workers they are not.
    pub(crate) fn uploads_ahead(&self) -> bool {
        !matches!(self.filler, RowFiller::InProcess(_))
    }

    /// Cancels requested images, because the order changes.
    pub(crate) fn cancel(&mut self) {
        self.filler.cancel();
        self.pending.clear();
        self.postponed = None;
        self.is_cancelled = true;
    }

    /// Number of these images that kernels may read or that are in the image store.
    pub(crate) fn count(&self, images: &[u32], pictures: &ImageStore) -> usize {
        let is_ready = |image: u32| self.ready.get(image as usize) == Some(&true);
        let there = |image: &&u32| is_ready(**image) || pictures.is_present(**image as usize);
        images.iter().filter(there).count()
    }

    /// Number of images that the device decoded.
    pub(crate) fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Waits until a batch can be allocated. Returns false after `most`.
    ///
    /// # Errors
    /// Every batch held for too long.
    pub(crate) fn wait_for_memory(&mut self, stage: &SceneStage, most: Duration) -> Result<bool> {
        let began = Instant::now();
        while !stage.has_room() {
            let waited = self
                .held_since
                .get_or_insert_with(RunningClock::start)
                .read(LOOK);
            if waited >= self.hold_timeout {
                self.held_since = None;
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
        self.held_since = None;
        Ok(true)
    }

    fn used_bytes(&self) -> Result<u64> {
        let free = self.context.free_bytes()?;
        Ok(self.context.free_bytes_at_start().saturating_sub(free))
    }

    /// Returns the use of device memory.
    ///
    /// # Errors
    /// A device that does not answer.
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

    /// Returns the workers' report.
    ///
    /// # Errors
    /// A coordinator that does not answer.
    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.filler.report()
    }
}

/// Length of the coded image after the header of a row; `None` if the image is in the image store.
///
/// # Errors
/// A row without a header.
fn coded_len(rows: &RowMemory) -> Result<Option<usize>> {
    let mut head = [0; HEAD];
    match rows.copy(0, &mut head) {
        true => Ok(coded_bytes(head)),
        false => Err(Error::protocol("a row is too short for its header")),
    }
}

impl Drop for DeviceImages {
    /// Drops all requested images.
    fn drop(&mut self) {
        self.filler.cancel();
    }
}
