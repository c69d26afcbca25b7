//! A batch on the device, for as long as somebody has it.
//!
//! In the consumer, in any thread, also behind the end of the stage that made it.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUstream;

use super::context::{CudaEvent, CudaStream, RawStream};
use super::memory::DeviceBuffer;
use super::output_pool::OutputBuffer;
use crate::error::{Error, Result};

/// The rows of a batch, tight, in memory of the device. Dropping it gives the
/// memory back to the stage, which writes it again once the streams that were
/// told of it ([`DeviceRows::make_wait`]) have passed that moment.
#[derive(Debug)]
pub struct DeviceRows {
    output: OutputBuffer,
    ready: Arc<CudaEvent>,
    stream: Arc<CudaStream>,
    len: usize,
    readers: Mutex<Vec<RawStream>>,
}

impl DeviceRows {
    /// Rows that are there once `ready` is over; an event of `stream`.
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

    /// Where the first row begins, an address of the device.
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

    /// The number of the device among the visible ones.
    pub fn ordinal(&self) -> u32 {
        self.stream.context().ordinal()
    }

    /// The stream in which they are made.
    pub fn stream(&self) -> RawStream {
        self.stream.raw() as RawStream
    }

    /// True when they are there. Does not wait.
    pub fn is_ready(&self) -> Result<bool> {
        self.ready.is_done()
    }

    /// Sleeps until they are there.
    pub fn wait(&self) -> Result<()> {
        self.ready.wait()
    }

    /// What is put into a stream from now on waits until the rows are there; and the
    /// memory is not written again before what was put in up to the drop is over.
    ///
    /// # Safety
    /// The stream must be one of this device's primary context, or one of its default
    /// streams (0, 1, 2), and live until these rows are dropped. Of each thread's own
    /// default stream (2) the drop must happen in the thread that called this.
    pub unsafe fn make_wait(&self, stream: RawStream) -> Result<()> {
        // SAFETY: alive by this function's contract.
        unsafe { self.ready.make_wait(stream as CUstream)? };
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if !readers.contains(&stream) {
            readers.push(stream);
        }
        Ok(())
    }

    /// A copy for the host. Waits for it.
    pub fn to_host(&self) -> Result<Vec<u8>> {
        let buffer = self
            .output
            .buffer()
            .ok_or_else(|| Error::device("the rows were given back"))?;
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
            // An error leaves the context unfit: nothing is written any more.
            if let Ok(event) = event {
                self.output.not_before(Arc::new(event));
            }
        }
    }
}
