//! The rays of a step, as Python holds them, and the memory that their tensors keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use featherload::rays::{RayBatch, RayField};
use featherload::{Device, DeviceRows, Dtype, Result};
use pyo3::prelude::*;

use crate::dlpack::Element;
use crate::errors::raised;
use crate::tensor::{Memory, PER_THREAD_DEFAULT, Tensor, per_thread};

/// Rays that Python has, counted for as long as any tensor of them is alive.
pub struct HeldRays {
    batch: RayBatch,
    /// Of the batch's memory.
    pub address: u64,
    count: Option<Arc<AtomicU32>>,
}

impl HeldRays {
    /// Where they lie on a device.
    pub fn on_device(&self) -> Option<&DeviceRows> {
        self.batch.on_device()
    }
}

impl Drop for HeldRays {
    fn drop(&mut self) {
        if let Some(count) = &self.count {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The rays of one step.
#[derive(Clone)]
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawRays {
    held: Arc<HeldRays>,
    /// They lie in memory of their own, since Python holds all other batches.
    #[pyo3(get)]
    copied: bool,
}

impl RawRays {
    /// `last` = Python would hold all memory that there is for batches.
    pub fn new(batch: RayBatch, count: &Arc<AtomicU32>, last: bool) -> Result<Self> {
        let copied = last && batch.is_in_slot();
        let mut batch = if copied { batch.detach()? } else { batch };
        let count = batch.is_in_slot().then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            count.clone()
        });
        let address = match batch.on_device() {
            Some(rows) => rows.address(),
            None => batch.address()? as u64,
        };
        Ok(Self {
            held: Arc::new(HeldRays {
                batch,
                address,
                count,
            }),
            copied,
        })
    }
}

#[pymethods]
impl RawRays {
    #[getter]
    pub fn step(&self) -> u64 {
        self.held.batch.step()
    }

    /// "cpu", or "cuda:N".
    #[getter]
    fn device(&self) -> String {
        let device = self.held.batch.on_device();
        let device = device.map(|rows| Device::Cuda(rows.ordinal()));
        device.unwrap_or_default().to_string()
    }

    /// As that of [`RawBatch`](crate::batch::RawBatch).
    fn record_stream(&self, stream: usize) -> PyResult<()> {
        if stream == PER_THREAD_DEFAULT {
            return Err(per_thread());
        }
        match self.held.on_device() {
            None => Ok(()),
            Some(rows) => {
                // SAFETY: the contract of `RayBatch.record_stream`, which Python's docs state:
                // a stream of this device that lives until the rays are dropped.
                unsafe { rows.make_wait(stream) }.map_err(|e| raised(&e))
            }
        }
    }

    /// A copy in memory of the host.
    fn to_host(&self, py: Python<'_>) -> PyResult<Self> {
        let copied = py.detach(|| self.held.batch.to_host());
        let copied = copied.and_then(|batch| Self::new(batch, &Arc::default(), false));
        copied.map_err(|e| raised(&e))
    }

    /// How many.
    pub fn __len__(&self) -> usize {
        self.held.batch.len()
    }

    /// The names of the arrays, in the order in which they lie in memory. Those that the
    /// scene does not have are left out.
    fn names(&self) -> Vec<&'static str> {
        let batch = &self.held.batch;
        let fields = RayField::ALL.into_iter().filter(|f| batch.has(*f));
        fields.map(RayField::name).collect()
    }

    /// One of the arrays; None where there is none of that name.
    fn array(&self, name: &str) -> Option<Tensor> {
        let batch = &self.held.batch;
        let mut fields = RayField::ALL.into_iter();
        let field = fields.find(|f| f.name() == name && batch.has(*f))?;
        let width = batch.width(field);
        let shape = [batch.len(), width];
        // As nerfstudio has depths.
        let axes = if width == 1 && field != RayField::Depths {
            1
        } else {
            2
        };
        let memory = Memory::Rays(self.held.clone());
        let at = batch.offset(field);
        Some(Tensor::new(memory, at, element(field), &shape[..axes]))
    }
}

fn element(field: RayField) -> Element {
    match field {
        RayField::Indices => Element::Int64,
        RayField::Valid => Element::Pixel(Dtype::U8),
        RayField::Origins
        | RayField::Directions
        | RayField::Colors
        | RayField::DirectionNorms
        | RayField::PixelAreas
        | RayField::Depths
        | RayField::Times => Element::Pixel(Dtype::F32),
    }
}
