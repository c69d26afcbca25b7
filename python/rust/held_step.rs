//! The batch of one step of a scene, as Python holds it. It is counted, and kept while any of its
//! tensors is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use featherload::scene::{SceneArrays, SceneBatch};
use featherload::{Device, DeviceRows, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::tensor::{PER_THREAD_DEFAULT, TensorMemory, per_thread};

/// A counted batch.
pub struct HeldStep<A: SceneArrays> {
    pub given: SceneBatch<A>,
    /// Address of its memory.
    address: u64,
    /// The batch was copied to memory of its own, because Python holds all other batches.
    pub copied: bool,
    count: Option<Arc<AtomicU32>>,
}

impl<A: SceneArrays> TensorMemory for HeldStep<A> {
    fn address(&self) -> u64 {
        self.address
    }

    fn on_device(&self) -> Option<&DeviceRows> {
        self.given.on_device()
    }
}

impl<A: SceneArrays> HeldStep<A> {
    /// `last`: with this batch, Python would hold all memory for batches.
    pub fn new(given: SceneBatch<A>, count: &Arc<AtomicU32>, last: bool) -> Result<Self> {
        let copied = last && given.is_in_slot();
        let mut given = if copied { given.detach()? } else { given };
        let count = given.is_in_slot().then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            count.clone()
        });
        let address = match given.on_device() {
            Some(rows) => rows.address(),
            None => given.address()? as u64,
        };
        Ok(Self {
            given,
            address,
            copied,
            count,
        })
    }

    /// "cpu", or "cuda:N".
    pub fn device(&self) -> String {
        let device = self.on_device();
        let device = device.map(|rows| Device::Cuda(rows.ordinal()));
        device.unwrap_or_default().to_string()
    }

    /// Like the method of [`RawBatch`](crate::batch::RawBatch).
    pub fn record_stream(&self, stream: usize) -> PyResult<()> {
        if stream == PER_THREAD_DEFAULT {
            return Err(per_thread());
        }
        match self.on_device() {
            None => Ok(()),
            Some(rows) => {
                // SAFETY: the docs of `record_stream` require a stream of this device that lives
                // until these rows are dropped.
                unsafe { rows.make_wait(stream) }.map_err(|e| raised(&e))
            }
        }
    }

    /// A copy in host memory.
    pub fn to_host(&self, py: Python<'_>) -> PyResult<Self> {
        let copied = py.detach(|| self.given.to_host());
        let copied = copied.and_then(|given| Self::new(given, &Arc::default(), false));
        copied.map_err(|e| raised(&e))
    }
}

impl<A: SceneArrays> Drop for HeldStep<A> {
    fn drop(&mut self) {
        if let Some(count) = &self.count {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
