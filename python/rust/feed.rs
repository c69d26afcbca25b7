//! Samples whose bytes a thread of Python gives while the run goes on.

use std::os::fd::AsRawFd;

use featherload::{ItemFeed, ItemRequest};
use pyo3::prelude::*;

use crate::errors::{mistake, raised};
use crate::items::{bytes_of, read_label};

/// A feed of the library. No method waits, so each may be called with the GIL.
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawFeed(ItemFeed);

/// A sample that is requested.
#[pyclass(frozen, module = "featherload._featherload")]
pub struct RawRequest(ItemRequest);

#[pymethods]
impl RawRequest {
    /// The number of the sample.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }
}

#[pymethods]
impl RawFeed {
    /// `limit`: most bytes of samples in memory at one time.
    #[new]
    fn new(limit: u64) -> PyResult<Self> {
        ItemFeed::new(limit).map(Self).map_err(|e| raised(&e))
    }

    /// The descriptor of a pipe that can be read when there may be something to do.
    #[getter]
    fn wake_pipe(&self) -> i32 {
        self.0.wake_pipe().as_raw_fd()
    }

    /// Whether the stream was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// The next sample that is requested, or None at the moment.
    fn next(&self) -> Option<RawRequest> {
        self.0.next().map(RawRequest)
    }

    /// Gives bytes and label of a sample. False if there is no room at the moment.
    fn put(
        &self,
        py: Python<'_>,
        request: &RawRequest,
        image: &Bound<'_, PyAny>,
        label: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let image =
            bytes_of(image).map_err(|what| mistake(py, "dataset", format!("the image {what}")))?;
        let label = read_label(label)
            .map_err(|what| mistake(py, "dataset", format!("the target {what}")))?;
        let put = self.0.put(&request.0, image.as_bytes(), &label);
        put.map_err(|e| raised(&e))
    }

    /// Ends the run with an error. False if the request was cancelled meanwhile.
    fn fail(&self, request: &RawRequest, what: String) -> bool {
        self.0.fail(&request.0, what)
    }
}

impl RawFeed {
    pub fn feed(&self) -> &ItemFeed {
        &self.0
    }
}
