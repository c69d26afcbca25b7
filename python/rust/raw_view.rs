//! One view, as Python holds it, and the memory that its tensors keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use featherload::views::{View, ViewField};
use featherload::{Dtype, Result};
use pyo3::prelude::*;

use crate::dlpack::Element;
use crate::tensor::{Memory, Tensor};

/// A view that Python has, counted for as long as any tensor of it is alive.
pub struct HeldView {
    view: View,
    /// Of the view's memory.
    pub address: u64,
    count: Option<Arc<AtomicU32>>,
}

impl Drop for HeldView {
    fn drop(&mut self) {
        if let Some(count) = &self.count {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The image of one step.
#[derive(Clone)]
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawView {
    held: Arc<HeldView>,
    /// It lies in memory of its own, since Python holds all others.
    #[pyo3(get)]
    copied: bool,
}

impl RawView {
    /// `last` = Python would hold all memory that there is for views.
    pub fn new(view: View, count: &Arc<AtomicU32>, last: bool) -> Result<Self> {
        let copied = last && view.is_in_slot();
        let mut view = if copied { view.detach()? } else { view };
        let count = view.is_in_slot().then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            count.clone()
        });
        let address = view.address()? as u64;
        Ok(Self {
            held: Arc::new(HeldView {
                view,
                address,
                count,
            }),
            copied,
        })
    }
}

#[pymethods]
impl RawView {
    #[getter]
    pub fn step(&self) -> u64 {
        self.held.view.step()
    }

    /// The image's number in the split.
    #[getter]
    fn index(&self) -> u64 {
        self.held.view.index()
    }

    /// One of the arrays; None where there is none of that name.
    fn array(&self, name: &str) -> Option<Tensor> {
        let view = &self.held.view;
        let mut fields = ViewField::ALL.into_iter();
        let field = fields.find(|f| f.name() == name && view.has(*f))?;
        let shape = [view.height(), view.width(), view.channels()];
        let (element, axes) = match field {
            ViewField::Image if view.is_float() => (Element::Pixel(Dtype::F32), 3),
            ViewField::Image => (Element::Pixel(Dtype::U8), 3),
            ViewField::Mask => (Element::Pixel(Dtype::U8), 2),
            ViewField::Depth => (Element::Pixel(Dtype::F32), 2),
        };
        let memory = Memory::View(self.held.clone());
        let at = view.offset(field);
        Some(Tensor::new(memory, at, element, &shape[..axes]))
    }
}
