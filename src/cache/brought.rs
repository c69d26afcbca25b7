//! A cache that is made of a data set in an object store: which of its shards are read, and that
//! they are here and stay.
//!
//! In the consumer. Shards come before their headers are read, so workers never wait for
//! storage. What a manifest says of such a source follows from the store, not from when a file
//! came to this machine: any machine may go on with the cache.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use crate::cache::asked::{Build, Watch};
use crate::cache::options::BuildPart;
use crate::cache::report::{BuildPhase, BuildProgress};
use crate::cache::surveyed::{files_hash, files_hash_of};
use crate::data::shard::manifest::Hash128;
use crate::error::{Error, Result, needed, room};
use crate::fetch::ShardRoom;
use crate::jobs::encode::payload::Order;

impl Build<'_> {
    /// By what a changed source is noticed, beside its index.
    ///
    /// # Errors
    /// A file of the source that cannot be looked at.
    pub(super) fn files_hash(&self) -> Result<Hash128> {
        match self.store {
            Some(store) => Ok(store.state()),
            None => files_hash(self.index),
        }
    }

    /// The same of the files of these samples alone.
    ///
    /// # Errors
    /// As those of [`Build::files_hash`].
    pub(super) fn files_hash_of(&self, ids: impl Iterator<Item = u64>) -> Result<Hash128> {
        match self.store {
            Some(_) => self.files_hash(),
            None => files_hash_of(self.index, ids),
        }
    }

    /// Has the shards of the samples at these places come, where the source is in a store. They
    /// stay until others are brought.
    ///
    /// # Errors
    /// A shard that cannot be had; a folder with too little room for all of them.
    pub(super) fn bring(
        &self,
        order: &Order,
        places: &[Range<u64>],
        watch: Watch<'_>,
    ) -> Result<ControlFlow<()>> {
        let Some(store) = self.store else {
            return Ok(ControlFlow::Continue(()));
        };
        let shards = self.shards_of(order, places);
        let numbers: Vec<u64> = shards.keys().copied().collect();
        if let Some(most) = store.room.holds_too_many(&numbers) {
            return Err(Error::option(
                "fetch_limit",
                format!(
                    "`fetch_limit` has no room for all shards, so the {} that are read are held \
                     open, and half of the files that this process may have open are {most}: \
                     raise that (ulimit -n), or give no limit",
                    numbers.len()
                ),
            ));
        }
        let lacks = store.room.lacks(&numbers);
        if lacks > 0 {
            return Err(self.too_little(&store.room, &numbers, lacks));
        }
        let (all, mut done) = (shards.values().sum(), 0);
        store.bring(self.index, &numbers, &mut |came| {
            let samples = came.iter().filter_map(|number| shards.get(number));
            done += samples.sum::<u64>();
            watch(&BuildProgress {
                samples: all,
                ..self.progress(BuildPhase::Fetching, done)
            })
        })
    }

    /// The shards of the source that these places are made of, with how many samples of each.
    fn shards_of(&self, order: &Order, places: &[Range<u64>]) -> BTreeMap<u64, u64> {
        let mut shards = BTreeMap::new();
        let ids = places.iter().cloned().flatten();
        let ids = ids.filter_map(|place| order.sample(place));
        for part in ids.filter_map(|id| self.index.part(id)) {
            *shards.entry(part.shard).or_insert(0) += 1;
        }
        shards
    }

    /// Into how many shares the cache is divided, so that the source of each has room here; none
    /// where it need not be, or cannot.
    pub(super) fn shares_that_fit(&self) -> Option<u64> {
        let (store, each) = (self.store?, self.options.shard_samples?);
        let order = Order::new(self.index.len(), self.options.shuffle);
        let shards = self.index.len().div_ceil(each);
        let fits = |of: u64| {
            let mut shares = (0..of).map(|number| {
                let share = BuildPart::Share { number, of }.shards(shards);
                let place = |shard: u64| shard.saturating_mul(each).min(self.index.len());
                place(share.start)..place(share.end)
            });
            shares.all(|places| {
                let shards = self.shards_of(&order, &[places]);
                let numbers: Vec<u64> = shards.into_keys().collect();
                store.room.lacks(&numbers) == 0 && store.room.holds_too_many(&numbers).is_none()
            })
        };
        let mut of = 1;
        while !fits(of) {
            if of >= shards {
                return None;
            }
            // By a quarter more: this goes through all samples.
            of = (of + of.div_ceil(4)).min(shards);
        }
        (of > 1).then_some(of)
    }

    fn too_little(&self, shards: &ShardRoom, numbers: &[u64], lacks: u64) -> Error {
        let otherwise = match (self.options.shard_samples, self.options.shuffle) {
            (_, Some(_)) => " A shuffled cache is made of all of them at a time.",
            (None, None) => {
                " Or give `shard_samples`: such shards stand alone, and the cache is then made \
                 in parts that fit."
            }
            (Some(_), None) => " Or make smaller shards.",
        };
        Error::option(
            "fetch_limit",
            format!(
                "`fetch_limit` leaves {} for shards, and {} shards of the source ({}) are read at a \
                 time: give at least {} more, or no limit.{otherwise}",
                room(shards.room),
                numbers.len(),
                needed(shards.bytes_of(numbers)),
                needed(lacks),
            ),
        )
    }
}
