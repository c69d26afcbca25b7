//! Downloads shards that are read together, for building a cache. They stay until the fetcher ends.
//!
//! Runs in the consumer. For the fetcher they are one batch, the only one of a run.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use crate::data::index::{Index, placeholder_subset};
use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, Result};
use crate::order::{EpochMark, EpochPlan, OrderOptions, Sampler};
use crate::remote::fetch::fetcher::Fetcher;
use crate::remote::fetch::shard_space::{ShardSpace, on_disk};

/// Interval of progress messages.
const TELL: Duration = Duration::from_millis(200);

/// How many of these intervals to wait for other users of the folder to leave.
const WAIT: u32 = 10;

impl Fetcher {
    /// Fingerprint of the data set, to detect changes: the store's information about its shards. It
    /// does not depend on when they are downloaded. Of a list of addresses it is the list alone: other
    /// machines may get answers from other addresses, and each row is a sample all the same.
    pub(crate) fn fingerprint(&self) -> HexHash128 {
        if let Some(listed) = self.listed() {
            return HexHash128(listed.hash());
        }
        let name = self.folder().file_name().unwrap_or_default();
        HexHash128::of(name.as_encoded_bytes())
    }

    /// # Errors
    /// Manifest or list cannot be read any more.
    pub(crate) fn shard_room(&self) -> Result<ShardSpace> {
        let opened = self.opened();
        let bytes = opened.shard_bytes()?.into_iter().map(on_disk);
        Ok(ShardSpace {
            room: opened.room,
            bytes: bytes.collect(),
        })
    }

    /// Downloads these shards of `index`, sorted, in place of the earlier ones. `on_downloaded`
    /// regularly gets the newly downloaded ones; `Break` ends it.
    ///
    /// # Errors
    /// A shard cannot be downloaded; they do not fit.
    pub(crate) fn fetch_shards(
        &mut self,
        index: &Index,
        shards: &[u64],
        on_downloaded: &mut dyn FnMut(&[u64]) -> ControlFlow<()>,
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
                // They fit, but not together with what other users of the folder need now.
                Err(e) if e.option_name() == Some("fetch_limit") => {
                    if !is_told {
                        tracing::warn!(
                            "{}: other processes use this folder, and there is no space left: \
                             waiting for space (or use another `fetch_dir`)",
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
                if on_downloaded(&[]).is_break() {
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
                self.reset_deaths();
            }
            if on_downloaded(&now).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if all {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}
