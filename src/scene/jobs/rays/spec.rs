//! What a worker must know to make rays.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::error::{FaultKind, Result, SampleFault};
use crate::pool::job::JobRequest;
use crate::pool::ring::ticket::BatchKey;
use crate::pool::worker::meter::JobStage;
use crate::scene::draw::RayTable;
use crate::scene::jobs::rays::fields::{RayForm, RayLayout};
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::{StoreMemory, StoreSpec};

/// By this name it is ordered.
pub(crate) const NAME: &str = "rays";

/// Drawing pixels; and from pixels to rays; and their colours. Decoding counts as it does
/// for samples.
pub(crate) const DRAW: JobStage = JobStage::of_job(4);
pub(crate) const TRACE: JobStage = JobStage::of_job(5);
pub(crate) const COLOR: JobStage = JobStage::of_job(6);

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
        masks: &'a SceneMasks,
    ) -> Result<JobRequest<'a>> {
        let [index, frames, control, content] = store.descriptors();
        let (table, masks) = (table.as_fd(), masks.as_fd());
        let descriptors = vec![index, frames, control, content, table, masks];
        Ok(JobRequest::new(NAME, self, 0, descriptors)?.reading(store.index))
    }

    /// The arrays of a ticket; none when it asks for more rays than there is room for.
    pub(crate) fn layout(&self, RayTicket { rays, .. }: RayTicket) -> Option<RayLayout> {
        let count = usize::try_from(rays).ok()?;
        (rays <= self.most_rays).then_some(RayLayout::new(count, self.form))
    }
}

/// What a batch of rays is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RayTicket {
    pub(crate) step: u64,
    /// How many it has, which may change from step to step.
    pub(crate) rays: u64,
}

impl From<RayTicket> for BatchKey {
    fn from(RayTicket { step, rays }: RayTicket) -> Self {
        Self([step, rays])
    }
}

impl From<BatchKey> for RayTicket {
    fn from(BatchKey([step, rays]): BatchKey) -> Self {
        Self { step, rays }
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
