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
use crate::picture::{LabelForm, PictureLimits};
use crate::pool::job::JobRequest;
use crate::recipe::LabelFilter;

/// Name of the job.
pub(crate) const NAME: &str = "encode";

/// One row = one sample's payload in a cache.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct EncodeSpec {
    pub(crate) encode: CacheEncoding,
    pub(crate) resize: Option<CacheResize>,
    /// The seed of the order. None: the index's order.
    pub(crate) shuffle: Option<u64>,
    pub(crate) limits: PictureLimits,
    /// None: images have no masks.
    pub(crate) masks: Option<EncodedMasks>,
}

/// How masks are stored, and resized with their images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EncodedMasks {
    pub(crate) form: LabelForm,
    pub(crate) filter: LabelFilter,
}

impl EncodeSpec {
    /// Orders the job. A cache has no substitutes.
    pub(crate) fn order<'a>(
        &self,
        index: &'a Index,
        sizes: &'a SampleSizes,
        rooms: &'a PayloadSpaces,
        masks: Option<&'a Index>,
    ) -> Result<JobRequest<'a>> {
        let mut descriptors = vec![index.as_fd(), sizes.as_fd(), rooms.as_fd()];
        descriptors.extend(masks.map(AsFd::as_fd));
        let order = JobRequest::new(NAME, self, 0, descriptors)?.reading(index);
        Ok(match masks {
            Some(masks) => order.reading(masks),
            None => order,
        })
    }
}
