//! Work behind which Python waits without the GIL, in looks: Ctrl-C ends any wait.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use featherload::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::logs::tell_warnings;

/// How long to wait before signals are looked at.
pub const LOOK: Duration = Duration::from_millis(50);

/// Between two waits: what the library warned of meanwhile goes to Python's `logging`, and
/// signals are looked at. Nothing of a run may be locked: a handler may ask for its state.
pub fn look(py: Python<'_>) -> PyResult<()> {
    tell_warnings(py)?;
    py.check_signals()
}

/// What `work` gives, done in a thread. After Ctrl-C that thread ends by itself.
pub fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, done) = channel();
    thread::Builder::new()
        .name("featherload".into())
        .spawn(move || {
            // Nobody waits any more after Ctrl-C: it is dropped here.
            let _ = sender.send(work());
        })
        .map_err(|e| raised(&Error::not_started("start a thread", e)))?;
    let done = Mutex::new(done);
    loop {
        match py.detach(|| lock(&done).recv_timeout(LOOK)) {
            Ok(made) => return made.map_err(|e| raised(&e)),
            Err(RecvTimeoutError::Timeout) => look(py)?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(raised(&Error::worker("the thread of a start panicked")));
            }
        }
    }
}

/// A panic elsewhere leaves what is in there whole: each call checks for itself.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
