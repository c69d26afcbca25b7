//! Host memory that the device reads in place: the image store of a scene.
//!
//! In the consumer. A separate mapping, registered as a whole. It lives as long as the device may
//! read it.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use super::context::CudaContext;
use super::memory::HostRegistration;
use crate::error::{self, Error, Result};
use crate::sys::shared_memory::SharedMemory;

/// Shared memory that the device reads.
#[derive(Debug)]
pub(super) struct MappedMemory {
    /// Dropped before the memory.
    registration: HostRegistration,
    memory: SharedMemory,
}

impl MappedMemory {
    /// Registers all of the memory. This allocates pages that are not allocated yet.
    pub(super) fn new(context: &Arc<CudaContext>, memory: SharedMemory) -> Result<Self> {
        let len = memory.len();
        let at = memory.bytes_at(0, len);
        // SAFETY: the whole of a map that `memory` keeps, whose size is sealed; its owner has
        // waited for what read it before it drops this, and the map goes after it.
        let registration = unsafe { HostRegistration::new(context, at, len) };
        let registration = registration.map_err(|e| {
            Error::device(format!(
                "pin the store ({}), where the device reads images that gpu_memory_limit leaves \
                 out: {e}. Raise gpu_memory_limit so that all images fit",
                error::size(len as u64)
            ))
        })?;
        Ok(Self {
            registration,
            memory,
        })
    }

    /// Device address of the first byte.
    pub(super) fn address(&self) -> CUdeviceptr {
        self.registration.address()
    }

    pub(super) fn len(&self) -> usize {
        self.memory.len()
    }
}
