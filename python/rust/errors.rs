//! Raises the library's errors as exceptions of `featherload._errors`, with the same texts as the
//! command line.

use std::path::Path;

use featherload::{Error, error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyModule, PyString};

/// Imported once: imports fail while the interpreter ends.
static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// Passes `printable` to the module of the exceptions. That module is imported while this one
/// initialises, so it cannot import this one.
pub fn find_classes(this: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = this.py();
    let classes = py.import("featherload._errors")?;
    classes.setattr("printable", this.getattr("printable")?)?;
    let module = classes.unbind();
    // Another thread may have set it first: it is the same module.
    let _ = CLASSES.set(py, module);
    Ok(())
}

/// Makes untrusted text safe for a terminal: one line, without control sequences. A path from
/// `os.fsdecode` keeps its bytes.
#[pyfunction]
pub fn printable(text: &Bound<'_, PyString>) -> PyResult<String> {
    if let Ok(text) = text.to_cow() {
        return Ok(error::printable(&*text));
    }
    match text.call_method1("encode", ("utf-8", "surrogateescape")) {
        Ok(bytes) => Ok(error::printable(bytes.extract::<Vec<u8>>()?)),
        Err(_) => Ok(error::printable(&*text.to_string_lossy())),
    }
}

/// The exception for a mistake in one option.
pub fn mistake(py: Python<'_>, option: &str, text: String) -> PyErr {
    let made = || {
        let what: Bound<'_, PyDict> = [("option", option)].into_py_dict(py)?;
        class(py, "ConfigError")?.call((text,), Some(&what))
    };
    made().map_or_else(|why| why, PyErr::from_value)
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("featherload._errors")?.unbind())
    })?;
    classes.bind(py).getattr(name)
}

/// The exception for an error of the library.
pub fn raised(error: &Error) -> PyErr {
    Python::attach(|py| {
        if error.path() == Some(Path::new(IN_PYTHON)) {
            let text = error.to_string();
            let (_, why) = text.split_once(": ").unwrap_or(("", &text));
            return mistake(py, "recipe", format!("recipe: {why}"));
        }
        exception(py, error).unwrap_or_else(|why| why)
    })
}

/// The library's name for a recipe that is not a file.
const IN_PYTHON: &str = "the recipe";

/// An option with its value, as a recipe file and as Python write it.
const NO_LABELS: (&str, &str) = ("`labels: none`", "labels='none'");

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let name = match error {
        Error::Config { .. } => "ConfigError",
        Error::Dataset { .. } => "DatasetError",
        Error::Sample { .. } => "SampleError",
        Error::SlotsHeld { .. } => "BatchesHeldError",
        Error::Device { .. } => "DeviceError",
        Error::Io { .. } => "PlatformError",
        _ => "WorkerError",
    };
    let what: Bound<'_, PyDict> =
        [("path", error.path().map(|p| p.display().to_string()))].into_py_dict(py)?;
    what.set_item("option", error.option_name())?;
    what.set_item("line", error.line())?;
    what.set_item("id", error.id())?;
    what.set_item("kind", error.fault().map(|fault| fault.kind.name()))?;
    let text = error.to_string().replace(NO_LABELS.0, NO_LABELS.1);
    let exception = class(py, name)?.call((text,), Some(&what))?;
    Ok(PyErr::from_value(exception))
}
