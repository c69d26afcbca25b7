//! A cache that goes into an object store while it is built: which of its shards are there,
//! which are on their way.
//!
//! In the consumer; what is sent is the sender's business (`remote/upload`). The folder on this
//! machine is a stage: a shard's tar is removed from it once the shard is in the store.

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

/// Shards that may wait for the store while the next one is built.
pub(super) const MOST_WAITING: u64 = 2;

/// Between two looks whether a shard is there, while it is waited for.
pub(super) const LOOK: Duration = Duration::from_millis(50);

/// What the store's manifest is when the first shard goes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredManifest {
    /// None, or one of this hash, which makes room.
    ToBegin(Option<HexHash128>),
    /// This build's, which says that it is begun.
    Begun(HexHash128),
}

/// A cache on its way.
#[derive(Debug)]
pub(super) struct CacheUpload {
    sender: CacheUploader,
    stage: PathBuf,
    start: StoredManifest,
    /// Whether objects that are there are replaced.
    replace: bool,
    /// The number of shards that the manifest names of a cache which is replaced.
    replaced: Option<u64>,
    /// Shards that are in the store, with the bytes of their tars.
    up: BTreeMap<u64, u64>,
    /// On their way: number, and bytes of the tar.
    waiting: BTreeMap<String, (u64, u64)>,
}

impl CacheUpload {
    /// # Errors
    /// A helper that cannot send; an address that takes no objects.
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

    /// The manifest in the store whose build goes on, or is complete; none where there is none, or
    /// where what is there is replaced.
    ///
    /// # Errors
    /// A cache of other options or another source, unless it is to be replaced; files of a cache
    /// that is none.
    pub(super) fn existing_manifest(
        &mut self,
        wanted: &CacheManifest,
        part: BuildPart,
    ) -> Result<Option<CacheManifest>> {
        let mut found = self.manifest()?;
        if found.is_none()
            && let Some(name) = self.first_file()?
        {
            // Another share may have sent both since: its manifest goes first.
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
        // As in a folder: where no shard is complete, nothing is lost.
        let alone = part == BuildPart::All;
        if self.replace || (alone && !there.complete && !self.has(&ShardFile::Manifest.name(0))?) {
            self.start = StoredManifest::ToBegin(Some(hash));
            self.replaced = Some(there.shards.len() as u64);
            return Ok(None);
        }
        let address = self.address().as_str().as_ref();
        Err(changes::mismatch_error(address, "address", &changed))
    }

    /// The cache's manifest in the store, with the hash of its bytes; none where there is none.
    ///
    /// # Errors
    /// One that is damaged, or no cache's.
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
                format!("{damage}. It is not replaced: name another address, or remove it"),
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

    /// A file of a cache that is in the store: of shards from the first on, and the index.
    fn first_file(&mut self) -> Result<Option<String>> {
        let [manifest, tar] = [ShardFile::Manifest, ShardFile::Tar].map(|file| file.name(0));
        for name in [manifest, tar, INDEX.to_owned()] {
            if self.has(&name)? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Finds out which of these shards are in the store; ends at the first that is not, where
    /// none has a number of its own (`in_turn`). `Break` ends it.
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

    /// Bytes of a tar that is in the store.
    pub(super) fn stored_bytes(&self, number: u64) -> Option<u64> {
        self.up.get(&number).copied()
    }

    /// Has a shard of the stage go into the store, where it is not there or on its way.
    ///
    /// # Errors
    /// Another builder's cache that is there meanwhile.
    pub(super) fn upload_shard(&mut self, number: u64, bytes: u64) -> Result<()> {
        if !self.up.contains_key(&number) {
            self.put(number, bytes, self.replace)?;
        }
        Ok(())
    }

    /// The same of one that is there, whose manifest says more now.
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

    /// Says in the store by what its cache is built, before the first shard goes there.
    fn begin(&mut self, over: Option<HexHash128>) -> Result<()> {
        let (manifest, _) = CacheManifest::read(&self.stage.join(CACHE_MANIFEST))?;
        let begun = CacheManifest {
            complete: false,
            samples: 0,
            skipped: 0,
            shards: Vec::new(),
            index: None,
            ..manifest
        };
        let bytes = begun.to_bytes()?;
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
                    "another builder has begun a cache here meanwhile: the same command goes on \
                     with it, if its options are the same",
                ));
            }
            other => return Err(unexpected(&other)),
        }
        self.start = StoredManifest::Begun(HexHash128::of(&bytes));
        Ok(())
    }

    /// Whether so many shards wait that no more should be built.
    pub(super) fn is_behind(&self) -> bool {
        self.sender.waiting() as u64 > MOST_WAITING
    }

    pub(super) fn is_done(&self) -> bool {
        self.sender.waiting() == 0
    }

    /// Hears what came there, for `limit` at most.
    ///
    /// # Errors
    /// What the store does not take.
    pub(super) fn receive_replies(&mut self, limit: Duration) -> Result<()> {
        let Some(shard) = self.sender.next_uploaded(limit)? else {
            return Ok(());
        };
        let Some((number, bytes)) = self.waiting.remove(&shard) else {
            return Err(Error::protocol(format!(
                "{shard} went up, and was not sent"
            )));
        };
        self.mark_stored(number, bytes)
    }

    /// A shard is in the store. Its tar goes from the stage; its manifest is read again.
    fn mark_stored(&mut self, number: u64, bytes: u64) -> Result<()> {
        self.up.insert(number, bytes);
        remove_file(&ShardFile::Tar.path(&self.stage, number))
    }

    /// Waits until all is there.
    ///
    /// # Errors
    /// What the store does not take.
    fn wait(&mut self) -> Result<()> {
        while !self.is_done() {
            self.receive_replies(LOOK)?;
        }
        Ok(())
    }

    /// Removes shards from the store.
    ///
    /// # Errors
    /// What the store does not do.
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

    /// Removes what the store has behind so many shards: as many as its manifest had named, and
    /// those that stand behind each other there. The manifest of an unfinished cache names none.
    ///
    /// # Errors
    /// What the store does not do.
    fn remove_from(&mut self, shards: u64, named: u64) -> Result<()> {
        self.remove(shards..named)?;
        let mut number = shards.max(named);
        while self.has(&ShardFile::Tar.name(number))? {
            self.remove([number])?;
            number += 1;
        }
        Ok(())
    }

    /// Puts index and manifest there, after all `shards`, and removes what a cache that was
    /// replaced had more.
    ///
    /// # Errors
    /// What the store does not take; a manifest that is not this build's any more.
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

    /// What was done so far.
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
