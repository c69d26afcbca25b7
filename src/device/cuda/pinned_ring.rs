//! The ring, pinned: the device reads what workers wrote, where they wrote it.
//!
//! In the consumer. The whole mapping is registered once, at the start, and kept
//! registered until nothing reads it any more. Workers map the same memory by
//! themselves and have no part in this.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::cuda::context::CudaContext;
use crate::device::cuda::memory::HostRegistration;
use crate::error::{self, Error, Result};
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;

/// What may keep memory from being pinned. The one place that says so.
const LIMITS: &str = "pinning is limited by free memory, the cgroup's memory limit, \
                      RLIMIT_MEMLOCK (ulimit -l) or the container's sandbox: lower batch or \
                      depth, or raise the limit";

/// A ring whose memory devices may read. The map outlives it.
#[derive(Debug)]
pub(crate) struct PinnedRing {
    /// Goes before the ring.
    registration: HostRegistration,
    ring: Arc<Ring>,
}

impl PinnedRing {
    /// Pins all bytes of a ring.
    ///
    /// # Errors
    /// When the driver refuses: the text has the bytes, and what may limit them.
    pub(crate) fn new(context: &Arc<CudaContext>, ring: Arc<Ring>) -> Result<Self> {
        let bytes = ring.bytes();
        let at = ring.address();
        // SAFETY: the whole of a mapping that `ring` keeps; its pages were allocated at the
        // start (`Ring::allocate_rest`). Its owner has waited for what read it before it drops
        // this, and the map goes after it.
        let registration = unsafe { HostRegistration::new(context, at, bytes) };
        let registration = registration.map_err(|e| {
            Error::device(format!(
                "pin the ring ({}): {e}. {LIMITS}",
                error::size(bytes as u64)
            ))
        })?;
        Ok(Self { registration, ring })
    }

    /// Bytes that are pinned.
    pub(crate) fn bytes(&self) -> usize {
        self.ring.bytes()
    }

    /// Where a slot lies for the device, and how long it is.
    ///
    /// # Errors
    /// When it is a slot of another ring.
    pub(super) fn on_device(&self, slot: &HeldSlot) -> Result<(CUdeviceptr, usize)> {
        let Some((offset, len)) = slot.place_in(&self.ring) else {
            return Err(Error::device("a slot of another ring than the pinned one"));
        };
        Ok((self.registration.address() + offset as CUdeviceptr, len))
    }

    /// Where the device finds these bytes of the ring.
    ///
    /// # Errors
    /// They are none of it.
    pub(super) fn address_of(&self, at: *const u8, len: usize) -> Result<CUdeviceptr> {
        let offset = (at as usize).checked_sub(self.ring.address() as usize);
        let offset = offset.filter(|offset| offset.saturating_add(len) <= self.bytes());
        let offset = offset.ok_or_else(|| Error::device("bytes outside of the pinned ring"))?;
        Ok(self.registration.address() + offset as CUdeviceptr)
    }
}
