//! What gets the shards of a source in an object store: they come to a folder of this machine, and
//! stay while they are read.
//!
//! In the consumer.

use std::cell::RefCell;
use std::ops::ControlFlow;

use crate::data::index::Index;
use crate::data::shard::manifest::Hash128;
use crate::error::Result;
use crate::fetch::client::Fetcher;
use crate::fetch::{FetchReport, ShardRoom};

/// What gets the shards of a source.
#[derive(Debug)]
pub(super) struct FromStore {
    fetcher: RefCell<Fetcher>,
    pub(super) room: ShardRoom,
}

impl FromStore {
    /// # Errors
    /// A folder of shards that cannot be read.
    pub(super) fn new(fetcher: Fetcher) -> Result<Self> {
        Ok(Self {
            room: fetcher.shard_room()?,
            fetcher: RefCell::new(fetcher),
        })
    }

    /// By what a changed source is noticed.
    pub(super) fn state(&self) -> Hash128 {
        self.fetcher.borrow().state()
    }

    /// Has these shards come, in place of those before.
    ///
    /// # Errors
    /// A shard that cannot be had; more than fit.
    pub(super) fn bring(
        &self,
        index: &Index,
        shards: &[u64],
        came: &mut dyn FnMut(&[u64]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.fetcher.borrow_mut().bring(index, shards, came)
    }

    /// What came so far.
    pub(super) fn report(&self) -> FetchReport {
        self.fetcher.borrow().report()
    }
}
