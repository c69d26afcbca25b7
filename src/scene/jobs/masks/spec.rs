//! What a worker must know to read masks.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use std::ops::Range;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::error::Result;
use crate::picture::PictureLimits;
use crate::pool::batch_request::BatchRequest;
use crate::pool::job::JobRequest;
use crate::pool::ring::RingShape;
use crate::scene::draw::mask_words;

/// Name of the job.
pub(crate) const NAME: &str = "masks";

/// Maximum rows of a ticket: enough that workers rarely wait for each other.
const ROWS: u64 = 16;

/// The job that reads masks. One row holds the bits of one mask.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MasksSpec {
    pub(crate) masks: Vec<MaskSize>,
    pub(crate) limits: PictureLimits,
}

/// Sizes of one mask, as (height, width).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MaskSize {
    /// Size of the image file. The mask file has the same shape, at any size.
    pub(crate) image: (u32, u32),
    /// Size of the mask in the image store.
    pub(crate) bits: (u32, u32),
    /// Whether nonzero pixels are masked out, as in instant-ngp's `dynamic_mask_*`.
    pub(crate) is_inverted: bool,
}

impl MaskSize {
    /// Number of 64-bit words of the mask.
    pub(crate) fn words(self) -> u64 {
        mask_words(self.bits.1, self.bits.0)
    }
}

impl MasksSpec {
    /// Describes the job for the coordinator. `index` lists the mask files in their order.
    pub(crate) fn order<'a>(&self, index: &'a Index) -> Result<JobRequest<'a>> {
        Ok(JobRequest::new(NAME, self, 0, vec![index.as_fd()])?.reading(index))
    }

    /// The ticket that starts with mask `first`; `None` after the last mask.
    pub(crate) fn place(&self, first: u64) -> Option<BatchRequest> {
        let left = (self.masks.len() as u64).checked_sub(first)?;
        let rows = left.min(ROWS) as u32;
        (rows > 0).then_some(BatchRequest::numbered(first, rows))
    }

    /// Bytes of a row: those of the largest mask.
    pub(crate) fn row_bytes(&self) -> u64 {
        let words = self.masks.iter().map(|mask| mask.words());
        8 * words.max().unwrap_or(0)
    }

    /// Byte range of row `row` of a ticket.
    pub(crate) fn row(&self, row: u32) -> Range<usize> {
        let bytes = self.row_bytes() as usize;
        let begin = row as usize * bytes;
        begin..begin + bytes
    }

    /// Bytes of a slot.
    fn slot_bytes(&self) -> u64 {
        self.row_bytes() * ROWS.min(self.masks.len() as u64)
    }

    fn most_rows(&self) -> u32 {
        ROWS.min(self.masks.len() as u64) as u32
    }

    /// Shape of the ring for `workers` workers.
    pub(crate) fn shape(&self, workers: u32) -> RingShape {
        RingShape {
            slots: 3,
            rows: self.most_rows(),
            slot_bytes: self.slot_bytes(),
            lanes: workers.max(1),
        }
    }

    /// Bytes that a worker needs for a mask, without its decoder and the file's pixels: the pixels
    /// at the image's size, and their bits.
    pub(crate) fn worker_bytes(&self) -> u64 {
        let bits = self.masks.iter().map(|mask| mask.bits);
        let pixels = bits.map(|(height, width)| u64::from(height) * u64::from(width));
        pixels.max().unwrap_or(0) + self.row_bytes()
    }

    /// Bytes of all masks as bits.
    pub(crate) fn all_bytes(&self) -> u64 {
        self.masks.iter().map(|mask| 8 * mask.words()).sum()
    }
}
