//! Views from a device: its kernel, and the images of the steps.
//!
//! Runs in the consumer.

use crate::device::DeviceRows;
use crate::device::cuda::{CudaContext, SceneStage, ViewStage};
use crate::device::view_launch::{FLOAT, KernelView, STRAIGHT, ViewParts};
use crate::error::{Error, Result};
use crate::scene::jobs::device_images::image_uploads::DeviceRun;
use crate::scene::jobs::device_images::kernel_numbers::{camera, places};
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::kernel_run::{KernelRun, KernelSteps};
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::views::fields::ViewField;
use crate::scene::jobs::views::image_queue::ImageQueue;
use crate::scene::jobs::views::output_camera::{OutputCamera, OutputCameras};
use crate::scene::jobs::views::spec::ViewsSpec;
use crate::scene::jobs::views::view::StepImage;

/// Makes views on a device.
#[derive(Debug)]
pub struct DeviceViews {
    stage: ViewStage,
    /// Images that the kernel cannot read yet.
    missing: ImageQueue,
    /// First word of each image's mask.
    masks: Vec<u64>,
    frames: StoredFrames,
    output_cameras: OutputCameras,
    spec: ViewsSpec,
}

impl DeviceViews {
    /// Opens the device and allocates all device memory of the run.
    ///
    /// # Errors
    /// No such device; memory beyond the device's or the limit.
    pub(crate) fn open(
        (frames, output_cameras): (StoredFrames, OutputCameras),
        masks: &SceneMasks,
        spec: ViewsSpec,
        run: DeviceRun<'_>,
        step: u64,
    ) -> Result<KernelRun<Self>> {
        let (words, begins) = masks.words();
        let begins: Vec<u64> = begins.collect();
        let missing = ImageQueue::new(spec.order, frames.frames.len(), step);
        let (places, pixel_bytes) =
            places(&frames, &missing.images_in_order(), run.bytes.image_room());
        let room = run.kernel_room(output_cameras.most_bytes(&frames) as usize, pixel_bytes);
        let store = run.host_store(&places)?;
        let context = CudaContext::open(run.ordinal)?;
        let stage = ViewStage::new(&context, &places, words, store, room)?;
        let steps = Self {
            stage,
            missing,
            masks: begins,
            frames,
            output_cameras,
            spec,
        };
        KernelRun::new(steps, (context, run), (places, pixel_bytes))
    }
}

impl KernelSteps for DeviceViews {
    type Arrays = StepImage;
    type Request = ();

    fn stage(&self) -> &SceneStage {
        self.stage.stage()
    }

    fn upcoming_images(&mut self) -> (impl Fn(usize) -> Option<u32>, &mut SceneStage) {
        let missing = &self.missing;
        (move |n| missing.nth(n), self.stage.stage_mut())
    }

    fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    fn needs_images(&mut self, step: u64) -> bool {
        self.missing.needs_image(step)
    }

    fn mark_uploaded(&mut self, image: u32) {
        self.missing.mark_present(image as usize);
    }

    fn go_to(&mut self, step: u64) -> bool {
        self.missing.go_to(step);
        true
    }

    fn launch(&mut self, step: u64, (): ()) -> Result<(DeviceRows, StepImage)> {
        let image = self.spec.order.image(step) as usize;
        let (Some(layout), Some(output_camera), Some(source), Some(frame)) = (
            self.output_cameras.layout(&self.frames, image),
            self.output_cameras.of(&self.frames, image),
            self.frames.camera(image),
            self.frames.frames.get(image),
        ) else {
            return Err(Error::protocol("a view without an image"));
        };
        let to = output_camera.camera();
        let straight = match output_camera {
            OutputCamera::Straight(_) => STRAIGHT,
            OutputCamera::AsItIs(_) => 0,
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
        let image = image as u64;
        Ok((rows, StepImage { layout, image }))
    }
}
