//! Shards that are read all at a time, as a cache is made of them: they come, and stay until the
//! fetcher ends.
//!
//! In the consumer. To the fetcher they are one batch of a run that has no other.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use crate::data::index::{Index, placeholder_subset};
use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, Result};
use crate::order::{EpochMark, EpochPlan, OrderOptions, Sampler};
use crate::remote::fetch::fetcher::Fetcher;
use crate::remote::fetch::shard_space::{ShardSpace, on_disk};

/// Between two words on how many are there.
const TELL: Duration = Duration::from_millis(200);

/// So many of those are waited until others may have left the folder.
const WAIT: u32 = 10;

impl Fetcher {
    /// By what a data set that changed is noticed: what the store says of its shards, whenever
    /// they come here.
    pub(crate) fn fingerprint(&self) -> HexHash128 {
        let name = self.folder().file_name().unwrap_or_default();
        HexHash128::of(name.as_encoded_bytes())
    }

    /// # Errors
    /// Manifest or list that cannot be read any more.
    pub(crate) fn shard_room(&self) -> Result<ShardSpace> {
        let opened = self.opened();
        let bytes = opened.shard_bytes()?.into_iter().map(on_disk);
        Ok(ShardSpace {
            room: opened.room,
            bytes: bytes.collect(),
        })
    }

    /// Has these shards of `index` come, in growing order, in place of those before. `came` is
    /// told now and then which are there now and were not before; `Break` ends it.
    ///
    /// # Errors
    /// A shard that cannot be had; more than fit.
    pub(crate) fn fetch_shards(
        &mut self,
        index: &Index,
        shards: &[u64],
        came: &mut dyn FnMut(&[u64]) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        self.release_batches();
        if shards.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let name = |number| {
            let path = index.shard_path(number);
            path.file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        };
        let names: Vec<String> = (0..index.shards()).map(name).collect();
        let is_wanted = |number| shards.binary_search(&number).is_ok();
        let one_each = placeholder_subset(self.folder(), &names, &is_wanted)?;
        let batch = u32::try_from(shards.len())
            .map_err(|_| Error::config(format!("{} shards are too many", shards.len())))?;
        let order = OrderOptions {
            batch,
            sampler: Sampler::Sequential,
            ..OrderOptions::default()
        };
        let (plan, at) = (EpochPlan::new(one_each.len(), order)?, EpochMark::new(0, 0));
        let mut is_told = false;
        loop {
            match self.set_order(&one_each, &plan, at, Some(1)) {
                // They fit, but not beside what others of this folder need now.
                Err(e) if e.option_name() == Some("fetch_limit") => {
                    if !is_told {
                        tracing::warn!(
                            "{}: other processes use this folder, and there is no room beside \
                             them: waiting until there is (another `fetch_dir` has no others)",
                            self.folder().display()
                        );
                        is_told = true;
                    }
                }
                planned => {
                    planned?;
                    break;
                }
            }
            for _ in 0..WAIT {
                if came(&[]).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                thread::sleep(TELL);
            }
        }
        let mut away = shards.to_vec();
        loop {
            let all = self.ready(&one_each, &plan, at, 1, TELL)?.is_some();
            let is_there = |number: &u64| all || index.shard_path(*number).exists();
            let (now, later) = away.into_iter().partition::<Vec<_>, _>(is_there);
            away = later;
            if !now.is_empty() {
                self.goes_on();
            }
            if came(&now).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if all {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}
