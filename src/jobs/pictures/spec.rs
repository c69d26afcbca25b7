//! What a worker must know to put images into their store.
//!
//! Plain data, used in every process; compiled without the decoders too.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::jobs::scene::spec::{StoreMemory, StoreSpec};
use crate::pool::job::JobOrder;
use crate::pool::place::Place;

/// By this name it is ordered.
pub(crate) const NAME: &str = "pictures";

/// Bytes of a row: nothing is handed over, and a slot has a page anyway.
pub(crate) const ROW_BYTES: u64 = 64;

/// One row = one image is in the store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PicturesSpec {
    pub(crate) store: StoreSpec,
}

impl PicturesSpec {
    /// Orders the job.
    pub(crate) fn order<'a>(&self, memory: StoreMemory<'a>) -> Result<JobOrder<'a>> {
        let order = JobOrder::new(NAME, self, 0, memory.descriptors().to_vec())?;
        Ok(order.reading(memory.index))
    }

    /// The ticket of an image: its number is the batch's.
    pub(crate) fn place(image: u32) -> Place {
        Place {
            epoch: 0,
            batch: u64::from(image),
            number: u64::from(image),
            filled: 1,
            rows: 1,
        }
    }
}
