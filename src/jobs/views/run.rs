//! Views in order.
//!
//! In the consumer. A ticket is a step. Never in here: how views are made.

use std::time::Duration;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::jobs::scene::frames::StoredFrames;
use crate::jobs::scene::held::Held;
use crate::jobs::scene::spec::named_image;
use crate::jobs::views::shown::ShownImages;
use crate::jobs::views::spec::ViewsSpec;
use crate::jobs::views::view::{A_VIEW, View};
use crate::pool::engine::Engine;
use crate::pool::filled::Filled;
use crate::pool::report::PoolReport;

/// Views step by step.
#[derive(Debug)]
pub(crate) struct ViewRun {
    engine: Engine,
    spec: ViewsSpec,
    index: Index,
    frames: StoredFrames,
    shown: ShownImages,
    /// The next step.
    step: u64,
}

impl ViewRun {
    /// The engine was started at `step`.
    pub(crate) fn new(
        engine: Engine,
        spec: ViewsSpec,
        index: Index,
        (frames, shown): (StoredFrames, ShownImages),
        step: u64,
    ) -> Self {
        Self {
            engine,
            spec,
            index,
            frames,
            shown,
            step,
        }
    }

    /// Slots that views lie in; none where each has memory of its own.
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

    /// The next view; none when it is not there within `limit`.
    ///
    /// # Errors
    /// An image that cannot be read; what ends the pool.
    pub(crate) fn next_within(&mut self, limit: Duration) -> Result<Option<View>> {
        let step = self.step;
        let coming = |n: usize| Some(ViewsSpec::place(step + n as u64));
        match self.engine.next_within(&coming, limit)? {
            Some(filled) => self.finished(filled).map(Some),
            None => Ok(None),
        }
    }

    fn finished(&mut self, filled: Filled) -> Result<View> {
        let Filled { place, rows, bad } = filled;
        let image = self.spec.order.image(place.batch);
        if let Some(bad) = bad.first() {
            // The tickets behind it are of later steps: the next call begins anew.
            self.engine.cancel();
            let (named, fault) = named_image(&bad.fault);
            let (id, file) = named.unwrap_or((image, image));
            return Err(Error::Sample {
                id,
                path: self.index.path(file),
                fault,
            });
        }
        let layout = self.shown.layout(&self.frames, image as usize);
        let layout = layout.ok_or_else(|| Error::protocol("a view of no image"))?;
        self.step = place.batch + 1;
        Ok(View {
            held: Held::host(rows, layout.bytes(), A_VIEW),
            layout,
            image,
            step: place.batch,
        })
    }

    /// What happened so far.
    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.engine.report()
    }
}

impl Drop for ViewRun {
    /// Nothing that is under way will be asked for.
    fn drop(&mut self) {
        self.engine.cancel();
    }
}
