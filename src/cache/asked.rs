//! What stays the same while a cache is built.
//!
//! In the consumer.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::cache::from_store::FromStore;
use crate::cache::options::{BuildOptions, BuildPart};
use crate::cache::report::{BuildPhase, BuildProgress};
use crate::data::index::{Index, ScanReport};

/// Who is told how far the build is, and may end it.
pub(super) type Watch<'a> = &'a mut dyn FnMut(&BuildProgress<'_>) -> ControlFlow<()>;

/// Everything that stays the same while a cache is built.
#[derive(Clone, Copy)]
pub(super) struct Build<'a> {
    pub(super) index: &'a Index,
    pub(super) options: &'a BuildOptions,
    /// Which part of the cache this call makes.
    pub(super) part: BuildPart,
    pub(super) force: bool,
    pub(super) began: Instant,
    /// What reading the source's names found; none where nobody knows.
    pub(super) scan: Option<&'a ScanReport>,
    /// Which share of how many this is, where one call makes all of them.
    pub(super) round: Option<(u64, u64)>,
    /// What gets the source's shards, where it lies in an object store.
    pub(super) store: Option<&'a FromStore>,
}

impl Build<'_> {
    /// How far it is before anything is written.
    pub(super) fn progress(&self, phase: BuildPhase, done: u64) -> BuildProgress<'_> {
        BuildProgress {
            phase,
            samples: self.index.len(),
            done,
            shards: 0,
            bytes: 0,
            needed_bytes: 0,
            shards_up: 0,
            share: self.round,
            scan: self.scan,
        }
    }
}
