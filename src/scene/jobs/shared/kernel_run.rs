//! Batches in order, made by a device.
//!
//! Runs in the consumer. Images are uploaded in the order of the steps, before the first step that
//! needs them (`scene::jobs::device_images`). A batch is one launch of a kernel. Not here: which
//! kernel.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::device::cuda::{CudaContext, SceneStage};
use crate::device::scene_launch::PixelPlace;
use crate::device::{DeviceMemory, DeviceRows};
use crate::error::Result;
use crate::scene::image_store::ImageStore;
use crate::scene::jobs::device_images::image_uploads::{AHEAD, DeviceImages, DeviceRun};
use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};

/// Kernel and images of the steps, for one kind of run.
pub(crate) trait KernelSteps: Debug {
    type Arrays: SceneArrays;
    /// The caller's parameter of a step.
    type Request: Copy;

    fn stage(&self) -> &SceneStage;

    /// Returns a function for the n-th image to upload, and the stage to upload it to.
    fn upcoming_images(&mut self) -> (impl Fn(usize) -> Option<u32>, &mut SceneStage);

    /// Whether all images are uploaded.
    fn is_complete(&self) -> bool;

    /// Whether a step needs images that are not uploaded. If so, they become the first to upload.
    fn needs_images(&mut self, step: u64) -> bool;

    /// Records that the first image to upload is ready.
    fn mark_uploaded(&mut self, image: u32);

    /// Moves to another step. Returns whether the order of images to upload changes.
    fn go_to(&mut self, step: u64) -> bool;

    /// Launches the batch of a step. Its images must be uploaded.
    ///
    /// # Errors
    /// A device error.
    fn launch(&mut self, step: u64, request: Self::Request) -> Result<(DeviceRows, Self::Arrays)>;
}

/// Batches from a device, step by step.
#[derive(Debug)]
pub(crate) struct KernelRun<S> {
    // First field, because dropping its stage waits for the device.
    steps: S,
    pub(crate) images: DeviceImages,
    /// Whether an image failed that no step needs yet.
    failed_ahead: bool,
}

impl<S: KernelSteps> KernelRun<S> {
    /// `steps` have allocated the device's memory, `pixel_bytes` of it for images. `places` states
    /// where the images are.
    ///
    /// # Errors
    /// A device that does not answer.
    pub(crate) fn new(
        steps: S,
        (context, run): (Arc<CudaContext>, DeviceRun<'_>),
        (places, pixel_bytes): (Vec<PixelPlace>, u64),
    ) -> Result<Self> {
        Ok(Self {
            steps,
            images: DeviceImages::new(context, run, places, pixel_bytes)?,
            failed_ahead: false,
        })
    }

    /// Maximum number of batches on the device.
    pub(crate) fn depth(&self) -> u32 {
        self.steps.stage().outputs() as u32
    }

    /// Continues at another step. Images on the device stay.
    pub(crate) fn go_to(&mut self, step: u64) {
        if self.steps.go_to(step) {
            self.images.cancel();
            self.failed_ahead = false;
        }
    }

    /// Returns the batch of `step`, or `None` if its images or memory for it are not ready within
    /// `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; every batch held for too long; an error that ends the pool; a
    /// device error.
    pub(crate) fn next_within(
        &mut self,
        step: u64,
        pictures: &ImageStore,
        request: S::Request,
        limit: Duration,
    ) -> Result<Option<SceneBatch<S::Arrays>>> {
        let began = Instant::now();
        let left = || limit.saturating_sub(began.elapsed());
        while self.steps.needs_images(step) {
            if self.upload_next(pictures, left())?.is_none() {
                return Ok(None);
            }
            self.failed_ahead = false;
        }
        if !self.images.wait_for_memory(self.steps.stage(), left())? {
            return Ok(None);
        }
        let (rows, arrays) = self.steps.launch(step, request)?;
        let batch = SceneBatch::device(rows, arrays, step);
        self.upload_ahead(pictures);
        Ok(Some(batch))
    }

    /// Uploads images that workers have finished, ahead of need. If an image fails, the step that
    /// needs it retries it and reports the error.
    fn upload_ahead(&mut self, pictures: &ImageStore) {
        let mut bytes = 0;
        while bytes < AHEAD
            && !self.failed_ahead
            && !self.steps.is_complete()
            && self.images.uploads_ahead()
        {
            match self.upload_next(pictures, Duration::ZERO) {
                Ok(Some(more)) => bytes += more,
                Ok(None) => break,
                Err(_) => self.failed_ahead = true,
            }
        }
    }

    /// Waits for the next image and makes it readable by the kernel. Returns its bytes.
    fn upload_next(&mut self, pictures: &ImageStore, limit: Duration) -> Result<Option<usize>> {
        let came = {
            let (upcoming, stage) = self.steps.upcoming_images();
            self.images.next(&upcoming, pictures, stage, limit)?
        };
        let Some((image, bytes)) = came else {
            return Ok(None);
        };
        self.steps.mark_uploaded(image);
        if self.steps.is_complete() {
            self.steps.upcoming_images().1.free_decoder();
        }
        Ok(Some(bytes))
    }

    /// Returns the use of device memory.
    ///
    /// # Errors
    /// A device that does not answer.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        self.images.memory(self.steps.stage())
    }
}
