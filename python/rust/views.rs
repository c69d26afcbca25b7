//! Views of a scene in Python.

use std::path::PathBuf;

use featherload::scene::ViewsOptions;
use featherload::views::{ViewKind, ViewsBuilder};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::json::json;
use crate::options;
use crate::raw_view::RawView;
use crate::scene::RawScene;
use crate::scene_stream::{SceneStream, plan, source};
use crate::stream_state::StreamTexts;

const TEXTS: StreamTexts = StreamTexts {
    copied: "views cannot be used in a forked copy of the process that made them: make \
             them there, or start that process by spawn",
    closed: "the views were closed: make new ones",
};

/// Views, step by step.
#[pyclass(frozen, weakref, module = "featherload._featherload")]
pub struct ViewStream(SceneStream<ViewKind>);

/// A builder for the views that `options` describe, of `scene` if it was read already.
fn builder(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<ViewsBuilder> {
    let (source, views) = source::<ViewsOptions>(options::parse(py, options)?, scene)?;
    views.builder(source).map_err(|e| raised(&e))
}

#[pymethods]
impl ViewStream {
    /// Starts the views that `options` describe, of `scene` if it was read already.
    #[new]
    #[pyo3(signature = (options, scene=None))]
    fn new(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<Self> {
        SceneStream::start(py, builder(py, options, scene)?, TEXTS).map(Self)
    }

    /// The memory plan of these views, as JSON. Starts nothing.
    #[staticmethod]
    #[pyo3(signature = (options, scene=None))]
    fn plan(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<String> {
        plan(py, builder(py, options, scene)?)
    }

    /// The next view. It is returned again until [`ViewStream::taken`] confirms that Python
    /// delivered it.
    fn next(&self, py: Python<'_>) -> PyResult<RawView> {
        let held = self
            .0
            .next(py, |_| true, |run, limit| run.next_view_within(limit))?;
        Ok(RawView { held })
    }

    /// Confirms that the view of `next` was delivered.
    fn taken(&self) {
        drop(self.0.taken());
    }

    /// Takes the confirmation back: the view is returned again.
    fn not_taken(&self, view: &RawView) {
        self.0.not_taken(view.held.clone());
    }

    /// The number of the next step.
    fn step(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.step(py)
    }

    /// Continues at a step.
    fn go_to(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.0.go_to(py, step)
    }

    /// Number of steps of an epoch on this rank.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.0.with(py, |views| Ok(views.epoch_len() as usize))
    }

    /// The position of the run, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.0.state(py)
    }

    /// Continues at a state of [`ViewStream::state`].
    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.0.resume(py, state)
    }

    /// The report of the run so far, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.0.report(py)
    }

    /// The image files, in the order of the views' indices.
    fn images(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        self.0.images(py)
    }

    /// The camera of each delivered image, as JSON.
    fn cameras(&self, py: Python<'_>) -> PyResult<String> {
        self.0.with(py, |views| json(&views.cameras()))
    }

    /// The scene of these views.
    fn scene(&self, py: Python<'_>) -> PyResult<RawScene> {
        self.0.scene(py)
    }

    /// Number of views whose memory Python holds, and the largest number that it may hold. None if
    /// each view has memory of its own.
    fn held(&self) -> (u32, Option<u32>) {
        self.0.held()
    }

    /// Ends the workers. Views stay readable.
    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
