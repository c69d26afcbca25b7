//! Passes the library's warnings to Python's `logging`.
//!
//! A warning may come from any thread, without the GIL, and while a loader is locked. So warnings
//! are stored here until a thread with the GIL passes them on.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use featherload::error::printable;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Largest number of stored warnings. Beyond it the oldest are dropped and counted.
const MOST: usize = 1000;

static ANY: AtomicBool = AtomicBool::new(false);
/// Number of dropped warnings.
static LOST: AtomicU64 = AtomicU64::new(0);
static SAID: Mutex<VecDeque<String>> = Mutex::new(VecDeque::new());

/// Starts to listen. Another extension in this process has its own `tracing`.
pub fn listen() {
    // Fails only if this function was called before.
    let _ = tracing::subscriber::set_global_default(Listener);
}

/// Python's logger `featherload`.
static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Passes warnings to Python's logger `featherload`, oldest first. No lock is held while a handler
/// runs. If a handler raises, the later warnings stay stored.
#[pyfunction]
pub fn tell_warnings(py: Python<'_>) -> PyResult<()> {
    while let Some(text) = oldest() {
        let logger = LOGGER.get_or_try_init(py, || {
            let logging = py.import("logging")?;
            let found = logging.call_method1("getLogger", ("featherload",))?;
            Ok::<_, PyErr>(found.unbind())
        })?;
        logger.call_method1(py, "warning", ("%s", text))?;
    }
    Ok(())
}

/// Removes and returns the oldest warning.
fn oldest() -> Option<String> {
    // Called for every batch.
    if !ANY.load(Ordering::Relaxed) {
        return None;
    }
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    match LOST.swap(0, Ordering::Relaxed) {
        0 => {}
        lost => {
            return Some(format!(
                "{lost} earlier warnings were dropped: at most {MOST} wait for the next batch"
            ));
        }
    }
    let text = said.pop_front();
    ANY.store(!said.is_empty(), Ordering::Relaxed);
    text
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        *of.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let text = printable(text.0);
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == MOST {
            said.pop_front();
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        said.push_back(text);
        // Set before another thread can take the warning.
        ANY.store(true, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
        // Writing to a String cannot fail.
        debug_assert!(written.is_ok());
    }
}
