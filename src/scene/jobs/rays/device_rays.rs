//! Rays from a device: its kernel, and the images that steps draw from.
//!
//! Runs in the consumer.

use std::sync::Arc;

use crate::device::DeviceRows;
use crate::device::cuda::{CudaContext, RayStage, SceneStage};
use crate::error::Result;
use crate::scene::draw::RayTable;
use crate::scene::jobs::device_images::image_uploads::DeviceRun;
use crate::scene::jobs::rays::batch::StepRays;
use crate::scene::jobs::rays::fields::RayLayout;
use crate::scene::jobs::rays::kernel_scene;
use crate::scene::jobs::rays::spec::RaysSpec;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::kernel_run::{KernelRun, KernelSteps};
use crate::scene::jobs::shared::masks::SceneMasks;

/// Makes rays on a device.
#[derive(Debug)]
pub struct DeviceRays {
    stage: RayStage,
    table: Arc<RayTable>,
    /// Number of images that are ready, in the order in which images join.
    ready: usize,
    spec: RaysSpec,
}

impl DeviceRays {
    /// Opens the device and allocates all device memory of the run.
    ///
    /// # Errors
    /// No such device; memory beyond the device's or the limit.
    pub(crate) fn open(
        frames: &StoredFrames,
        (table, masks): (Arc<RayTable>, &SceneMasks),
        spec: RaysSpec,
        run: DeviceRun<'_>,
    ) -> Result<KernelRun<Self>> {
        let layout = RayLayout::new(spec.most_rays as usize, spec.form);
        let scene = kernel_scene::scene(frames, &table, masks, run.bytes.image_room());
        let room = run.kernel_room(layout.bytes(), scene.pixel_bytes);
        let places = scene.places.clone();
        let store = run.host_store(&places)?;
        let context = CudaContext::open(run.ordinal)?;
        let stage = RayStage::new(&context, scene, store, room)?;
        let steps = Self {
            stage,
            table,
            ready: 0,
            spec,
        };
        KernelRun::new(steps, (context, run), (places, room.pixel_bytes))
    }
}

impl KernelSteps for DeviceRays {
    type Arrays = StepRays;
    type Request = u64;

    fn stage(&self) -> &SceneStage {
        self.stage.stage()
    }

    fn upcoming_images(&mut self) -> (impl Fn(usize) -> Option<u32>, &mut SceneStage) {
        let (drawn, ready) = (self.table.drawn_images(), self.ready);
        let upcoming = move |n: usize| drawn.get(ready + n).copied();
        (upcoming, self.stage.stage_mut())
    }

    fn is_complete(&self) -> bool {
        self.ready == self.table.drawn_images().len()
    }

    fn needs_images(&mut self, step: u64) -> bool {
        self.ready < self.table.images_at(step) as usize
    }

    fn mark_uploaded(&mut self, _: u32) {
        self.ready += 1;
    }

    fn go_to(&mut self, _: u64) -> bool {
        // The order of images is the same for every step.
        false
    }

    fn launch(&mut self, step: u64, rays: u64) -> Result<(DeviceRows, StepRays)> {
        let rays = rays as usize;
        let layout = RayLayout::new(rays, self.spec.form);
        let step = self.table.step(step, self.spec.rank);
        let numbers = self.table.numbers(&step);
        let launch = kernel_scene::launch(&numbers, layout, self.spec.depth_scale);
        let rows = self.stage.submit(&launch, layout.bytes())?;
        Ok((rows, StepRays { layout, rays }))
    }
}
