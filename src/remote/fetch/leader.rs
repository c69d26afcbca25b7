//! The leader: tracks the content of the folder, downloads and deletes shards.
//!
//! Runs in one fetcher per folder at a time. Its state can be read from the folder, so the next
//! leader continues after its death.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;

use crate::data::shard::manifest::HexHash128;
use crate::error::Error;
use crate::remote::fetch::checksums::ShardChecksums;
use crate::remote::fetch::demand_file::RankDemand;
use crate::remote::fetch::disk_budget::{limit_error, room_of_ranks};
use crate::remote::fetch::download::{DownloadedShard, ShardDownload};
use crate::remote::fetch::folder::TROUBLE;
use crate::remote::fetch::former_objects::FormerObjects;
use crate::remote::fetch::heartbeat::LeaderLock;
use crate::remote::fetch::lease;
use crate::remote::fetch::pack_download;
use crate::remote::fetch::remote_dataset::DatasetFiles;
use crate::remote::fetch::schedule::{LeaderAction, LeaderView, ShardState};
use crate::remote::fetch::shard_space::on_disk;
use crate::remote::helper::messages::{HelperError, TransferCounts};

/// How long a shard may be needed while none can be deleted for it.
const STUCK: Duration = Duration::from_secs(10);

/// The fetcher that leads.
#[derive(Debug)]
pub(super) struct FolderLeader {
    files: DatasetFiles,
    places: Vec<ShardState>,
    /// Bytes of incomplete parts of an earlier fetcher.
    parts: Vec<u64>,
    /// Known checksums.
    hashes: Vec<Option<HexHash128>>,
    checksums: ShardChecksums,
    /// Held while a local shard is verified, so that the most urgent one is ready first.
    comparing: Arc<Semaphore>,
    /// Objects in packs of other lists.
    former: Arc<OnceCell<FormerObjects>>,
    /// Room for objects of packs in memory.
    object_room: Arc<Semaphore>,
    /// For the user, the oldest first.
    pub(super) warnings: VecDeque<String>,
    downloads: JoinSet<(usize, Result<DownloadedShard, HelperError>)>,
    /// Shards that cannot be downloaded, and why. Returned when one is needed.
    lost: Vec<(usize, HelperError)>,
    stuck: Option<Instant>,
    pub(super) counts: TransferCounts,
    /// Dropped last.
    right: LeaderLock,
}

impl FolderLeader {
    /// Takes over the folder, with the leader's lock.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn begin(files: DatasetFiles, right: LeaderLock) -> Result<Self, HelperError> {
        let folder = files.folder.clone();
        let failed =
            |e: io::Error| HelperError::of_path(folder.path(), format!("cannot be read: {e}"));
        let _ = fs::remove_file(folder.file(TROUBLE));
        // Of many shards few may be here, and each check takes time on some storage.
        let names = folder.names().map_err(failed)?;
        let length = |path: &Path| {
            if !path.file_name().is_some_and(|name| names.contains(name)) {
                return Ok(None);
            }
            match fs::symlink_metadata(path) {
                Ok(found) => Ok(Some(found.len())),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(failed(e)),
            }
        };
        let mut places = Vec::with_capacity(files.shards.len());
        let mut parts = Vec::with_capacity(files.shards.len());
        for shard in files.shards.iter() {
            let whole = folder.shard(&shard.name);
            let is_here = match length(&whole)? {
                Some(found) if found == shard.bytes => true,
                Some(_) => {
                    fs::remove_file(&whole).map_err(failed)?;
                    false
                }
                None => false,
            };
            places.push(match is_here {
                true => ShardState::Local,
                false => ShardState::Remote,
            });
            let part = folder.part(&shard.name);
            let left = length(&part)?;
            if left.is_some() && is_here {
                fs::remove_file(&part).map_err(failed)?;
            }
            parts.push(left.filter(|_| !is_here).map_or(0, on_disk));
        }
        Ok(Self {
            hashes: vec![None; files.shards.len()],
            checksums: ShardChecksums::read(folder.path(), files.shards.len()),
            comparing: Arc::new(Semaphore::new(1)),
            former: Arc::default(),
            object_room: Arc::new(Semaphore::new(pack_download::MOST_UNITS as usize)),
            warnings: VecDeque::new(),
            places,
            parts,
            downloads: JoinSet::new(),
            lost: Vec::new(),
            stuck: None,
            counts: TransferCounts::default(),
            files,
            right,
        })
    }

    /// Writes a heartbeat for the other ranks.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn write_beat(&mut self) -> Result<(), Error> {
        self.right.write_beat()
    }

    /// Starts the next downloads and deletions, by the demand of all ranks.
    ///
    /// # Errors
    /// Too little space for the shards needed at a time; a needed shard cannot be downloaded.
    pub(super) fn step(&mut self, needs: &[RankDemand]) -> Result<(), HelperError> {
        let Some(room) = room_of_ranks(needs, &self.files.bytes) else {
            return Ok(());
        };
        let distances: Vec<u64> = (0..self.files.bytes.len())
            .map(|n| {
                let of_ranks = needs.iter().filter_map(|needs| needs.distances.get(n));
                of_ranks.min().copied().unwrap_or(u64::MAX)
            })
            .collect();
        for (number, why) in &self.lost {
            if distances.get(*number) == Some(&0) {
                return Err(why.clone());
            }
        }
        let at_once = needs.iter().map(|needs| needs.most).max().unwrap_or(0);
        let mut leased = vec![false; self.files.bytes.len()];
        loop {
            let view = LeaderView {
                bytes: &self.files.bytes,
                places: &self.places,
                distances: &distances,
                room,
                leased: &leased,
                at_once,
                parts: &self.parts,
            };
            match view.next() {
                LeaderAction::Fetch(number) => self.fetch(number),
                LeaderAction::Remove(number) => match self.remove(number) {
                    Ok(true) => {}
                    Ok(false) => leased[number] = true,
                    Err(e) => {
                        let what = format!("cannot remove a shard: {e}");
                        return Err(HelperError::of_path(self.files.folder.path(), what));
                    }
                },
                LeaderAction::RemovePart(number) => {
                    let part = self.files.folder.part(&self.files.shards[number].name);
                    let _ = fs::remove_file(part);
                    // A shard of an earlier run.
                    self.counts.removed +=
                        u64::from(self.parts[number] >= self.files.bytes[number]);
                    self.parts[number] = 0;
                }
                LeaderAction::Rest => {
                    self.stuck = None;
                    return Ok(());
                }
                LeaderAction::Stuck(_) => {
                    let since = *self.stuck.get_or_insert_with(Instant::now);
                    return match since.elapsed() < STUCK {
                        true => Ok(()),
                        false => Err(limit_error(&self.files, needs, room)),
                    };
                }
            }
        }
    }

    fn fetch(&mut self, number: usize) {
        self.stuck = None;
        let shard = self.files.shards[number].clone();
        self.places[number] = ShardState::Downloading;
        self.parts[number] = 0;
        let wanted = ShardDownload {
            store: self.files.store.clone(),
            others: self.files.others.clone(),
            hash: self.hashes[number],
            recorded: self.checksums.get(number),
            comparing: self.comparing.clone(),
            former: self.former.clone(),
            object_room: self.object_room.clone(),
            part: self.files.folder.part(&shard.name),
            whole: self.files.folder.shard(&shard.name),
            shard,
        };
        self.downloads
            .spawn(async move { (number, pack_download::shard(wanted).await) });
    }

    fn remove(&mut self, number: usize) -> io::Result<bool> {
        let path = self.files.folder.shard(&self.files.shards[number].name);
        let removed = lease::remove(&path)?;
        if removed {
            self.places[number] = ShardState::Remote;
            self.counts.removed += 1;
            self.stuck = None;
        }
        Ok(removed)
    }

    /// Waits for the next download to end; forever if there is none.
    pub(super) async fn ended(&mut self) -> Result<(), HelperError> {
        let (number, downloaded) = match self.downloads.join_next().await {
            None => return std::future::pending().await,
            Some(Ok(ended)) => ended,
            Some(Err(e)) => {
                let what = format!("a download broke off: {e}");
                return Err(HelperError::new(self.files.store.address().as_str(), what));
            }
        };
        let downloaded = match downloaded {
            Ok(downloaded) => downloaded,
            Err(why) => {
                let part = self.files.folder.part(&self.files.shards[number].name);
                self.parts[number] = fs::metadata(part).map_or(0, |meta| on_disk(meta.len()));
                self.places[number] = ShardState::Unavailable;
                self.lost.push((number, why));
                return Ok(());
            }
        };
        self.places[number] = ShardState::Local;
        self.hashes[number] = downloaded.is_checked.then_some(downloaded.hash);
        let name = &self.files.shards[number].name;
        if downloaded.was_changed {
            self.warnings.push_back(format!(
                "{}: its local file changed after the download: it was downloaded again",
                self.files.folder.shard(name).display()
            ));
        }
        if downloaded.left_out > 0 {
            self.warnings.push_back(format!(
                "{}: {} objects could not be downloaded, and their samples fail with the reason",
                self.files.store.address(),
                downloaded.left_out
            ));
        }
        if downloaded.changed > 0 {
            self.warnings.push_back(format!(
                "{}: {} objects have changed since they were asked, and were read again",
                self.files.store.address(),
                downloaded.changed
            ));
        }
        self.warnings
            .extend(self.checksums.keep(number, downloaded.hash));
        // A part that was already complete was not downloaded.
        self.counts.objects += u64::from(downloaded.bytes > 0);
        self.counts.bytes += downloaded.bytes;
        self.counts.retries += downloaded.retries;
        Ok(())
    }
}
