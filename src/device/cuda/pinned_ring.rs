//! The pinned ring: the device reads what workers wrote, in place.
//!
//! In the consumer. The whole mapping is registered once, at the start, until nothing reads it any
//! more. Workers map the same memory themselves. Pinning does not affect them.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::cuda::context::CudaContext;
use crate::device::cuda::memory::HostRegistration;
use crate::error::{self, Error, Result};
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;

/// Reasons why pinning can fail, for all error texts.
const LIMITS: &str = "pinning is limited by free memory, the cgroup's memory limit, \
                      RLIMIT_MEMLOCK (ulimit -l) or the container's sandbox: lower batch or \
                      depth, or raise the limit";

/// A ring that devices can read. The mapping outlives it.
#[derive(Debug)]
pub(crate) struct PinnedRing {
    /// Dropped before the ring.
    registration: HostRegistration,
    ring: Arc<Ring>,
}

impl PinnedRing {
    /// Pins all bytes of a ring.
    ///
    /// # Errors
    /// A driver error. The text has the number of bytes and the possible limits.
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

    /// Pinned bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.ring.bytes()
    }

    /// Device address and length of a slot.
    ///
    /// # Errors
    /// A slot of another ring.
    pub(super) fn on_device(&self, slot: &HeldSlot) -> Result<(CUdeviceptr, usize)> {
        let Some((offset, len)) = slot.place_in(&self.ring) else {
            return Err(Error::device(
                "the slot belongs to another ring than the pinned one",
            ));
        };
        Ok((self.registration.address() + offset as CUdeviceptr, len))
    }

    /// Device address of these bytes of the ring.
    ///
    /// # Errors
    /// Bytes outside of the ring.
    pub(super) fn address_of(&self, at: *const u8, len: usize) -> Result<CUdeviceptr> {
        let offset = (at as usize).checked_sub(self.ring.address() as usize);
        let offset = offset.filter(|offset| offset.saturating_add(len) <= self.bytes());
        let offset = offset.ok_or_else(|| Error::device("bytes are outside of the pinned ring"))?;
        Ok(self.registration.address() + offset as CUdeviceptr)
    }
}
