//! Copies to the device, piece by piece, in a separate stream.
//!
//! In the consumer. Two pinned buffers alternate: one is filled while the other is copied.

use std::sync::Arc;

use super::context::{CudaContext, CudaEvent, CudaStream};
use super::memory::{DeviceBuffer, HostBuffer};
use crate::error::Result;

/// Bytes per piece.
const PIECE: usize = 4 << 20;
const TURNS: usize = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct UploadStream {
    stream: CudaStream,
    buffers: [UploadBuffer; TURNS],
    next: usize,
}

#[derive(Debug)]
struct UploadBuffer {
    buffer: HostBuffer,
    /// After the last copy from it.
    done: Option<CudaEvent>,
}

impl UploadStream {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let turn = || {
            Ok(UploadBuffer {
                buffer: HostBuffer::new(context, PIECE, "upload buffers of images")?,
                done: None,
            })
        };
        Ok(Self {
            stream: CudaStream::new(context)?,
            buffers: [turn()?, turn()?],
            next: 0,
        })
    }

    /// Pinned host bytes.
    pub(super) fn pinned_bytes(&self) -> usize {
        TURNS * PIECE
    }

    /// Copies `len` bytes to byte `at` of a buffer. `fill` writes the bytes from a given offset on.
    ///
    /// # Safety
    /// Nothing may read or write these bytes of `to` before the event of [`UploadStream::record`]
    /// is done, and `to` must live until then.
    pub(super) unsafe fn put(
        &mut self,
        to: &DeviceBuffer,
        at: usize,
        len: usize,
        mut fill: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        for begin in (0..len).step_by(PIECE) {
            let here = PIECE.min(len - begin);
            let turn = &mut self.buffers[self.next];
            self.next = (self.next + 1) % TURNS;
            if let Some(done) = turn.done.take() {
                done.wait()?;
            }
            fill(begin, &mut turn.buffer.bytes_mut()[..here])?;
            // SAFETY: `here` bytes of a pinned buffer that is not written before the event
            // below is over; the target by this function's contract.
            unsafe {
                let from = turn.buffer.as_ptr();
                self.stream.upload_at(to, at + begin, from, here)?;
            }
            turn.done = Some(self.stream.record()?);
        }
        Ok(())
    }

    /// An event after all copies so far.
    pub(super) fn record(&self) -> Result<CudaEvent> {
        self.stream.record()
    }
}

impl Drop for UploadStream {
    fn drop(&mut self) {
        self.stream.drain();
    }
}
