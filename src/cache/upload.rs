//! Uploads a cache to an object store while it is built: the shards that the store has, and those
//! on their way.
//!
//! Runs in the consumer. The uploader process (`remote/upload`) sends the bytes. The folder on this
//! machine is a stage: the tar of a shard is removed from it when the store has the shard.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::changes;
use crate::cache::layout::{INDEX, ShardFile, remove_file, shard_name};
use crate::cache::options::BuildPart;
use crate::cache::report::SendReport;
use crate::data::shard::manifest::{CACHE_MANIFEST, CacheManifest, HexHash128, Manifest};
use crate::error::{Error, Result};
use crate::remote::fetch::StoreAddress;
use crate::remote::upload::messages::{MOST_NAMES, UploadReply, UploadRequest};
use crate::remote::upload::uploader::{CacheUploader, unexpected};
use crate::sys::atomic_file::create_temporary;
use crate::sys::whole_file;

/// Shards that may wait for their upload while the next one is built.
pub(super) const MOST_WAITING: u64 = 2;

/// How long one wait for a shard takes at most.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// The state of the store's manifest before the first shard is uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredManifest {
    /// There is none, or one with this hash that is to be replaced.
    ToBegin(Option<HexHash128>),
    /// This build's first manifest, with this hash.
    Begun(HexHash128),
}

/// A cache that is being uploaded.
#[derive(Debug)]
pub(super) struct CacheUpload {
    sender: CacheUploader,
    stage: PathBuf,
    start: StoredManifest,
    /// Whether existing objects are replaced.
    replace: bool,
    /// If a cache is replaced: the number of shards in its manifest.
    replaced: Option<u64>,
    /// Numbers of the shards in the store, with the bytes of their tars.
    up: BTreeMap<u64, u64>,
    /// Shards on their way, by name: number, and bytes of the tar.
    waiting: BTreeMap<String, (u64, u64)>,
}

impl CacheUpload {
    /// Starts the uploader for `address`, with the shards of the folder `stage`.
    ///
    /// # Errors
    /// When the helper cannot upload, or the address cannot hold objects.
    pub(super) fn open(
        address: StoreAddress,
        helper: Option<PathBuf>,
        stage: &Path,
        replace: bool,
    ) -> Result<Self> {
        Ok(Self {
            sender: CacheUploader::open(address, helper)?,
            stage: stage.to_owned(),
            start: StoredManifest::ToBegin(None),
            replace,
            replaced: None,
            up: BTreeMap::new(),
            waiting: BTreeMap::new(),
        })
    }

    pub(super) fn address(&self) -> &StoreAddress {
        self.sender.address()
    }

    /// The manifest in the store, if this build continues it or it is complete. `None` if there is
    /// none, or if it is replaced.
    ///
    /// # Errors
    /// A cache with other options or another source, unless it may be replaced. Files of a cache
    /// without a manifest.
    pub(super) fn existing_manifest(
        &mut self,
        wanted: &CacheManifest,
        part: BuildPart,
    ) -> Result<Option<CacheManifest>> {
        let mut found = self.manifest()?;
        if found.is_none()
            && let Some(name) = self.first_file()?
        {
            // Another share may have uploaded both since. It uploads its manifest first.
            found = self.manifest()?;
            if found.is_none() {
                return Err(Error::dataset(
                    self.address().as_str(),
                    format!(
                        "holds {name} and no manifest.json, so it may not be a cache: name \
                         another address"
                    ),
                ));
            }
        }
        let Some((there, hash)) = found else {
            return Ok(None);
        };
        let changed = changes::list_changes(&there, wanted);
        if changed.is_empty() && !self.replace {
            self.start = StoredManifest::Begun(hash);
            return Ok(Some(there));
        }
        // As in a folder: if no shard is complete, replacing loses nothing.
        let alone = part == BuildPart::All;
        if self.replace || (alone && !there.complete && !self.has(&ShardFile::Manifest.name(0))?) {
            self.start = StoredManifest::ToBegin(Some(hash));
            self.replaced = Some(there.shards.len() as u64);
            return Ok(None);
        }
        let address = self.address().as_str().as_ref();
        Err(changes::mismatch_error(address, "address", &changed))
    }

    /// The cache's manifest in the store, with the hash of its bytes; `None` if there is none.
    ///
    /// # Errors
    /// A manifest that is damaged, or of something else.
    fn manifest(&mut self) -> Result<Option<(CacheManifest, HexHash128)>> {
        let file = create_temporary(&self.stage.join(CACHE_MANIFEST))?;
        let request = UploadRequest::Get {
            name: CACHE_MANIFEST.to_owned(),
            to: file.path().to_owned(),
        };
        if !self.found(&request)? {
            return Ok(None);
        }
        let bytes = whole_file::read(file.path(), CacheManifest::MOST_BYTES)?;
        let manifest = CacheManifest::from_bytes(&bytes).map_err(|damage| {
            Error::dataset(
                self.address().of(CACHE_MANIFEST),
                format!(
                    "{damage}. It is not replaced: name another address, or remove this object"
                ),
            )
        })?;
        Ok(Some((manifest, HexHash128::of(&bytes))))
    }

    fn found(&mut self, request: &UploadRequest) -> Result<bool> {
        match self.sender.call(request)? {
            UploadReply::Found(found) => Ok(found),
            other => Err(unexpected(&other)),
        }
    }

    fn has(&mut self, name: &str) -> Result<bool> {
        let name = name.to_owned();
        self.found(&UploadRequest::Has { name })
    }

    /// The name of a file of a cache in the store: of the first shard, or the index.
    fn first_file(&mut self) -> Result<Option<String>> {
        let [manifest, tar] = [ShardFile::Manifest, ShardFile::Tar].map(|file| file.name(0));
        for name in [manifest, tar, INDEX.to_owned()] {
            if self.has(&name)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Finds out which of these shards are in the store. With `in_turn`, stops at the first that is
    /// absent. Returns `Break` if `watch` ended the build.
    pub(super) fn find_stored(
        &mut self,
        mut shards: Range<u64>,
        in_turn: bool,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        const AT_A_TIME: u64 = 64;
        const _: () = assert!(AT_A_TIME <= MOST_NAMES as u64);
        while !shards.is_empty() {
            let end = shards.end.min(shards.start.saturating_add(AT_A_TIME));
            let request = UploadRequest::Look {
                folder: self.stage.clone(),
                shards: (shards.start..end).map(shard_name).collect(),
            };
            let there = match self.sender.call(&request)? {
                UploadReply::There(there) if there.len() as u64 == end - shards.start => there,
                other => return Err(unexpected(&other)),
            };
            for (number, bytes) in (shards.start..end).zip(there) {
                match bytes {
                    Some(bytes) => self.mark_stored(number, bytes)?,
                    None if in_turn => return Ok(ControlFlow::Continue(())),
                    None => {}
                }
            }
            shards.start = end;
            if watch().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Bytes of the tar of a shard in the store; `None` if it is not there.
    pub(super) fn stored_bytes(&self, number: u64) -> Option<u64> {
        self.up.get(&number).copied()
    }

    /// Starts the upload of a shard of the stage, unless it is in the store or on its way.
    ///
    /// # Errors
    /// When another process has begun a cache there meanwhile.
    pub(super) fn upload_shard(&mut self, number: u64, bytes: u64) -> Result<()> {
        if !self.up.contains_key(&number) {
            self.put(number, bytes, self.replace)?;
        }
        Ok(())
    }

    /// Uploads a shard again, because its manifest has changed.
    pub(super) fn replace_shard(&mut self, number: u64, bytes: u64) -> Result<()> {
        while self.waiting.contains_key(&shard_name(number)) {
            self.receive_replies(LOOK)?;
        }
        self.put(number, bytes, true)
    }

    fn put(&mut self, number: u64, bytes: u64, replace: bool) -> Result<()> {
        let shard = shard_name(number);
        if self.waiting.contains_key(&shard) {
            return Ok(());
        }
        if let StoredManifest::ToBegin(over) = self.start {
            self.begin(over)?;
        }
        let request = UploadRequest::Send {
            folder: self.stage.clone(),
            shard: shard.clone(),
            replace,
        };
        self.waiting.insert(shard.clone(), (number, bytes));
        self.sender.send_shard(shard, request)
    }

    /// Writes the first manifest to the store, before the first shard.
    fn begin(&mut self, over: Option<HexHash128>) -> Result<()> {
        let (manifest, _) = CacheManifest::read(&self.stage.join(CACHE_MANIFEST))?;
        let bytes = manifest.begun().to_bytes()?;
        let file = create_temporary(&self.stage.join(CACHE_MANIFEST))?;
        fs::write(file.path(), &bytes).map_err(|e| Error::io_at("write", file.path(), e))?;
        let request = UploadRequest::Begin {
            from: file.path().to_owned(),
            over,
        };
        match self.sender.call(&request)? {
            UploadReply::Begun(true) => {}
            UploadReply::Begun(false) => {
                return Err(Error::dataset(
                    self.address().as_str(),
                    "another process has begun a cache here: if its options are the same, run the \
                     same command to continue it",
                ));
            }
            other => return Err(unexpected(&other)),
        }
        self.start = StoredManifest::Begun(HexHash128::of(&bytes));
        Ok(())
    }

    /// Whether too many shards wait to build more.
    pub(super) fn is_behind(&self) -> bool {
        self.sender.waiting() as u64 > MOST_WAITING
    }

    pub(super) fn is_done(&self) -> bool {
        self.sender.waiting() == 0
    }

    /// Waits up to `limit` for an upload to end, and records it.
    ///
    /// # Errors
    /// When the store rejects the upload.
    pub(super) fn receive_replies(&mut self, limit: Duration) -> Result<()> {
        let Some(shard) = self.sender.next_uploaded(limit)? else {
            return Ok(());
        };
        let Some((number, bytes)) = self.waiting.remove(&shard) else {
            return Err(Error::protocol(format!(
                "{shard} was uploaded without a request"
            )));
        };
        self.mark_stored(number, bytes)
    }

    /// Records that a shard is in the store. Removes its tar from the stage, but keeps its
    /// manifest, which is read again.
    fn mark_stored(&mut self, number: u64, bytes: u64) -> Result<()> {
        self.up.insert(number, bytes);
        remove_file(&ShardFile::Tar.path(&self.stage, number))
    }

    /// Waits until all uploads have ended.
    ///
    /// # Errors
    /// When the store rejects an upload.
    fn wait(&mut self) -> Result<()> {
        while !self.is_done() {
            self.receive_replies(LOOK)?;
        }
        Ok(())
    }

    /// Removes shards from the store.
    ///
    /// # Errors
    /// When the store rejects the request.
    pub(super) fn remove(&mut self, numbers: impl IntoIterator<Item = u64>) -> Result<()> {
        self.wait()?;
        let numbers: Vec<u64> = numbers.into_iter().collect();
        for some in numbers.chunks(MOST_NAMES) {
            let shards = some.iter().copied().map(shard_name).collect();
            match self.sender.call(&UploadRequest::Remove { shards })? {
                UploadReply::Done => {}
                other => return Err(unexpected(&other)),
            }
            for number in some {
                self.up.remove(number);
            }
        }
        Ok(())
    }

    /// Removes all shards from number `shards` on. `named` is the number of shards in the replaced
    /// manifest. Also removes consecutive shards after those, because the manifest of an unfinished
    /// cache lists none.
    ///
    /// # Errors
    /// When the store rejects a request.
    fn remove_from(&mut self, shards: u64, named: u64) -> Result<()> {
        self.remove(shards..named)?;
        let mut number = shards.max(named);
        while self.has(&ShardFile::Tar.name(number))? {
            self.remove([number])?;
            number += 1;
        }
        Ok(())
    }

    /// Uploads index and manifest, after all `shards` shards. Then removes the remaining shards of
    /// a replaced cache.
    ///
    /// # Errors
    /// When the store rejects a request, or its manifest is no longer that of this build.
    pub(super) fn finish(&mut self, shards: u64) -> Result<()> {
        self.wait()?;
        let over = match self.start {
            StoredManifest::Begun(hash) => hash,
            StoredManifest::ToBegin(over) => {
                self.begin(over)?;
                return self.finish(shards);
            }
        };
        let request = UploadRequest::End {
            folder: self.stage.clone(),
            over,
            replace: self.replace,
        };
        match self.sender.call(&request)? {
            UploadReply::Ended(counts) => self.sender.counts = self.sender.counts + counts,
            other => return Err(unexpected(&other)),
        }
        match self.replaced {
            Some(named) => self.remove_from(shards, named),
            None => Ok(()),
        }
    }

    /// The report of the upload so far.
    pub(super) fn report(&self) -> SendReport {
        let counts = self.sender.counts;
        SendReport {
            shards_up: self.up.len() as u64,
            objects: counts.objects,
            bytes: counts.bytes,
            retries: counts.retries,
            deaths: self.sender.total_deaths(),
        }
    }
}
