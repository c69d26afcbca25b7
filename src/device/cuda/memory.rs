//! Device memory, pinned host memory, and copies between them.
//!
//! In the consumer. Buffers free themselves. The owner must make sure that nothing still uses a
//! buffer, so copies are `unsafe`.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE,
    CUDA_MEMCPY2D, CUdeviceptr, CUmemorytype,
};

use super::context::{CudaContext, CudaStream};
use crate::error::{self, Error, Result};

/// Device memory. Its initial content is undefined.
#[derive(Debug)]
pub(super) struct DeviceBuffer {
    context: Arc<CudaContext>,
    address: CUdeviceptr,
    len: usize,
}

impl DeviceBuffer {
    /// `what`: the purpose of the memory, for error texts.
    pub(super) fn new(context: &Arc<CudaContext>, len: usize, what: &str) -> Result<Self> {
        let mut address = 0;
        // SAFETY: the pointer is to a live integer; freed once, in `drop`.
        let made = context.setup("cuMemAlloc_v2", || unsafe {
            sys::cuMemAlloc_v2(&mut address, len.max(1))
        });
        made.map_err(|e| {
            let free = match context.free_bytes() {
                Ok(free) => format!(" ({} free)", error::size_rounded_down(free)),
                Err(_) => String::new(),
            };
            allocation_error(e, len, &format!("device memory{free}"), what)
        })?;
        Ok(Self {
            context: context.clone(),
            address,
            len,
        })
    }

    pub(super) fn address(&self) -> CUdeviceptr {
        self.address
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether this process allocated it.
    pub(super) fn is_ours(&self) -> bool {
        self.context.is_ours()
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let address = self.address;
        // SAFETY: allocated in `new`, freed here only; its owners have waited for what
        // used it.
        self.context
            .release("cuMemFree_v2", || unsafe { sys::cuMemFree_v2(address) });
    }
}

/// Pinned host memory, from which devices copy asynchronously.
#[derive(Debug)]
pub(super) struct HostBuffer {
    context: Arc<CudaContext>,
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the process, and only `&mut` writes it.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    /// Filled with zeros. `what`: the purpose of the memory, for error texts.
    pub(super) fn new(context: &Arc<CudaContext>, len: usize, what: &str) -> Result<Self> {
        let len = len.max(1);
        let mut at = ptr::null_mut();
        // SAFETY: the pointer is to a live one; freed once, in `drop`.
        let made = context.setup("cuMemHostAlloc", || unsafe {
            sys::cuMemHostAlloc(&mut at, len, CU_MEMHOSTALLOC_PORTABLE)
        });
        made.map_err(|e| allocation_error(e, len, "pinned host memory", what))?;
        let at = NonNull::new(at.cast::<u8>())
            .ok_or_else(|| Error::device("cuMemHostAlloc returned no memory and no error"))?;
        // SAFETY: the driver returned `len` bytes at `at`, and nothing else has them.
        unsafe { ptr::write_bytes(at.as_ptr(), 0, len) };
        Ok(Self {
            context: context.clone(),
            at,
            len,
        })
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes that `new` has written, alive as long as `self`, which is
        // borrowed for writing; no copy out of them is under way, or their owner would
        // have broken the contract of `upload`.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.at.as_ptr()
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let at = self.at.as_ptr();
        // SAFETY: allocated in `new`, freed here only; its owner has waited for the
        // copies out of it.
        self.context
            .release("cuMemFreeHost", || unsafe { sys::cuMemFreeHost(at.cast()) });
    }
}

/// Memory of another owner, pinned and mapped for the device.
#[derive(Debug)]
pub(super) struct HostRegistration {
    context: Arc<CudaContext>,
    /// Host address of the first byte.
    at: usize,
    /// Device address of the first byte.
    address: CUdeviceptr,
}

impl HostRegistration {
    /// Registers `len` bytes from `at` on. This allocates pages that are not allocated yet.
    ///
    /// # Safety
    /// `at` is the whole of a mapping of this length. Its owner keeps it until this is dropped, and
    /// drops this only after the last read.
    pub(super) unsafe fn new(context: &Arc<CudaContext>, at: *mut u8, len: usize) -> Result<Self> {
        let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: a whole map, by the caller's promise; taken back once, in `drop`.
        context.setup("cuMemHostRegister_v2", || unsafe {
            sys::cuMemHostRegister_v2(at.cast(), len, flags)
        })?;
        let mut registration = Self {
            context: context.clone(),
            at: at as usize,
            address: 0,
        };
        // SAFETY: registered above, for the device to map; the pointer is to a live integer.
        context.setup("cuMemHostGetDevicePointer_v2", || unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut registration.address, at.cast(), 0)
        })?;
        Ok(registration)
    }

    /// Device address of the first byte.
    pub(super) fn address(&self) -> CUdeviceptr {
        self.address
    }
}

impl Drop for HostRegistration {
    fn drop(&mut self) {
        // SAFETY: registered in `new`, taken back here only; nothing reads there, and the map
        // is still there, by the promise of `new`'s caller.
        self.context.release("cuMemHostUnregister", || unsafe {
            sys::cuMemHostUnregister(self.at as *mut _)
        });
    }
}

fn allocation_error(error: Error, bytes: usize, kind: &str, what: &str) -> Error {
    Error::device(format!(
        "{} of {kind} needed for {what}: {error}",
        error::size_rounded_up(bytes as u64)
    ))
}

/// Rows of a rectangle of bytes: the first row, the width, and the number of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyRect {
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) count: usize,
}

/// Lines of an image on the device: address of the first line, bytes from there to the end, and
/// bytes from line to line.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceLines {
    pub(super) address: CUdeviceptr,
    pub(super) len: usize,
    pub(super) pitch: usize,
}

impl CudaStream {
    /// Adds a copy to the device to the stream: `len` bytes, to the beginning of the buffer.
    ///
    /// # Safety
    /// `from` must point to `len` bytes of pinned memory that live, unwritten, until the copy is
    /// done. `to` must live too, and nothing outside of this stream may use it before that.
    pub(super) unsafe fn upload(
        &self,
        to: &DeviceBuffer,
        from: *const u8,
        len: usize,
    ) -> Result<()> {
        // SAFETY: this function's contract.
        unsafe { self.upload_at(to, 0, from, len) }
    }

    /// Like [`CudaStream::upload`], to byte `at` of the buffer.
    ///
    /// # Safety
    /// As for [`CudaStream::upload`].
    pub(super) unsafe fn upload_at(
        &self,
        to: &DeviceBuffer,
        at: usize,
        from: *const u8,
        len: usize,
    ) -> Result<()> {
        inside(at.saturating_add(len), to.len(), "an upload")?;
        let to = to.address() + at as CUdeviceptr;
        // SAFETY: inside of both by the check and this function's contract.
        self.context().work("cuMemcpyHtoDAsync_v2", || unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.cast(), len, self.raw())
        })
    }

    /// Like [`CudaStream::upload`], for rows that begin `from_pitch` bytes apart, to rows that
    /// begin `to_pitch` bytes apart. `from`: address of row 0. `at`: destination of the first row.
    ///
    /// # Safety
    /// As for [`CudaStream::upload`], for all bytes from the first byte of the first row to the
    /// last byte of the last row.
    pub(super) unsafe fn upload_rows(
        &self,
        (to, at): (&DeviceBuffer, usize),
        to_pitch: usize,
        from: *const u8,
        from_pitch: usize,
        rows: CopyRect,
    ) -> Result<()> {
        let CopyRect {
            first,
            width,
            count,
        } = rows;
        if width == 0 || count == 0 {
            return Ok(());
        }
        inside(width, from_pitch.min(to_pitch), "a row of an upload")?;
        let end = at.saturating_add((count - 1) * to_pitch + width);
        inside(end, to.len(), "an upload")?;
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: first,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: from.cast(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: to.address() + at as CUdeviceptr,
            dstArray: ptr::null_mut(),
            dstPitch: to_pitch,
            WidthInBytes: width,
            Height: count,
        };
        // SAFETY: inside of the target by the checks, of the source by this function's
        // contract; the driver reads `copy` before it returns.
        self.context().work("cuMemcpy2DAsync_v2", || unsafe {
            sys::cuMemcpy2DAsync_v2(&copy, self.raw())
        })
    }

    /// Adds a copy on the device to the stream: `count` lines of `width` bytes, to byte `at` of the
    /// buffer, without gaps.
    ///
    /// # Safety
    /// `from` must be device memory that lives, unwritten, until the copy is done. `to` must live
    /// too, and nothing outside of this stream may use these bytes of it before that.
    pub(super) unsafe fn copy_lines(
        &self,
        (to, at): (&DeviceBuffer, usize),
        from: DeviceLines,
        (width, count): (usize, usize),
    ) -> Result<()> {
        if width == 0 || count == 0 {
            return Ok(());
        }
        inside(width, from.pitch, "a line of a picture")?;
        let read = (count - 1).saturating_mul(from.pitch).saturating_add(width);
        inside(read, from.len, "a picture")?;
        let end = count.saturating_mul(width).saturating_add(at);
        inside(end, to.len(), "a picture")?;
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: ptr::null(),
            srcDevice: from.address,
            srcArray: ptr::null_mut(),
            srcPitch: from.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: ptr::null_mut(),
            dstDevice: to.address() + at as CUdeviceptr,
            dstArray: ptr::null_mut(),
            dstPitch: width,
            WidthInBytes: width,
            Height: count,
        };
        // SAFETY: inside of both by the checks and this function's contract; the driver reads
        // `copy` before it returns.
        self.context().work("cuMemcpy2DAsync_v2", || unsafe {
            sys::cuMemcpy2DAsync_v2(&copy, self.raw())
        })
    }

    /// Copies from the host to byte `at` of a buffer after all work that the stream has, and waits. No
    /// other stream may use the buffer.
    pub(super) fn write(&self, to: &DeviceBuffer, at: usize, bytes: &[u8]) -> Result<()> {
        // SAFETY: `bytes` is borrowed until the wait below, or, after an error, until the stream is
        // drained: then no copy is under way. So it need not be pinned. The caller is the only
        // owner of `to`.
        let copied = unsafe { self.upload_at(to, at, bytes.as_ptr(), bytes.len()) };
        let finished = copied.and_then(|()| self.record()?.wait());
        if finished.is_err() {
            self.drain();
        }
        finished
    }

    /// Copies from a buffer to the host after all work that the stream has, and waits.
    pub(super) fn download(&self, to: &mut [u8], from: &DeviceBuffer) -> Result<()> {
        inside(to.len(), from.len(), "a download")?;
        let (at, len) = (to.as_mut_ptr(), to.len());
        // SAFETY: inside of both by the check; both are borrowed until the wait below, or,
        // behind an error, until the stream is drained: then no copy is under way.
        let copied = self.context().work("cuMemcpyDtoHAsync_v2", || unsafe {
            sys::cuMemcpyDtoHAsync_v2(at.cast(), from.address(), len, self.raw())
        });
        let finished = copied.and_then(|()| self.record()?.wait());
        if finished.is_err() {
            self.drain();
        }
        finished
    }
}

fn inside(len: usize, room: usize, what: &str) -> Result<()> {
    if len <= room {
        return Ok(());
    }
    Err(Error::device(format!(
        "{what} of {len} bytes does not fit {room} bytes"
    )))
}
