//! Uploads a large object in parts. Few are in memory at a time, and each is retried separately.
//!
//! Runs in the uploader. An unfinished upload is recorded (`OpenUpload`), so that it can be
//! aborted: a store keeps the parts, and bills them, until it ends.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{MultipartId, ObjectStoreExt, PutPayload};
use twox_hash::xxhash3_128::Hasher;

use crate::data::shard::manifest::HexHash128;
use crate::remote::helper::messages::HelperError;
use crate::remote::helper::progress::TransferProgress;
use crate::remote::store::client::{Store, StoreFailure};
use crate::remote::store::retry_policy::{PATIENCE, RetryPolicy};

/// Bytes of a part. Parts are larger only if there would be too many.
pub(super) const PART: u64 = 8 << 20;
/// Most parts of an object.
const MOST_PARTS: u64 = 10_000;
/// Parts that are uploaded in parallel.
const AT_A_TIME: usize = 4;
/// Time limit for aborting an upload.
const ABORT_LIMIT: Duration = Duration::from_secs(2);

/// A multipart upload.
type MultipartUpload = (Arc<dyn MultipartStore>, Path, MultipartId);

/// The unfinished upload; at most one at a time.
#[derive(Clone, Default)]
pub(super) struct OpenUpload(Rc<RefCell<Option<MultipartUpload>>>);

impl OpenUpload {
    /// Aborts the upload, if possible. Otherwise the bucket's rule for unfinished uploads applies.
    pub(super) async fn abort(&self) {
        let started = self.0.borrow_mut().take();
        if let Some((store, path, id)) = started {
            let aborted = store.abort_multipart(&path, &id);
            let _ = tokio::time::timeout(ABORT_LIMIT, aborted).await;
        }
    }
}

/// A file to upload.
pub(super) struct UploadFile<'a> {
    pub(super) path: &'a FilePath,
    pub(super) bytes: u64,
    pub(super) hash: HexHash128,
}

impl UploadFile<'_> {
    fn part(&self) -> u64 {
        self.bytes.div_ceil(MOST_PARTS).max(PART)
    }

    fn failed(&self, what: &str) -> HelperError {
        HelperError::of_path(self.path, what)
    }

    pub(super) fn damaged(&self) -> HelperError {
        self.failed("its bytes differ from its manifest: remove this folder, and build again")
    }

    /// Its parts, read in order.
    fn reader(&self) -> Result<PartReader<'_>, HelperError> {
        let opened = File::open(self.path);
        let file = opened.map_err(|e| self.failed(&format!("cannot be read: {e}")))?;
        Ok(PartReader {
            of: self,
            file,
            at: 0,
            hasher: Hasher::new(),
        })
    }
}

struct PartReader<'a> {
    of: &'a UploadFile<'a>,
    file: File,
    at: u64,
    hasher: Hasher,
}

impl PartReader<'_> {
    fn next(&mut self) -> Result<PutPayload, HelperError> {
        let left = (self.of.bytes - self.at).min(self.of.part());
        let mut piece = vec![0; left as usize];
        let read = self.file.read_exact_at(&mut piece, self.at);
        read.map_err(|e| self.of.failed(&format!("cannot be read: {e}")))?;
        self.hasher.write(&piece);
        self.at += left;
        Ok(PutPayload::from(piece))
    }

    /// # Errors
    /// The bytes differ from the manifest.
    fn check(&self) -> Result<(), HelperError> {
        match HexHash128(self.hasher.finish_128()) == self.of.hash {
            true => Ok(()),
            false => Err(self.of.damaged()),
        }
    }
}

/// Uploads a file as the object `name`.
///
/// # Errors
/// The store rejects it; the file is not what it should be.
pub(super) async fn put(
    store: &Store,
    open: &OpenUpload,
    name: &str,
    whole: &UploadFile<'_>,
    retries: &Cell<u64>,
) -> Result<(), HelperError> {
    let sent = TransferProgress::begin(store.address().of(name), Some(whole.bytes));
    let put = match &store.parts {
        Some(parts) => one_by_one(store, parts, open, name, whole, (retries, &sent)).await,
        None => in_turn(store, name, whole, (retries, &sent)).await,
    };
    if put.is_err() {
        open.abort().await;
    }
    put
}

/// Repeats something until it succeeds.
async fn tried<T>(
    store: &Store,
    name: &str,
    retries: &Cell<u64>,
    does: impl AsyncFnMut() -> object_store::Result<T>,
) -> Result<T, HelperError> {
    let mut patience = RetryPolicy::for_upload(store.address().of(name), PATIENCE);
    let failure = |e: &_| store.failure_to_send(name, e);
    let done = patience.tries(failure, does).await;
    retries.set(retries.get() + patience.retries);
    done
}

async fn one_by_one(
    store: &Store,
    parts: &Arc<dyn MultipartStore>,
    open: &OpenUpload,
    name: &str,
    whole: &UploadFile<'_>,
    (retries, sent): (&Cell<u64>, &TransferProgress),
) -> Result<(), HelperError> {
    let path = store.path(name);
    let id = tried(store, name, retries, async || {
        parts.create_multipart(&path).await
    });
    let id = &id.await?;
    *open.0.borrow_mut() = Some((parts.clone(), path.clone(), id.clone()));
    let mut reader = whole.reader()?;
    let numbers = 0..whole.bytes.div_ceil(whole.part()) as usize;
    let ids: Vec<PartId> = {
        let path = &path;
        // Read in order here, sent in parallel.
        let pieces = stream::iter(numbers).map(|number| (number, reader.next()));
        let sending = pieces.map(|(number, piece)| async move {
            let piece = piece?;
            let put = tried(store, name, retries, async || {
                parts.put_part(path, id, number, piece.clone()).await
            });
            let put = put.await?;
            sent.add_done(piece.content_length() as u64);
            Ok(put)
        });
        sending.buffered(AT_A_TIME).try_collect().await?
    };
    reader.check()?;
    let ended = tried(store, name, retries, async || {
        match parts.complete_multipart(&path, id, ids.clone()).await {
            // If the object exists, the answer to the last attempt was lost.
            Err(e @ object_store::Error::NotFound { .. }) => {
                match store.objects.head(&path).await {
                    Ok(found) if found.size == whole.bytes => Ok(()),
                    _ => Err(e),
                }
            }
            ended => ended.map(|_| ()),
        }
    });
    ended.await?;
    open.0.borrow_mut().take();
    Ok(())
}

/// The same for a store that takes parts in order and does not allow retries.
async fn in_turn(
    store: &Store,
    name: &str,
    whole: &UploadFile<'_>,
    (retries, sent): (&Cell<u64>, &TransferProgress),
) -> Result<(), HelperError> {
    let path = store.path(name);
    let mut patience = RetryPolicy::for_upload(store.address().of(name), PATIENCE);
    loop {
        let mut reader = whole.reader()?;
        let mut upload = match store.objects.put_multipart(&path).await {
            Ok(upload) => upload,
            Err(e) => {
                patience.after(store.failure_to_send(name, &e)).await?;
                continue;
            }
        };
        let put = async {
            while reader.at < whole.bytes {
                let part = reader.next();
                let part = part.map_err(StoreFailure::Permanent)?;
                let put = upload.put_part(part).await;
                put.map_err(|e| store.failure_to_send(name, &e))?;
                sent.set_done(reader.at);
            }
            reader.check().map_err(StoreFailure::Permanent)?;
            let ended = upload.complete().await;
            ended.map_err(|e| store.failure_to_send(name, &e))
        };
        let failure = match put.await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        // Remaining parts do no harm.
        let _ = upload.abort().await;
        patience.after(failure).await?;
        retries.set(retries.get() + 1);
    }
}
