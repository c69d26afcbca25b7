//! A batch on the device.
//!
//! In the consumer, in any thread, also after the stage was dropped.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUstream;

use super::context::{CudaEvent, CudaStream, RawStream};
use super::memory::DeviceBuffer;
use super::output_pool::OutputBuffer;
use crate::error::{Error, Result};

/// The rows of a batch in device memory, without gaps. Dropping it returns the memory to the stage.
/// The stage writes that memory again after the streams of [`DeviceRows::make_wait`] have finished
/// the work that they had at the drop.
#[derive(Debug)]
pub struct DeviceRows {
    output: OutputBuffer,
    ready: Arc<CudaEvent>,
    stream: Arc<CudaStream>,
    len: usize,
    readers: Mutex<Vec<RawStream>>,
}

impl DeviceRows {
    /// Rows that are complete after `ready`, an event of `stream`.
    pub(super) fn new(
        output: OutputBuffer,
        ready: Arc<CudaEvent>,
        stream: Arc<CudaStream>,
        len: usize,
    ) -> Self {
        Self {
            output,
            ready,
            stream,
            len,
            readers: Mutex::new(Vec::new()),
        }
    }

    /// Device address of the first row.
    pub fn address(&self) -> u64 {
        self.output.buffer().map_or(0, DeviceBuffer::address)
    }

    /// Bytes of all rows.
    #[allow(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    pub(super) fn context(&self) -> &std::sync::Arc<super::context::CudaContext> {
        self.stream.context()
    }

    /// The device's number among the visible ones.
    pub fn ordinal(&self) -> u32 {
        self.stream.context().ordinal()
    }

    /// The stream that makes the rows.
    pub fn stream(&self) -> RawStream {
        self.stream.raw() as RawStream
    }

    /// Whether the rows are complete. Does not wait.
    pub fn is_ready(&self) -> Result<bool> {
        self.ready.is_done()
    }

    /// Sleeps until the rows are complete.
    pub fn wait(&self) -> Result<()> {
        self.ready.wait()
    }

    /// Makes later work of a stream wait for the rows. The memory is not written again before the
    /// work that the stream has at the drop is done.
    ///
    /// # Safety
    /// The stream must belong to this device's primary context, or be one of its default streams
    /// (0, 1, 2), and live until these rows are dropped. For the per-thread default stream (2), the
    /// rows must be dropped in the thread that called this.
    pub unsafe fn make_wait(&self, stream: RawStream) -> Result<()> {
        // SAFETY: alive by this function's contract.
        unsafe { self.ready.make_wait(stream as CUstream)? };
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if !readers.contains(&stream) {
            readers.push(stream);
        }
        Ok(())
    }

    /// A copy in host memory. Waits for it.
    pub fn to_host(&self) -> Result<Vec<u8>> {
        let buffer = self
            .output
            .buffer()
            .ok_or_else(|| Error::device("the rows were already dropped"))?;
        let mut bytes = vec![0; self.len];
        self.stream.download(&mut bytes, buffer)?;
        Ok(bytes)
    }
}

impl Drop for DeviceRows {
    fn drop(&mut self) {
        let readers = self
            .readers
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for stream in readers.drain(..) {
            // SAFETY: alive by the contract of `make_wait`, which put it here.
            let event = unsafe { CudaEvent::record(self.stream.context(), stream as CUstream) };
            // After an error the context is unusable, and nothing is written any more.
            if let Ok(event) = event {
                self.output.add_read(Arc::new(event));
            }
        }
    }
}
