//! What a worker needs to fill rows of images.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::data::sample_sizes::SampleSizes;
use crate::device::jpeg_part::PartLimits;
use crate::error::Result;
use crate::jobs::handed_items::HandedShape;
use crate::order::{EpochMark, OrderOptions, SamplerTable};
use crate::picture::PictureLimits;
use crate::pool::job::JobRequest;
use crate::pool::ring::ticket::BatchKey;
use crate::recipe::SampleProgram;

/// Name of the job.
pub(crate) const NAME: &str = "images";

/// The key of a batch of images is its position.
impl From<EpochMark> for BatchKey {
    fn from(at: EpochMark) -> Self {
        Self([at.epoch, at.samples])
    }
}

impl From<BatchKey> for EpochMark {
    fn from(BatchKey([epoch, samples]): BatchKey) -> Self {
        Self { epoch, samples }
    }
}

/// One row = one sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ImageSpec {
    pub(crate) program: SampleProgram,
    /// The options of the order. Index and sampler table come separately.
    pub(crate) plan: OrderOptions,
    pub(crate) limits: PictureLimits,
    /// Substitutes of a row's sample.
    pub(crate) tries: u32,
    /// Limits of JPEGs that a device decodes. None: workers decode all.
    pub(crate) jpegs: Option<PartLimits>,
    /// The memory in which the consumer hands over bytes of samples. None: the index says where they
    /// are.
    pub(crate) handed: Option<HandedShape>,
    /// Whether shards may be deleted during the run. Then no shard is kept open.
    pub(crate) evicts_shards: bool,
}

impl ImageSpec {
    /// Orders the job. `sizes` if rows have their own sizes, `table` if the sampler needs one,
    /// `handed` if the consumer hands over the bytes of samples.
    pub(crate) fn order<'a>(
        &self,
        index: &'a Index,
        sizes: Option<&'a SampleSizes>,
        table: Option<&'a SamplerTable>,
        handed: Option<BorrowedFd<'a>>,
    ) -> Result<JobRequest<'a>> {
        let sizes = sizes.map(|sizes| sizes.as_fd());
        let table = table.map(|table| table.as_fd());
        let descriptors = index.descriptors().chain(sizes).chain(table).chain(handed);
        let order = JobRequest::new(NAME, self, self.tries, descriptors.collect())?;
        Ok(order.reading(index))
    }
}
