//! Rays of a scene in Python.

use std::path::PathBuf;

use featherload::rays::{RayKind, RaysBuilder};
use featherload::scene::RaysOptions;
use pyo3::prelude::*;

use crate::errors::raised;
use crate::options;
use crate::ray_batch::RawRays;
use crate::scene::RawScene;
use crate::scene_stream::{SceneStream, plan, source};
use crate::stream_state::StreamTexts;

const TEXTS: StreamTexts = StreamTexts {
    copied: "rays cannot be used in a forked copy of the process that made them: make them \
             there, or start that process by spawn",
    closed: "the rays were closed: make new ones",
};

/// Batches of rays, step by step.
#[pyclass(frozen, weakref, module = "featherload._featherload")]
pub struct RayStream(SceneStream<RayKind>);

/// A builder for the rays that `options` describe, of `scene` if it was read already.
fn builder(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<RaysBuilder> {
    let (source, rays) = source::<RaysOptions>(options::parse(py, options)?, scene)?;
    rays.builder(source).map_err(|e| raised(&e))
}

#[pymethods]
impl RayStream {
    /// Starts the rays that `options` describe, of `scene` if it was read already.
    #[new]
    #[pyo3(signature = (options, scene=None))]
    fn new(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<Self> {
        SceneStream::start(py, builder(py, options, scene)?, TEXTS).map(Self)
    }

    /// The memory plan of these rays, as JSON. Starts nothing.
    #[staticmethod]
    #[pyo3(signature = (options, scene=None))]
    fn plan(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<String> {
        plan(py, builder(py, options, scene)?)
    }

    /// The next step, with this number of rays. It is returned again until [`RayStream::taken`]
    /// confirms that Python delivered it.
    fn next(&self, py: Python<'_>, rays: u64) -> PyResult<RawRays> {
        let held = self.0.next(
            py,
            |batch| batch.len() as u64 == rays,
            |run, limit| run.next_rays_within(rays, limit),
        )?;
        Ok(RawRays { held })
    }

    /// Confirms that the batch of `next` was delivered.
    fn taken(&self) {
        drop(self.0.taken());
    }

    /// Takes the confirmation back: the batch is returned again.
    fn not_taken(&self, batch: &RawRays) {
        self.0.not_taken(batch.held.clone());
    }

    /// The number of the next step.
    fn step(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.step(py)
    }

    /// Continues at a step.
    fn go_to(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.0.go_to(py, step)
    }

    /// The position of the run, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.0.state(py)
    }

    /// Continues at a state of [`RayStream::state`].
    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.0.resume(py, state)
    }

    /// The report of the run so far, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.0.report(py)
    }

    /// The image files, in the order of the rays' indices.
    fn images(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        self.0.images(py)
    }

    /// The scene of these rays.
    fn scene(&self, py: Python<'_>) -> PyResult<RawScene> {
        self.0.scene(py)
    }

    /// Number of batches whose memory Python holds, and the largest number that it may hold. None
    /// if each batch has memory of its own.
    fn held(&self) -> (u32, Option<u32>) {
        self.0.held()
    }

    /// Ends the workers. Batches stay readable.
    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
