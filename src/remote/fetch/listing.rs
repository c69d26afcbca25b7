//! Lists the tar shards or the images under a prefix, page by page, with limits.
//!
//! Runs in the fetcher. An endless listing is an error. The consumer gets the progress of a long
//! one.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use object_store::list::PaginatedListResult;
use object_store::{Error as StoreError, ObjectMeta};

use crate::data::index::ListedNames;
use crate::data::shard::manifest::HexHash128;
use crate::data::shard::shard_patterns::MOST_SHARDS;
use crate::error::size;
use crate::remote::fetch::download::fingerprint_of;
use crate::remote::fetch::object_pack::PackedObject;
use crate::remote::fetch::tar_list::TarShard;
use crate::remote::helper::messages::HelperError;
use crate::remote::store::client::{ListDepth, Store};
use crate::remote::store::retry_policy::RetryPolicy;

/// Extension of a plain tar.
pub(super) const TAR_END: &str = ".tar";

/// Most pages of a listing, with usually 1,000 names: tar shards, other objects and folders.
const MOST_PAGES: u64 = 4096;

/// Most bytes of an image.
pub(super) const MOST_IMAGE: u64 = 1 << 30;

/// Interval of progress messages.
const PROGRESS: Duration = Duration::from_secs(5);

pub(super) fn tar(below: &str, meta: &ObjectMeta) -> TarShard {
    TarShard {
        object: below.to_owned(),
        bytes: meta.size,
        state: fingerprint_of(meta),
        packed: Vec::new(),
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
    found: Found,
    so_far: ListProgress,
    /// The images of a listing of tars, while it has neither tars nor folders.
    flat: Option<ListedImages>,
    /// Hashes of page marks.
    marks: HashSet<u128>,
}

/// Images, and what else was listed.
pub(super) type ListedImages = (Vec<PackedObject>, ListedNames);

/// The tars under a prefix.
#[derive(Default)]
pub(super) struct ListedTars {
    pub(super) shards: Vec<TarShard>,
    /// All images, if there are neither tars nor folders. Then they need no other listing.
    pub(super) images: Option<ListedImages>,
}

/// The objects of a listing.
enum Found {
    Tars(Vec<TarShard>),
    Images(Vec<PackedObject>, ListedNames),
}

impl Listing<'_> {
    fn new(store: &Store, found: Found) -> Listing<'_> {
        Listing {
            store,
            flat: matches!(found, Found::Tars(_)).then(ListedImages::default),
            found,
            so_far: ListProgress::default(),
            marks: HashSet::new(),
        }
    }

    fn depth(&self) -> ListDepth {
        match self.found {
            Found::Tars(_) => ListDepth::Folder,
            Found::Images(..) => ListDepth::Tree,
        }
    }

    fn wrong(&self, what: &str) -> HelperError {
        let how = match self.found {
            Found::Tars(_) => {
                "name the shards by braces (train-{000..146}.tar), or give a folder that has them \
                 alone"
            }
            Found::Images(..) => "give a folder with fewer objects, or store them as tar shards",
        };
        HelperError::new(self.store.address().as_str(), format!("{what}: {how}"))
    }

    /// Adds a page. As for a local folder, ignores hidden objects, and for tars those in
    /// subfolders.
    ///
    /// # Errors
    /// More shards than a data set may have; an image that is too large.
    fn take(&mut self, objects: &[ObjectMeta], folders: usize) -> Result<(), HelperError> {
        self.so_far.pages += 1;
        self.so_far.names += (objects.len() + folders) as u64;
        match &mut self.found {
            Found::Tars(shards) => {
                let found = objects.iter().filter_map(|meta| {
                    let name = meta.location.filename()?;
                    let is_one = name.ends_with(TAR_END) && !name.starts_with('.');
                    is_one.then(|| tar(name, meta))
                });
                shards.extend(found);
                if folders > 0 || !shards.is_empty() {
                    self.flat = None;
                }
                // An image that is too large has its error in the listing of images.
                if let Some((images, names)) = &mut self.flat
                    && add_images(self.store, images, names, objects).is_err()
                {
                    self.flat = None;
                }
                let Found::Tars(shards) = &self.found else {
                    return Ok(());
                };
                match shards.len() > MOST_SHARDS {
                    true => Err(self.wrong(&format!("lists more than {MOST_SHARDS} tar shards"))),
                    false => Ok(()),
                }
            }
            Found::Images(images, names) => add_images(self.store, images, names, objects),
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

/// Adds the images among these objects.
///
/// # Errors
/// An image that is too large.
fn add_images(
    store: &Store,
    images: &mut Vec<PackedObject>,
    names: &mut ListedNames,
    objects: &[ObjectMeta],
) -> Result<(), HelperError> {
    for meta in objects {
        let Some(name) = store.name_below(&meta.location) else {
            continue;
        };
        if !names.is_image(name) {
            continue;
        }
        if meta.size > MOST_IMAGE {
            let what = format!(
                "has {}, and an image has at most {}: rename or remove it",
                size(meta.size),
                size(MOST_IMAGE)
            );
            return Err(HelperError::new(store.address().of(name), what));
        }
        images.push(PackedObject {
            object: name.to_owned(),
            bytes: meta.size,
            state: fingerprint_of(meta),
            dead: None,
            silent: false,
        });
    }
    Ok(())
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
) -> Result<Option<ListedTars>, HelperError> {
    let mut listing = Listing::new(store, Found::Tars(Vec::new()));
    let is_there = listing.read(patience, progress).await?;
    let images = listing.flat;
    Ok(match listing.found {
        Found::Tars(shards) if is_there => Some(ListedTars { shards, images }),
        _ => None,
    })
}

/// The images under the store's prefix and in its folders, in any order, and what else is there.
///
/// # Errors
/// Like [`tars`].
pub(super) async fn images(
    store: &Store,
    patience: Duration,
    progress: &dyn Fn(ListProgress),
) -> Result<ListedImages, HelperError> {
    let mut listing = Listing::new(store, Found::Images(Vec::new(), ListedNames::default()));
    listing.read(patience, progress).await?;
    Ok(match listing.found {
        Found::Images(images, names) => (images, names),
        Found::Tars(_) => Default::default(),
    })
}

impl Listing<'_> {
    /// Reads all pages. False if the store reports that the prefix does not exist.
    async fn read(
        &mut self,
        patience: Duration,
        progress: &dyn Fn(ListProgress),
    ) -> Result<bool, HelperError> {
        let mut mark: Option<String> = None;
        let mut last = Instant::now();
        loop {
            let Some(page) = read_page(self.store, self.depth(), mark, patience).await? else {
                return Ok(false);
            };
            self.take(&page.result.objects, page.result.common_prefixes.len())?;
            let Some(next) = page.page_token.filter(|next| !next.is_empty()) else {
                return Ok(true);
            };
            self.check_next_page(&next)?;
            mark = Some(next);
            if last.elapsed() >= PROGRESS {
                progress(self.so_far);
                last = Instant::now();
            }
        }
    }
}

/// One page; `None` if the prefix does not exist.
///
/// # Errors
/// Like [`tars`].
async fn read_page(
    store: &Store,
    depth: ListDepth,
    mark: Option<String>,
    patience: Duration,
) -> Result<Option<PaginatedListResult>, HelperError> {
    let mut patience = RetryPolicy::new(store.address().to_string(), patience);
    let page = patience.tries(
        |e| store.failure("", e),
        async || match store.list_page(depth, mark.clone()).await {
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
        Listing::new(store, Found::Tars(Vec::new()))
    }

    fn count(listing: &Listing<'_>) -> usize {
        match &listing.found {
            Found::Tars(shards) => shards.len(),
            Found::Images(images, _) => images.len(),
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
        assert_eq!(count(&listing), 1_048_000);
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
        assert_eq!(count(&listing), 0);
    }

    #[test]
    fn a_flat_prefix_is_listed_once() {
        let store = Store::open(&StoreAddress::parse("file:///data/set").unwrap(), false).unwrap();
        let flat = |names: &[&str], folders: usize| {
            let mut listing = listing(&store);
            let names = names.iter().map(|name| format!("data/set/{name}"));
            listing.take(&page(names), folders).unwrap();
            listing.flat.map(|(images, _)| images.len())
        };
        assert_eq!(flat(&["a.jpg", "b.png", "notes.txt"], 0), Some(2));
        assert_eq!(flat(&["a.jpg"], 1), None);
        assert_eq!(flat(&["a.jpg", "b.tar"], 0), None);
    }

    #[test]
    fn images_are_listed_in_folders_by_their_names_below_the_address() {
        let store = Store::open(&StoreAddress::parse("file:///data/set").unwrap(), false).unwrap();
        let mut listing = Listing::new(&store, Found::Images(Vec::new(), ListedNames::default()));
        let names = [
            "data/set/a/1.jpg",
            "data/set/a/b/2.png",
            "data/set/a/notes.txt",
        ];
        let mut objects = page(names.into_iter().map(str::to_owned));
        listing.take(&objects, 0).unwrap();
        let Found::Images(images, _) = &listing.found else {
            panic!("other kind");
        };
        let found: Vec<&str> = images.iter().map(|image| image.object.as_str()).collect();
        assert_eq!(found, ["a/1.jpg", "a/b/2.png"]);
        assert_eq!((images[0].bytes, images[0].state.as_str()), (1024, "x"));
        objects[1].size = MOST_IMAGE + 1;
        let e = listing.take(&objects, 0).unwrap_err();
        assert_eq!(e.about, "file:///data/set/a/b/2.png");
        assert!(e.what.contains("an image has at most"), "{}", e.what);
    }
}
