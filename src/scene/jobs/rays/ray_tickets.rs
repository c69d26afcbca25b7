//! Rays from workers: their tickets and batches.
//!
//! Runs in the consumer. A ticket is a step. Its number of rays may change, because the rays of a
//! step are the first ones of an endless sequence. Not here: how rays are made.

use std::path::PathBuf;

use crate::data::index::Index;
use crate::error::{Error, Result, SampleFault};
use crate::pool::batch_request::BatchRequest;
use crate::scene::jobs::rays::batch::StepRays;
use crate::scene::jobs::rays::fields::RayLayout;
use crate::scene::jobs::rays::spec::{RayTicket, RaysSpec};
use crate::scene::jobs::shared::ticket_run::StepTickets;

/// Tickets of rays.
#[derive(Debug)]
pub struct RayTickets {
    pub(crate) spec: RaysSpec,
    /// The scene's folder: the path in errors that name no image.
    pub(crate) root: PathBuf,
    /// Rays per ticket of the tickets posted last.
    pub(crate) posted: u64,
}

impl StepTickets for RayTickets {
    type Arrays = StepRays;
    type Request = u64;

    fn changes_tickets(&mut self, rays: u64) -> bool {
        // The posted tickets have too few rays, or far too many.
        let changes = rays > self.posted || rays < self.posted / 4;
        if changes {
            self.posted = with_extra_rays(rays).min(self.spec.most_rays);
        }
        changes
    }

    fn place(&self, step: u64) -> BatchRequest {
        let rays = self.posted;
        BatchRequest {
            key: RayTicket { step, rays }.into(),
            ..BatchRequest::numbered(step, 1)
        }
    }

    fn arrays(&self, place: &BatchRequest, rays: u64) -> Result<(usize, StepRays)> {
        let RayTicket { rays: posted, .. } = place.key.into();
        let layout = RayLayout::new(posted as usize, self.spec.form);
        let rays = rays as usize;
        Ok((layout.bytes(), StepRays { layout, rays }))
    }

    fn unnamed_fault(&self, _: &Index, step: u64, fault: SampleFault) -> Error {
        Error::Dataset {
            path: self.root.clone(),
            line: None,
            what: format!("the rays of step {step}: {fault}"),
        }
    }
}

/// Adds spare rays, because the requested number may grow slowly.
fn with_extra_rays(rays: u64) -> u64 {
    rays + rays / 8
}
