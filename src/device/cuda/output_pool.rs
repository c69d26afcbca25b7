//! The device memory of batches: a fixed number of buffers of one size, allocated at the start and
//! reused.
//!
//! In the consumer. A buffer may come back from any thread. It brings the events that must be done
//! before it is written again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::context::{CudaContext, CudaEvent};
use super::memory::DeviceBuffer;
use crate::error::{Error, Result};

/// All free buffers.
#[derive(Debug)]
pub(super) struct OutputPool {
    free: Arc<FreeBuffers>,
    count: usize,
    bytes: usize,
}

#[derive(Debug)]
struct FreeBuffers(Mutex<Vec<IdleBuffer>>);

/// A free buffer. A stream may still read it.
#[derive(Debug)]
struct IdleBuffer {
    buffer: DeviceBuffer,
    /// After the last write of the stage's own stream.
    written: Option<Arc<CudaEvent>>,
    reads: Vec<Arc<CudaEvent>>,
}

/// A buffer in use. Dropping it returns it to the pool, or frees it if the stage was dropped.
#[derive(Debug)]
pub(super) struct OutputBuffer {
    /// None only in `drop`.
    idle: Option<IdleBuffer>,
    /// Gone after the stage was dropped.
    free: Weak<FreeBuffers>,
}

impl OutputPool {
    pub(super) fn new(context: &Arc<CudaContext>, count: usize, bytes: usize) -> Result<Self> {
        let mut idle = Vec::with_capacity(count);
        for _ in 0..count {
            idle.push(IdleBuffer {
                buffer: DeviceBuffer::new(context, bytes, "batches")?,
                written: None,
                reads: Vec::new(),
            });
        }
        Ok(Self {
            free: Arc::new(FreeBuffers(Mutex::new(idle))),
            count,
            bytes,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A free buffer, if there is one: the one that was returned first, since its readers had the
    /// most time.
    pub(super) fn take(&self) -> Option<OutputBuffer> {
        let mut free = self.free.lock();
        if free.is_empty() {
            return None;
        }
        Some(OutputBuffer {
            idle: Some(free.remove(0)),
            free: Arc::downgrade(&self.free),
        })
    }

    /// Memory for a batch of this number of bytes.
    ///
    /// # Errors
    /// A batch that is too large; no free buffer.
    pub(super) fn take_for(&self, bytes: usize) -> Result<OutputBuffer> {
        if bytes > self.bytes {
            return Err(Error::device(format!(
                "a batch of {bytes} bytes does not fit the {} bytes of its device memory",
                self.bytes
            )));
        }
        self.take().ok_or_else(|| Error::SlotsHeld {
            what: format!(
                "all {} batches on the device are held: drop one before the next",
                self.count
            ),
        })
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.lock().is_empty()
    }
}

impl OutputBuffer {
    pub(super) fn buffer(&self) -> Option<&DeviceBuffer> {
        self.idle.as_ref().map(|idle| &idle.buffer)
    }

    /// Each stream of the stage must wait for these events before it writes the buffer.
    pub(super) fn reads(&self) -> &[Arc<CudaEvent>] {
        self.idle.as_ref().map_or(&[], |idle| &idle.reads)
    }

    /// Like [`OutputBuffer::reads`], for streams other than the stage's own.
    pub(super) fn pending_events(&self) -> impl Iterator<Item = &Arc<CudaEvent>> {
        let written = self.idle.as_ref().and_then(|idle| idle.written.as_ref());
        written.into_iter().chain(self.reads())
    }

    /// Records the last write of the stage's own stream. All writers have waited for
    /// [`OutputBuffer::reads`].
    pub(super) fn record_write(&mut self, event: Arc<CudaEvent>) {
        if let Some(idle) = &mut self.idle {
            idle.reads.clear();
            idle.written = Some(event);
        }
    }

    /// Adds an event that must be done before the next write.
    pub(super) fn add_read(&mut self, event: Arc<CudaEvent>) {
        if let Some(idle) = &mut self.idle {
            idle.reads.push(event);
        }
    }
}

impl Drop for OutputBuffer {
    fn drop(&mut self) {
        let Some(idle) = self.idle.take() else { return };
        // In a forked copy the lock may belong to a thread that does not exist there.
        if let Some(free) = self.free.upgrade()
            && idle.buffer.is_ours()
        {
            free.lock().push(idle);
        }
    }
}

impl FreeBuffers {
    fn lock(&self) -> MutexGuard<'_, Vec<IdleBuffer>> {
        // The list is valid at every moment, also after a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IdleBuffer {
    fn drop(&mut self) {
        // Waits for the last readers before the memory is freed. In an unusable context each wait
        // fails at once, and no reader runs.
        for event in &self.reads {
            let _ = event.wait();
        }
    }
}
