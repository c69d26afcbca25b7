//! Downloads one object, with retries: small ones into memory, a shard into its file.
//!
//! Runs in the fetcher. An interrupted shard is continued, even after the fetcher died. It gets its
//! name only after its checksum was verified. A tar without an index has no checksum: its object
//! must be the one that was listed. A file of an earlier run is verified by the checksum recorded
//! at its download.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{
    Error as StoreError, Extensions, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt,
};
use tokio::sync::{OnceCell, Semaphore};

use crate::data::shard::manifest::{HexHash128, Manifest, ShardManifest};
use crate::remote::fetch::former_objects::FormerObjects;
use crate::remote::fetch::object_pack::PackedObject;
use crate::remote::fetch::part_file::{PartFile, not_written};
use crate::remote::helper::messages::HelperError;
use crate::remote::store::address_stores::AddressStores;
use crate::remote::store::client::{Store, StoreFailure};
use crate::remote::store::ranges;
use crate::remote::store::ranges::{NO_RANGES, is_no_range};
use crate::remote::store::retry_policy::{PATIENCE, RetryPolicy};
use crate::sys::memory;
use crate::sys::whole_file::too_long;

/// Most bytes of an index in memory: that of 200 million samples takes less.
const MOST_OF_INDEX: u64 = 8 << 30;

/// Fingerprint of an object as text. It changes with the bytes.
pub(super) fn fingerprint_of(meta: &ObjectMeta) -> String {
    match &meta.e_tag {
        // Some stores omit the quotes in a listing.
        Some(tag) => tag.trim_start_matches("W/").trim_matches('"').to_owned(),
        // Listings may have fractions of seconds, and responses have none.
        None => meta.last_modified.timestamp().to_string(),
    }
}

/// Most bytes of an index here, because it is in memory twice for a moment.
pub(super) fn most_of_index() -> u64 {
    memory::available_bytes().map_or(MOST_OF_INDEX, |bytes| MOST_OF_INDEX.min(bytes / 2))
}

/// Downloads an object of at most `most` bytes. `patience` is shorter at the start of a run.
///
/// # Errors
/// A permanent failure, or too many.
pub(super) async fn small(
    store: &Store,
    name: &str,
    most: u64,
    patience: Duration,
) -> Result<Vec<u8>, HelperError> {
    let found = small_if_there(store, name, most, patience).await?;
    found.ok_or_else(|| store.missing(name))
}

/// Like [`small`], but returns `None` if the object does not exist.
///
/// # Errors
/// A permanent failure, or too many.
pub(crate) async fn small_if_there(
    store: &Store,
    name: &str,
    most: u64,
    patience: Duration,
) -> Result<Option<Vec<u8>>, HelperError> {
    let longer = |bytes| too_long(bytes, most);
    let object = store.path(name);
    let found = whole_object(store, (&object, name), most, &longer, patience);
    Ok(found.await?.map(|object| object.bytes))
}

/// A downloaded object.
pub(super) struct WholeObject {
    pub(super) bytes: Vec<u8>,
    /// Fingerprint that changes with the bytes.
    pub(super) state: String,
    pub(super) retries: u64,
}

/// Downloads an object of at most `most` bytes into memory. `None` if it does not exist. `name` is
/// its name in error texts, `longer` the text for an object with more bytes.
///
/// # Errors
/// A longer object, or a permanent failure, or too many.
pub(super) async fn whole_object(
    store: &Store,
    (object, name): (&Path, &str),
    most: u64,
    longer: &(dyn Fn(u64) -> String + Sync),
    patience: Duration,
) -> Result<Option<WholeObject>, HelperError> {
    let about = store.address_of(name);
    let mut patience = match store.is_web() {
        true => RetryPolicy::of_web(about, patience),
        false => RetryPolicy::new(about, patience),
    };
    let mut bytes = Vec::new();
    let mut tag: Option<String> = None;
    // The object that the bytes belong to.
    let mut first: Option<ObjectMeta> = None;
    loop {
        let options = GetOptions {
            range: (!bytes.is_empty()).then_some(GetRange::Offset(bytes.len() as u64)),
            if_match: tag.clone().filter(|tag| !tag.starts_with("W/")),
            ..GetOptions::default()
        };
        let failure = match store.objects.get_opts(object, options).await {
            Err(e @ StoreError::NotFound { .. }) => {
                return store.no_bucket(name, &e).map_or(Ok(None), Err);
            }
            Err(e) if !bytes.is_empty() && is_no_range(&e) => {
                bytes.clear();
                StoreFailure::Transient(NO_RANGES.to_owned())
            }
            Err(e) => store.failure(name, &e),
            Ok(found)
                if first
                    .as_ref()
                    .is_some_and(|first| is_other_object(first, &found)) =>
            {
                bytes.clear();
                (first, tag) = (None, None);
                StoreFailure::Transient("it was overwritten meanwhile".to_owned())
            }
            Ok(found) if found.meta.size > most => {
                let what = longer(found.meta.size);
                return Err(HelperError::new(store.address_of(name), what));
            }
            Ok(found) => {
                tag = tag.or_else(|| found.meta.e_tag.clone());
                let size = first.get_or_insert_with(|| found.meta.clone()).size;
                patience.set_size(size);
                bytes.reserve_exact((size as usize).saturating_sub(bytes.len()));
                let mut pieces = found.into_stream();
                let mut ended = StoreFailure::Transient("the response ended early".to_owned());
                while let Some(piece) = pieces.next().await {
                    match piece {
                        Ok(piece) => {
                            // At most the announced number.
                            let left = size.saturating_sub(bytes.len() as u64);
                            let left = left.min(piece.len() as u64) as usize;
                            bytes.extend_from_slice(&piece[..left]);
                            patience.record_progress(left as u64, bytes.len() as u64)?;
                        }
                        Err(e) => {
                            ended = interrupted(store, name, &e);
                            break;
                        }
                    }
                }
                if bytes.len() as u64 >= size {
                    let state = first.as_ref().map(fingerprint_of).unwrap_or_default();
                    return Ok(Some(WholeObject {
                        bytes,
                        state,
                        retries: patience.retries,
                    }));
                }
                ended
            }
        };
        patience.after(failure).await?;
    }
}

/// Interprets an interrupted response. The client requests the rest by itself, even if the server
/// does not support ranges.
fn interrupted(store: &Store, name: &str, e: &StoreError) -> StoreFailure {
    match is_no_range(e) {
        true => StoreFailure::Transient(NO_RANGES.to_owned()),
        false => store.failure(name, e),
    }
}

/// Whether a response is for another object than the first one.
fn is_other_object(first: &ObjectMeta, found: &GetResult) -> bool {
    ranges::is_other_length(first.size, found.meta.size, &found.extensions)
        || fingerprint_of(first) != fingerprint_of(&found.meta)
}

/// The size of an optional object. If access to it is denied, it counts as missing.
///
/// # Errors
/// The store does not answer.
pub(super) async fn length_if_offered(
    store: &Store,
    name: &str,
    patience: Duration,
) -> Result<Option<u64>, HelperError> {
    let mut retries = RetryPolicy::new(store.address().of(name), patience);
    loop {
        match store.objects.head(&store.path(name)).await {
            Ok(meta) => return Ok(Some(meta.size)),
            Err(StoreError::NotFound { .. }) => return Ok(None),
            // Without permission to list, a missing object is reported as forbidden.
            Err(e) => match store.failure(name, &e) {
                StoreFailure::Permanent(_) => return Ok(None),
                passing => retries.after(passing).await?,
            },
        }
    }
}

/// A shard of a data set.
#[derive(Debug, Clone)]
pub(super) struct RemoteShard {
    /// Name of its file here, without extension.
    pub(super) name: String,
    pub(super) object: Path,
    /// Name of the object below the store's address, for people.
    pub(super) below: String,
    pub(super) bytes: u64,
    pub(super) check: ShardCheck,
}

/// How its bytes are verified.
#[derive(Debug, Clone)]
pub(super) enum ShardCheck {
    /// A shard of a cache: by its manifest, which has this checksum.
    Manifest(HexHash128),
    /// A tar: by the fingerprint of its object, and by its checksum after it was indexed.
    Tar {
        state: String,
        hash: Option<HexHash128>,
    },
    /// A pack of these objects.
    Objects(Arc<[PackedObject]>),
}

impl RemoteShard {
    /// Whether its bytes can be verified before they are used.
    pub(super) fn has_checksum(&self) -> bool {
        let has_none = matches!(self.check, ShardCheck::Tar { hash: None, .. });
        !has_none && !matches!(self.check, ShardCheck::Objects(_))
    }

    /// How the object differs from the expected one, by a response, and what to do. `None` if it
    /// does not.
    fn difference(&self, now: &ObjectMeta, answer: &Extensions) -> Option<String> {
        let (is_other_object, before) = match &self.check {
            ShardCheck::Manifest(_) => (false, "the manifest says"),
            ShardCheck::Tar { state, .. } => (*state != fingerprint_of(now), "it was listed with"),
            // Each object is compared by itself.
            ShardCheck::Objects(_) => (false, "it was listed with"),
        };
        let changed = self.check.changed();
        match !ranges::is_other_length(self.bytes, now.size, answer) {
            false => Some(format!(
                "has {} bytes, and {before} {}: {changed}",
                now.size, self.bytes
            )),
            true => is_other_object.then(|| format!("differs from the listed object: {changed}")),
        }
    }
}

impl ShardCheck {
    fn changed(&self) -> &'static str {
        match self {
            Self::Manifest(_) => {
                "the cache was built again meanwhile, start the run again; or it is damaged, \
                 build the cache again"
            }
            Self::Tar { .. } => {
                "it was overwritten meanwhile: run `featherload index` for the address again"
            }
            Self::Objects(_) => "an object was overwritten meanwhile: start the run again",
        }
    }
}

/// Checksum of a shard; `None` if it is not known yet.
///
/// # Errors
/// The shard's manifest is not the one in the cache's manifest.
pub(super) async fn hash_of(
    store: &Store,
    shard: &RemoteShard,
) -> Result<Option<HexHash128>, HelperError> {
    let of_manifest = match &shard.check {
        ShardCheck::Manifest(hash) => *hash,
        ShardCheck::Tar { hash, .. } => return Ok(*hash),
        ShardCheck::Objects(_) => return Ok(None),
    };
    let name = format!("{}.json", shard.name);
    let bytes = small(store, &name, ShardManifest::MOST_BYTES, PATIENCE).await?;
    let changed = || {
        HelperError::new(
            store.address().of(&name),
            "is not the one that the cache's manifest names: the cache was built again meanwhile, \
             start the run again; or it is damaged, build the cache again",
        )
    };
    if HexHash128::of(&bytes) != of_manifest {
        return Err(changed());
    }
    let manifest = ShardManifest::from_bytes(&bytes).map_err(|_| changed())?;
    match manifest.bytes == shard.bytes {
        true => Ok(Some(manifest.hash)),
        false => Err(changed()),
    }
}

/// A shard to download.
#[derive(Debug)]
pub(super) struct ShardDownload {
    pub(super) store: Store,
    /// The stores of a list of addresses.
    pub(super) others: Option<Arc<AddressStores>>,
    pub(super) shard: RemoteShard,
    /// Its checksum, if known.
    pub(super) hash: Option<HexHash128>,
    /// Its checksum at the last download.
    pub(super) recorded: Option<HexHash128>,
    /// One shard at a time is verified.
    pub(super) comparing: Arc<Semaphore>,
    /// Objects in packs of other lists, once one is needed.
    pub(super) former: Arc<OnceCell<FormerObjects>>,
    /// Room for objects of packs in memory, for all packs.
    pub(super) object_room: Arc<Semaphore>,
    pub(super) part: PathBuf,
    pub(super) whole: PathBuf,
}

/// A downloaded shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct DownloadedShard {
    pub(super) hash: HexHash128,
    /// Whether the checksum was compared with that of store or index, not just the record.
    pub(super) is_checked: bool,
    /// Whether its local file had changed.
    pub(super) was_changed: bool,
    /// Received bytes.
    pub(super) bytes: u64,
    pub(super) retries: u64,
    /// Objects of a pack that could not be had. It has the reason in their places.
    pub(super) left_out: u64,
    /// Those that have changed since they were asked.
    pub(super) changed: u64,
}

/// The file of a shard before its download.
pub(super) enum OpenedPart {
    /// It is whole, and has the shard's name now.
    Whole(DownloadedShard),
    /// The checksum of its bytes, if they are as many as the shard's.
    Part(Box<PartFile>, Option<HexHash128>),
}

/// Opens the file of a shard. If it is whole and has the recorded checksum, it gets the shard's
/// name.
///
/// # Errors
/// The file cannot be read or renamed.
pub(super) async fn open_part(wanted: &ShardDownload) -> Result<OpenedPart, HelperError> {
    let opened = {
        // Without a local file there is nothing to verify.
        let is_here = fs::metadata(&wanted.part).is_ok_and(|meta| meta.len() > 0);
        let _turn = match is_here {
            // It is never closed.
            true => wanted.comparing.acquire().await.ok(),
            false => None,
        };
        PartFile::open(wanted.part.clone(), wanted.shard.bytes).await
    };
    let part = opened.map_err(|e| not_written(&wanted.part, &e))?;
    let left = (part.at == wanted.shard.bytes).then(|| part.hash());
    let is_as_recorded = left.is_some() && left == wanted.recorded;
    let of_index = match wanted.shard.check {
        ShardCheck::Tar { hash, .. } => hash,
        ShardCheck::Manifest(_) | ShardCheck::Objects(_) => None,
    };
    if let Some(hash) = left.filter(|_| is_as_recorded && (of_index.is_none() || of_index == left))
    {
        part.finish(&wanted.whole)?;
        return Ok(OpenedPart::Whole(DownloadedShard {
            hash,
            is_checked: false,
            was_changed: false,
            bytes: 0,
            retries: 0,
            left_out: 0,
            changed: 0,
        }));
    }
    Ok(OpenedPart::Part(Box::new(part), left))
}

/// Downloads a shard. If it is already here and complete, verifies its checksum.
///
/// # Errors
/// A permanent failure, or too many.
pub(super) async fn shard(wanted: ShardDownload) -> Result<DownloadedShard, HelperError> {
    let (part, left) = match open_part(&wanted).await? {
        OpenedPart::Whole(shard) => return Ok(shard),
        OpenedPart::Part(part, left) => (*part, left),
    };
    let has_changed = is_other_than_recorded(left, wanted.recorded);
    downloaded(&wanted, part)
        .await
        .map_err(|error| match has_changed {
            true => HelperError {
                what: format!(
                    "{} (the local file has changed since its download: {})",
                    error.what,
                    wanted.part.display()
                ),
                ..error
            },
            false => error,
        })
}

/// Whether the local bytes differ from the downloaded ones; false without a record.
fn is_other_than_recorded(here: Option<HexHash128>, recorded: Option<HexHash128>) -> bool {
    here.zip(recorded)
        .is_some_and(|(here, recorded)| here != recorded)
}

/// Downloads the rest of a shard, or all of it if the local part is not its beginning.
async fn downloaded(
    wanted: &ShardDownload,
    mut part: PartFile,
) -> Result<DownloadedShard, HelperError> {
    let ShardDownload {
        store,
        shard,
        hash,
        recorded,
        whole,
        ..
    } = wanted;
    let hash = match hash {
        Some(hash) => Some(*hash),
        None => hash_of(store, shard).await?,
    };
    let address = store.address().of(&shard.below);
    let failed = |e: &io::Error| not_written(whole, e);
    let was_there = part.at == shard.bytes;
    let mut may_be_stale = part.at > 0;
    // Without a checksum of the store, only the record tells whether the local part is valid.
    let mut was_changed =
        was_there && hash.is_none() && recorded.is_some_and(|recorded| recorded != part.hash());
    if was_changed {
        part.restart().map_err(|e| failed(&e))?;
    }
    let mut patience = RetryPolicy::new(address.clone(), PATIENCE);
    patience.set_size(shard.bytes);
    let mut tag: Option<String> = None;
    let mut sent = 0;
    let hash = loop {
        while part.at < shard.bytes {
            let options = GetOptions {
                range: (part.at > 0).then_some(GetRange::Offset(part.at)),
                // A weak tag does not identify bytes.
                if_match: tag.clone().filter(|tag| !tag.starts_with("W/")),
                ..GetOptions::default()
            };
            let failure = match store.objects.get_opts(&shard.object, options).await {
                Err(e) if part.at > 0 && is_no_range(&e) => {
                    part.restart().map_err(|e| failed(&e))?;
                    may_be_stale = false;
                    StoreFailure::Transient(NO_RANGES.to_owned())
                }
                Err(e) => store.failure(&shard.below, &e),
                Ok(found) => {
                    if let Some(what) = shard.difference(&found.meta, &found.extensions) {
                        return Err(HelperError::new(address, what));
                    }
                    tag = tag.or_else(|| found.meta.e_tag.clone());
                    let mut pieces = found.into_stream();
                    let mut ended = StoreFailure::Transient("the response ended early".to_owned());
                    while let Some(piece) = pieces.next().await {
                        match piece {
                            Ok(piece) => {
                                let left = (shard.bytes - part.at).min(piece.len() as u64);
                                let piece = &piece[..left as usize];
                                part.push(piece).map_err(|e| failed(&e))?;
                                sent += left;
                                patience.record_progress(left, part.at)?;
                            }
                            Err(e) => {
                                ended = interrupted(store, &shard.below, &e);
                                break;
                            }
                        }
                    }
                    ended
                }
            };
            if part.at < shard.bytes {
                patience.after(failure).await?;
            }
        }
        let found = part.hash();
        if hash.is_none_or(|hash| hash == found) {
            break found;
        }
        if !may_be_stale {
            let by = match shard.check {
                ShardCheck::Manifest(_) => "its manifest names",
                ShardCheck::Tar { .. } | ShardCheck::Objects(_) => "were indexed",
            };
            let what = format!(
                "its bytes are not those that {by}: {}",
                shard.check.changed()
            );
            return Err(HelperError::new(address, what));
        }
        // The part of another fetcher was of another object.
        may_be_stale = false;
        was_changed |= was_there;
        part.restart().map_err(|e| failed(&e))?;
    };
    part.finish(whole)?;
    Ok(DownloadedShard {
        hash,
        is_checked: true,
        was_changed,
        bytes: sent,
        retries: patience.retries,
        left_out: 0,
        changed: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_record_nobody_says_that_bytes_changed_here() {
        let (a, b) = (Some(HexHash128(1)), Some(HexHash128(2)));
        assert!(is_other_than_recorded(a, b));
        for (here, recorded) in [(a, a), (a, None), (None, a), (None, None)] {
            assert!(!is_other_than_recorded(here, recorded));
        }
    }

    #[test]
    fn an_object_of_the_same_length_that_was_written_again_is_another_one() {
        let shard = |check| RemoteShard {
            name: "a".to_owned(),
            object: Path::from("a.tar"),
            below: "a.tar".to_owned(),
            bytes: 7,
            check,
        };
        let meta = |size, tag: &str| ObjectMeta {
            location: Path::from("a.tar"),
            last_modified: Default::default(),
            size,
            e_tag: Some(tag.to_owned()),
            version: None,
        };
        let tar = shard(ShardCheck::Tar {
            state: fingerprint_of(&meta(7, "\"1\"")),
            hash: None,
        });
        let answer = Extensions::new();
        // A listing may leave quotes out.
        assert_eq!(tar.difference(&meta(7, "1"), &answer), None);
        let text = tar.difference(&meta(7, "\"2\""), &answer).unwrap();
        assert!(text.contains("listed object") && text.contains("overwritten"));
        let text = tar.difference(&meta(8, "\"1\""), &answer).unwrap();
        assert!(text.contains("has 8 bytes, and it was listed with 7"));
        // For a shard of a cache, the checksum decides.
        let of_cache = shard(ShardCheck::Manifest(HexHash128(0)));
        assert_eq!(of_cache.difference(&meta(7, "\"2\""), &answer), None);
        let text = of_cache.difference(&meta(8, "\"1\""), &answer).unwrap();
        assert!(text.contains("the manifest says 7") && text.contains("was built again"));
    }
}
