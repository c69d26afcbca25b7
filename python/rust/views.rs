//! Views of a scene, as Python holds them.

use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use featherload::views::{SceneSource, Views, ViewsBuilder, ViewsState};
use featherload::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::options::{self, ViewsWanted};
use crate::raw_view::RawView;
use crate::scene::RawScene;
use crate::stream::json;
use crate::wait::{LOOK, in_thread, lock, look};

/// Views, step by step.
#[pyclass(frozen, weakref, module = "featherload._featherload")]
pub struct ViewStream {
    /// Who made it. In a forked copy the lock may be held for ever, by a thread that was
    /// not copied.
    process: u32,
    /// None once it was closed.
    views: Mutex<Option<Views>>,
    /// Given to Python, and not handed on by it yet: Ctrl-C may come between. Behind the
    /// lock of the views.
    untaken: Mutex<Option<RawView>>,
    /// Views that Python has and whose memory workers wait for.
    held: Arc<AtomicU32>,
    depth: Option<u32>,
}

/// The views that `options` ask for, of `scene` where it was read already.
fn builder(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<ViewsBuilder> {
    let wanted: ViewsWanted = options::parse(py, options)?;
    let source = match (scene, wanted.path) {
        (Some(read), _) => SceneSource::from(read.scene().clone()),
        (None, Some(path)) => SceneSource::Path(path, wanted.scene),
        (None, None) => return Err(raised(&Error::option("scene", "scene is missing"))),
    };
    wanted.views.builder(source).map_err(|e| raised(&e))
}

#[pymethods]
impl ViewStream {
    /// Starts the views that `options` ask for, of `scene` where it was read already.
    #[new]
    #[pyo3(signature = (options, scene=None))]
    fn new(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<Self> {
        let builder = builder(py, options, scene)?;
        let views = in_thread(py, move || builder.build())?;
        Ok(Self {
            process: process::id(),
            held: Arc::default(),
            depth: views.depth(),
            views: Mutex::new(Some(views)),
            untaken: Mutex::new(None),
        })
    }

    /// What these views would take, as JSON. Starts nothing.
    #[staticmethod]
    #[pyo3(signature = (options, scene=None))]
    fn plan(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<String> {
        let builder = builder(py, options, scene)?;
        in_thread(py, move || json(&builder.forecast()?))
    }

    /// The next view. It is given again until [`ViewStream::taken`] says that Python handed
    /// it on.
    fn next(&self, py: Python<'_>) -> PyResult<RawView> {
        loop {
            let (held, depth) = (&self.held, self.depth);
            let next = self.with(py, |views| {
                if let Some(view) = lock(&self.untaken).clone() {
                    return Ok(Some(view));
                }
                let Some(view) = views.next_view_within(LOOK)? else {
                    return Ok(None);
                };
                // One slot stays with the workers, whatever Python keeps.
                let last = depth.is_some_and(|depth| held.load(Ordering::Relaxed) + 1 >= depth);
                let view = RawView::new(view, held, last)?;
                *lock(&self.untaken) = Some(view.clone());
                Ok(Some(view))
            })?;
            match next {
                Some(view) => return Ok(view),
                None => look(py)?,
            }
        }
    }

    /// The view that `next` gave was handed on.
    fn taken(&self) {
        drop(lock(&self.untaken).take());
    }

    /// It was not, after all.
    fn not_taken(&self, view: &RawView) {
        *lock(&self.untaken) = Some(view.clone());
    }

    /// The step that comes next.
    fn step(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |views| Ok(self.at(views)))
    }

    /// Goes on at a step.
    fn go_to(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.with(py, |views| {
            self.taken();
            views.go_to(step);
            Ok(())
        })
    }

    /// Steps of an epoch of this rank.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |views| Ok(views.epoch_len() as usize))
    }

    /// Where the run stands, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |views| {
            let mut state = views.state();
            state.step = self.at(views);
            json(&state)
        })
    }

    /// Goes on where a state of [`ViewStream::state`] stands.
    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.with(py, |views| {
            let state: ViewsState = serde_json::from_str(state).map_err(|e| {
                let text = e.to_string().replace('`', "'");
                Error::config(format!("the state is not one that state_dict gave: {text}"))
            })?;
            views.resume(&state)?;
            self.taken();
            Ok(())
        })
    }

    /// What happened so far, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |views| json(&views.report()?))
    }

    /// The files of the images, as views number them.
    fn images(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        self.with(py, |views| Ok(views.images().to_vec()))
    }

    /// The camera of each image as it is shown, as JSON.
    fn cameras(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |views| json(&views.cameras()))
    }

    /// The scene whose views these are.
    fn scene(&self, py: Python<'_>) -> PyResult<RawScene> {
        self.with(py, |views| Ok(RawScene::new(views.scene().clone())))
    }

    /// Views whose memory Python has, and how many it may have at a time; None where each
    /// has memory of its own.
    fn held(&self) -> (u32, Option<u32>) {
        (self.held.load(Ordering::Relaxed), self.depth)
    }

    /// Ends the workers. Views stay readable.
    fn close(&self, py: Python<'_>) {
        if self.is_copy() {
            return;
        }
        py.detach(|| {
            drop(lock(&self.views).take());
            self.taken();
        });
    }
}

impl ViewStream {
    /// The step that comes next: that of a view that was not taken.
    fn at(&self, views: &Views) -> u64 {
        let untaken = lock(&self.untaken);
        untaken.as_ref().map_or_else(|| views.step(), RawView::step)
    }

    /// Whether this is a forked copy of the process that made it.
    fn is_copy(&self) -> bool {
        process::id() != self.process
    }

    /// Calls `f` without the GIL: another thread may wait with it for these views.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Views) -> Result<T> + Send,
    ) -> PyResult<T> {
        if self.is_copy() {
            return Err(raised(&Error::worker(
                "views cannot be used in a forked copy of the process that made them: make \
                 them there, or start that process by spawn",
            )));
        }
        let done = py.detach(|| match lock(&self.views).as_mut() {
            Some(views) => f(views),
            None => Err(Error::config("the views were closed: make new ones")),
        });
        done.map_err(|e| raised(&e))
    }
}

impl Drop for ViewStream {
    fn drop(&mut self) {
        if self.is_copy() {
            return;
        }
        // Ending the workers takes up to 400 ms.
        let views = lock(&self.views).take();
        match Python::try_attach(|py| py.detach(|| drop(views))) {
            Some(()) | None => {}
        }
    }
}
