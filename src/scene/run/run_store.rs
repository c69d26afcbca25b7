//! The store of a run, held for as long as the run is.
//!
//! In the consumer.

use crate::scene::image_store::{ImageStore, StoreOffer};

/// The store, held so that other ranks find it here.
#[derive(Debug)]
pub(crate) struct RunStore {
    /// None where it is not shared. Goes first: nobody is sent to a store that has gone.
    #[expect(dead_code, reason = "held for its end")]
    pub(crate) offer: Option<StoreOffer>,
    pub(crate) images: ImageStore,
}
