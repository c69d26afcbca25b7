//! The rays of a step in Python.

use std::sync::Arc;

use featherload::DataType;
use featherload::rays::{RayField, StepRays};
use pyo3::prelude::*;

use crate::dlpack::ElementType;
use crate::held_step::HeldStep;
use crate::tensor::Tensor;

/// The rays of one step.
#[derive(Clone)]
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawRays {
    pub held: Arc<HeldStep<StepRays>>,
}

#[pymethods]
impl RawRays {
    #[getter]
    fn step(&self) -> u64 {
        self.held.given.step()
    }

    /// True if the rays were copied to memory of their own, because Python holds all other batches.
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

    /// Number of rays.
    fn __len__(&self) -> usize {
        self.held.given.len()
    }

    /// The names of the arrays, in memory order. Arrays that the scene does not have are left out.
    fn names(&self) -> Vec<&'static str> {
        let batch = &self.held.given;
        let fields = RayField::ALL.into_iter().filter(|f| batch.has(*f));
        fields.map(RayField::name).collect()
    }

    /// One of the arrays; None if the name is unknown.
    fn array(&self, name: &str) -> Option<Tensor> {
        let batch = &self.held.given;
        let mut fields = RayField::ALL.into_iter();
        let field = fields.find(|f| f.name() == name && batch.has(*f))?;
        let width = batch.width(field);
        let shape = [batch.len(), width];
        // Depths keep their axis of length 1, as in nerfstudio.
        let axes = if width == 1 && field != RayField::Depths {
            1
        } else {
            2
        };
        let memory = self.held.clone();
        let at = batch.offset(field);
        Some(Tensor::new(memory, at, element(field), &shape[..axes]))
    }
}

fn element(field: RayField) -> ElementType {
    match field {
        RayField::Indices => ElementType::Int64,
        RayField::Valid => ElementType::Pixel(DataType::U8),
        RayField::Origins
        | RayField::Directions
        | RayField::Colors
        | RayField::DirectionNorms
        | RayField::PixelAreas
        | RayField::Depths
        | RayField::Times => ElementType::Pixel(DataType::F32),
    }
}
