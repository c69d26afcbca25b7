//! Decodes JPEGs with the kernels of `kernels/jpeg.cu`: from rows of coded data to RGB on the
//! device, with the bits of the CPU decoder.
//!
//! In the consumer. A decoder is a stream with memory for a part of a batch. Several decoders fill
//! the device: while the images of one wait for their last chains, others work. Each image has an
//! error word. Any bit sends the image to the CPU decoder, whose result counts.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevice_attribute, CUdeviceptr};

#[cfg(test)]
use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};

use super::context::{CudaContext, CudaEvent, CudaStream};
use super::loaded_kernel::{LaunchGrid, LoadedKernel};
use super::memory::{DeviceBuffer, HostBuffer};
use crate::device::jpeg_part::{
    BlockSharedMemory, COLOUR_THREADS, JpegPart, KERNELS, MappedLaunch, PartLaunches, PartLimits,
    RESIZE_BLOCKS, RESIZE_THREADS, ROW_BLOCKS, THREADS, WIDE_THREADS,
};
use crate::error::{Error, Result};
use crate::picture::jpeg::gpu_rows::{CodedPicture, MAX_ENTRIES};

const PTX: &str = include_str!("../../../kernels/jpeg.ptx");

/// `Batch` of `kernels/jpeg/types.cuh`: device addresses.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct KernelBatch {
    pictures: CUdeviceptr,
    segments: CUdeviceptr,
    maps: CUdeviceptr,
    coded: CUdeviceptr,
    work: CUdeviceptr,
    states: CUdeviceptr,
    memos: CUdeviceptr,
    firsts: CUdeviceptr,
    sums: CUdeviceptr,
    errors: CUdeviceptr,
    resizes: CUdeviceptr,
}

/// The loaded kernels.
#[derive(Debug)]
pub(crate) struct JpegKernels {
    context: Arc<CudaContext>,
    modules: [LoadedKernel; 11],
    /// Threads per block of chains, as many as the shared memory allows.
    chain_threads: u32,
}

impl JpegKernels {
    /// # Errors
    /// The driver cannot load the kernels.
    pub(crate) fn load(context: &Arc<CudaContext>) -> Result<Arc<Self>> {
        let shared = context
            .attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        // Turing has 64 KiB, enough for half as many threads.
        let threads = match BlockSharedMemory::most_of_chains(THREADS) <= shared {
            true => THREADS,
            false => THREADS / 2,
        };
        Self::with_chain_threads(context, threads)
    }

    /// Kernels with this number of threads per block of chains.
    pub(super) fn with_chain_threads(
        context: &Arc<CudaContext>,
        chain_threads: u32,
    ) -> Result<Arc<Self>> {
        let modules = LoadedKernel::load_all(context, PTX, KERNELS)?;
        for (module, name) in modules.iter().zip(KERNELS) {
            let shared = match name {
                "jpeg_chains" => BlockSharedMemory::most_of_chains(chain_threads),
                "jpeg_coefficients" => BlockSharedMemory::of_coefficients(MAX_ENTRIES).bytes,
                _ => continue,
            };
            module.allow_shared(shared)?;
        }
        Ok(Arc::new(Self {
            context: context.clone(),
            modules,
            chain_threads,
        }))
    }
}

/// The pixels of an image's window, decoded and, if necessary, resized. Valid until the next part
/// is decoded, so readers must be in this decoder's stream before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecodedPicture {
    /// Offset of the first pixel in [`GpuJpegDecoder::pixels`], in bytes.
    pub(crate) at: usize,
    /// Bytes from row to row, a multiple of the bytes of a pixel.
    pub(crate) pitch: usize,
}

/// A part that is being filled or is under way.
#[derive(Debug)]
struct PartSlot {
    part: JpegPart,
    /// Descriptors for the device, and errors from the device.
    descriptors: HostBuffer,
    errors: HostBuffer,
    /// None while the part is being filled.
    done: Option<CudaEvent>,
}

/// A stream with memory for a part of a batch. While one part is decoded, the next is filled and
/// may be queued in the stream. It then reuses the device memory of the first.
#[derive(Debug)]
pub(crate) struct GpuJpegDecoder {
    kernels: Arc<JpegKernels>,
    slots: [PartSlot; 2],
    /// The slot that is being filled. The other one is older.
    filling: usize,
    rows: DeviceBuffer,
    descriptors: DeviceBuffer,
    work: DeviceBuffer,
    errors: DeviceBuffer,
    // Last: `drop` drains it before the memory that it uses is freed.
    stream: CudaStream,
}

impl GpuJpegDecoder {
    /// Allocates all the memory that parts of these limits need.
    ///
    /// # Errors
    /// The device has not enough memory.
    pub(crate) fn new(kernels: &Arc<JpegKernels>, limits: PartLimits) -> Result<Self> {
        let context = &kernels.context;
        let memory = limits.memory();
        let device = |bytes, what| DeviceBuffer::new(context, bytes, what);
        let slot = || -> Result<PartSlot> {
            Ok(PartSlot {
                part: JpegPart::new(limits, kernels.chain_threads),
                descriptors: HostBuffer::new(context, memory.descriptors, "coded images")?,
                errors: HostBuffer::new(context, memory.errors, "error words of images")?,
                done: None,
            })
        };
        Ok(Self {
            kernels: kernels.clone(),
            slots: [slot()?, slot()?],
            filling: 0,
            rows: device(memory.rows, "coded images")?,
            descriptors: device(memory.descriptors, "descriptors of coded images")?,
            work: device(memory.work, "decoded images")?,
            errors: device(memory.errors, "error words of images")?,
            stream: CudaStream::new(context)?,
        })
    }

    /// Adds an image to the part that is being filled. Its coded data are copied from `source` to
    /// byte `at` of the part ([`JpegPart::add`]). False if it does not fit, or if two parts are
    /// under way.
    pub(crate) fn add(&mut self, picture: &CodedPicture, source: CUdeviceptr, at: usize) -> bool {
        let slot = &mut self.slots[self.filling];
        slot.done.is_none() && slot.part.add(picture, source, at)
    }

    /// Queues the part that is being filled. Returns the places of its decoded images, in the order
    /// of `add`. Call [`GpuJpegDecoder::end_part`] after the work that reads them.
    ///
    /// # Safety
    /// The sources of all added images must be pinned host memory with all coded data, up to a
    /// multiple of 16 bytes. They must stay until the part is done or the decoder is dropped. If
    /// they change, the pixels are undefined, but nothing else is.
    ///
    /// # Errors
    /// A driver error, which makes the context unusable.
    pub(crate) unsafe fn decode(&mut self) -> Result<Vec<DecodedPicture>> {
        let slot = &mut self.slots[self.filling];
        let launches = match slot.done {
            None => slot.part.write(slot.descriptors.bytes_mut()),
            Some(_) => None,
        };
        let launches = launches.ok_or_else(|| {
            Error::device("a lane of JPEG kernels has two parts under way: wait for one")
        })?;
        let slot = &self.slots[self.filling];
        // SAFETY: pinned memory of `self`, which is written again only after the part is done.
        unsafe {
            let from = slot.descriptors.as_ptr();
            self.stream
                .upload(&self.descriptors, from, launches.descriptors)?;
        }
        self.clear(&launches)?;
        let batch = self.batch(&slot.part, &launches);
        // SAFETY: `batch` has the addresses of this lane's buffers, whose sizes `part` has checked
        // with each picture (`JpegPart::add`), and the launches are those of the same part; sources
        // are right by this function's contract.
        unsafe { self.launch(batch, &launches)? };
        let (to, from) = (slot.errors.as_ptr(), self.errors.address());
        let len = 4 * launches.pictures as usize;
        // SAFETY: `len` bytes of both, by the limits; the pinned ones are read after `wait`.
        self.context().work("cuMemcpyDtoHAsync_v2", || unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.cast_mut().cast(), from, len, self.stream.raw())
        })?;
        let data_at = slot.part.data_at();
        let pixels = slot.part.pixels().map(|(at, pitch)| DecodedPicture {
            at: data_at + at,
            pitch,
        });
        Ok(pixels.collect())
    }

    /// Ends the queued part, after the work that was added to the stream since.
    ///
    /// # Errors
    /// A driver error.
    pub(crate) fn end_part(&mut self) -> Result<()> {
        let done = self.stream.record()?;
        self.slots[self.filling].done = Some(done);
        self.filling ^= 1;
        Ok(())
    }

    /// Whether two parts are under way, so that no other can be filled.
    pub(super) fn is_full(&self) -> bool {
        self.slots[self.filling].done.is_some()
    }

    /// The stream in which parts are decoded, one after the other.
    pub(crate) fn stream(&self) -> &CudaStream {
        &self.stream
    }

    /// The memory of decoded images: device address and number of bytes.
    pub(crate) fn pixels(&self) -> (CUdeviceptr, usize) {
        (self.work.address(), self.work.len())
    }

    fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    fn clear(&self, launches: &PartLaunches) -> Result<()> {
        let (states, errors) = (self.work.address(), self.errors.address());
        let (bytes, pictures) = (launches.states, launches.pictures as usize);
        // SAFETY: both lie inside of their buffers (`JpegPart::add`).
        self.context().work("cuMemsetD8Async", || unsafe {
            sys::cuMemsetD8Async(states, 0xFF, bytes, self.stream.raw())
        })?;
        // SAFETY: as above.
        self.context().work("cuMemsetD32Async", || unsafe {
            sys::cuMemsetD32Async(errors, 0, pictures, self.stream.raw())
        })
    }

    fn batch(&self, part: &JpegPart, launches: &PartLaunches) -> KernelBatch {
        let (descriptors, work) = (self.descriptors.address(), self.work.address());
        let sums = work + launches.states as u64;
        KernelBatch {
            pictures: descriptors,
            segments: descriptors + launches.segments_at as u64,
            maps: descriptors + launches.maps_at as u64,
            coded: self.rows.address(),
            work: work + part.data_at() as u64,
            states: work,
            memos: work + launches.states as u64 / 5,
            firsts: sums + launches.sums as u64,
            sums,
            errors: self.errors.address(),
            resizes: descriptors + launches.resizes_at as u64,
        }
    }

    /// # Safety
    /// All addresses of `batch` must be valid for the kernels until the stream has finished.
    unsafe fn launch(&self, mut batch: KernelBatch, launches: &PartLaunches) -> Result<()> {
        let threads = self.kernels.chain_threads;
        let (chain, coefficient) = (launches.chain_shared, launches.coefficient_shared);
        let all = KernelLaunch {
            blocks: launches.pictures,
            threads: WIDE_THREADS,
            shared: 0,
            numbers: [0; 2],
            count: 0,
        };
        let mapped = |mapped: MappedLaunch, threads| KernelLaunch {
            blocks: mapped.blocks,
            threads,
            numbers: [mapped.map, 0],
            count: 1,
            ..all
        };
        let staged = |from: MappedLaunch, threads, shared: BlockSharedMemory| KernelLaunch {
            shared: shared.bytes,
            numbers: [from.map, shared.words_at],
            count: 2,
            ..mapped(from, threads)
        };
        let rows = KernelLaunch {
            blocks: ROW_BLOCKS * (launches.pictures + launches.resizes),
            numbers: [launches.pictures, 0],
            count: 1,
            ..all
        };
        let resize = KernelLaunch {
            blocks: RESIZE_BLOCKS * launches.resizes,
            threads: RESIZE_THREADS,
            ..all
        };
        let launches = [
            rows,
            all,
            staged(launches.chains, threads, chain),
            all,
            staged(launches.coefficients, THREADS, coefficient),
            all,
            mapped(launches.rgb, THREADS),
            mapped(launches.planes, THREADS),
            mapped(launches.colour, COLOUR_THREADS),
            resize,
            resize,
        ];
        for (module, mut launch) in self.kernels.modules.iter().zip(launches) {
            if launch.blocks == 0 {
                continue;
            }
            let [map, words_at] = launch.numbers.each_mut().map(ptr::from_mut);
            let first = ptr::from_mut(&mut batch).cast::<c_void>();
            let mut arguments = [first, map.cast(), words_at.cast()];
            let grid = LaunchGrid {
                blocks: (launch.blocks, 1, 1),
                threads: (launch.threads, 1),
                shared: launch.shared,
            };
            let arguments = &mut arguments[..1 + launch.count];
            // SAFETY: the arguments are those that the kernel declares, in order and size; what
            // they lead to is right by this function's contract.
            unsafe { module.launch(&self.stream, grid, arguments)? };
        }
        Ok(())
    }

    /// The oldest queued part whose result was not returned yet.
    fn oldest(&self) -> Option<usize> {
        let [older, newer] = [self.filling, self.filling ^ 1];
        [older, newer]
            .into_iter()
            .find(|&nth| self.slots[nth].done.is_some())
    }

    /// Whether the oldest queued part is decoded.
    ///
    /// # Errors
    /// A driver error.
    pub(crate) fn is_oldest_decoded(&self) -> Result<bool> {
        let done = self.oldest().and_then(|nth| self.slots[nth].done.as_ref());
        done.map_or(Ok(false), CudaEvent::is_done)
    }

    /// Waits for the oldest queued part. Returns the error word of each image: bits of
    /// `kernels/jpeg/types.cuh`, 0 for a correct image. None if there is no part.
    ///
    /// # Errors
    /// A driver error.
    pub(crate) fn wait(&mut self) -> Result<Option<Vec<u32>>> {
        let Some(slot) = self.oldest().map(|nth| &mut self.slots[nth]) else {
            return Ok(None);
        };
        if let Some(done) = &slot.done {
            done.wait()?;
        }
        slot.done = None;
        let count = slot.part.pictures().len();
        slot.part.clear();
        let errors = slot.errors.bytes_mut().chunks_exact(4).take(count);
        Ok(Some(
            errors.map(bytemuck::pod_read_unaligned::<u32>).collect(),
        ))
    }
}

#[cfg(test)]
impl GpuJpegDecoder {
    /// Fills the memory of decoded images, so that a test sees what a kernel does not write.
    pub(crate) fn poison(&self) -> Result<()> {
        let (address, len) = (self.work.address(), self.work.len());
        // SAFETY: all of a buffer of this lane, whose stream it is put into.
        self.context().work("cuMemsetD8Async", || unsafe {
            sys::cuMemsetD8Async(address, 0xA5, len, self.stream.raw())
        })
    }

    /// All memory of the last queued part after its decoding: the part, and the results of its
    /// stages. [`GpuJpegDecoder::end_part`] follows.
    pub(crate) fn read_stages(&self) -> Result<(&JpegPart, Vec<u8>)> {
        let mut work = vec![0; self.work.len()];
        self.stream.download(&mut work, &self.work)?;
        Ok((&self.slots[self.filling].part, work))
    }

    /// The pixels of an image, without gaps.
    pub(crate) fn read_back(
        &self,
        picture: &DecodedPicture,
        (width, height): (usize, usize),
    ) -> Result<Vec<u8>> {
        let mut rows = vec![0u8; 3 * width * height];
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: self.work.address() + picture.at as u64,
            srcArray: ptr::null_mut(),
            srcPitch: picture.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: rows.as_mut_ptr().cast(),
            dstDevice: 0,
            dstArray: ptr::null_mut(),
            dstPitch: 3 * width,
            WidthInBytes: 3 * width,
            Height: height,
        };
        // SAFETY: the pixels lie in their image, whose bytes `JpegPart::add` has counted, and
        // `rows` has as many; the copy is over when the call returns.
        self.context()
            .work("cuMemcpy2D_v2", || unsafe { sys::cuMemcpy2D_v2(&copy) })?;
        Ok(rows)
    }
}

/// The grid of a launch, and the numbers after the batch argument.
#[derive(Debug, Clone, Copy)]
struct KernelLaunch {
    blocks: u32,
    threads: u32,
    shared: u32,
    numbers: [u32; 2],
    /// Number of `numbers` that the kernel takes.
    count: usize,
}

impl Drop for GpuJpegDecoder {
    fn drop(&mut self) {
        self.stream.drain();
    }
}
