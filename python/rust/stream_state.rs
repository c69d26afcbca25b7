//! A loader or a run over a scene behind a lock, with the batch that Python may not have delivered
//! yet.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use featherload::{Error, Result};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::errors::raised;
use crate::wait::lock;

/// The state of a stream. `T` makes batches, and Python holds them as `B`.
pub struct StreamState<T: Send, B: Send> {
    /// The process that made it. In a forked copy the lock may stay locked for ever, by a thread
    /// that was not copied.
    process: u32,
    /// `None` after it was closed.
    run: Mutex<Option<T>>,
    /// A batch that was returned to Python but not delivered: Ctrl-C may come between. Locked
    /// together with the run.
    untaken: Mutex<Option<B>>,
    /// Number of batches that Python holds and whose memory workers wait for.
    held: Arc<AtomicU32>,
    depth: Option<u32>,
    texts: StreamTexts,
}

/// Error texts for a run that can no longer be used.
#[derive(Clone, Copy)]
pub struct StreamTexts {
    pub copied: &'static str,
    pub closed: &'static str,
}

impl<T: Send, B: Send + Clone> StreamState<T, B> {
    pub fn new(run: T, depth: Option<u32>, texts: StreamTexts) -> Self {
        Self {
            process: process::id(),
            run: Mutex::new(Some(run)),
            untaken: Mutex::new(None),
            held: Arc::default(),
            depth,
            texts,
        }
    }

    /// The count of batches that Python holds, and whether the next one would be the last. The
    /// workers always keep one slot, whatever Python holds.
    pub fn counted(&self) -> (&Arc<AtomicU32>, bool) {
        let (held, depth) = self.held();
        (&self.held, depth.is_some_and(|depth| held + 1 >= depth))
    }

    /// Number of batches whose memory Python holds, and the largest number that it may hold. `None`
    /// if each batch has memory of its own.
    pub fn held(&self) -> (u32, Option<u32>) {
        (self.held.load(Ordering::Relaxed), self.depth)
    }

    /// The undelivered batch.
    pub fn untaken(&self) -> Option<B> {
        lock(&self.untaken).clone()
    }

    /// Removes and returns the undelivered batch.
    pub fn taken(&self) -> Option<B> {
        lock(&self.untaken).take()
    }

    /// Stores a batch as undelivered: it is returned again.
    pub fn not_taken(&self, batch: B) {
        *lock(&self.untaken) = Some(batch);
    }

    /// Calls `f` without the GIL, because another thread with the GIL may wait for this run.
    pub fn with<R: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        if self.is_copy() {
            return Err(raised(&Error::worker(self.texts.copied)));
        }
        let done = py.detach(|| match lock(&self.run).as_mut() {
            Some(run) => f(run),
            None => Err(Error::config(self.texts.closed)),
        });
        done.map_err(|e| raised(&e))
    }

    /// Ends the workers. Batches stay readable.
    pub fn close(&self, py: Python<'_>) {
        if self.is_copy() {
            return;
        }
        py.detach(|| {
            drop(lock(&self.run).take());
            drop(self.taken());
        });
    }
}

impl<T: Send, B: Send> StreamState<T, B> {
    /// True in a forked copy of the process that made it.
    fn is_copy(&self) -> bool {
        process::id() != self.process
    }
}

impl<T: Send, B: Send> Drop for StreamState<T, B> {
    fn drop(&mut self) {
        if self.is_copy() {
            return;
        }
        // Ending the workers takes up to 400 ms.
        let run = lock(&self.run).take();
        match Python::try_attach(|py| py.detach(|| drop(run))) {
            Some(()) | None => {}
        }
    }
}

/// Parses a state that Python saved.
///
/// # Errors
/// A text that is not a state.
pub fn parse_state<S: DeserializeOwned>(text: &str) -> Result<S> {
    serde_json::from_str(text).map_err(|e| {
        let text = e.to_string().replace('`', "'");
        Error::config(format!("the state is not one that state_dict gave: {text}"))
    })
}
