//! Opens the data set at an address: a cache, by its manifest, or tar shards, by a pattern or a
//! prefix. Prepares its folder.
//!
//! Runs in the fetcher. Never requests members of tars: their index is made from whole shards.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use object_store::ObjectStoreExt;

use crate::data::index::{Index, RemoteIndexBuilder, is_index_file, stored_hashes};
use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, HexHash128, Manifest, shard_name,
};
use crate::data::shard::shard_patterns;
use crate::error::Error;
use crate::remote::address::StoreAddress;
use crate::remote::fetch::answers_file;
use crate::remote::fetch::asked_addresses::{self, AskProgress};
use crate::remote::fetch::download;
use crate::remote::fetch::download::{RemoteShard, ShardCheck};
use crate::remote::fetch::folder::FetchFolder;
use crate::remote::fetch::lease::{Lease, use_folder};
use crate::remote::fetch::listing;
use crate::remote::fetch::listing::{ListProgress, ListedTars, TAR_END, tar};
use crate::remote::fetch::messages::{TarSetInfo, UnusedIndex};
use crate::remote::fetch::options::FetchOptions;
use crate::remote::fetch::shard_space::{INDEX_OF_LIMIT, on_disk, total};
use crate::remote::fetch::tar_list::{FOLDER_BEGIN, LIST, TarList, TarShard, shared_index};
use crate::remote::helper::messages::HelperError;
use crate::remote::store::address_stores::AddressStores;
use crate::remote::store::client::Store;
use crate::remote::store::retry_policy::RetryPolicy;
use crate::sys::whole_file;

/// Parallel requests for objects.
const HEADS: usize = 32;

/// An index of tars is smaller than this fraction of their bytes, unless images are smaller than
/// their names.
const INDEX_PART: u64 = 8;

/// Shards in a store, and their folder.
#[derive(Debug, Clone)]
pub(super) struct DatasetFiles {
    pub(super) store: Store,
    /// The stores of a list of addresses.
    pub(super) others: Option<Arc<AddressStores>>,
    /// Tells other runs of the same list that its answers are in use.
    list_in_use: Option<Arc<Lease>>,
    pub(super) folder: FetchFolder,
    pub(super) shards: Arc<[RemoteShard]>,
    /// Size of each shard on disk.
    pub(super) bytes: Arc<[u64]>,
    /// How to reduce the needed space; empty before the order is known.
    pub(super) advice: String,
}

impl DatasetFiles {
    fn new(store: Store, folder: FetchFolder, shards: Vec<RemoteShard>) -> Self {
        Self {
            store,
            others: None,
            list_in_use: None,
            folder,
            bytes: shards.iter().map(|shard| on_disk(shard.bytes)).collect(),
            shards: shards.into(),
            advice: String::new(),
        }
    }
}

/// A data set in a store, and its folder.
#[derive(Debug)]
pub(super) struct RemoteDataset {
    pub(super) files: DatasetFiles,
    /// Bytes of manifest or list, and of indexes.
    pub(super) manifest_bytes: u64,
    pub(super) index_bytes: u64,
    /// Bytes reserved for an index that will be made.
    pub(super) index_to_come: u64,
    /// `None` for a cache.
    pub(super) tars: Option<TarSetInfo>,
}

impl RemoteDataset {
    /// Opens the data set. `index`: file name for an index of tars. `earlier`: the folder of an
    /// earlier fetcher of this run, whose list of single objects stays. `listed`: the addresses of
    /// a list, which then is the data set.
    ///
    /// # Errors
    /// It is neither, or cannot be downloaded; the folder is not writable.
    pub(super) async fn open(
        address: &StoreAddress,
        options: &FetchOptions,
        index: &str,
        earlier: Option<&Path>,
        listed: Option<&Index>,
        patience: Duration,
        progress: &dyn Fn(String),
    ) -> Result<Self, HelperError> {
        // Objects may have been added since. Each of the list is compared when it is downloaded.
        let known = earlier.and_then(|folder| TarList::read(folder).ok());
        if let Some(list) = known.filter(|list| list.has_packs() && list.base() == address) {
            let store = Store::open(address, options.allow_redirects)?;
            let mut set = Self::of_tars(store, list, options, index, patience).await?;
            set.files.others = listed.map(|listed| Arc::new(stores_of(listed, options)));
            let answers = set
                .files
                .others
                .as_ref()
                .and_then(|all| all.answers.as_ref());
            // Without it, another run asks for silent addresses again.
            let in_use = answers.and_then(|file| use_folder(file.parent()?).ok());
            set.files.list_in_use = in_use.map(Arc::new);
            return Ok(set);
        }
        if let Some(listed) = listed {
            let store = Store::open(address, options.allow_redirects)?;
            let others = stores_of(listed, options);
            let (list, in_use) = asked((address, &others), listed, options, progress).await?;
            let mut set = Self::of_tars(store, list, options, index, patience).await?;
            set.files.others = Some(Arc::new(others));
            set.files.list_in_use = Some(Arc::new(in_use));
            return Ok(set);
        }
        if Index::names_tars(address.as_str()) {
            let (store, list) = named(address, options, patience).await?;
            return Self::of_tars(store, list, options, index, patience).await;
        }
        let store = Store::open(address, options.allow_redirects)?;
        let most = CacheManifest::MOST_BYTES;
        let manifest = download::small_if_there(&store, CACHE_MANIFEST, most, patience);
        let told = |listed: ListProgress| progress(format!("the store has listed {listed}"));
        let list = match manifest.await? {
            None => below(&store, patience, &told).await?,
            Some(text) => {
                // Other programs use this name, too. Images beside such a file are no cache.
                let is_own = Index::is_manifest(&text) || address.as_str().starts_with("http");
                let images = match is_own {
                    true => None,
                    false => below(&store, patience, &told).await.ok(),
                };
                match images.filter(TarList::has_packs) {
                    Some(images) => images,
                    None => return Self::of_cache(store, text, options, patience).await,
                }
            }
        };
        Self::of_tars(store, list, options, index, patience).await
    }

    async fn of_cache(
        store: Store,
        text: Vec<u8>,
        options: &FetchOptions,
        patience: Duration,
    ) -> Result<Self, HelperError> {
        let address = store.address();
        let at = |name: &str| address.of(name);
        let manifest = CacheManifest::from_bytes(&text)
            .map_err(|damage| HelperError::new(at(CACHE_MANIFEST), damage.to_string()))?;
        let side_files = manifest.side_files();
        if manifest.index.is_none() || !manifest.complete {
            return Err(HelperError::new(
                address.as_str(),
                "is an unfinished cache: finish its build first",
            ));
        }
        let mut shards = Vec::with_capacity(manifest.shards.len());
        for (number, shard) in manifest.shards.into_iter().enumerate() {
            // They become names of local files, so an untrusted manifest is checked.
            if shard.name != shard_name(number as u64) {
                let what = format!("has the invalid name '{}' for shard {number}", shard.name);
                return Err(HelperError::new(at(CACHE_MANIFEST), what));
            }
            let below = format!("{}{TAR_END}", shard.name);
            shards.push(RemoteShard {
                object: store.path(&below),
                name: shard.name,
                below,
                bytes: shard.bytes,
                check: ShardCheck::Manifest(shard.manifest),
            });
        }
        let folder = folder(
            address,
            options,
            &format!("cache-{}", HexHash128::of(&text)),
        )?;
        put_once(&folder, CACHE_MANIFEST, &text).map_err(|e| local(address, e))?;
        let most = download::most_of_index();
        let mut index_bytes = 0;
        for (name, hash) in side_files {
            let there = whole_file::read(&folder.file(&name), most).ok();
            let there = there.filter(|bytes| HexHash128::of(bytes) == hash);
            let is_there = there.is_some();
            let bytes = match there {
                Some(bytes) => bytes,
                None => download::small(&store, &name, most, patience).await?,
            };
            index_bytes += bytes.len() as u64;
            if is_there {
                continue;
            }
            if HexHash128::of(&bytes) != hash {
                let what = "is not the one that the manifest names: the cache was built again \
                            meanwhile, start the run again; or build the cache again";
                return Err(HelperError::new(at(&name), what));
            }
            folder.put(&name, &bytes).map_err(|e| local(address, e))?;
        }
        Ok(Self {
            files: DatasetFiles::new(store, folder, shards),
            manifest_bytes: text.len() as u64,
            index_bytes,
            index_to_come: 0,
            tars: None,
        })
    }

    async fn of_tars(
        store: Store,
        list: TarList,
        options: &FetchOptions,
        index: &str,
        patience: Duration,
    ) -> Result<Self, HelperError> {
        let address = store.address();
        let failed = |e: serde_json::Error| HelperError::new(address.as_str(), e.to_string());
        let identity = list.identity().map_err(failed)?;
        let name = format!("{FOLDER_BEGIN}{}", HexHash128::of(&identity));
        drop(identity);
        let text = list.text().map_err(failed)?;
        let folder = folder(address, options, &name)?;
        put_once(&folder, LIST, &text).map_err(|e| local(address, e))?;
        let manifest_bytes = text.len() as u64;
        drop(text);
        let kept = || {
            let hashes = stored_hashes(&folder.file(index));
            hashes.filter(|hashes| hashes.len() == list.shards.len())
        };
        let (mut hashes, mut index_to_come, mut unused) = (kept(), 0, None);
        if hashes.is_none() && !list.has_packs() {
            index_to_come = room_for_index(list.bytes(), options.limit);
            let name = shared_index(folder.path(), index);
            let length = download::length_if_offered(&store, &name, patience).await?;
            let is_too_large =
                |bytes: &u64| options.limit.is_some() && on_disk(*bytes) > index_to_come;
            unused = length.filter(is_too_large).map(UnusedIndex::TooLarge);
            if length.is_some() && unused.is_none() {
                let most = download::most_of_index();
                let shared = download::small_if_there(&store, &name, most, patience).await?;
                let files = list.files();
                let is_whole = |bytes: &Vec<u8>| is_index_file(bytes, folder.path(), &files);
                match shared.filter(is_whole) {
                    Some(bytes) => {
                        folder.put(index, &bytes).map_err(|e| local(address, e))?;
                        (hashes, index_to_come) = (kept(), 0);
                    }
                    None => unused = Some(UnusedIndex::NotWhole),
                }
            }
        }
        let tars = TarSetInfo {
            is_indexed: hashes.is_some(),
            most_of_index: options.limit.map(|_| index_to_come),
            unused,
        };
        let mut shards = Vec::with_capacity(list.shards.len());
        let has_packs = list.has_packs();
        let names = list.names();
        for (number, (tar, file)) in list.shards.into_iter().zip(names).enumerate() {
            shards.push(RemoteShard {
                name: file.strip_suffix(TAR_END).unwrap_or(&file).to_owned(),
                object: store.object(&tar.object)?,
                below: tar.object,
                bytes: tar.bytes,
                check: match has_packs {
                    true => ShardCheck::Objects(tar.packed.into()),
                    false => ShardCheck::Tar {
                        state: tar.state,
                        hash: hashes.as_ref().map(|hashes| hashes[number]),
                    },
                },
            });
        }
        Ok(Self {
            index_bytes: bytes_of_indexes(&folder),
            index_to_come,
            files: DatasetFiles::new(store, folder, shards),
            manifest_bytes,
            tars: Some(tars),
        })
    }
}

/// Writes a file unless it exists. Not through a temporary file, which would take the space twice.
fn put_once(folder: &FetchFolder, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let there = whole_file::read(&folder.file(name), bytes.len() as u64);
    match there.is_ok_and(|there| there == bytes) {
        true => Ok(()),
        false => folder.put(name, bytes),
    }
}

fn local(address: &StoreAddress, e: Error) -> HelperError {
    HelperError::new(address.as_str(), e.to_string())
}

/// The folder of this name.
fn folder(
    address: &StoreAddress,
    options: &FetchOptions,
    name: &str,
) -> Result<FetchFolder, HelperError> {
    let dir = options.dir.clone().or_else(default_dir);
    let dir = dir.ok_or_else(|| no_dir(address))?;
    FetchFolder::make(&dir, name)
        .map_err(|e| HelperError::of_path(&dir, e.to_string()).of_option("fetch_dir"))
}

fn no_dir(address: &StoreAddress) -> HelperError {
    let what = "neither XDG_CACHE_HOME nor HOME is set: give `fetch_dir`, the folder that \
                shards come to";
    HelperError::new(address.as_str(), what).of_option("fetch_dir")
}

/// Default folder, for data that can be downloaded again.
fn default_dir() -> Option<PathBuf> {
    Some(Index::user_cache()?.join("fetched"))
}

/// Space for an index of tars with this number of bytes; with a limit, at most a fraction of it.
fn room_for_index(bytes: u64, limit: Option<u64>) -> u64 {
    let most = on_disk(bytes / INDEX_PART);
    limit.map_or(most, |limit| most.min(limit / INDEX_OF_LIMIT))
}

/// Bytes of all indexes in the folder, for any reading options.
fn bytes_of_indexes(folder: &FetchFolder) -> u64 {
    let entries = fs::read_dir(folder.path()).into_iter().flatten().flatten();
    let kept = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(RemoteIndexBuilder::is_file_name)
    });
    total(kept.filter_map(|entry| Some(on_disk(entry.metadata().ok()?.len()))))
}

/// The tars that an address names, itself or by a pattern.
async fn named(
    address: &StoreAddress,
    options: &FetchOptions,
    patience: Duration,
) -> Result<(Store, TarList), HelperError> {
    let wrong = |what: &str| HelperError::new(address.as_str(), what);
    let all = shard_patterns::addresses(address.as_str())
        .map_err(|e| HelperError::new(address.as_str(), without(&e, address)))?;
    if let Some(other) = all.iter().find(|one| !one.ends_with(TAR_END)) {
        let what = "names no plain tar (.tar), but only plain tars can be read in place: name \
                    plain tars, or unpack them in the store";
        return Err(HelperError::new(other, what));
    }
    let Some((first, _)) = all.first().and_then(|one| one.rsplit_once('/')) else {
        return Err(wrong("names no shard"));
    };
    // The deepest common folder.
    let mut base = first;
    let is_in = |base: &str| {
        let mut rests = all.iter().map(|one| one.strip_prefix(base));
        rests.all(|rest| rest.is_some_and(|rest| rest.starts_with('/')))
    };
    while !is_in(base) {
        base = base.rsplit_once('/').map_or("", |(front, _)| front);
    }
    let base = StoreAddress::parse(base)
        .map_err(|_| wrong("names shards in several buckets: name shards of one bucket"))?;
    let store = Store::open(&base, options.allow_redirects)?;
    let objects = all.iter().map(|one| &one[base.as_str().len() + 1..]);
    let heads = objects.map(|below| {
        let store = &store;
        async move {
            let path = store.object(below)?;
            let mut patience = RetryPolicy::new(store.address().of(below), patience);
            let failure = |e: &_| store.failure(below, e);
            let found = patience.tries(failure, async || store.objects.head(&path).await);
            Ok(tar(below, &found.await?))
        }
    });
    let heads: Vec<_> = heads.collect();
    let shards = futures_util::stream::iter(heads).buffered(HEADS);
    let shards: Vec<TarShard> = shards.try_collect().await?;
    let list = TarList::new(base.clone(), shards);
    Ok((store, list))
}

fn stores_of(listed: &Index, options: &FetchOptions) -> AddressStores {
    let redirects = options.allow_redirects;
    let dir = options.dir.clone().or_else(default_dir);
    let answers = dir.and_then(|dir| answers_file::answers_file(&dir, listed, redirects));
    AddressStores::new(redirects, options.leaves_out, answers)
}

/// Packs of the objects at the addresses of a list.
async fn asked(
    (address, stores): (&StoreAddress, &AddressStores),
    listed: &Index,
    options: &FetchOptions,
    progress: &dyn Fn(String),
) -> Result<(TarList, Lease), HelperError> {
    let dir = options.dir.clone().or_else(default_dir);
    let dir = dir.ok_or_else(|| no_dir(address))?;
    let told = |told: AskProgress| match told {
        AskProgress::Asked {
            asked,
            all,
            dead,
            slow: (hosts, waiting),
        } => {
            let slow = match hosts {
                0 => String::new(),
                _ => format!(", {waiting} wait for {hosts} hosts that ask for fewer requests"),
            };
            progress(format!(
                "{asked} of {all} addresses have an answer, {dead} are dead{slow}"
            ));
        }
        AskProgress::Silent { silent, all } => progress(format!(
            "{silent} of {all} addresses give no answer, and are left out. The next run asks for them \
             again"
        )),
        AskProgress::Waits { seconds } => progress(format!(
            "another process asks for these addresses, and this one has waited for it for \
             {seconds} s"
        )),
    };
    let place = (dir.as_path(), address.as_str());
    let asked = asked_addresses::objects(listed, stores, place, options, &told).await?;
    let list = TarList::of_addresses(address.clone(), asked.objects);
    Ok((list, asked.in_use))
}

/// The text of an error without the address, which is added again.
fn without(e: &Error, address: &StoreAddress) -> String {
    let text = e.to_string();
    let front = format!("{address}: ");
    text.strip_prefix(&front).unwrap_or(&text).to_owned()
}

/// The tars under an address, sorted by the bytes of their names. Without tars, packs of the images
/// under the address and in its folders.
async fn below(
    store: &Store,
    patience: Duration,
    progress: &dyn Fn(ListProgress),
) -> Result<TarList, HelperError> {
    let address = store.address();
    let neither = || {
        let what = "has neither a cache (manifest.json), nor tar shards (.tar), nor images: check \
                    the address";
        HelperError::new(address.as_str(), what)
    };
    if address.as_str().starts_with("http") {
        let what = "is not there, and a web server lists no shards or images: check the address of the \
                    cache, or name shards by braces (train-{000..146}.tar)";
        return Err(HelperError::new(address.of(CACHE_MANIFEST), what));
    }
    let found = listing::tars(store, patience, progress).await?;
    let ListedTars { mut shards, images } = found.unwrap_or_default();
    if shards.is_empty() {
        let (objects, names) = match images {
            Some(images) => images,
            None => listing::images(store, patience, progress).await?,
        };
        if objects.is_empty() {
            return Err(neither());
        }
        return Ok(TarList::of_packs(address.clone(), objects, names));
    }
    shards.sort_by(|a, b| a.object.cmp(&b.object));
    Ok(TarList::new(address.clone(), shards))
}
