//! Images of a scene on the device, and batches that one kernel makes of them.
//!
//! In the consumer. Pixels arrive as they are decoded: from workers, through a separate copy
//! stream, or from the device's own decoder (`image_decoder`). Images that do not fit on the device
//! are read in host memory. A batch copies nothing: its launch arguments contain all that it needs.
//! Launches run in one stream, in order. `ray_stage` and `view_stage` define the launches.

use std::sync::Arc;

use bytemuck::Pod;

use super::context::{CudaContext, CudaStream};
use super::device_rows::DeviceRows;
use super::image_decoder::ImageDecoder;
use super::loaded_kernel::{LaunchGrid, LoadedKernel};
use super::mapped_memory::MappedMemory;
use super::memory::DeviceBuffer;
use super::output_pool::OutputPool;
use super::upload_stream::UploadStream;
use crate::device::jpeg_part::PartLimits;
use crate::device::scene_launch::{PixelPlace, SCENE_ALIGN};
use crate::error::{Error, Result};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::sys::shared_memory::SharedMemory;

/// See the module.
#[derive(Debug)]
pub(crate) struct SceneStage {
    // The order matters: fields that wait are dropped first.
    /// None if workers decode all images, or once all are decoded.
    decoder: Option<ImageDecoder>,
    uploads: UploadStream,
    stream: DrainOnDrop,
    kernel: LoadedKernel,
    outputs: OutputPool,
    pixels: DeviceBuffer,
    /// The image store, if the device reads images there.
    mapped: Option<MappedMemory>,
    /// Images were added since the last launch.
    has_uploads: bool,
}

/// Waits in its drop, before anything that its work reads is freed.
#[derive(Debug)]
struct DrainOnDrop(Arc<CudaStream>);

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        self.0.drain();
    }
}

/// The kernel of the stage: its PTX and its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct SceneKernel {
    pub(super) ptx: &'static str,
    pub(super) name: &'static str,
}

/// The memory of the stage: number of batches, and most bytes of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SceneStageSize {
    pub(crate) outputs: usize,
    pub(crate) output_bytes: usize,
    /// Bytes of the images on the device.
    pub(crate) pixel_bytes: u64,
    /// Limits of a part of JPEGs that the device decodes. None: workers decode all images.
    pub(crate) jpegs: Option<PartLimits>,
}

impl SceneStage {
    /// Allocates the memory of images and batches. `store`: host memory of [`PixelPlace::Host`].
    ///
    /// # Errors
    /// The device has not enough memory; the driver cannot load the kernel.
    pub(super) fn new(
        context: &Arc<CudaContext>,
        kernel: SceneKernel,
        store: Option<SharedMemory>,
        room: SceneStageSize,
    ) -> Result<Self> {
        let mapped = store
            .map(|memory| MappedMemory::new(context, memory))
            .transpose()?;
        let pixels = DeviceBuffer::new(context, room.pixel_bytes as usize, "images of a scene");
        let pixels = pixels.map_err(|e| {
            Error::device(format!(
                "{e}; a gpu_memory_limit leaves images in the host's memory"
            ))
        })?;
        let decoder = room.jpegs.map(|limits| ImageDecoder::new(context, limits));
        Ok(Self {
            decoder: decoder.transpose()?,
            uploads: UploadStream::new(context)?,
            kernel: LoadedKernel::load(context, kernel.ptx, kernel.name)?,
            stream: DrainOnDrop(Arc::new(CudaStream::new(context)?)),
            outputs: OutputPool::new(context, room.outputs, room.output_bytes)?,
            pixels,
            mapped,
            has_uploads: true,
        })
    }

    /// Device address of an image.
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
            _ => Err(Error::device("an image is outside of its memory")),
        }
    }

    /// A buffer that contains these parts one after the other, and the offset of each. Only before
    /// the first launch.
    ///
    /// # Errors
    /// The device has not enough memory.
    pub(super) fn buffer_of<const N: usize>(
        &mut self,
        context: &Arc<CudaContext>,
        parts: [&[u8]; N],
        what: &'static str,
    ) -> Result<(DeviceBuffer, [u64; N])> {
        let aligned = parts.map(|part| part.len().next_multiple_of(SCENE_ALIGN));
        let buffer = DeviceBuffer::new(context, aligned.iter().sum(), what)?;
        let mut begin = 0;
        let mut begins = [0; N];
        for ((part, len), at) in parts.iter().zip(aligned).zip(&mut begins) {
            *at = buffer.address() + begin as u64;
            self.has_uploads = true;
            // SAFETY: nothing reads the buffer before a launch, and each launch waits for the
            // upload (`submit`). The stage's drop waits for all work and then frees the buffer.
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

    /// Copies an image to its place on the device. `fill` writes its bytes from a given offset on.
    /// No earlier launch may read the image.
    ///
    /// # Errors
    /// The errors of `fill`; a device error.
    pub(crate) fn upload_pixels(
        &mut self,
        at: u64,
        len: usize,
        fill: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        self.has_uploads = true;
        // SAFETY: earlier launches do not read the image, by this function's contract, and they
        // read no other bytes of its place; later ones wait (`submit`). `pixels` lives longer than
        // `uploads`, which waits in its drop.
        unsafe { self.uploads.put(&self.pixels, at as usize, len, fill) }
    }

    /// Whether coded images can be added: fewer than two parts are under way.
    pub(crate) fn can_add_coded(&self) -> bool {
        self.decoder
            .as_ref()
            .is_none_or(ImageDecoder::has_free_part)
    }

    /// Adds a coded image to those that are decoded next, to its place on the device. No launch may
    /// read it before [`SceneStage::poll_decoded`] has returned its error word. False if it does
    /// not fit the part.
    ///
    /// # Errors
    /// Data of another length than the image's; a stage without a decoder.
    pub(crate) fn add_coded(
        &mut self,
        picture: &CodedPicture,
        copy: impl FnOnce(&mut [u8]) -> bool,
        at: u64,
    ) -> Result<bool> {
        let decoder = self
            .decoder
            .as_mut()
            .ok_or_else(|| Error::device("a coded image came, but workers decode all images"))?;
        decoder.add(picture, copy, at as usize)
    }

    /// Decodes the added images.
    ///
    /// # Errors
    /// A place outside of the images; a device error.
    pub(crate) fn submit_coded(&mut self) -> Result<()> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        // SAFETY: launches do not read these images, by the contract of `add_coded`, and
        // `upload_pixels` writes other places: each image arrives one way at a time. `pixels` lives
        // longer than `decoder`, which is drained in its drop.
        unsafe { decoder.submit(&self.pixels) }
    }

    /// The error word of each image of the oldest submitted part, in the order in which they were
    /// added. 0: kernels may read the image from now on. None while the device has not decoded the
    /// part.
    ///
    /// # Errors
    /// A device error.
    pub(crate) fn poll_decoded(&mut self) -> Result<Option<Vec<u32>>> {
        match &mut self.decoder {
            Some(decoder) => decoder.poll(),
            None => Ok(None),
        }
    }

    /// Waits for all parts, and forgets their results.
    ///
    /// # Errors
    /// A device error.
    pub(crate) fn cancel_coded(&mut self) -> Result<()> {
        if let Some(decoder) = &mut self.decoder {
            while decoder.wait()?.is_some() {}
        }
        Ok(())
    }

    /// All images are decoded: frees the decoder's memory.
    pub(crate) fn free_decoder(&mut self) {
        self.decoder = None;
    }

    /// Launches a batch of `bytes` bytes. `argument` makes the launch's one argument from the
    /// batch's address.
    ///
    /// # Errors
    /// `SlotsHeld` if the caller holds every batch of the stage (check [`SceneStage::has_room`]
    /// first). Any other device error is returned by every later call, too.
    ///
    /// # Safety
    /// The argument must be the kernel's. With it, the kernel must write at most `bytes` bytes from
    /// the address on, and read only what lives as long as the stage: uploaded images and buffers
    /// of [`SceneStage::buffer_of`].
    pub(super) unsafe fn submit<T: Pod>(
        &mut self,
        bytes: usize,
        grid: LaunchGrid,
        argument: impl FnOnce(u64) -> T,
    ) -> Result<DeviceRows> {
        let stream = &self.stream.0;
        let mut output = self.outputs.take_for(bytes)?;
        for event in output.reads() {
            stream.wait_for(event)?;
        }
        if self.has_uploads {
            stream.wait_for(&self.uploads.record()?)?;
            self.has_uploads = false;
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
        output.record_write(ready.clone());
        Ok(DeviceRows::new(output, ready, stream.clone(), bytes))
    }

    /// Whether there is free device memory for a batch.
    pub(crate) fn has_room(&self) -> bool {
        self.outputs.has_free()
    }

    /// Number of batches that may be on the device at one time.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs.count()
    }

    /// Pinned host bytes.
    pub(crate) fn pinned_bytes(&self) -> usize {
        let decoder = self.decoder.as_ref().map_or(0, ImageDecoder::pinned_bytes);
        self.uploads.pinned_bytes() + decoder + self.mapped.as_ref().map_or(0, MappedMemory::len)
    }
}
