//! Views in order, made by a device.
//!
//! In the consumer. Images go up before the first step that shows them (`jobs::pictures`), in
//! the order of the steps. A view is one launch.

use std::time::{Duration, Instant};

use crate::device::DeviceMemory;
use crate::device::cuda::{Context, Room, ViewStage};
use crate::device::view_launch::{FLOAT, KernelView, STRAIGHT, ViewParts};
use crate::error::{Error, Result};
use crate::jobs::pictures::kernel_numbers::{camera, places};
use crate::jobs::pictures::on_device::{AHEAD, DevicePictures, DeviceRun};
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::held::Held;
use crate::jobs::scene::masks::Masks;
use crate::jobs::views::fields::ViewField;
use crate::jobs::views::queue::Queue;
use crate::jobs::views::shown::{Shown, ShownImages};
use crate::jobs::views::spec::ViewsSpec;
use crate::jobs::views::view::{A_VIEW, View};
use crate::pool::report::PoolReport;
use crate::store::Pictures;

/// Views step by step, on a device.
#[derive(Debug)]
pub(crate) struct DeviceViews {
    stage: ViewStage,
    pictures: DevicePictures,
    /// The images that are not where the kernel reads them.
    missing: Queue,
    /// Of each image the first word of its mask.
    masks: Vec<u64>,
    frames: StoredFrames,
    shown: ShownImages,
    spec: ViewsSpec,
    step: u64,
    /// An image that is not needed yet failed.
    failed_ahead: bool,
}

impl DeviceViews {
    /// Opens the device and takes all the memory that the run has there.
    ///
    /// # Errors
    /// No such device; what does not fit it, or the limit.
    pub(crate) fn open(
        (frames, shown): (StoredFrames, ShownImages),
        masks: &Masks,
        spec: ViewsSpec,
        run: DeviceRun<'_>,
        step: u64,
    ) -> Result<Self> {
        let (words, begins) = masks.words();
        let begins: Vec<u64> = begins.collect();
        let missing = Queue::new(spec.order, frames.frames.len(), step);
        let (places, pixel_bytes) = places(&frames, &missing.shown(), run.bytes.room());
        let room = Room {
            outputs: run.bytes.batches as usize,
            output_bytes: shown.most_bytes(&frames) as usize,
            pixel_bytes,
            jpegs: run.bytes.jpegs.map(|jpegs| jpegs.limits),
        };
        let store = run.host_store(&places)?;
        let context = Context::open(run.ordinal)?;
        let stage = ViewStage::new(&context, &places, words, store, room)?;
        Ok(Self {
            stage,
            pictures: DevicePictures::new(context, run, places, pixel_bytes)?,
            missing,
            masks: begins,
            frames,
            shown,
            spec,
            step,
            failed_ahead: false,
        })
    }

    /// Views that may be on the device at a time.
    pub(crate) fn depth(&self) -> u32 {
        self.stage.stage().outputs() as u32
    }

    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Goes on at another step: images that are on the device stay.
    pub(crate) fn go_to(&mut self, step: u64) {
        if step != self.step {
            self.pictures.cancel();
            self.missing.go_to(step);
            self.step = step;
            self.failed_ahead = false;
        }
    }

    /// The next view; none when its image, or memory for it, is not there within `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; every view held for too long; what ends the pool; a
    /// device error.
    pub(crate) fn next_within(
        &mut self,
        pictures: &Pictures,
        limit: Duration,
    ) -> Result<Option<View>> {
        let began = Instant::now();
        while self.missing.lacks(self.step) {
            let left = limit.saturating_sub(began.elapsed());
            if self.one_more(pictures, left)?.is_none() {
                return Ok(None);
            }
            self.failed_ahead = false;
        }
        let left = limit.saturating_sub(began.elapsed());
        if !self.pictures.make_room(self.stage.stage(), left)? {
            return Ok(None);
        }
        let view = self.launch(self.spec.order.image(self.step) as usize)?;
        self.step += 1;
        self.ahead(pictures);
        Ok(Some(view))
    }

    fn launch(&mut self, image: usize) -> Result<View> {
        let (Some(layout), Some(shown), Some(source), Some(frame)) = (
            self.shown.layout(&self.frames, image),
            self.shown.of(&self.frames, image),
            self.frames.camera(image),
            self.frames.frames.get(image),
        ) else {
            return Err(Error::protocol("a view of no image"));
        };
        let to = shown.camera();
        let straight = match shown {
            Shown::Straight(_) => STRAIGHT,
            Shown::AsItIs(_) => 0,
        };
        let launch = KernelView {
            camera: camera(source),
            pinhole: [to.fx, to.fy, to.cx, to.cy],
            depth_scale: self.spec.depth_scale,
            depths: self
                .frames
                .depth_begin(image)
                .map_or(0, |begin| begin as u64),
            arrays: ViewField::ALL.map(|field| layout.of(field).start as u64),
            size: [to.width, to.height],
            source: [source.width, source.height],
            channels: layout.channels as u32,
            form: straight | if layout.float { FLOAT } else { 0 },
            ..KernelView::default()
        };
        let mask = self.masks.get(image).copied();
        let stored = self.frames.places.of(image);
        let rows = self.stage.submit(&ViewParts {
            launch,
            image,
            stored: stored.map_or(0, |range| range.end - range.start),
            mask: mask.filter(|_| frame.has_mask),
            bytes: layout.bytes(),
        })?;
        Ok(View {
            held: Held::device(rows, A_VIEW),
            layout,
            image: image as u64,
            step: self.step,
        })
    }

    /// Puts what workers have finished on the device ahead of need. What fails is told by the
    /// step that needs the image, and not tried before.
    fn ahead(&mut self, pictures: &Pictures) {
        let mut bytes = 0;
        while bytes < AHEAD
            && !self.failed_ahead
            && !self.missing.is_empty()
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
        let missing = &self.missing;
        let coming = |n: usize| missing.nth(n);
        let stage = self.stage.stage_mut();
        let Some((image, bytes)) = self.pictures.next(&coming, pictures, stage, limit)? else {
            return Ok(None);
        };
        self.missing.came(image as usize);
        if self.missing.is_empty() {
            stage.end_decoding();
        }
        Ok(Some(bytes))
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
