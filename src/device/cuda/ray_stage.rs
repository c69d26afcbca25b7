//! A scene on the device, and batches of its rays: one launch each.
//!
//! In the consumer. Table, cameras, frames and masks are there from the beginning, pixels as
//! they come. A batch copies nothing: all that it follows from are the arguments of its
//! launch. Launches follow each other in one stream, pixels come by another.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::{Context, Stream};
use super::mapped::Mapped;
use super::memory::DeviceBuffer;
use super::module::{Grid, Module};
use super::outputs::Outputs;
use super::rows::DeviceRows;
use super::uploads::Uploads;
use crate::device::ray_launch::{
    KernelRays, PixelPlace, RAYS_BLOCK, RAYS_KERNEL, RayScene, SCENE_ALIGN,
};
use crate::error::{Error, Result};
use crate::sys::shared::SharedMemory;

const PTX: &str = include_str!("../../../kernels/rays.ptx");

/// See the module.
#[derive(Debug)]
pub(crate) struct RayStage {
    // In this order: first what is waited for.
    uploads: Uploads,
    stream: Drained,
    kernel: Module,
    outputs: Outputs,
    /// Addresses of the scene's parts, as [`KernelRays::scene`] has them.
    parts: [u64; 9],
    #[expect(dead_code, reason = "held for the kernel")]
    scene: DeviceBuffer,
    pixels: DeviceBuffer,
    /// The store, where the device reads images in it.
    mapped: Option<Mapped>,
    /// Pixels were put since the last launch.
    put: bool,
}

/// Waits at its end, before anything that its work reads goes.
#[derive(Debug)]
struct Drained(Arc<Stream>);

impl Drop for Drained {
    fn drop(&mut self) {
        self.0.drain();
    }
}

impl RayStage {
    /// Takes all the memory that a run has on the device. `store` is the host's memory of
    /// [`PixelPlace::Host`].
    ///
    /// # Errors
    /// When the device has not enough memory, or the driver cannot load the kernel.
    pub(crate) fn new(
        context: &Arc<Context>,
        mut scene: RayScene<'_>,
        store: Option<SharedMemory>,
        outputs: usize,
        output_bytes: usize,
    ) -> Result<Self> {
        let mapped = store
            .map(|memory| Mapped::new(context, memory))
            .transpose()?;
        let pixels = DeviceBuffer::new(context, scene.pixel_bytes as usize, "images of a scene");
        let pixels = pixels.map_err(|e| Error::Device {
            what: format!("{e}; a gpu_memory_limit leaves images in the host's memory"),
        })?;
        for (frame, place) in scene.frames.iter_mut().zip(&scene.places) {
            frame.pixels = match (place, &mapped) {
                (PixelPlace::Device(at), _) if *at <= scene.pixel_bytes => pixels.address() + at,
                (PixelPlace::Host(at), Some(mapped)) if *at <= mapped.len() as u64 => {
                    mapped.address() + at
                }
                _ => {
                    return Err(Error::Device {
                        what: "an image lies outside of its memory".into(),
                    });
                }
            };
        }
        let mut uploads = Uploads::new(context)?;
        let buffer = DeviceBuffer::new(context, scene.bytes() as usize, "cameras and masks")?;
        let mut begin = 0;
        let mut begins = [0; 5];
        for (part, at) in [
            scene.table,
            scene.masks,
            bytemuck::cast_slice(&scene.cameras),
            bytemuck::cast_slice(&scene.frames),
            bytemuck::cast_slice(&scene.shutters),
        ]
        .into_iter()
        .zip(&mut begins)
        {
            *at = buffer.address() + begin as CUdeviceptr;
            // SAFETY: nothing reads the buffer before a launch, which waits for this.
            unsafe {
                uploads.put(&buffer, begin, part.len(), |from, to| {
                    to.copy_from_slice(&part[from..from + to.len()]);
                    Ok(())
                })?;
            }
            begin += part.len().next_multiple_of(SCENE_ALIGN);
        }
        let [table, masks, cameras, frames, shutters] = begins;
        let [sums, weights, images, order, counts] =
            scene.parts.map(|at| table + at as CUdeviceptr);
        Ok(Self {
            uploads,
            kernel: Module::load(context, PTX, RAYS_KERNEL)?,
            stream: Drained(Arc::new(Stream::new(context)?)),
            outputs: Outputs::new(context, outputs, output_bytes)?,
            parts: [
                sums, weights, images, order, counts, masks, cameras, frames, shutters,
            ],
            scene: buffer,
            pixels,
            mapped,
            put: true,
        })
    }

    /// Puts an image to its place on the device. `fill` gives its bytes from a place on.
    /// No launch before this may draw from it.
    pub(crate) fn put_pixels(
        &mut self,
        at: u64,
        len: usize,
        fill: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.put = true;
        // SAFETY: launches so far do not draw from the image, by this function's contract, and
        // what they read else lies elsewhere; later ones wait (`submit`). `pixels` lives longer
        // than `uploads`, which waits at its end.
        unsafe { self.uploads.put(&self.pixels, at as usize, len, fill) }
    }

    /// Launches the rays of a step, whose arrays take `bytes`.
    ///
    /// # Errors
    /// `SlotsHeld` when every batch of the stage is held (ask [`RayStage::has_room`] first);
    /// else a device error, which is the answer to every later call.
    pub(crate) fn submit(&mut self, rays: &KernelRays, bytes: usize) -> Result<DeviceRows> {
        let stream = &self.stream.0;
        if bytes > self.outputs.bytes() {
            return Err(Error::Device {
                what: format!(
                    "rays of {bytes} bytes do not fit the {} that they have on the device",
                    self.outputs.bytes()
                ),
            });
        }
        let mut output = self.outputs.take().ok_or_else(|| Error::SlotsHeld {
            what: format!(
                "all {} batches on the device are held: drop one before the next",
                self.outputs.count()
            ),
        })?;
        for event in output.take_events() {
            stream.wait_for(&event)?;
        }
        if self.put {
            stream.wait_for(&self.uploads.record()?)?;
            self.put = false;
        }
        let mut launch = KernelRays {
            scene: self.parts,
            out: output.buffer().map_or(0, DeviceBuffer::address),
            ..*rays
        };
        let grid = Grid {
            blocks: (rays.rays.div_ceil(RAYS_BLOCK), 1, 1),
            threads: (RAYS_BLOCK, 1),
            shared: 0,
        };
        // SAFETY: the one argument is the kernel's (`device::ray_launch`). What it points to
        // lives until the stream is drained in `drop`. Images that it draws from were put, as
        // the caller says; the table was checked when it was sealed, so that no number of it
        // leads out, and no other process writes it. The arrays of `rays` lie where
        // `kernel_scene::launch` took them from the layout, whose bytes the check above holds
        // to those of `out`, which is ours alone; the stream waits for its readers.
        unsafe {
            let mut arguments = [std::ptr::from_mut(&mut launch).cast()];
            self.kernel.launch(stream, grid, &mut arguments)?;
        }
        let ready = Arc::new(stream.record()?);
        Ok(DeviceRows::new(output, ready, stream.clone(), bytes))
    }

    /// True when a batch has memory on the device.
    pub(crate) fn has_room(&self) -> bool {
        self.outputs.has_free()
    }

    /// Batches that may be on the device at a time.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs.count()
    }

    /// Bytes of the host's memory that are pinned.
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.uploads.pinned_bytes() + self.mapped.as_ref().map_or(0, Mapped::len)
    }
}
