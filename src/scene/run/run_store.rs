//! The image store of a run, for the run's lifetime.
//!
//! Runs in the consumer.

use crate::scene::image_store::{ImageStore, StoreOffer};

/// The image store, and its offer to other ranks.
#[derive(Debug)]
pub(crate) struct RunStore {
    /// `None` if the store is not shared. Dropped first, so that no process is sent to a closed
    /// store.
    #[expect(dead_code, reason = "held for its end")]
    pub(crate) presence: Option<StoreOffer>,
    pub(crate) images: ImageStore,
}
