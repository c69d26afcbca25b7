//! Batches in order, made by a device.
//!
//! In the consumer. Images go up before the first step that needs them
//! (`scene::jobs::pictures`), in the
//! order of the steps. A batch is one launch of a kernel. Never in here: which kernel.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::device::cuda::{Context, SceneStage};
use crate::device::scene_launch::PixelPlace;
use crate::device::{DeviceMemory, DeviceRows};
use crate::error::Result;
use crate::scene::jobs::pictures::on_device::{AHEAD, DevicePictures, DeviceRun};
use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};
use crate::scene::store::Pictures;

/// What a kind of run knows of its steps: its kernel, and which images they need.
pub(crate) trait KernelSteps: Debug {
    type Arrays: SceneArrays;
    /// What is asked of a step.
    type Request: Copy;

    fn stage(&self) -> &SceneStage;

    /// The n-th image that is to come, and the stage that it comes to.
    fn coming(&mut self) -> (impl Fn(usize) -> Option<u32>, &mut SceneStage);

    /// Whether all images have come.
    fn is_complete(&self) -> bool;

    /// Whether a step needs images that have not come: they are the first to come.
    fn lacks(&mut self, step: u64) -> bool;

    /// The first image that was to come is where the kernel reads it.
    fn came(&mut self, image: u32);

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
    pub(crate) pictures: DevicePictures,
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
        (context, run): (Arc<Context>, DeviceRun<'_>),
        (places, pixel_bytes): (Vec<PixelPlace>, u64),
    ) -> Result<Self> {
        Ok(Self {
            steps,
            pictures: DevicePictures::new(context, run, places, pixel_bytes)?,
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
            self.pictures.cancel();
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
        pictures: &Pictures,
        request: S::Request,
        limit: Duration,
    ) -> Result<Option<SceneBatch<S::Arrays>>> {
        let began = Instant::now();
        let left = || limit.saturating_sub(began.elapsed());
        while self.steps.lacks(step) {
            if self.one_more(pictures, left())?.is_none() {
                return Ok(None);
            }
            self.failed_ahead = false;
        }
        if !self.pictures.make_room(self.steps.stage(), left())? {
            return Ok(None);
        }
        let (rows, arrays) = self.steps.launch(step, request)?;
        let batch = SceneBatch::device(rows, arrays, step);
        self.ahead(pictures);
        Ok(Some(batch))
    }

    /// Puts what workers have finished on the device ahead of need. The error of an image is
    /// reported by the step that needs it, and the image is not tried before.
    fn ahead(&mut self, pictures: &Pictures) {
        let mut bytes = 0;
        while bytes < AHEAD
            && !self.failed_ahead
            && !self.steps.is_complete()
            && self.pictures.goes_ahead()
        {
            match self.one_more(pictures, Duration::ZERO) {
                Ok(Some(more)) => bytes += more,
                Ok(None) => break,
                Err(_) => self.failed_ahead = true,
            }
        }
    }

    /// Waits for the next image and puts it where the kernel reads it: its bytes.
    fn one_more(&mut self, pictures: &Pictures, limit: Duration) -> Result<Option<usize>> {
        let came = {
            let (coming, stage) = self.steps.coming();
            self.pictures.next(&coming, pictures, stage, limit)?
        };
        let Some((image, bytes)) = came else {
            return Ok(None);
        };
        self.steps.came(image);
        if self.steps.is_complete() {
            self.steps.coming().1.end_decoding();
        }
        Ok(Some(bytes))
    }

    /// What the device's memory is used for.
    ///
    /// # Errors
    /// When the device does not answer.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        self.pictures.memory(self.steps.stage())
    }
}
