//! Lists the tar shards under a prefix, page by page, with limits.
//!
//! Runs in the fetcher. An endless listing is an error. The consumer gets the progress of a long
//! one.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use object_store::list::PaginatedListResult;
use object_store::{Error as StoreError, ObjectMeta};

use crate::data::shard::manifest::HexHash128;
use crate::data::shard::shard_patterns::MOST_SHARDS;
use crate::remote::fetch::download::fingerprint_of;
use crate::remote::fetch::tar_list::TarShard;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::client::Store;
use crate::remote::store::retry_policy::RetryPolicy;

/// Extension of a plain tar.
pub(super) const TAR_END: &str = ".tar";

/// Most pages of a listing, with usually 1,000 names: tar shards, other objects and folders.
const MOST_PAGES: u64 = 4096;

/// Interval of progress messages.
const PROGRESS: Duration = Duration::from_secs(5);

pub(super) fn tar(below: &str, meta: &ObjectMeta) -> TarShard {
    TarShard {
        object: below.to_owned(),
        bytes: meta.size,
        state: fingerprint_of(meta),
    }
}

/// Progress of a listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ListProgress {
    pub(super) names: u64,
    pub(super) pages: u64,
}

impl fmt::Display for ListProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names on {} pages so far", self.names, self.pages)
    }
}

/// State of a listing.
struct Listing<'a> {
    store: &'a Store,
    shards: Vec<TarShard>,
    so_far: ListProgress,
    /// Hashes of page marks.
    marks: HashSet<u128>,
}

impl Listing<'_> {
    fn wrong(&self, what: &str) -> HelperError {
        let how = "name the shards by braces (train-{000..146}.tar), or give a folder that has \
                   them alone";
        HelperError::new(self.store.address().as_str(), format!("{what}: {how}"))
    }

    /// Adds a page. As for a local folder, ignores hidden objects and those in subfolders.
    ///
    /// # Errors
    /// More shards than a data set may have.
    fn take(&mut self, objects: &[ObjectMeta], folders: usize) -> Result<(), HelperError> {
        self.so_far.pages += 1;
        self.so_far.names += (objects.len() + folders) as u64;
        let shards = objects.iter().filter_map(|meta| {
            let name = meta.location.filename()?;
            let is_one = name.ends_with(TAR_END) && !name.starts_with('.');
            is_one.then(|| tar(name, meta))
        });
        self.shards.extend(shards);
        match self.shards.len() > MOST_SHARDS {
            true => Err(self.wrong(&format!("lists more than {MOST_SHARDS} tar shards"))),
            false => Ok(()),
        }
    }

    /// Checks that another page may follow.
    ///
    /// # Errors
    /// A repeated mark; too many pages.
    fn check_next_page(&mut self, mark: &str) -> Result<(), HelperError> {
        if !self.marks.insert(HexHash128::of(mark.as_bytes()).0) {
            let what = "its store repeats the same page of names: check the endpoint";
            return Err(HelperError::new(self.store.address().as_str(), what));
        }
        match self.so_far.pages >= MOST_PAGES {
            true => Err(self.wrong(&format!(
                "lists {} names on {MOST_PAGES} pages and has more",
                self.so_far.names
            ))),
            false => Ok(()),
        }
    }
}

/// The tars under the store's prefix, in any order; `None` if the store reports that the prefix
/// does not exist.
///
/// # Errors
/// A permanent failure, or too many; an endless listing.
pub(super) async fn tars(
    store: &Store,
    patience: Duration,
    progress: &dyn Fn(ListProgress),
) -> Result<Option<Vec<TarShard>>, HelperError> {
    let mut listing = Listing {
        store,
        shards: Vec::new(),
        so_far: ListProgress::default(),
        marks: HashSet::new(),
    };
    let mut mark: Option<String> = None;
    let mut last = Instant::now();
    loop {
        let Some(page) = read_page(store, mark, patience).await? else {
            return Ok(None);
        };
        listing.take(&page.result.objects, page.result.common_prefixes.len())?;
        let Some(next) = page.page_token.filter(|next| !next.is_empty()) else {
            return Ok(Some(listing.shards));
        };
        listing.check_next_page(&next)?;
        mark = Some(next);
        if last.elapsed() >= PROGRESS {
            progress(listing.so_far);
            last = Instant::now();
        }
    }
}

/// One page; `None` if the prefix does not exist.
///
/// # Errors
/// Like [`tars`].
async fn read_page(
    store: &Store,
    mark: Option<String>,
    patience: Duration,
) -> Result<Option<PaginatedListResult>, HelperError> {
    let mut patience = RetryPolicy::new(store.address().to_string(), patience);
    let page = patience.tries(
        |e| store.failure("", e),
        async || match store.list_page(mark.clone()).await {
            Err(StoreError::NotFound { .. }) => Ok(None),
            page => page.map(Some),
        },
    );
    page.await
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;
    use crate::remote::address::StoreAddress;

    fn listing(store: &Store) -> Listing<'_> {
        Listing {
            store,
            shards: Vec::new(),
            so_far: ListProgress::default(),
            marks: HashSet::new(),
        }
    }

    fn page(names: impl Iterator<Item = String>) -> Vec<ObjectMeta> {
        let meta = |name| ObjectMeta {
            location: Path::from(name),
            last_modified: Default::default(),
            size: 1024,
            e_tag: Some("x".to_owned()),
            version: None,
        };
        names.map(meta).collect()
    }

    #[test]
    fn a_listing_has_as_many_shards_as_braces_at_most() {
        let store = Store::open(&StoreAddress::parse("file:///data/set").unwrap(), false).unwrap();
        let mut listing = listing(&store);
        let shards = page((0..1000).map(|n| format!("data/set/{n}.tar")));
        for _ in 0..(1 << 20) / 1000 {
            listing.take(&shards, 0).unwrap();
        }
        assert_eq!(listing.shards.len(), 1_048_000);
        let e = listing.take(&shards, 0).unwrap_err();
        assert!(
            e.what.contains("more than 1048576 tar shards"),
            "{}",
            e.what
        );
        assert_eq!(e.about, "file:///data/set");
    }

    #[test]
    fn a_listing_has_a_last_page_and_none_twice() {
        let store = Store::open(&StoreAddress::parse("file:///data/set").unwrap(), false).unwrap();
        let mut listing = listing(&store);
        let others = page(
            ["data/set/a.jpg", "data/set/.b.tar"]
                .map(str::to_owned)
                .into_iter(),
        );
        for number in 1..MOST_PAGES {
            listing.take(&others, 1).unwrap();
            listing.check_next_page(&number.to_string()).unwrap();
        }
        let e = listing.check_next_page("7").unwrap_err();
        assert!(e.what.contains("repeats the same page"), "{}", e.what);
        listing.take(&others, 1).unwrap();
        let e = listing.check_next_page("last").unwrap_err();
        assert!(
            e.what.contains("lists 12288 names on 4096 pages"),
            "{}",
            e.what
        );
        assert!(listing.shards.is_empty());
    }
}
