//! The shards of a source in an object store: fetches the shards that a build reads to a folder on
//! this machine, and keeps them there meanwhile.
//!
//! Runs in the consumer. Shards are fetched before their headers are read, so workers never wait
//! for the network. The manifest's fingerprint of such a source depends on the store, not on the
//! time of a download. So any machine can continue the cache.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use crate::cache::options::{BuildOptions, BuildPart};
use crate::cache::shard_places::IndependentShards;
use crate::data::index::{Index, PROBED_SAMPLES};
use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::jobs::encode::payload::CacheOrder;
use crate::remote::fetch::fetcher::Fetcher;
use crate::remote::fetch::{FetchReport, ShardSpace};

/// The shards of a source, and the fetcher that downloads them.
#[derive(Debug)]
pub(super) struct SourceShards {
    fetcher: RefCell<Fetcher>,
    /// The fetcher has died, and is not checked again until other shards are needed.
    is_left: Cell<bool>,
    room: ShardSpace,
}

impl SourceShards {
    /// Takes over a fetcher.
    ///
    /// # Errors
    /// When the folder of shards cannot be read.
    pub(super) fn new(fetcher: Fetcher) -> Result<Self> {
        Ok(Self {
            room: fetcher.shard_room()?,
            fetcher: RefCell::new(fetcher),
            is_left: Cell::new(false),
        })
    }

    /// Fingerprint used to detect a changed source, beside its index.
    pub(super) fn fingerprint(&self) -> HexHash128 {
        self.fetcher.borrow().fingerprint()
    }

    /// Fetches the shards of the samples at these places, which replace those fetched before.
    /// `watch` receives the number of samples whose shards are here, and the number of all samples.
    ///
    /// # Errors
    /// A shard that cannot be fetched; too little room for all of them.
    pub(super) fn fetch_samples(
        &self,
        (index, options): (&Index, &BuildOptions),
        order: &CacheOrder,
        places: &[Range<u64>],
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let shards = shards_of(index, order, places);
        let numbers: Vec<u64> = shards.keys().copied().collect();
        if let Some(most) = self.room.holds_too_many(&numbers) {
            return Err(Error::option(
                "fetch_limit",
                format!(
                    "`fetch_limit` has no room for all shards, so the {} that are read are kept \
                     open. That is more than {most}, half of the files that this process may \
                     open: raise its limit (ulimit -n), or give no `fetch_limit`",
                    numbers.len()
                ),
            ));
        }
        let lacks = self.room.missing_bytes(&numbers);
        if lacks > 0 {
            return Err(self.too_little(options, &numbers, lacks));
        }
        let (all, mut done) = (shards.values().sum(), 0);
        self.is_left.set(false);
        self.fetcher
            .borrow_mut()
            .fetch_shards(index, &numbers, &mut |came| {
                let samples = came.iter().filter_map(|number| shards.get(number));
                done += samples.sum::<u64>();
                watch(done, all)
            })
    }

    /// Fetches the shards of the first samples, which decide the types of columns.
    ///
    /// # Errors
    /// Like [`SourceShards::fetch_samples`].
    pub(super) fn fetch_first(
        &self,
        index: &Index,
        options: &BuildOptions,
        watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let in_order = CacheOrder::new(index.len(), None);
        let first = 0..index.len().min(PROBED_SAMPLES);
        self.fetch_samples((index, options), &in_order, &[first], watch)
    }

    /// Checks that the fetcher is alive while its shards are read. Its death is only a warning: the
    /// shards are here already.
    pub(super) fn check_fetcher(&self) {
        if self.is_left.get() {
            return;
        }
        if let Err(e) = self.fetcher.borrow_mut().check_helper() {
            tracing::warn!("{e}. The build continues, because all shards that it reads are here");
            self.is_left.set(true);
        }
    }

    /// The report of the fetcher so far.
    pub(super) fn report(&self) -> FetchReport {
        self.fetcher.borrow().report()
    }

    /// The number of shares to make, so that the source of each fits on this machine. `None` if one
    /// part is enough, or if the cache cannot be divided so.
    pub(super) fn shares_that_fit(&self, index: &Index, options: &BuildOptions) -> Option<u64> {
        let shards = IndependentShards::of(options, index.len())?;
        let order = CacheOrder::new(index.len(), options.shuffle);
        let fits = |of: u64| {
            (0..of).all(|number| {
                let share = BuildPart::Share { number, of }.shards(shards.len());
                let sources = shards_of(index, &order, &[shards.places(share)]);
                let numbers: Vec<u64> = sources.into_keys().collect();
                self.room.missing_bytes(&numbers) == 0
                    && self.room.holds_too_many(&numbers).is_none()
            })
        };
        let mut of = 1;
        while !fits(of) {
            if of >= shards.len() {
                return None;
            }
            // Grows by a quarter, because each try goes through all samples.
            of = (of + of.div_ceil(4)).min(shards.len());
        }
        (of > 1).then_some(of)
    }

    fn too_little(&self, options: &BuildOptions, numbers: &[u64], lacks: u64) -> Error {
        let otherwise = match (options.shard_samples, options.shuffle) {
            (_, Some(_)) => " A shuffled cache is made of all of them at once.",
            (None, None) => {
                " Or give `shard_samples`: such shards are independent, so the cache is made in \
                 parts that fit."
            }
            (Some(_), None) => " Or make smaller shards.",
        };
        Error::option(
            "fetch_limit",
            format!(
                "`fetch_limit` leaves {} for shards, but {} shards of the source ({}) are read at a \
                 time: give at least {} more, or no limit.{otherwise}",
                size_rounded_down(self.room.room),
                numbers.len(),
                size_rounded_up(self.room.bytes_of(numbers)),
                size_rounded_up(lacks),
            ),
        )
    }
}

/// The shards of the source with the samples at these places, and the number of those samples in
/// each.
fn shards_of(index: &Index, order: &CacheOrder, places: &[Range<u64>]) -> BTreeMap<u64, u64> {
    let mut shards = BTreeMap::new();
    let ids = places.iter().cloned().flatten();
    let ids = ids.filter_map(|place| order.sample(place));
    for part in ids.filter_map(|id| index.part(id)) {
        *shards.entry(part.shard).or_insert(0) += 1;
    }
    shards
}
