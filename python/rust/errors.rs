//! The library's errors as exceptions of `featherload._errors`, whose texts are the
//! command line's.

use featherload::Error;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

/// The exception of an error.
pub fn raised(error: &Error) -> PyErr {
    Python::attach(|py| exception(py, error).unwrap_or_else(|why| why))
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let name = match error {
        Error::Config { .. } => "ConfigError",
        Error::Dataset { .. } => "DatasetError",
        Error::Sample { .. } => "SampleError",
        Error::SlotsHeld { .. } => "BatchesHeldError",
        Error::Device { .. } => "DeviceError",
        Error::Io { .. } => "SystemError",
        _ => "WorkerError",
    };
    let what: Bound<'_, PyDict> =
        [("path", error.path().map(|p| p.display().to_string()))].into_py_dict(py)?;
    what.set_item("option", error.option_name())?;
    what.set_item("line", error.line())?;
    what.set_item("id", error.id())?;
    what.set_item("kind", error.fault().map(|fault| fault.kind.name()))?;
    let class = py.import("featherload._errors")?.getattr(name)?;
    let exception = class.call((error.to_string(),), Some(&what))?;
    Ok(PyErr::from_value(exception))
}
