//! A scene on the device, and whole images of it: one launch each.
//!
//! In the consumer. Masks are there from the beginning. Pixels arrive later.

use std::sync::Arc;

use super::context::CudaContext;
use super::device_rows::DeviceRows;
use super::loaded_kernel::LaunchGrid;
use super::memory::DeviceBuffer;
use super::scene_stage::{SceneKernel, SceneStage, SceneStageSize};
use crate::device::scene_launch::PixelPlace;
use crate::device::view_launch::{KernelView, VIEWS_BLOCK, VIEWS_KERNEL, ViewParts};
use crate::error::{Error, Result};
use crate::sys::shared_memory::SharedMemory;

const KERNEL: SceneKernel = SceneKernel {
    ptx: include_str!("../../../kernels/views.ptx"),
    name: VIEWS_KERNEL,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct ViewStage {
    // First, since its drop waits.
    stage: SceneStage,
    /// Device address of each image.
    pixels: Vec<u64>,
    masks: DeviceBuffer,
    mask_words: u64,
}

impl ViewStage {
    /// Allocates all device memory of the run. `places`: those of the images. `store`: host memory
    /// of the images that are there.
    ///
    /// # Errors
    /// The device has not enough memory; the driver cannot load the kernel.
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        places: &[PixelPlace],
        masks: &[u8],
        store: Option<SharedMemory>,
        room: SceneStageSize,
    ) -> Result<Self> {
        let mut stage = SceneStage::new(context, KERNEL, store, room)?;
        let pixels = places.iter().map(|place| stage.address(*place));
        let pixels = pixels.collect::<Result<_>>()?;
        let mask_words = masks.len() as u64 / 8;
        let (masks, _) = stage.buffer_of(context, [masks], "masks")?;
        Ok(Self {
            stage,
            pixels,
            masks,
            mask_words,
        })
    }

    /// The images and the batches.
    pub(crate) fn stage(&self) -> &SceneStage {
        &self.stage
    }

    /// Like [`ViewStage::stage`].
    pub(crate) fn stage_mut(&mut self) -> &mut SceneStage {
        &mut self.stage
    }

    /// Launches a view.
    ///
    /// # Errors
    /// As `SceneStage::submit`.
    pub(crate) fn submit(&mut self, view: &ViewParts) -> Result<DeviceRows> {
        let pixels = self.pixels.get(view.image).copied();
        let pixels = pixels.filter(|_| view.fits(self.mask_words));
        let pixels = pixels.ok_or_else(|| Error::device("a view does not fit its memory"))?;
        let masks = self.masks.address();
        let [width, height] = view.launch.size;
        let grid = LaunchGrid {
            blocks: (
                width.div_ceil(VIEWS_BLOCK.0),
                height.div_ceil(VIEWS_BLOCK.1),
                1,
            ),
            threads: VIEWS_BLOCK,
            shared: 0,
        };
        // SAFETY: the argument is the kernel's (`device::view_launch`). Its image was put, as
        // the caller says. What the kernel reads of image and mask, and what it writes, lies
        // within `stored`, the masks and `bytes`: `fits` above. `masks` is dropped after the stage.
        unsafe {
            self.stage.submit(view.bytes, grid, |out| KernelView {
                pixels,
                mask: view.mask.map_or(0, |word| masks + 8 * word),
                out,
                ..view.launch
            })
        }
    }
}
