//! Batches in order, made by a device.
//!
//! In the consumer. Images go up before the first step that needs them
//! (`scene::jobs::pictures`), in the
//! order of the steps. A batch is one launch of a kernel. Never in here: which kernel.

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

/// What a kind of run knows of its steps: its kernel, and which images they need.
pub(crate) trait KernelSteps: Debug {
    type Arrays: SceneArrays;
    /// What is asked of a step.
    type Request: Copy;

    fn stage(&self) -> &SceneStage;

    /// The n-th image that is to come, and the stage that it comes to.
    fn upcoming_images(&mut self) -> (impl Fn(usize) -> Option<u32>, &mut SceneStage);

    /// Whether all images have come.
    fn is_complete(&self) -> bool;

    /// Whether a step needs images that have not come: they are the first to come.
    fn needs_images(&mut self, step: u64) -> bool;

    /// The first image that was to come is where the kernel reads it.
    fn mark_uploaded(&mut self, image: u32);

    /// Another step is the next. Whether other images are to come now.
    fn go_to(&mut self, step: u64) -> bool;

    /// Launches the batch of a step, whose images have come.
    ///
    /// # Errors
    /// A device error.
    fn launch(&mut self, step: u64, request: Self::Request) -> Result<(DeviceRows, Self::Arrays)>;
}

/// Batches step by step, on a device.
#[derive(Debug)]
pub(crate) struct KernelRun<S> {
    // First, as its stage waits at its end.
    steps: S,
    pub(crate) images: DeviceImages,
    /// An image that is not needed yet failed.
    failed_ahead: bool,
}

impl<S: KernelSteps> KernelRun<S> {
    /// Of a device whose memory `steps` have taken: `pixel_bytes` of it by images, which lie at
    /// `places`.
    ///
    /// # Errors
    /// When the device does not answer.
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

    /// Batches that may be on the device at a time.
    pub(crate) fn depth(&self) -> u32 {
        self.steps.stage().outputs() as u32
    }

    /// Goes on at another step: images that are on the device stay.
    pub(crate) fn go_to(&mut self, step: u64) {
        if self.steps.go_to(step) {
            self.images.cancel();
            self.failed_ahead = false;
        }
    }

    /// The batch of `step`; none when its images, or memory for it, are not there within `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; every batch held for too long; what ends the pool; a
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
            if self.one_more(pictures, left())?.is_none() {
                return Ok(None);
            }
            self.failed_ahead = false;
        }
        if !self.images.wait_for_memory(self.steps.stage(), left())? {
            return Ok(None);
        }
        let (rows, arrays) = self.steps.launch(step, request)?;
        let batch = SceneBatch::device(rows, arrays, step);
        self.ahead(pictures);
        Ok(Some(batch))
    }

    /// Puts what workers have finished on the device ahead of need. The error of an image is
    /// reported by the step that needs it, and the image is not tried before.
    fn ahead(&mut self, pictures: &ImageStore) {
        let mut bytes = 0;
        while bytes < AHEAD
            && !self.failed_ahead
            && !self.steps.is_complete()
            && self.images.uploads_ahead()
        {
            match self.one_more(pictures, Duration::ZERO) {
                Ok(Some(more)) => bytes += more,
                Ok(None) => break,
                Err(_) => self.failed_ahead = true,
            }
        }
    }

    /// Waits for the next image and puts it where the kernel reads it: its bytes.
    fn one_more(&mut self, pictures: &ImageStore, limit: Duration) -> Result<Option<usize>> {
        let came = {
            let (coming, stage) = self.steps.upcoming_images();
            self.images.next(&coming, pictures, stage, limit)?
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

    /// What the device's memory is used for.
    ///
    /// # Errors
    /// When the device does not answer.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        self.images.memory(self.steps.stage())
    }
}
