//! A run over a scene in Python: the common part of the streams of rays and of views.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use featherload::scene::{SceneBatch, SceneBuilder, SceneKind, SceneRun, SceneSource, SceneState};
use featherload::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::held_step::HeldStep;
use crate::json::json;
use crate::options::RunRequest;
use crate::scene::RawScene;
use crate::stream_state::{StreamState, StreamTexts, parse_state};
use crate::wait::{LOOK, in_thread, look};

/// Batches of a scene, step by step.
pub type SceneStream<K> = StreamState<SceneRun<K>, Arc<HeldStep<<K as SceneKind>::Arrays>>>;

/// The source of the scene: `scene` if it was read already, else the options in `wanted`. Also
/// returns the other options.
pub fn source<O>(wanted: RunRequest<O>, scene: Option<&RawScene>) -> PyResult<(SceneSource, O)> {
    let source = match (scene, wanted.path) {
        (Some(read), _) => SceneSource::from(read.scene().clone()),
        (None, Some(path)) => SceneSource::Path(path, wanted.scene),
        (None, None) => return Err(raised(&Error::option("scene", "scene is missing"))),
    };
    Ok((source, wanted.run))
}

/// The memory plan of a run, as JSON. Starts nothing.
pub fn plan<K: SceneKind + 'static>(py: Python<'_>, builder: SceneBuilder<K>) -> PyResult<String>
where
    SceneBuilder<K>: Send,
{
    in_thread(py, move || json(&builder.memory_plan()?))
}

impl<K: SceneKind + 'static> SceneStream<K>
where
    SceneBuilder<K>: Send,
    SceneRun<K>: Send,
{
    pub fn start(py: Python<'_>, builder: SceneBuilder<K>, texts: StreamTexts) -> PyResult<Self> {
        let run = in_thread(py, move || builder.build())?;
        let depth = run.depth();
        Ok(Self::new(run, depth, texts))
    }

    /// Returns the next batch, or the undelivered one if it fits the request. A batch is returned
    /// again until its delivery is confirmed.
    pub fn next(
        &self,
        py: Python<'_>,
        serves: impl Fn(&SceneBatch<K::Arrays>) -> bool + Sync,
        next: impl Fn(&mut SceneRun<K>, Duration) -> Result<Option<SceneBatch<K::Arrays>>> + Sync,
    ) -> PyResult<Arc<HeldStep<K::Arrays>>> {
        loop {
            let given = self.with(py, |run| {
                if let Some(batch) = self.untaken().filter(|batch| serves(&batch.given)) {
                    return Ok(Some(batch));
                }
                if let Some(batch) = self.taken() {
                    run.go_to(batch.given.step());
                }
                let Some(batch) = next(run, LOOK)? else {
                    return Ok(None);
                };
                let (count, last) = self.counted();
                let batch = Arc::new(HeldStep::new(batch, count, last)?);
                self.not_taken(batch.clone());
                Ok(Some(batch))
            })?;
            match given {
                Some(batch) => return Ok(batch),
                None => look(py)?,
            }
        }
    }

    /// The number of the next step. An undelivered batch counts as next.
    fn at(&self, run: &SceneRun<K>) -> u64 {
        let untaken = self.untaken();
        untaken.map_or_else(|| run.step(), |batch| batch.given.step())
    }

    pub fn step(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |run| Ok(self.at(run)))
    }

    pub fn go_to(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.with(py, |run| {
            drop(self.taken());
            run.go_to(step);
            Ok(())
        })
    }

    pub fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |run| json(&run.state().at(self.at(run))))
    }

    pub fn resume(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.with(py, |run| {
            run.resume(&parse_state(state)?)?;
            drop(self.taken());
            Ok(())
        })
    }

    pub fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |run| json(&run.report()?))
    }

    pub fn images(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        self.with(py, |run| Ok(run.images().to_vec()))
    }

    pub fn scene(&self, py: Python<'_>) -> PyResult<RawScene> {
        self.with(py, |run| Ok(RawScene::new(run.scene().clone())))
    }
}
