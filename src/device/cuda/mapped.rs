//! Memory of the host that the device reads where it is: the store of a scene.
//!
//! In the consumer. A map of its own, registered as a whole: it lives as long as the device
//! may read it.

use std::sync::Arc;

use cudarc::driver::sys::{
    self, CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr,
};

use super::context::Context;
use crate::error::{self, Error, Result};
use crate::sys::shared::SharedMemory;

/// Shared memory that the device reads.
#[derive(Debug)]
pub(super) struct Mapped {
    memory: SharedMemory,
    context: Arc<Context>,
    address: CUdeviceptr,
}

impl Mapped {
    /// Registers all of it, which allocates what is not yet.
    pub(super) fn new(context: &Arc<Context>, memory: SharedMemory) -> Result<Self> {
        let len = memory.len();
        let at = memory.bytes_at(0, len);
        let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
        let explained = |e| Error::Device {
            what: format!(
                "pin the store ({}), where the device reads images that gpu_memory_limit leaves \
                 out: {e}. Raise gpu_memory_limit so that all images fit",
                error::size(len as u64)
            ),
        };
        // SAFETY: the whole of a map that `memory` keeps, whose size is sealed; taken back
        // once, in `drop`.
        let pinned = context.setup("cuMemHostRegister_v2", || unsafe {
            sys::cuMemHostRegister_v2(at.cast(), len, flags)
        });
        pinned.map_err(explained)?;
        let mut mapped = Self {
            memory,
            context: context.clone(),
            address: 0,
        };
        // SAFETY: registered above, for the device to map; the pointer is to a live integer.
        let found = context.setup("cuMemHostGetDevicePointer_v2", || unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut mapped.address, at.cast(), 0)
        });
        found.map_err(explained)?;
        Ok(mapped)
    }

    /// Where it begins for the device.
    pub(super) fn address(&self) -> CUdeviceptr {
        self.address
    }

    pub(super) fn len(&self) -> usize {
        self.memory.len()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let at = self.memory.bytes_at(0, self.memory.len());
        // SAFETY: registered in `new`, taken back here only; its owner has waited for what
        // read it, and the map goes after this.
        self.context.release("cuMemHostUnregister", || unsafe {
            sys::cuMemHostUnregister(at.cast())
        });
    }
}
