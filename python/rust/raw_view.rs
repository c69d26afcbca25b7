//! One view in Python.

use std::sync::Arc;

use featherload::DataType;
use featherload::views::{StepImage, ViewField};
use pyo3::prelude::*;

use crate::dlpack::ElementType;
use crate::held_step::HeldStep;
use crate::tensor::Tensor;

/// The image of one step.
#[derive(Clone)]
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawView {
    pub held: Arc<HeldStep<StepImage>>,
}

#[pymethods]
impl RawView {
    #[getter]
    fn step(&self) -> u64 {
        self.held.given.step()
    }

    /// True if the view was copied to memory of its own, because Python holds all others.
    #[getter]
    fn copied(&self) -> bool {
        self.held.copied
    }

    /// "cpu", or "cuda:N".
    #[getter]
    fn device(&self) -> String {
        self.held.device()
    }

    /// Like the method of [`RawBatch`](crate::batch::RawBatch).
    fn record_stream(&self, stream: usize) -> PyResult<()> {
        self.held.record_stream(stream)
    }

    /// A copy in host memory.
    fn to_host(&self, py: Python<'_>) -> PyResult<Self> {
        let held = Arc::new(self.held.to_host(py)?);
        Ok(Self { held })
    }

    /// Number of the image in the split.
    #[getter]
    fn index(&self) -> u64 {
        self.held.given.index()
    }

    /// One of the arrays; None if the name is unknown.
    fn array(&self, name: &str) -> Option<Tensor> {
        let view = &self.held.given;
        let mut fields = ViewField::ALL.into_iter();
        let field = fields.find(|f| f.name() == name && view.has(*f))?;
        let shape = [view.height(), view.width(), view.channels()];
        let (element, axes) = match field {
            ViewField::Image if view.is_float() => (ElementType::Pixel(DataType::F32), 3),
            ViewField::Image => (ElementType::Pixel(DataType::U8), 3),
            ViewField::Mask => (ElementType::Pixel(DataType::U8), 2),
            ViewField::Depth => (ElementType::Pixel(DataType::F32), 2),
        };
        let memory = self.held.clone();
        let at = view.offset(field);
        Some(Tensor::new(memory, at, element, &shape[..axes]))
    }
}
