//! Waits without the GIL for work in another thread. It checks for signals regularly, so Ctrl-C
//! ends any wait.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use featherload::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::logs::tell_warnings;

/// Time between two checks for signals.
pub const LOOK: Duration = Duration::from_millis(50);

/// Passes the library's warnings to Python's `logging` and checks for signals. No run may be
/// locked: a handler may request its state.
pub fn look(py: Python<'_>) -> PyResult<()> {
    tell_warnings(py)?;
    py.check_signals()
}

/// Runs `work` in a thread and returns its result. After Ctrl-C that thread ends by itself.
pub fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, done) = channel();
    thread::Builder::new()
        .name("featherload".into())
        .spawn(move || {
            // After Ctrl-C no receiver is left: the result is dropped here.
            let _ = sender.send(work());
        })
        .map_err(|e| raised(&Error::not_started("start a thread", e)))?;
    let done = Mutex::new(done);
    loop {
        match py.detach(|| lock(&done).recv_timeout(LOOK)) {
            Ok(made) => return made.map_err(|e| raised(&e)),
            Err(RecvTimeoutError::Timeout) => look(py)?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(raised(&Error::worker("a background thread panicked")));
            }
        }
    }
}

/// Locks, also after a panic in another thread: each call checks the content itself, which a panic
/// does not corrupt.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
