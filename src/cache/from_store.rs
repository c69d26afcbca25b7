//! What gets the shards of a source in an object store: they come to a folder of this machine, and
//! stay while they are read.
//!
//! In the consumer.

use std::cell::{Cell, RefCell};
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
    /// Nobody gets shards, until some are to come.
    is_left: Cell<bool>,
    pub(super) room: ShardRoom,
}

impl FromStore {
    /// # Errors
    /// A folder of shards that cannot be read.
    pub(super) fn new(fetcher: Fetcher) -> Result<Self> {
        Ok(Self {
            room: fetcher.shard_room()?,
            fetcher: RefCell::new(fetcher),
            is_left: Cell::new(false),
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
        self.is_left.set(false);
        self.fetcher.borrow_mut().bring(index, shards, came)
    }

    /// Looks now and then whether what gets shards lives, while those that it brought are read. A
    /// store that is away meanwhile is no reason to end.
    pub(super) fn keep(&self) {
        if self.is_left.get() {
            return;
        }
        if let Err(e) = self.fetcher.borrow_mut().keep() {
            tracing::warn!("{e}. The shards that are read are here");
            self.is_left.set(true);
        }
    }

    /// What came so far.
    pub(super) fn report(&self) -> FetchReport {
        self.fetcher.borrow().report()
    }
}
