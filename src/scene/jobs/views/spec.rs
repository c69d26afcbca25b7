//! What a worker must know to make views.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::pool::job::JobRequest;
use crate::pool::worker::meter::JobStage;
use crate::scene::draw::ViewOrder;
use crate::scene::image_store::ImageStore;
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::{StoreMemory, StoreSpec};

/// Name of the job.
pub(crate) const NAME: &str = "views";

/// Key that distinguishes straightening maps from images.
pub(crate) const MAPS_KEY: u128 = u128::from_le_bytes(*b"maps of cameras ");

/// Stage: from the image store to the row. Decoding has the same stage as for samples.
pub(crate) const SHOW: JobStage = JobStage::of_job(4);

/// The job that makes views. One row holds one image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ViewsSpec {
    pub(crate) order: ViewOrder,
    pub(crate) form: ViewFormat,
    /// Length of one depth unit, in the scene's units.
    pub(crate) depth_scale: f64,
    /// Maximum bytes of shared straightening maps.
    pub(crate) most_maps: u64,
    pub(crate) store: StoreSpec,
}

/// Output format of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewFormat {
    /// `f32` from 0 to 1 instead of `u8`.
    pub(crate) float: bool,
    /// Straightened: as a pinhole camera sees it.
    pub(crate) straight: bool,
}

impl ViewsSpec {
    /// Describes the job for the coordinator. A view that fails has no replacement.
    pub(crate) fn order<'a>(
        &self,
        store: StoreMemory<'a>,
        masks: &'a SceneMasks,
        maps: Option<&'a ImageStore>,
    ) -> Result<JobRequest<'a>> {
        let [index, frames, control, content] = store.descriptors();
        let mut descriptors = vec![index, frames, control, content, masks.as_fd()];
        descriptors.extend(maps.into_iter().flat_map(ImageStore::descriptors));
        Ok(JobRequest::new(NAME, self, 0, descriptors)?.reading(store.index))
    }
}
