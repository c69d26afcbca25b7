//! A large object, in parts: few in memory at a time, each tried again by itself.
//!
//! In the sender. What was begun and is not ended is known (`OpenUpload`), so that it can be aborted:
//! a store keeps the parts of an upload, and bills them, until it ends.

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

/// Bytes of a part; more only where there would be too many of them.
pub(super) const PART: u64 = 8 << 20;
/// Parts of an object, at most.
const MOST_PARTS: u64 = 10_000;
/// Parts that are in memory, and on their way.
const AT_A_TIME: usize = 4;
/// How long the end of an upload that is given up may take.
const ABORT_LIMIT: Duration = Duration::from_secs(2);

/// An upload that was begun.
type MultipartUpload = (Arc<dyn MultipartStore>, Path, MultipartId);

/// The upload that was begun and is not ended: one at a time.
#[derive(Clone, Default)]
pub(super) struct OpenUpload(Rc<RefCell<Option<MultipartUpload>>>);

impl OpenUpload {
    /// Ends it without an object, where that is possible. One that does not end so is left to
    /// the bucket's rule for uploads that nobody ended.
    pub(super) async fn abort(&self) {
        let begun = self.0.borrow_mut().take();
        if let Some((store, path, id)) = begun {
            let aborted = store.abort_multipart(&path, &id);
            let _ = tokio::time::timeout(ABORT_LIMIT, aborted).await;
        }
    }
}

/// A file that is to become an object.
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
        self.failed(
            "its bytes are not those that its manifest names: remove this folder, and build again",
        )
    }

    /// Its parts, read one behind the other.
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
    /// Bytes that are not those of the manifest.
    fn check(&self) -> Result<(), HelperError> {
        match HexHash128(self.hasher.finish_128()) == self.of.hash {
            true => Ok(()),
            false => Err(self.of.damaged()),
        }
    }
}

/// Puts a file in the place of the object `name`.
///
/// # Errors
/// What the store does not take; a file that is not what it should be.
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

/// Tries something until it is done.
async fn tried<T>(
    store: &Store,
    name: &str,
    retries: &Cell<u64>,
    does: impl AsyncFnMut() -> object_store::Result<T>,
) -> Result<T, HelperError> {
    let mut patience = RetryPolicy::sending(store.address().of(name), PATIENCE);
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
        // Read here, in turn; sent some at a time.
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
            // Its answer to the last try was lost, where the object is there.
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

/// The same in a store that takes one part behind the other, and none of them again.
async fn in_turn(
    store: &Store,
    name: &str,
    whole: &UploadFile<'_>,
    (retries, sent): (&Cell<u64>, &TransferProgress),
) -> Result<(), HelperError> {
    let path = store.path(name);
    let mut patience = RetryPolicy::sending(store.address().of(name), PATIENCE);
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
        // What is left of it is in nobody's way.
        let _ = upload.abort().await;
        patience.after(failure).await?;
        retries.set(retries.get() + 1);
    }
}
