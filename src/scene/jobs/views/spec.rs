//! What a worker must know to make views.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::pool::job::JobRequest;
use crate::pool::worker::meter::JobStage;
use crate::scene::draw::ViewOrder;
use crate::scene::image_store::ImageStore;
use crate::scene::jobs::shared::masks::SceneMasks;
use crate::scene::jobs::shared::spec::{StoreMemory, StoreSpec};

/// By this name it is ordered.
pub(crate) const NAME: &str = "views";

/// Tells the maps of cameras from pictures.
pub(crate) const MAPS_KEY: u128 = u128::from_le_bytes(*b"maps of cameras ");

/// From the store to the row. Decoding counts as it does for samples.
pub(crate) const SHOW: JobStage = JobStage::of_job(4);

/// One row = one image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ViewsSpec {
    pub(crate) order: ViewOrder,
    pub(crate) form: ViewFormat,
    /// What a level of a depth is in the scene's units.
    pub(crate) depth_scale: f64,
    /// The most bytes that maps of cameras may take.
    pub(crate) most_maps: u64,
    pub(crate) store: StoreSpec,
}

/// As what an image is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ViewFormat {
    /// `f32` from 0 to 1, and no `u8`.
    pub(crate) float: bool,
    /// Straightened: as a pinhole sees it.
    pub(crate) straight: bool,
}

impl ViewsSpec {
    /// Orders the job. Nothing stands in for an image.
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
