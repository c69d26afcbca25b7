//! Views by workers: their tickets and batches.
//!
//! In the consumer. Never in here: how views are made.

use crate::data::index::Index;
use crate::error::{Error, Result, SampleFault};
use crate::pool::place::BatchPlace;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::worker_run::WorkerSteps;
use crate::scene::jobs::views::shown::ShownImages;
use crate::scene::jobs::views::spec::ViewsSpec;
use crate::scene::jobs::views::view::StepImage;

/// See the module.
#[derive(Debug)]
pub struct WorkerViews {
    pub(crate) spec: ViewsSpec,
    pub(crate) frames: StoredFrames,
    pub(crate) shown: ShownImages,
}

impl WorkerSteps for WorkerViews {
    type Arrays = StepImage;
    type Request = ();

    fn changes_tickets(&mut self, (): ()) -> bool {
        false
    }

    fn place(&self, step: u64) -> BatchPlace {
        BatchPlace::numbered(step, 1)
    }

    fn arrays(&self, place: &BatchPlace, (): ()) -> Result<(usize, StepImage)> {
        let image = self.spec.order.image(place.number);
        let layout = self.shown.layout(&self.frames, image as usize);
        let layout = layout.ok_or_else(|| Error::protocol("a view of no image"))?;
        Ok((layout.bytes(), StepImage { layout, image }))
    }

    fn unnamed(&self, index: &Index, step: u64, fault: SampleFault) -> Error {
        let id = self.spec.order.image(step);
        Error::Sample {
            id,
            path: index.path(id),
            fault,
        }
    }
}
