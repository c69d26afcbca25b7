//! What a worker must know to make rows of images.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::data::sample_sizes::SampleSizes;
use crate::device::jpeg_part::PartLimits;
use crate::error::Result;
use crate::order::{EpochMark, OrderOptions, SamplerTable};
use crate::picture::PictureLimits;
use crate::pool::job::JobRequest;
use crate::pool::ring::ticket::BatchKey;
use crate::recipe::SampleProgram;

/// By this name it is ordered.
pub(crate) const NAME: &str = "images";

/// A batch of images is known by where it begins.
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
    /// The rest of the plan is the index's and the sampler's table.
    pub(crate) plan: OrderOptions,
    pub(crate) limits: PictureLimits,
    /// Samples that may stand in for the one of a row.
    pub(crate) tries: u32,
    /// What a device decodes: JPEGs that its parts hold; none = workers decode all.
    pub(crate) jpegs: Option<PartLimits>,
    /// Whether shards may be removed while the run goes on: then none is kept open.
    pub(crate) evicts_shards: bool,
}

impl ImageSpec {
    /// Orders the job. The sizes are there when rows have sizes of their own, the
    /// table when the sampler needs one.
    pub(crate) fn order<'a>(
        &self,
        index: &'a Index,
        sizes: Option<&'a SampleSizes>,
        table: Option<&'a SamplerTable>,
    ) -> Result<JobRequest<'a>> {
        let sizes = sizes.map(|sizes| sizes.as_fd());
        let table = table.map(|table| table.as_fd());
        let descriptors = std::iter::once(index.as_fd()).chain(sizes).chain(table);
        let order = JobRequest::new(NAME, self, self.tries, descriptors.collect())?;
        Ok(order.reading(index))
    }
}
