//! Images of a scene on the device, and batches that one kernel makes of them.
//!
//! In the consumer. Pixels come as they are decoded, by a stream of their own; those of images
//! that the device has no room for are read in the host's memory. A batch copies nothing: all
//! that it follows from are the arguments of its launch. Launches follow each other in one
//! stream. What is drawn from the images is the business of `ray_stage` and `view_stage`.

use std::sync::Arc;

use bytemuck::Pod;

use super::context::{Context, Stream};
use super::mapped::Mapped;
use super::memory::DeviceBuffer;
use super::module::{Grid, Module};
use super::outputs::Outputs;
use super::rows::DeviceRows;
use super::uploads::Uploads;
use crate::device::scene_launch::{PixelPlace, SCENE_ALIGN};
use crate::error::{Error, Result};
use crate::sys::shared::SharedMemory;

/// See the module.
#[derive(Debug)]
pub(crate) struct SceneStage {
    // In this order: first what is waited for.
    uploads: Uploads,
    stream: Drained,
    kernel: Module,
    outputs: Outputs,
    pixels: DeviceBuffer,
    /// The store, where the device reads images in it.
    mapped: Option<Mapped>,
    /// Something was put since the last launch.
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

/// What batches are made by: the text of the kernel, its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    pub(super) ptx: &'static str,
    pub(super) name: &'static str,
}

/// Batches at a time, and the most bytes of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) outputs: usize,
    pub(crate) output_bytes: usize,
    /// Of the images on the device.
    pub(crate) pixel_bytes: u64,
}

impl SceneStage {
    /// Takes the memory of images and batches. `store` is the host's memory of
    /// [`PixelPlace::Host`].
    ///
    /// # Errors
    /// When the device has not enough memory, or the driver cannot load the kernel.
    pub(super) fn new(
        context: &Arc<Context>,
        kernel: Kernel,
        store: Option<SharedMemory>,
        room: Room,
    ) -> Result<Self> {
        let mapped = store
            .map(|memory| Mapped::new(context, memory))
            .transpose()?;
        let pixels = DeviceBuffer::new(context, room.pixel_bytes as usize, "images of a scene");
        let pixels = pixels.map_err(|e| Error::Device {
            what: format!("{e}; a gpu_memory_limit leaves images in the host's memory"),
        })?;
        Ok(Self {
            uploads: Uploads::new(context)?,
            kernel: Module::load(context, kernel.ptx, kernel.name)?,
            stream: Drained(Arc::new(Stream::new(context)?)),
            outputs: Outputs::new(context, room.outputs, room.output_bytes)?,
            pixels,
            mapped,
            put: true,
        })
    }

    /// Where the kernel reads an image.
    ///
    /// # Errors
    /// A place outside of its memory.
    pub(super) fn address(&self, place: PixelPlace) -> Result<u64> {
        match (place, &self.mapped) {
            (PixelPlace::Device(at), _) if at <= self.pixels.len() as u64 => {
                Ok(self.pixels.address() + at)
            }
            (PixelPlace::Host(at), Some(mapped)) if at <= mapped.len() as u64 => {
                Ok(mapped.address() + at)
            }
            _ => Err(Error::Device {
                what: "an image lies outside of its memory".into(),
            }),
        }
    }

    /// A buffer with these parts, one behind the other, and where each begins. Before the
    /// first launch alone.
    ///
    /// # Errors
    /// When the device has not enough memory.
    pub(super) fn buffer_of<const N: usize>(
        &mut self,
        context: &Arc<Context>,
        parts: [&[u8]; N],
        what: &'static str,
    ) -> Result<(DeviceBuffer, [u64; N])> {
        let aligned = parts.map(|part| part.len().next_multiple_of(SCENE_ALIGN));
        let buffer = DeviceBuffer::new(context, aligned.iter().sum(), what)?;
        let mut begin = 0;
        let mut begins = [0; N];
        for ((part, len), at) in parts.iter().zip(aligned).zip(&mut begins) {
            *at = buffer.address() + begin as u64;
            self.put = true;
            // SAFETY: nothing reads the buffer before a launch, which waits for this
            // (`submit`). It is freed by the driver behind what was put, in the stage's end.
            unsafe {
                self.uploads.put(&buffer, begin, part.len(), |from, to| {
                    to.copy_from_slice(&part[from..from + to.len()]);
                    Ok(())
                })?;
            }
            begin += len;
        }
        Ok((buffer, begins))
    }

    /// Puts an image to its place on the device. `fill` gives its bytes from a place on.
    /// No launch before this may draw from it.
    ///
    /// # Errors
    /// What `fill` gives; a device error.
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

    /// Launches a batch of `bytes`, whose one argument follows from its address.
    ///
    /// # Errors
    /// `SlotsHeld` when every batch of the stage is held (ask [`SceneStage::has_room`] first);
    /// else a device error, which is the answer to every later call.
    ///
    /// # Safety
    /// The argument must be the kernel's, and so that it writes no more than `bytes` behind
    /// the address, and reads nothing but what lives until the stage goes: images that were
    /// put, buffers of [`SceneStage::buffer_of`].
    pub(super) unsafe fn submit<T: Pod>(
        &mut self,
        bytes: usize,
        grid: Grid,
        argument: impl FnOnce(u64) -> T,
    ) -> Result<DeviceRows> {
        let stream = &self.stream.0;
        if bytes > self.outputs.bytes() {
            return Err(Error::Device {
                what: format!(
                    "a batch of {bytes} bytes does not fit the {} that it has on the device",
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
        for event in output.after() {
            stream.wait_for(event)?;
        }
        if self.put {
            stream.wait_for(&self.uploads.record()?)?;
            self.put = false;
        }
        let mut argument = argument(output.buffer().map_or(0, DeviceBuffer::address));
        // SAFETY: one argument, that of the kernel by this function's contract. Of what it
        // points to, the images live until the stream is drained in `drop`, and so do the
        // buffers, by the contract; the batch's memory is ours alone, large enough by the check
        // above, and the stream waits for its readers.
        unsafe {
            let mut arguments = [std::ptr::from_mut(&mut argument).cast()];
            self.kernel.launch(stream, grid, &mut arguments)?;
        }
        let ready = Arc::new(stream.record()?);
        output.was_written(ready.clone());
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
