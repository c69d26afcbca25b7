//! The ring, pinned: the device reads what workers wrote, where they wrote it.
//!
//! In the consumer. The whole mapping is registered once, at the start, and kept
//! registered until nothing reads it any more. Workers map the same memory by
//! themselves and have no part in this.

use std::sync::Arc;

use cudarc::driver::sys::{
    self, CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr,
};

use crate::device::cuda::context::Context;
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
    ring: Arc<Ring>,
    context: Arc<Context>,
    device_address: CUdeviceptr,
}

impl PinnedRing {
    /// Pins all bytes of a ring.
    ///
    /// # Errors
    /// When the driver refuses: the text has the bytes, and what may limit them.
    pub(crate) fn new(context: &Arc<Context>, ring: Arc<Ring>) -> Result<Self> {
        let bytes = ring.bytes();
        let at = ring.address();
        let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: the whole of a mapping that `ring` keeps; its pages were allocated at
        // the start (`Ring::allocate_rest`); taken back once, in `drop`.
        let pinned = context.setup("cuMemHostRegister_v2", || unsafe {
            sys::cuMemHostRegister_v2(at.cast(), bytes, flags)
        });
        let explained = |e| Error::Device {
            what: format!(
                "pin the ring ({}): {e}. {LIMITS}",
                error::size(bytes as u64)
            ),
        };
        pinned.map_err(explained)?;
        let mut pinned = Self {
            ring,
            context: context.clone(),
            device_address: 0,
        };
        // SAFETY: registered above, for the device to map; the pointer is to a live
        // integer.
        let mapped = context.setup("cuMemHostGetDevicePointer_v2", || unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut pinned.device_address, at.cast(), 0)
        });
        mapped.map_err(explained)?;
        Ok(pinned)
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
            return Err(Error::Device {
                what: "a slot of another ring than the pinned one".into(),
            });
        };
        Ok((self.device_address + offset as CUdeviceptr, len))
    }

    /// Where the device finds these bytes of the ring.
    ///
    /// # Errors
    /// They are none of it.
    pub(super) fn address_of(&self, at: *const u8, len: usize) -> Result<CUdeviceptr> {
        let offset = (at as usize).checked_sub(self.ring.address() as usize);
        let offset = offset.filter(|offset| offset.saturating_add(len) <= self.bytes());
        let offset = offset.ok_or_else(|| Error::Device {
            what: "bytes outside of the pinned ring".into(),
        })?;
        Ok(self.device_address + offset as CUdeviceptr)
    }
}

impl Drop for PinnedRing {
    fn drop(&mut self) {
        let at = self.ring.address();
        // SAFETY: registered in `new`, taken back here only; its owner has waited for
        // what read it, and the map is still there: `self.ring` goes after this.
        self.context.release("cuMemHostUnregister", || unsafe {
            sys::cuMemHostUnregister(at.cast())
        });
    }
}
