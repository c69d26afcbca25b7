//! Decodes whole JPEGs to their places on the device, with the kernels of `kernels/jpeg.cu`.
//!
//! In the consumer. One part is decoded while the next is filled. Coded data are copied to pinned
//! buffers of the decoder, so a slot of the ring is free at once.

use std::sync::Arc;

use super::context::CudaContext;
use super::gpu_jpeg_decoder::{GpuJpegDecoder, JpegKernels};
use super::memory::{DeviceBuffer, DeviceLines, HostBuffer};
use crate::device::jpeg_part::PartLimits;
use crate::error::{Error, Result};
use crate::picture::jpeg::gpu_rows::CodedPicture;

/// Bytes of a pixel.
const RGB: usize = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct ImageDecoder {
    // Drained before the memory that it reads is freed.
    lane: GpuJpegDecoder,
    /// Coded data of the part that is being filled, and of the previous one, alternately.
    coded: [HostBuffer; 2],
    turn: usize,
    /// Used bytes of `coded[turn]`.
    taken: usize,
    /// Destinations of the images of the part that is being filled.
    targets: Vec<ImageTarget>,
    /// Bytes of one buffer of `coded`.
    rows: usize,
    /// Pinned host bytes.
    pinned: usize,
}

/// The destination of an image.
#[derive(Debug, Clone, Copy)]
struct ImageTarget {
    /// Offset in the memory of the images, in bytes.
    at: usize,
    /// Bytes per line.
    width: usize,
    lines: usize,
}

impl ImageDecoder {
    /// Allocates all the memory that parts of these limits need.
    ///
    /// # Errors
    /// Not enough memory; the driver cannot load the kernels.
    pub(super) fn new(context: &Arc<CudaContext>, limits: PartLimits) -> Result<Self> {
        let kernels = JpegKernels::load(context)?;
        let part = limits.memory();
        let coded = || HostBuffer::new(context, part.rows, "coded images");
        Ok(Self {
            lane: GpuJpegDecoder::new(&kernels, limits)?,
            coded: [coded()?, coded()?],
            turn: 0,
            taken: 0,
            targets: Vec::new(),
            rows: part.rows,
            pinned: 2 * (part.rows + part.descriptors + part.errors),
        })
    }

    /// Whether another part can be filled: fewer than two are under way.
    pub(super) fn has_free_part(&self) -> bool {
        !self.lane.is_full()
    }

    /// Adds an image to the part that is being filled. Its destination is byte `at` of the images.
    /// `copy` copies its coded data, and returns false if their length differs. False if the image
    /// does not fit, or if two parts are under way.
    ///
    /// # Errors
    /// Coded data of another length than the header states.
    pub(super) fn add(
        &mut self,
        picture: &CodedPicture,
        copy: impl FnOnce(&mut [u8]) -> bool,
        at: usize,
    ) -> Result<bool> {
        let buffer = &mut self.coded[self.turn];
        let source = buffer.as_ptr() as u64 + self.taken as u64;
        let end = self.taken + picture.data.len();
        if end > self.rows || !self.lane.add(picture, source, self.taken) {
            return Ok(false);
        }
        // The buffer belongs to this part alone: the previous part that used it is done, or `add`
        // has refused.
        if !copy(&mut buffer.bytes_mut()[self.taken..end]) {
            return Err(Error::protocol(
                "a coded image has another length than its header states",
            ));
        }
        self.taken = end;
        let (width, height) = picture.picture.size();
        self.targets.push(ImageTarget {
            at,
            width: RGB * width as usize,
            lines: height as usize,
        });
        Ok(true)
    }

    /// Decodes the part that was filled, if it has images.
    ///
    /// # Safety
    /// No other code may read or write the destinations before [`ImageDecoder::poll`] or
    /// [`ImageDecoder::wait`] has returned their error words. `images` must live until then, or
    /// until the decoder is dropped.
    ///
    /// # Errors
    /// A destination outside of the images; a device error, which every later call returns.
    pub(super) unsafe fn submit(&mut self, images: &DeviceBuffer) -> Result<()> {
        if self.targets.is_empty() {
            return Ok(());
        }
        // SAFETY: this function's contract.
        let put = unsafe { self.put(images) };
        if put.is_err() {
            // Some of the work may be under way.
            self.lane.stream().drain();
        }
        self.turn ^= 1;
        self.taken = 0;
        self.targets.clear();
        put
    }

    /// # Safety
    /// As for [`ImageDecoder::submit`].
    unsafe fn put(&mut self, images: &DeviceBuffer) -> Result<()> {
        // SAFETY: sources are those of `add`: pinned memory of this decoder, which `add` writes
        // again once the part is over.
        let pictures = unsafe { self.lane.decode()? };
        let (pixels, len) = self.lane.pixels();
        for (picture, target) in pictures.iter().zip(&self.targets) {
            let from = DeviceLines {
                address: pixels + picture.at as u64,
                len: len.saturating_sub(picture.at),
                pitch: picture.pitch,
            };
            // SAFETY: the decoder's memory of decoded images, after the work that decodes them in
            // the same stream; the target by this function's contract.
            unsafe {
                let stream = self.lane.stream();
                stream.copy_lines((images, target.at), from, (target.width, target.lines))?;
            }
        }
        self.lane.end_part()
    }

    /// The error word of each image of the oldest part, if the device has decoded it.
    ///
    /// # Errors
    /// A device error.
    pub(super) fn poll(&mut self) -> Result<Option<Vec<u32>>> {
        match self.lane.is_oldest_decoded()? {
            true => self.lane.wait(),
            false => Ok(None),
        }
    }

    /// Like [`ImageDecoder::poll`], but waits. None if no part is under way.
    ///
    /// # Errors
    /// A device error.
    pub(super) fn wait(&mut self) -> Result<Option<Vec<u32>>> {
        self.lane.wait()
    }

    /// Pinned host bytes.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.pinned
    }
}
