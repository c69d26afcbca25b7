//! The store of a run, held for as long as the run is.
//!
//! In the consumer.

use crate::store::{Pictures, Presence};

/// The store, held so that other ranks find it here.
#[derive(Debug)]
pub(in crate::loader) struct HeldStore {
    /// None where it is not shared. Goes first: nobody is sent to a store that has gone.
    #[expect(dead_code, reason = "held for its end")]
    pub(in crate::loader) presence: Option<Presence>,
    pub(in crate::loader) pictures: Pictures,
}
