//! Batches of rays in order.
//!
//! In the consumer. A ticket is a step; how many rays it has may change, since those of
//! a step are the first of one endless sequence. Never in here: how rays are made.

use std::path::PathBuf;
use std::time::Duration;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::jobs::rays::batch::{A_BATCH, RayBatch};
use crate::jobs::rays::fields::RayLayout;
use crate::jobs::rays::spec::RaysSpec;
use crate::jobs::scene::held::Held;
use crate::jobs::scene::spec::named_image;
use crate::pool::engine::Engine;
use crate::pool::filled::Filled;
use crate::pool::report::PoolReport;

/// Rays step by step.
#[derive(Debug)]
pub(crate) struct RayRun {
    engine: Engine,
    spec: RaysSpec,
    index: Index,
    /// The scene's, for faults that are of no image.
    root: PathBuf,
    /// Rays of the tickets that are out.
    posted: u64,
    /// The next step.
    step: u64,
}

impl RayRun {
    /// The engine was started at `step` with tickets of `posted` rays.
    pub(crate) fn new(
        engine: Engine,
        spec: RaysSpec,
        (index, root): (Index, PathBuf),
        posted: u64,
        step: u64,
    ) -> Self {
        Self {
            engine,
            spec,
            index,
            root,
            posted,
            step,
        }
    }

    /// Slots that batches lie in; none where each has memory of its own.
    pub(crate) fn depth(&self) -> Option<u32> {
        self.engine.depth()
    }

    pub(crate) fn step(&self) -> u64 {
        self.step
    }

    /// Goes on at another step. What is under way is given up.
    pub(crate) fn go_to(&mut self, step: u64) {
        if step != self.step {
            self.engine.cancel();
            self.step = step;
        }
    }

    /// The next step's first `rays` rays; none when they are not there within `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; what ends the pool.
    pub(crate) fn next_within(&mut self, rays: u64, limit: Duration) -> Result<Option<RayBatch>> {
        if rays > self.spec.most_rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "{rays} rays were asked for, and there is room for {}: raise most_rays",
                    self.spec.most_rays
                ),
            ));
        }
        // Tickets that are out have too few, or far too many.
        if rays > self.posted || rays < self.posted / 4 {
            self.engine.cancel();
            self.posted = with_spare(rays).min(self.spec.most_rays);
        }
        let (posted, step) = (self.posted, self.step);
        let coming = |n: usize| Some(RaysSpec::place(posted, step + n as u64));
        let Some(filled) = self.engine.next_within(&coming, limit)? else {
            return Ok(None);
        };
        self.finished(filled, rays).map(Some)
    }

    fn finished(&mut self, filled: Filled, rays: u64) -> Result<RayBatch> {
        let Filled { place, rows, bad } = filled;
        if let Some(bad) = bad.first() {
            // The tickets behind it are of later steps: the next call begins anew.
            self.engine.cancel();
            let (image, fault) = named_image(&bad.fault);
            return Err(match image {
                Some((id, file)) => Error::Sample {
                    id,
                    path: self.index.path(file),
                    fault,
                },
                None => Error::Dataset {
                    path: self.root.clone(),
                    line: None,
                    what: format!("the rays of step {}: {fault}", place.batch),
                },
            });
        }
        self.step = place.batch + 1;
        let layout = RayLayout::new(place.epoch as usize, self.spec.form);
        Ok(RayBatch {
            held: Held::host(rows, layout.bytes(), A_BATCH),
            layout,
            rays: rays as usize,
            step: place.batch,
        })
    }

    /// What happened so far.
    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.engine.report()
    }
}

impl Drop for RayRun {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}

/// Room for some more rays than are asked for now: their number may grow by and by.
fn with_spare(rays: u64) -> u64 {
    rays + rays / 8
}
