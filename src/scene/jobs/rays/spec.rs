//! What a worker must know to make rays.
//!
//! Plain data, used in every process. Also compiled without the decoders.

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

/// Name of the job.
pub(crate) const NAME: &str = "rays";

/// Stages: drawing pixels, computing rays, reading colours. Decoding has the same stage as for
/// samples.
pub(crate) const DRAW: JobStage = JobStage::of_job(4);
pub(crate) const TRACE: JobStage = JobStage::of_job(5);
pub(crate) const COLOR: JobStage = JobStage::of_job(6);

/// The job that makes rays. One row holds the rays of one step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RaysSpec {
    pub(crate) rank: u32,
    /// Maximum rays of a row.
    pub(crate) most_rays: u64,
    /// Optional arrays of rays.
    pub(crate) form: RayForm,
    /// Length of one depth unit, in the scene's units.
    pub(crate) depth_scale: f64,
    pub(crate) store: StoreSpec,
}

impl RaysSpec {
    /// Describes the job for the coordinator. A step that fails has no replacement.
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

    /// Layout of a ticket's arrays; `None` if it requests more rays than fit.
    pub(crate) fn layout(&self, RayTicket { rays, .. }: RayTicket) -> Option<RayLayout> {
        let count = usize::try_from(rays).ok()?;
        (rays <= self.most_rays).then_some(RayLayout::new(count, self.form))
    }
}

/// Content of a ticket of rays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RayTicket {
    pub(crate) step: u64,
    /// Number of rays, which may change from step to step.
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

/// Fault of a ticket whose words are corrupt.
#[cold]
pub(crate) fn corrupt_ticket_fault() -> SampleFault {
    SampleFault::new(FaultKind::Unknown, "its ticket is corrupt")
}
