//! What a worker must know to make rays.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::error::{FaultKind, Result, SampleFault};
use crate::pool::job::JobOrder;
use crate::pool::place::Place;
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::Stage;
use crate::scene::draw::RayTable;
use crate::scene::jobs::rays::fields::{RayForm, RayLayout};
use crate::scene::jobs::shared::masks::Masks;
use crate::scene::jobs::shared::spec::{StoreMemory, StoreSpec};

/// By this name it is ordered.
pub(crate) const NAME: &str = "rays";

/// Drawing pixels; and from pixels to rays; and their colours. Decoding counts as it does
/// for samples.
pub(crate) const DRAW: Stage = Stage::of_job(4);
pub(crate) const TRACE: Stage = Stage::of_job(5);
pub(crate) const COLOR: Stage = Stage::of_job(6);

/// One row = the rays of one step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RaysSpec {
    pub(crate) rank: u32,
    /// Most rays of a row.
    pub(crate) most_rays: u64,
    /// What rays have.
    pub(crate) form: RayForm,
    /// What a level of a depth is in the scene's units.
    pub(crate) depth_scale: f64,
    pub(crate) store: StoreSpec,
}

impl RaysSpec {
    /// Orders the job. Nothing stands in for the rays of a step.
    pub(crate) fn order<'a>(
        &self,
        store: StoreMemory<'a>,
        table: &'a RayTable,
        masks: &'a Masks,
    ) -> Result<JobOrder<'a>> {
        let [index, frames, control, content] = store.descriptors();
        let (table, masks) = (table.as_fd(), masks.as_fd());
        let descriptors = vec![index, frames, control, content, table, masks];
        Ok(JobOrder::new(NAME, self, 0, descriptors)?.reading(store.index))
    }

    /// Where the rays of `step` stand, if they are `rays`: a ticket's epoch is the number
    /// of its rays, so that it may change from step to step.
    pub(crate) fn place(rays: u64, step: u64) -> Place {
        Place {
            epoch: rays,
            batch: step,
            number: step,
            filled: 1,
            rows: 1,
        }
    }

    /// The arrays of a ticket; none when it asks for more rays than there is room for.
    pub(crate) fn layout(&self, ticket: &Ticket) -> Option<RayLayout> {
        let rays = usize::try_from(ticket.epoch).ok()?;
        (ticket.epoch <= self.most_rays).then_some(RayLayout::new(rays, self.form))
    }
}

/// A ticket of which nothing can be made: its words were scribbled on.
#[cold]
pub(crate) fn scribbled() -> SampleFault {
    SampleFault::new(
        FaultKind::Unknown,
        "its ticket asks for rays that nobody asked for",
    )
}
