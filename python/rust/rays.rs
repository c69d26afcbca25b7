//! Rays of a scene, as Python holds them.

use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use featherload::rays::{Rays, RaysBuilder, RaysState, SceneSource};
use featherload::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::options::{self, RaysWanted};
use crate::ray_batch::RawRays;
use crate::scene::RawScene;
use crate::stream::json;
use crate::wait::{LOOK, in_thread, lock, look};

/// Batches of rays, step by step.
#[pyclass(frozen, weakref, module = "featherload._featherload")]
pub struct RayStream {
    /// Who made it. In a forked copy the lock may be held for ever, by a thread that was
    /// not copied.
    process: u32,
    /// None once it was closed.
    rays: Mutex<Option<Rays>>,
    /// Given to Python, and not handed on by it yet: Ctrl-C may come between. Behind the
    /// lock of the rays.
    untaken: Mutex<Option<RawRays>>,
    /// Batches that Python has and whose memory workers wait for.
    held: Arc<AtomicU32>,
    depth: Option<u32>,
}

/// The rays that `options` ask for, of `scene` where it was read already.
fn builder(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<RaysBuilder> {
    let wanted: RaysWanted = options::parse(py, options)?;
    let source = match (scene, wanted.path) {
        (Some(read), _) => SceneSource::from(read.scene().clone()),
        (None, Some(path)) => SceneSource::Path(path, wanted.scene),
        (None, None) => return Err(raised(&Error::option("scene", "scene is missing"))),
    };
    wanted.rays.builder(source).map_err(|e| raised(&e))
}

#[pymethods]
impl RayStream {
    /// Starts the rays that `options` ask for, of `scene` where it was read already.
    #[new]
    #[pyo3(signature = (options, scene=None))]
    fn new(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<Self> {
        let builder = builder(py, options, scene)?;
        let rays = in_thread(py, move || builder.build())?;
        Ok(Self {
            process: process::id(),
            held: Arc::default(),
            depth: rays.depth(),
            rays: Mutex::new(Some(rays)),
            untaken: Mutex::new(None),
        })
    }

    /// What these rays would take, as JSON. Starts nothing.
    #[staticmethod]
    #[pyo3(signature = (options, scene=None))]
    fn plan(py: Python<'_>, options: &str, scene: Option<&RawScene>) -> PyResult<String> {
        let builder = builder(py, options, scene)?;
        in_thread(py, move || json(&builder.forecast()?))
    }

    /// The next step with so many rays. It is given again until [`RayStream::taken`] says
    /// that Python handed it on.
    fn next(&self, py: Python<'_>, rays: u64) -> PyResult<RawRays> {
        loop {
            let (held, depth) = (&self.held, self.depth);
            let next = self.with(py, |stream| {
                if let Some(batch) = self.untaken_of(rays) {
                    return Ok(Some(batch));
                }
                self.step_back(stream);
                let Some(batch) = stream.next_rays_within(rays, LOOK)? else {
                    return Ok(None);
                };
                // One slot stays with the workers, whatever Python keeps.
                let last = depth.is_some_and(|depth| held.load(Ordering::Relaxed) + 1 >= depth);
                let batch = RawRays::new(batch, held, last)?;
                *lock(&self.untaken) = Some(batch.clone());
                Ok(Some(batch))
            })?;
            match next {
                Some(batch) => return Ok(batch),
                None => look(py)?,
            }
        }
    }

    /// The batch that `next` gave was handed on.
    fn taken(&self) {
        drop(lock(&self.untaken).take());
    }

    /// It was not, after all.
    fn not_taken(&self, batch: &RawRays) {
        *lock(&self.untaken) = Some(batch.clone());
    }

    /// The step that comes next.
    fn step(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |rays| Ok(self.at(rays)))
    }

    /// Goes on at a step.
    fn go_to(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.with(py, |rays| {
            self.taken();
            rays.go_to(step);
            Ok(())
        })
    }

    /// Where the run stands, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |rays| {
            let mut state = rays.state();
            state.step = self.at(rays);
            json(&state)
        })
    }

    /// Goes on where a state of [`RayStream::state`] stands.
    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.with(py, |rays| {
            let state: RaysState = serde_json::from_str(state).map_err(|e| {
                let text = e.to_string().replace('`', "'");
                Error::config(format!("the state is not one that state_dict gave: {text}"))
            })?;
            rays.resume(&state)?;
            self.taken();
            Ok(())
        })
    }

    /// What happened so far, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |rays| json(&rays.report()?))
    }

    /// The files of the images, as the rays' indices number them.
    fn images(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        self.with(py, |rays| Ok(rays.images().to_vec()))
    }

    /// The scene whose rays these are.
    fn scene(&self, py: Python<'_>) -> PyResult<RawScene> {
        self.with(py, |rays| Ok(RawScene::new(rays.scene().clone())))
    }

    /// Batches whose memory Python has, and how many it may have at a time; None where
    /// each has memory of its own.
    fn held(&self) -> (u32, Option<u32>) {
        (self.held.load(Ordering::Relaxed), self.depth)
    }

    /// Ends the workers. Batches stay readable.
    fn close(&self, py: Python<'_>) {
        if self.is_copy() {
            return;
        }
        py.detach(|| {
            drop(lock(&self.rays).take());
            self.taken();
        });
    }
}

impl RayStream {
    /// The batch that was not taken, if it has so many rays.
    fn untaken_of(&self, rays: u64) -> Option<RawRays> {
        let untaken = lock(&self.untaken);
        untaken
            .clone()
            .filter(|batch| batch.__len__() as u64 == rays)
    }

    /// The step that comes next: that of a batch that was not taken.
    fn at(&self, rays: &Rays) -> u64 {
        let untaken = lock(&self.untaken);
        untaken.as_ref().map_or_else(|| rays.step(), RawRays::step)
    }

    /// Goes back in front of a batch that was not taken.
    fn step_back(&self, rays: &mut Rays) {
        if let Some(batch) = lock(&self.untaken).take() {
            rays.go_to(batch.step());
        }
    }

    /// Whether this is a forked copy of the process that made it.
    fn is_copy(&self) -> bool {
        process::id() != self.process
    }

    /// Calls `f` without the GIL: another thread may wait with it for these rays.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Rays) -> Result<T> + Send,
    ) -> PyResult<T> {
        if self.is_copy() {
            return Err(raised(&Error::worker(
                "rays cannot be used in a forked copy of the process that made them: make them \
                 there, or start that process by spawn",
            )));
        }
        let done = py.detach(|| match lock(&self.rays).as_mut() {
            Some(rays) => f(rays),
            None => Err(Error::config("the rays were closed: make new ones")),
        });
        done.map_err(|e| raised(&e))
    }
}

impl Drop for RayStream {
    fn drop(&mut self) {
        if self.is_copy() {
            return;
        }
        // Ending the workers takes up to 400 ms.
        let rays = lock(&self.rays).take();
        match Python::try_attach(|py| py.detach(|| drop(rays))) {
            Some(()) | None => {}
        }
    }
}
