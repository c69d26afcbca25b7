//! A scene on the device, and batches of its rays: one launch each.
//!
//! In the consumer. Table, cameras, frames and masks are there from the beginning. Pixels arrive
//! later.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::CudaContext;
use super::device_rows::DeviceRows;
use super::loaded_kernel::LaunchGrid;
use super::memory::DeviceBuffer;
use super::scene_stage::{SceneKernel, SceneStage, SceneStageSize};
use crate::device::ray_launch::{KernelRays, RAYS_BLOCK, RAYS_KERNEL, RayScene};
use crate::error::Result;
use crate::sys::shared_memory::SharedMemory;

const KERNEL: SceneKernel = SceneKernel {
    ptx: include_str!("../../../kernels/rays.ptx"),
    name: RAYS_KERNEL,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct RayStage {
    // First, since its drop waits.
    stage: SceneStage,
    /// Device addresses of the scene's parts, as in [`KernelRays::scene`].
    parts: [u64; 9],
    #[expect(dead_code, reason = "held for the kernel")]
    scene: DeviceBuffer,
}

impl RayStage {
    /// Allocates all device memory of the run. `store`: host memory of
    /// [`PixelPlace::Host`](crate::device::scene_launch::PixelPlace::Host).
    ///
    /// # Errors
    /// The device has not enough memory; the driver cannot load the kernel.
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        mut scene: RayScene<'_>,
        store: Option<SharedMemory>,
        room: SceneStageSize,
    ) -> Result<Self> {
        let mut stage = SceneStage::new(context, KERNEL, store, room)?;
        for (frame, place) in scene.frames.iter_mut().zip(&scene.places) {
            frame.pixels = stage.address(*place)?;
        }
        let parts = [
            scene.table,
            scene.masks,
            bytemuck::cast_slice(&scene.cameras),
            bytemuck::cast_slice(&scene.frames),
            bytemuck::cast_slice(&scene.shutters),
        ];
        let (buffer, begins) = stage.buffer_of(context, parts, "cameras and masks")?;
        let [table, masks, cameras, frames, shutters] = begins;
        let [sums, weights, images, order, counts] =
            scene.parts.map(|at| table + at as CUdeviceptr);
        Ok(Self {
            stage,
            parts: [
                sums, weights, images, order, counts, masks, cameras, frames, shutters,
            ],
            scene: buffer,
        })
    }

    /// The images and the batches.
    pub(crate) fn stage(&self) -> &SceneStage {
        &self.stage
    }

    /// Like [`RayStage::stage`].
    pub(crate) fn stage_mut(&mut self) -> &mut SceneStage {
        &mut self.stage
    }

    /// Launches the rays of a step. Its arrays have `bytes` bytes.
    ///
    /// # Errors
    /// As `SceneStage::submit`.
    pub(crate) fn submit(&mut self, rays: &KernelRays, bytes: usize) -> Result<DeviceRows> {
        let grid = LaunchGrid {
            blocks: (rays.rays.div_ceil(RAYS_BLOCK), 1, 1),
            threads: (RAYS_BLOCK, 1),
            shared: 0,
        };
        // SAFETY: the argument is the kernel's (`device::ray_launch`). Images that it draws
        // from were put, as the caller says; the table was checked when it was sealed, so that
        // no number of it leads out, and no other process writes it. The arrays of `rays` lie
        // where `kernel_scene::launch` took them from the layout, whose bytes are `bytes`.
        // `scene` is dropped after the stage.
        unsafe {
            self.stage.submit(bytes, grid, |out| KernelRays {
                scene: self.parts,
                out,
                ..*rays
            })
        }
    }
}
