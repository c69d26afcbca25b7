//! One rank's use of one data set: its folder, its demand, and the lead if it has it.
//!
//! Runs in the fetcher.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use crate::data::index::Index;
use crate::error::{Error, Result, size_rounded_down};
use crate::order::{EpochMark, EpochPlan, OrderOptions, SamplerTable};
use crate::remote::address::StoreAddress;
use crate::remote::fetch::demand_file;
use crate::remote::fetch::demand_file::{DemandFile, RankDemand};
use crate::remote::fetch::disk_budget::{
    self, limit_error, most_bytes, other_bytes, room_for_shards, room_of_ranks,
};
use crate::remote::fetch::folder::TROUBLE;
use crate::remote::fetch::heartbeat;
use crate::remote::fetch::heartbeat::{LeaderWatch, dead_leader_error};
use crate::remote::fetch::leader::FolderLeader;
use crate::remote::fetch::messages::DatasetInfo;
use crate::remote::fetch::next_use::NextUses;
use crate::remote::fetch::options::FetchOptions;
use crate::remote::fetch::remote_dataset::{DatasetFiles, RemoteDataset};
use crate::remote::fetch::shard_space::{least_room, total};
use crate::remote::helper::messages::{HelperError, LONGEST, from_bytes, to_bytes};
use crate::remote::store::retry_policy::{PATIENCE, PATIENCE_AT_FIRST};
use crate::sys::whole_file;

/// Interval for reading the demand of other ranks; longer with very many shards.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_PER_SHARD: Duration = Duration::from_micros(2);

/// Time spent on the order between two checks of the network, and rows of it between two readings
/// of the clock.
const AT_A_TIME: Duration = Duration::from_millis(10);
const ROWS: u64 = 1024;

/// No time limit: until a message comes.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// Why a fetcher ends.
pub(super) enum SessionEnd {
    /// An error for the consumer.
    Trouble(HelperError),
    Failed(Error),
}

impl From<Error> for SessionEnd {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

impl From<HelperError> for SessionEnd {
    fn from(error: HelperError) -> Self {
        Self::Trouble(error)
    }
}

/// One rank's use of one data set.
pub(super) struct FetchSession {
    pub(super) files: DatasetFiles,
    /// Bytes of shards that may be here.
    room: u64,
    uses: Option<NextUses>,
    demand_file: Option<DemandFile>,
    demand_files: u32,
    pub(super) leader: Option<FolderLeader>,
    /// Watches the leader while another rank leads.
    watch: LeaderWatch,
    began: SystemTime,
}

impl FetchSession {
    /// Opens the data set at the address. Downloads manifest and index of a cache, or lists tars,
    /// into its folder. `progress` gets the progress of a long listing.
    pub(super) async fn open(
        address: &StoreAddress,
        options: &FetchOptions,
        index: &str,
        earlier: Option<(u64, PathBuf)>,
        listed: Option<&Index>,
        progress: &dyn Fn(String),
    ) -> std::result::Result<(Self, DatasetInfo), HelperError> {
        let began = SystemTime::now();
        // After a fetcher died, the store may be unreachable for a while.
        let (known_room, earlier) = earlier.unzip();
        let patience = match known_room {
            Some(_) => PATIENCE,
            None => PATIENCE_AT_FIRST,
        };
        let set = RemoteDataset::open(
            address,
            options,
            index,
            earlier.as_deref(),
            listed,
            patience,
            progress,
        )
        .await?;
        let DatasetFiles {
            folder,
            shards,
            bytes,
            ..
        } = &set.files;
        let local = |e: Error| HelperError::new(address.as_str(), e.to_string());
        let limit = options.leader_limit.unwrap_or(heartbeat::LIMIT);
        let mut watch = LeaderWatch::new(folder.leader(), limit);
        // If this fetcher replaces another, that one has verified the files.
        while known_room.is_none() && !folder.mark_unverified(shards).map_err(local)? {
            if let Some(leader) = watch.check_leader(LOOK, || true) {
                return Err(dead_leader_error(folder.path(), leader, limit));
            }
            tokio::time::sleep(LOOK).await;
        }
        let fixed = other_bytes(set.manifest_bytes, set.index_bytes, bytes.len());
        let all = total(bytes.iter().copied());
        let room = match known_room {
            Some(room) => room,
            None => {
                let besides = (fixed, set.index_to_come);
                room_for_shards(&set.files, options.limit, besides, all)?
            }
        };
        let opened = DatasetInfo {
            folder: folder.path().to_owned(),
            bytes: all,
            room,
            tars: set.tars,
        };
        let session = Self {
            files: set.files,
            room,
            uses: None,
            demand_file: None,
            demand_files: 0,
            leader: None,
            watch,
            began,
        };
        Ok((session, opened))
    }

    /// Starts downloads for this rank's order.
    pub(super) fn set_order(
        &mut self,
        options: OrderOptions,
        at: EpochMark,
        epochs: Option<u64>,
        fds: Vec<OwnedFd>,
    ) -> std::result::Result<(), SessionEnd> {
        let mut fds = fds.into_iter();
        let index = fds.next().map(Index::from_fd).transpose()?;
        let index = index.ok_or_else(|| Error::protocol("an order came without its index"))?;
        let sampler = options.sampler;
        self.files.advice = disk_budget::advice(&sampler);
        let table = fds.next().filter(|_| sampler.needs_table());
        let table = table
            .map(|fd| SamplerTable::from_fd(fd, &sampler, index.len()))
            .transpose()?;
        let plan = EpochPlan::with_table(index.len(), options, table)?;
        // If nothing is ever deleted, any order works.
        let bytes = &self.files.bytes;
        let evicts = total(bytes.iter().copied()) > self.room;
        let of = (plan, index);
        let mut uses = NextUses::new(of, bytes.to_vec(), at, epochs, evicts);
        if evicts {
            uses.look_ahead_over_the_epoch();
        }
        self.demand_files += 1;
        let mut demand_file = DemandFile::create_file(&self.files.folder, self.demand_files)?;
        demand_file.write(&RankDemand {
            most: uses.most_bytes(),
            room: self.room,
            distances: uses.distances().collect(),
        })?;
        self.uses = Some(uses);
        self.demand_file = Some(demand_file);
        let all = demand_file::read_all(&self.files.folder, self.files.bytes.len(), false)?;
        // A rank that keeps all shards leases none, and would lose those that another one deletes.
        if let Some(other) = all.iter().find(|needs| needs.room != self.room) {
            let what = format!(
                "another run uses {} with {} for shards, and this one has {}: give the same \
                 `fetch_limit`, or another `fetch_dir`",
                self.files.folder.path().display(),
                size_rounded_down(other.room),
                size_rounded_down(self.room)
            );
            let error = HelperError::of_path(self.files.folder.path(), what);
            let error = error.of_option("fetch_limit");
            return Err(SessionEnd::Trouble(error));
        }
        let largest = bytes.iter().copied().max().unwrap_or(0);
        let left = room_of_ranks(&all, bytes).unwrap_or(self.room);
        if evicts && least_room(most_bytes(&all), largest) > left {
            return Err(SessionEnd::Trouble(limit_error(&self.files, &all, left)));
        }
        Ok(())
    }

    /// Next uses of this rank, once its order is known.
    pub(super) fn uses(&mut self) -> Result<&mut NextUses> {
        let uses = self.uses.as_mut();
        uses.ok_or_else(|| Error::protocol("a position came before its order"))
    }

    /// Does what is possible now. Returns how long to wait, unless a message comes.
    pub(super) fn work(&mut self) -> std::result::Result<Duration, SessionEnd> {
        let Some(uses) = &mut self.uses else {
            return Ok(LONG);
        };
        let pause =
            LOOK.max(LOOK_PER_SHARD * u32::try_from(self.files.bytes.len()).unwrap_or(u32::MAX));
        let began = Instant::now();
        while uses.can_look_further() && began.elapsed() < AT_A_TIME {
            uses.look_ahead(ROWS);
        }
        let most = uses.most_bytes();
        let can_look_further = uses.can_look_further();
        let needs = RankDemand {
            most,
            room: self.room,
            distances: uses.distances().collect(),
        };
        if let Some(demand_file) = &mut self.demand_file {
            demand_file.write(&needs)?;
        }
        if self.leader.is_none() {
            let right = self.files.folder.try_lead()?;
            // The error of a leader that failed while this rank ran.
            self.check_leader_error()?;
            match right {
                Some(right) => self.leader = Some(FolderLeader::begin(self.files.clone(), right)?),
                None => self.check_other_leader(pause, &needs.distances)?,
            }
        }
        if let Some(leader) = &mut self.leader {
            leader.write_beat()?;
            let all = demand_file::read_all(&self.files.folder, self.files.bytes.len(), true)?;
            leader.step(&all)?;
        }
        Ok(match can_look_further {
            true => Duration::ZERO,
            false => pause,
        })
    }

    /// Checks the leader of another rank. It may hang while the shards that this rank needs are
    /// here.
    fn check_other_leader(
        &mut self,
        pause: Duration,
        distances: &[u64],
    ) -> std::result::Result<(), SessionEnd> {
        let DatasetFiles { folder, shards, .. } = &self.files;
        let is_needed = || {
            let mut now = shards.iter().zip(distances).filter(|(_, d)| **d == 0);
            now.any(|(shard, _)| !folder.shard(&shard.name).exists())
        };
        match self.watch.check_leader(pause, is_needed) {
            None => Ok(()),
            Some(leader) => Err(SessionEnd::Trouble(dead_leader_error(
                folder.path(),
                leader,
                self.watch.limit(),
            ))),
        }
    }

    /// Number of ranks on this machine that use the folder.
    pub(super) fn ranks(&self) -> Result<u32> {
        demand_file::count(&self.files.folder)
    }

    /// The leader's error, if it failed.
    fn check_leader_error(&self) -> std::result::Result<(), SessionEnd> {
        let path = self.files.folder.file(TROUBLE);
        let written = fs::metadata(&path).and_then(|meta| meta.modified());
        // An older one is of an earlier run.
        if written.is_ok_and(|written| written < self.began) {
            return Ok(());
        }
        let Ok(text) = whole_file::read(&path, LONGEST as u64) else {
            return Ok(());
        };
        // If it is just being written, the next check reads it.
        match from_bytes::<HelperError>(&text) {
            Ok(error) => Err(SessionEnd::Trouble(error)),
            Err(_) => Ok(()),
        }
    }

    /// Writes the error for the other ranks, so that they end with the same reason.
    pub(super) fn publish_error(&self, error: &HelperError) {
        if self.leader.is_some()
            && let Ok(text) = to_bytes(error)
        {
            // Without it, each rank fails by itself.
            let _ = self.files.folder.put(TROUBLE, &text);
        }
    }
}
