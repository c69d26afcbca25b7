//! Views from workers: their tickets and batches.
//!
//! Runs in the consumer. Not here: how views are made.

use crate::data::index::Index;
use crate::error::{Error, Result, SampleFault};
use crate::pool::batch_request::BatchRequest;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::ticket_run::StepTickets;
use crate::scene::jobs::views::output_camera::OutputCameras;
use crate::scene::jobs::views::spec::ViewsSpec;
use crate::scene::jobs::views::view::StepImage;

/// Tickets of views.
#[derive(Debug)]
pub struct ViewTickets {
    pub(crate) spec: ViewsSpec,
    pub(crate) frames: StoredFrames,
    pub(crate) output_cameras: OutputCameras,
}

impl StepTickets for ViewTickets {
    type Arrays = StepImage;
    type Request = ();

    fn changes_tickets(&mut self, (): ()) -> bool {
        false
    }

    fn place(&self, step: u64) -> BatchRequest {
        BatchRequest::numbered(step, 1)
    }

    fn arrays(&self, place: &BatchRequest, (): ()) -> Result<(usize, StepImage)> {
        let image = self.spec.order.image(place.number);
        let layout = self.output_cameras.layout(&self.frames, image as usize);
        let layout = layout.ok_or_else(|| Error::protocol("a view without an image"))?;
        Ok((layout.bytes(), StepImage { layout, image }))
    }

    fn unnamed_fault(&self, index: &Index, step: u64, fault: SampleFault) -> Error {
        let id = self.spec.order.image(step);
        Error::Sample {
            id,
            path: index.path(id),
            fault,
        }
    }
}
