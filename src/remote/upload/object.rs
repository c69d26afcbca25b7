//! Single objects of a store: exists, compare, upload if missing.
//!
//! Runs in the uploader. An existing object is replaced only on request. One with the same bytes
//! counts as uploaded.

use std::cell::Cell;
use std::path::Path as FilePath;
use std::time::Duration;

use futures_util::StreamExt;
use object_store::{Error as StoreError, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use twox_hash::xxhash3_128::Hasher;

use crate::data::shard::manifest::{
    CACHE_MANIFEST, CacheManifest, HexHash128, Manifest, ShardManifest,
};
use crate::remote::fetch::download;
use crate::remote::helper::messages::HelperError;
use crate::remote::helper::messages::TransferCounts;
use crate::remote::store::client::Store;
use crate::remote::store::retry_policy::{PATIENCE, PATIENCE_AT_FIRST, RetryPolicy};
use crate::remote::upload::parts;
use crate::remote::upload::parts::{OpenUpload, PART, UploadFile};
use crate::sys::atomic_file::replace_by;
use crate::sys::whole_file;

/// Most bytes of a small file: manifest and index of a shard.
const MOST_STAGED: u64 = ShardManifest::MOST_BYTES;

/// The objects of one cache.
pub(super) struct CacheObjects {
    store: Store,
    open: OpenUpload,
    /// Whether the store has ever answered. Then failures are retried for longer.
    answered: Cell<bool>,
    sent: Cell<(u64, u64)>,
    retries: Cell<u64>,
}

impl CacheObjects {
    pub(super) fn new(store: Store, open: OpenUpload) -> Self {
        Self {
            store,
            open,
            answered: Cell::new(false),
            sent: Cell::default(),
            retries: Cell::default(),
        }
    }

    /// Counts since the last call.
    pub(super) fn take_counts(&self) -> TransferCounts {
        let (objects, bytes) = self.sent.take();
        TransferCounts {
            objects,
            bytes,
            removed: 0,
            retries: self.retries.take(),
        }
    }

    /// An error about an object.
    pub(super) fn object_error(&self, name: &str, what: &str) -> HelperError {
        HelperError::new(self.store.address().of(name), what)
    }

    fn other_bytes(&self, name: &str) -> HelperError {
        self.object_error(
            name,
            "exists with other bytes, and is not replaced: name another address, or use `force` \
             to replace the cache",
        )
    }

    fn limit(&self) -> Duration {
        match self.answered.get() {
            true => PATIENCE,
            false => PATIENCE_AT_FIRST,
        }
    }

    fn patience(&self, name: &str) -> RetryPolicy {
        RetryPolicy::for_upload(self.store.address().of(name), self.limit())
    }

    /// Repeats a request until it succeeds.
    async fn tried<T>(
        &self,
        name: &str,
        does: impl AsyncFnMut() -> Result<T, StoreError>,
    ) -> Result<T, HelperError> {
        let mut patience = self.patience(name);
        let failure = |e: &_| self.store.failure_to_send(name, e);
        let done = patience.tries(failure, does).await;
        self.retries.set(self.retries.get() + patience.retries);
        self.answered.set(self.answered.get() || done.is_ok());
        done
    }

    /// Downloads a manifest; `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> Result<Option<Vec<u8>>, HelperError> {
        let most = match name == CACHE_MANIFEST {
            true => CacheManifest::MOST_BYTES,
            false => ShardManifest::MOST_BYTES,
        };
        let got = download::small_if_there(&self.store, name, most, self.limit()).await?;
        self.answered.set(true);
        Ok(got)
    }

    /// Downloads it into a file. Returns whether it exists.
    pub(super) async fn get_into(&self, name: &str, to: &FilePath) -> Result<bool, HelperError> {
        let Some(bytes) = self.get(name).await? else {
            return Ok(false);
        };
        let written = replace_by(to, &bytes);
        written.map_err(|e| HelperError::of_path(to, e.to_string()))?;
        Ok(true)
    }

    /// Size of an object in bytes; `None` if it does not exist.
    pub(super) async fn size(&self, name: &str) -> Result<Option<u64>, HelperError> {
        let path = self.store.path(name);
        let found = self.tried(name, async || match self.store.objects.head(&path).await {
            Err(StoreError::NotFound { .. }) => Ok(None),
            found => found.map(|found| Some(found.size)),
        });
        found.await
    }

    /// Whether an object has these bytes, by their hash. Reads all of it.
    async fn is(&self, name: &str, hash: HexHash128) -> Result<bool, HelperError> {
        let path = self.store.path(name);
        let mut patience = self.patience(name);
        loop {
            let failure = match self.store.objects.get(&path).await {
                Ok(found) => {
                    self.answered.set(true);
                    patience.set_size(found.meta.size);
                    let (mut hasher, mut reached) = (Hasher::new(), 0);
                    let mut pieces = found.into_stream();
                    loop {
                        match pieces.next().await {
                            None => return Ok(HexHash128(hasher.finish_128()) == hash),
                            Some(Ok(piece)) => {
                                hasher.write(&piece);
                                reached += piece.len() as u64;
                                patience.record_progress(piece.len() as u64, reached)?;
                            }
                            Some(Err(e)) => break self.store.failure_to_send(name, &e),
                        }
                    }
                }
                Err(e) => self.store.failure_to_send(name, &e),
            };
            patience.after(failure).await?;
            self.retries.set(self.retries.get() + 1);
        }
    }

    /// Whether an object has these bytes; `None` if it does not exist.
    async fn has(&self, name: &str, bytes: &[u8]) -> Result<Option<bool>, HelperError> {
        match self.size(name).await? {
            None => Ok(None),
            Some(there) if there != bytes.len() as u64 => Ok(Some(false)),
            Some(_) => self.is(name, HexHash128::of(bytes)).await.map(Some),
        }
    }

    /// Uploads bytes if there is no object, or one with the same bytes; with `replace` in any case.
    ///
    /// # Errors
    /// The object has other bytes; the store rejects it.
    pub(super) async fn put(
        &self,
        name: &str,
        bytes: &[u8],
        replace: bool,
    ) -> Result<(), HelperError> {
        match self.put_or_compare(name, bytes, replace).await? {
            true => Ok(()),
            false => Err(self.other_bytes(name)),
        }
    }

    /// Like [`CacheObjects::put`], but returns false if the object has other bytes, which stay.
    pub(super) async fn put_or_compare(
        &self,
        name: &str,
        bytes: &[u8],
        replace: bool,
    ) -> Result<bool, HelperError> {
        let path = self.store.path(name);
        let payload = PutPayload::from(bytes.to_vec());
        let put = async |mode: PutMode| {
            let put = self.tried(name, async || {
                let options = PutOptions::from(mode.clone());
                let put = self.store.objects.put_opts(&path, payload.clone(), options);
                match put.await {
                    Err(
                        e @ (StoreError::AlreadyExists { .. }
                        | StoreError::NotSupported { .. }
                        | StoreError::NotImplemented { .. }),
                    ) if mode == PutMode::Create => Ok(Some(e)),
                    put => put.map(|_| None),
                }
            });
            put.await
        };
        let mode = match replace {
            true => PutMode::Overwrite,
            false => PutMode::Create,
        };
        match put(mode).await? {
            None => {}
            Some(StoreError::AlreadyExists { .. }) => {
                return Ok(self.has(name, bytes).await? == Some(true));
            }
            // For a store that lacks conditional writes, according to the environment.
            Some(_) => match self.has(name, bytes).await? {
                Some(is_same) => return Ok(is_same),
                None => _ = put(PutMode::Overwrite).await?,
            },
        }
        self.count(bytes.len() as u64);
        Ok(true)
    }

    /// Like [`CacheObjects::put`], for a file of any length.
    ///
    /// # Errors
    /// Like [`CacheObjects::put`]; the file is not what it should be.
    pub(super) async fn put_file(
        &self,
        name: &str,
        whole: &UploadFile<'_>,
        replace: bool,
    ) -> Result<(), HelperError> {
        if whole.bytes <= PART {
            let bytes = read(whole.path)?;
            if HexHash128::of(&bytes) != whole.hash {
                return Err(whole.damaged());
            }
            return self.put(name, &bytes, replace).await;
        }
        if !replace {
            match self.size(name).await? {
                None => {}
                Some(bytes) if bytes == whole.bytes && self.is(name, whole.hash).await? => {
                    return Ok(());
                }
                Some(_) => return Err(self.other_bytes(name)),
            }
        }
        parts::put(&self.store, &self.open, name, whole, &self.retries).await?;
        self.count(whole.bytes);
        Ok(())
    }

    /// Deletes an object, if it exists.
    pub(super) async fn remove(&self, name: &str) -> Result<(), HelperError> {
        let path = self.store.path(name);
        let removed = self.tried(name, async || {
            match self.store.objects.delete(&path).await {
                Err(StoreError::NotFound { .. }) => Ok(()),
                removed => removed,
            }
        });
        removed.await
    }

    fn count(&self, bytes: u64) {
        let (objects, before) = self.sent.get();
        self.sent.set((objects + 1, before + bytes));
    }
}

/// Reads a file of this machine.
pub(super) fn read(path: &FilePath) -> Result<Vec<u8>, HelperError> {
    whole_file::read(path, MOST_STAGED)
        .map_err(|e| HelperError::of_path(path, format!("cannot be read: {e}")))
}
