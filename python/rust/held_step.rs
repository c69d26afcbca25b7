//! What a run over a scene gives for a step, as Python holds it: counted, and kept for as long
//! as any tensor of it is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use featherload::scene::{SceneArrays, SceneBatch};
use featherload::{Device, DeviceRows, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::tensor::{PER_THREAD_DEFAULT, TensorMemory, per_thread};

/// A batch, counted.
pub struct HeldStep<A: SceneArrays> {
    pub given: SceneBatch<A>,
    /// Of its memory.
    address: u64,
    /// It lies in memory of its own, since Python holds all others.
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
    /// `last` = Python would hold all memory that there is.
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

    /// As that of [`RawBatch`](crate::batch::RawBatch).
    pub fn record_stream(&self, stream: usize) -> PyResult<()> {
        if stream == PER_THREAD_DEFAULT {
            return Err(per_thread());
        }
        match self.on_device() {
            None => Ok(()),
            Some(rows) => {
                // SAFETY: the contract of `record_stream`, which Python's docs state: a stream
                // of this device that lives until these rows are dropped.
                unsafe { rows.make_wait(stream) }.map_err(|e| raised(&e))
            }
        }
    }

    /// A copy in memory of the host.
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
