//! What a worker needs to make the payloads of a cache.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::data::sample_sizes::SampleSizes;
use crate::error::Result;
use crate::jobs::encode::encoding::{CacheEncoding, CacheResize};
use crate::jobs::encode::payload_spaces::PayloadSpaces;
use crate::jobs::raster_rule::NamedRaster;
use crate::picture::PictureLimits;
use crate::pool::job::JobRequest;

/// Name of the job.
pub(crate) const NAME: &str = "encode";

/// One row = one sample's payload in a cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EncodeSpec {
    pub(crate) encode: CacheEncoding,
    pub(crate) resize: Option<CacheResize>,
    /// The seed of the order. None: the index's order.
    pub(crate) shuffle: Option<u64>,
    pub(crate) limits: PictureLimits,
    /// At most [`MOST_RASTERS`](crate::data::shard::manifest::MOST_RASTERS).
    pub(crate) rasters: Vec<NamedRaster>,
}

impl EncodeSpec {
    /// Orders the job. A cache has no substitutes.
    pub(crate) fn order<'a>(
        &self,
        index: &'a Index,
        sizes: &'a SampleSizes,
        rooms: &'a PayloadSpaces,
        rasters: &[&'a Index],
    ) -> Result<JobRequest<'a>> {
        let mut descriptors = vec![index.as_fd(), sizes.as_fd(), rooms.as_fd()];
        descriptors.extend(rasters.iter().copied().map(AsFd::as_fd));
        let order = JobRequest::new(NAME, self, 0, descriptors)?.reading(index);
        Ok((rasters.iter()).fold(order, |order, &files| order.reading(files)))
    }
}
