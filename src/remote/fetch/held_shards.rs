//! Tracks which batches have their shards here, and keeps them.
//!
//! Runs in the consumer. If the folder has space for all shards, they stay. Otherwise each is
//! leased while workers may read it.

use std::collections::{HashMap, VecDeque};

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::order::{EpochMark, EpochPlan};
use crate::remote::fetch::lease::Lease;
use crate::remote::fetch::shard_space::total;

/// Fraction of the folder's space that a rank may lease ahead of the current batch.
const AHEAD: u64 = 4;

/// A leased shard: the number of its batches, and its bytes.
#[derive(Debug)]
struct HeldShard {
    _lease: Lease,
    batches: u32,
    bytes: u64,
}

/// Batches whose shards are here.
#[derive(Debug)]
pub(super) struct HeldShards {
    evicts: bool,
    room: u64,
    /// Number of ranks that share the folder.
    ranks: u64,
    /// For a folder with space for all: shards that are here.
    local_shards: Vec<bool>,
    /// In order, the current batch first, each with its shards.
    batches: VecDeque<(EpochMark, Vec<u64>)>,
    shards: HashMap<u64, HeldShard>,
    /// A shard that was missing at the last check.
    missing: Option<u64>,
}

impl HeldShards {
    /// For a folder with `room` bytes for shards. `evicts`: whether shards are deleted.
    pub(super) fn new(room: u64, evicts: bool) -> Self {
        Self {
            evicts,
            room,
            ranks: 1,
            local_shards: Vec::new(),
            batches: VecDeque::new(),
            shards: HashMap::new(),
            missing: None,
        }
    }

    pub(super) fn missing(&self) -> Option<u64> {
        self.missing
    }

    pub(super) fn set_ranks(&mut self, ranks: u32) {
        self.ranks = u64::from(ranks).max(1);
    }

    pub(super) fn len(&self) -> usize {
        self.batches.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn release_all(&mut self) {
        self.batches.clear();
        self.shards.clear();
    }

    /// Whether the run is at the same position.
    pub(super) fn begins_at(&self, at: EpochMark) -> bool {
        self.batches.front().is_some_and(|(first, _)| *first == at)
    }

    /// Moves the run to `at`, and releases earlier batches. Returns whether the current batch is
    /// leased.
    pub(super) fn advance_to(&mut self, at: EpochMark) -> bool {
        while let Some((first, _)) = self.batches.front()
            && *first != at
        {
            let (_, shards) = self.batches.pop_front().unwrap_or((at, Vec::new()));
            for shard in shards {
                let Some(lease) = self.shards.get_mut(&shard) else {
                    continue;
                };
                lease.batches -= 1;
                if lease.batches == 0 {
                    self.shards.remove(&shard);
                }
            }
        }
        !self.is_empty()
    }

    /// Leases the batch at `at`, if its shards are here and the rank's share allows it. Returns
    /// whether it did.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn lease_batch(
        &mut self,
        index: &Index,
        plan: &EpochPlan,
        at: EpochMark,
    ) -> Result<bool> {
        let rows = 0..plan.filled_rows_at(at);
        let parts = rows.filter_map(|row| index.part(plan.row_at(at, row).id));
        let mut shards: Vec<u64> = parts.map(|part| part.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        let is_held = match self.evicts {
            true => self.lease(index, &shards)?,
            false => self.all_local(index, &shards)?,
        };
        if is_held {
            self.batches.push_back((at, shards));
        }
        Ok(is_held)
    }

    /// Whether all these shards are here for good. Checks the last first, which arrives last.
    fn all_local(&mut self, index: &Index, shards: &[u64]) -> Result<bool> {
        for &shard in shards.iter().rev() {
            let number = shard as usize;
            if self.local_shards.get(number) == Some(&true) {
                continue;
            }
            let path = index.shard_path(shard);
            let there = path.try_exists();
            if !there.map_err(|e| Error::io_at("look at", &path, e))? {
                self.missing = Some(shard);
                return Ok(false);
            }
            let length = self.local_shards.len().max(number + 1);
            self.local_shards.resize(length, false);
            self.local_shards[number] = true;
        }
        Ok(true)
    }

    /// Leases all these shards, or none. Checks the last first, which arrives last.
    fn lease(&mut self, index: &Index, shards: &[u64]) -> Result<bool> {
        let mut taken = Vec::new();
        for &shard in shards.iter().rev() {
            if self.shards.contains_key(&shard) {
                continue;
            }
            let path = index.shard_path(shard);
            let lease = Lease::take(&path).map_err(|e| Error::io_at("hold the shard", &path, e))?;
            let Some((lease, bytes)) = lease else {
                self.missing = Some(shard);
                return Ok(false);
            };
            let lease = HeldShard {
                _lease: lease,
                batches: 0,
                bytes,
            };
            taken.push((shard, lease));
        }
        // Other ranks need space too.
        if !self.is_empty() && !taken.is_empty() {
            let taken = taken.iter().map(|(_, lease)| lease);
            let lease = self.shards.values().chain(taken);
            if total(lease.map(|lease| lease.bytes)) > self.room / AHEAD / self.ranks {
                return Ok(false);
            }
        }
        self.shards.extend(taken);
        for shard in shards {
            if let Some(lease) = self.shards.get_mut(shard) {
                lease.batches += 1;
            }
        }
        Ok(true)
    }
}
