//! The batches' memory on the device: so many buffers of one size, made at the
//! start and used for ever.
//!
//! In the consumer. A buffer that comes back, from any thread, brings the events
//! that must be over before it is written again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::context::{CudaContext, CudaEvent};
use super::memory::DeviceBuffer;
use crate::error::{Error, Result};

/// All buffers that nobody has.
#[derive(Debug)]
pub(super) struct OutputPool {
    free: Arc<FreeBuffers>,
    count: usize,
    bytes: usize,
}

#[derive(Debug)]
struct FreeBuffers(Mutex<Vec<IdleBuffer>>);

/// A buffer that nobody has, though a stream may still read it.
#[derive(Debug)]
struct IdleBuffer {
    buffer: DeviceBuffer,
    /// Behind what the stage's own stream wrote, which it finished last.
    written: Option<Arc<CudaEvent>>,
    after: Vec<Arc<CudaEvent>>,
}

/// A buffer that somebody has. Free again when dropped, or gone with a stage that is.
#[derive(Debug)]
pub(super) struct OutputBuffer {
    /// None in `drop` only.
    idle: Option<IdleBuffer>,
    /// Gone with the stage: then the buffer goes too.
    free: Weak<FreeBuffers>,
}

impl OutputPool {
    pub(super) fn new(context: &Arc<CudaContext>, count: usize, bytes: usize) -> Result<Self> {
        let mut idle = Vec::with_capacity(count);
        for _ in 0..count {
            idle.push(IdleBuffer {
                buffer: DeviceBuffer::new(context, bytes, "batches")?,
                written: None,
                after: Vec::new(),
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

    /// A free one, if there is one now: the one that came back first, whose readers
    /// had most time.
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

    /// Memory for a batch of so many bytes.
    ///
    /// # Errors
    /// A batch that is too large, and batches that hold all memory.
    pub(super) fn take_for(&self, bytes: usize) -> Result<OutputBuffer> {
        if bytes > self.bytes {
            return Err(Error::device(format!(
                "a batch of {bytes} bytes does not fit the {} that it has on the device",
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

    /// The events before which it must not be written: every stream that writes it waits
    /// for each.
    pub(super) fn after(&self) -> &[Arc<CudaEvent>] {
        self.idle.as_ref().map_or(&[], |idle| &idle.after)
    }

    /// As [`OutputBuffer::after`], for streams that are not the stage's own.
    pub(super) fn after_all(&self) -> impl Iterator<Item = &Arc<CudaEvent>> {
        let written = self.idle.as_ref().and_then(|idle| idle.written.as_ref());
        written.into_iter().chain(self.after())
    }

    /// The stage's own stream has written it as far as this event; all who wrote it have waited
    /// for [`OutputBuffer::after`].
    pub(super) fn was_written(&mut self, event: Arc<CudaEvent>) {
        if let Some(idle) = &mut self.idle {
            idle.after.clear();
            idle.written = Some(event);
        }
    }

    /// It must not be written before this.
    pub(super) fn not_before(&mut self, event: Arc<CudaEvent>) {
        if let Some(idle) = &mut self.idle {
            idle.after.push(event);
        }
    }
}

impl Drop for OutputBuffer {
    fn drop(&mut self) {
        let Some(idle) = self.idle.take() else { return };
        // In a forked copy the lock may be one of a thread that was not copied.
        if let Some(free) = self.free.upgrade()
            && idle.buffer.is_ours()
        {
            free.lock().push(idle);
        }
    }
}

impl FreeBuffers {
    fn lock(&self) -> MutexGuard<'_, Vec<IdleBuffer>> {
        // The list is whole at every moment: a panic elsewhere cannot tear it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IdleBuffer {
    fn drop(&mut self) {
        // The last readers, before the memory goes. Of an unfit context, which says
        // so at once, none is left.
        for event in &self.after {
            let _ = event.wait();
        }
    }
}
