//! What a worker must know to make rays.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::error::{FaultKind, Result, SampleFault};
use crate::jobs::rays::fields::RayLayout;
use crate::jobs::rays::frames::SealedFrames;
use crate::jobs::rays::masks::Masks;
use crate::picture::{Background, Limits};
use crate::plan::rays::RayTable;
use crate::pool::job::JobOrder;
use crate::pool::place::Place;
use crate::pool::ring::ticket::Ticket;
use crate::pool::worker::meter::Stage;
use crate::store::{Holding, Pictures};

/// By this name it is ordered.
pub(crate) const NAME: &str = "rays";

/// Drawing pixels; and from pixels to rays; and their colours. Decoding counts as it does
/// for samples.
pub(crate) const DRAW: Stage = Stage::of_job(4);
pub(crate) const TRACE: Stage = Stage::of_job(5);
pub(crate) const COLOR: Stage = Stage::of_job(6);

/// One row = the rays of one step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RaysSpec {
    pub(crate) rank: u32,
    /// Most rays of a row.
    pub(crate) most_rays: u64,
    /// Whether images have times.
    pub(crate) times: bool,
    pub(crate) background: Background,
    pub(crate) limits: Limits,
    pub(crate) holding: Holding,
    /// By which the store is known.
    pub(crate) key: u128,
}

/// What workers map, in the order of its descriptors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RaysMemory<'a> {
    pub(crate) index: &'a Index,
    pub(crate) frames: &'a SealedFrames,
    pub(crate) table: &'a RayTable,
    pub(crate) masks: &'a Masks,
    pub(crate) pictures: &'a Pictures,
}

impl RaysSpec {
    /// Orders the job. Nothing stands in for the rays of a step.
    pub(crate) fn order<'a>(&self, memory: RaysMemory<'a>) -> Result<JobOrder<'a>> {
        let RaysMemory {
            index,
            frames,
            table,
            masks,
            pictures,
        } = memory;
        let [control, content] = pictures.descriptors();
        let descriptors = vec![
            index.as_fd(),
            frames.as_fd(),
            table.as_fd(),
            masks.as_fd(),
            control,
            content,
        ];
        JobOrder::new(NAME, self, 0, descriptors)
    }

    /// Where the rays of `step` stand, if they are `rays`: a ticket's epoch is the number
    /// of its rays, so that it may change from step to step.
    pub(crate) fn place(rays: u64, step: u64) -> Place {
        Place {
            epoch: rays,
            batch: step,
            filled: 1,
            rows: 1,
        }
    }

    /// The arrays of a ticket; none when it asks for more rays than there is room for.
    pub(crate) fn layout(&self, ticket: &Ticket) -> Option<RayLayout> {
        let rays = usize::try_from(ticket.epoch).ok()?;
        (ticket.epoch <= self.most_rays).then_some(RayLayout::new(rays, self.times))
    }
}

/// Says which image a fault is of, since a row has rays of many.
pub(crate) fn name_image(image: u32, fault: &SampleFault) -> SampleFault {
    SampleFault::new(fault.kind, format!("image {image}: {}", fault.reason))
}

/// The image that [`name_image`] named, and the fault as it was.
pub(crate) fn named_image(fault: &SampleFault) -> (Option<u64>, SampleFault) {
    let named = fault.reason.strip_prefix("image ");
    let named = named.and_then(|text| text.split_once(": "));
    match named.and_then(|(number, reason)| Some((number.parse().ok()?, reason))) {
        Some((image, reason)) => (Some(image), SampleFault::new(fault.kind, reason)),
        None => (None, fault.clone()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_a_fault_is_found_again() {
        let fault = SampleFault::new(FaultKind::Corrupt, "no end: marker");
        let named = name_image(17, &fault);
        assert_eq!(named.reason, "image 17: no end: marker");
        assert_eq!(named_image(&named), (Some(17), fault.clone()));
        assert_eq!(named_image(&fault), (None, fault));
    }
}
