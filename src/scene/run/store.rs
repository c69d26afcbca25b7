//! The store of a run, held for as long as the run is.
//!
//! In the consumer.

use crate::scene::store::{Pictures, Presence};

/// The store, held so that other ranks find it here.
#[derive(Debug)]
pub(crate) struct HeldStore {
    /// None where it is not shared. Goes first: nobody is sent to a store that has gone.
    #[expect(dead_code, reason = "held for its end")]
    pub(crate) presence: Option<Presence>,
    pub(crate) pictures: Pictures,
}
