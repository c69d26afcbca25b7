//! The consumer's handle of its fetcher: reports the position of the run, and waits for shards.
//!
//! Runs in the consumer. A batch is posted only after its shards are here and leased, so workers
//! never wait for storage. A fetcher that dies is restarted. Only the last piece of running
//! downloads is lost.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::data::index::{
    Index, RemoteIndexBuilder, ScanReport, ShardLabels, ShardOptions, placeholder_index,
};
use crate::error::{Error, Result, size, size_rounded_down, size_rounded_up};
use crate::order::{EpochMark, EpochPlan, OrderOptions, Sampler};
use crate::pool::coordinator::messages::FETCHER_COMMAND;
use crate::remote::address::StoreAddress;
use crate::remote::fetch::held_shards::HeldShards;
use crate::remote::fetch::lease::{Lease, use_folder};
use crate::remote::fetch::messages::{
    DatasetInfo, FetchReply, FetchRequest, TarSetInfo, UnusedIndex,
};
use crate::remote::fetch::options::FetchOptions;
use crate::remote::fetch::shard_wait::ShardWait;
use crate::remote::fetch::tar_list::{TarList, shared_index};
use crate::remote::helper::messages::TransferCounts;
use crate::remote::helper::process::{HelperKind, HelperProcess};
use crate::remote::helper::restarts::{HelperSupervisor, has_died};
use crate::sys::clock::RunningClock;

static FETCHER: HelperKind = HelperKind {
    name: "fetcher",
    command: FETCHER_COMMAND,
    end_limit: Duration::from_millis(200),
    without_progress: "without getting a shard",
};

/// Time limit for a report of the fetcher.
const REPORT_LIMIT: Duration = Duration::from_secs(2);

/// Interval for checking for a shard.
const LOOK: Duration = Duration::from_millis(2);
/// Interval of messages to a fetcher whose socket was full, while shards are here.
const WATCH: Duration = Duration::from_millis(50);

/// Interval for checking that the fetcher responds.
const ASK: Duration = Duration::from_secs(1);
/// How long it may not respond, while this process runs.
const SILENCE: Duration = Duration::from_secs(20);

/// How long to wait for a shard at a time, while an index is made.
const READY: Duration = Duration::from_secs(1);

/// Counters of a fetcher, and the time spent waiting for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FetchReport {
    /// Process id of the fetcher.
    pub process: i32,
    /// Shards that this rank's fetcher downloaded while it was the leader.
    pub shards: u64,
    /// Downloaded bytes, including failed attempts.
    pub bytes: u64,
    /// Deleted shards.
    pub removed: u64,
    /// Requests that failed and were repeated.
    pub retries: u64,
    /// Fetchers that died and were restarted.
    pub deaths: u64,
    /// Seconds that the consumer waited for shards.
    pub wait_s: f64,
}

/// Whether to make a missing index of tar shards, by downloading all of them.
pub(crate) enum TarIndexPolicy<'a> {
    Never,
    /// If the folder has space for all of them, so they are downloaded anyway.
    OfWholeSets,
    /// Always. The function gets the number of shards that were read, and of all.
    Always(&'a dyn Fn(u64, u64)),
}

/// The order of a run, once it is known.
#[derive(Debug)]
struct RunOrder {
    options: OrderOptions,
    index: OwnedFd,
    table: Option<OwnedFd>,
    epochs: Option<u64>,
}

/// The requests to a fetcher, to repeat them after a restart.
#[derive(Debug)]
struct FetchTask {
    address: StoreAddress,
    /// The addresses of a list, which `address` then names.
    listed: Option<Index>,
    options: FetchOptions,
    opened: DatasetInfo,
    order: Option<RunOrder>,
    /// Position of the run.
    at: EpochMark,
}

/// Replies of the fetcher, which several functions may receive.
#[derive(Debug, Default)]
struct FetcherReplies {
    /// The fetcher's error, until it is returned.
    error: Option<Error>,
    /// Of this fetcher.
    counts: TransferCounts,
    /// Of earlier fetchers.
    before: TransferCounts,
    /// Number of ranks that use the folder.
    ranks: Option<u32>,
    /// Whether a check of the fetcher is unanswered.
    is_asked: bool,
    /// Runs while an answer is expected.
    silent: Option<RunningClock>,
}

impl FetcherReplies {
    /// # Errors
    /// An unexpected reply.
    fn record(&mut self, reply: FetchReply) -> Result<()> {
        match reply {
            FetchReply::Report(counts) => self.counts = counts,
            FetchReply::GoesOn { ranks } => {
                self.ranks = Some(ranks);
                (self.is_asked, self.silent) = (false, None);
            }
            other => return Err(FETCHER.unexpected(&other)),
        }
        Ok(())
    }

    /// The next reply. An error of the fetcher is kept until a shard is needed.
    fn reply_within(
        &mut self,
        process: &HelperProcess,
        limit: Duration,
        planned: Duration,
    ) -> Result<Option<FetchReply>> {
        match process.reply_within(limit, planned) {
            Err(e) if !has_died(&e) && !e.is_protocol() => {
                self.error = Some(e);
                Ok(None)
            }
            replies => replies,
        }
    }
}

/// Makes a fetcher download manifest and index. `earlier`: the space and the folder that an earlier
/// fetcher of this run found.
///
/// # Errors
/// The data set does not exist, or cannot be downloaded.
fn open(
    process: &HelperProcess,
    (address, listed): (&StoreAddress, Option<&Index>),
    options: &FetchOptions,
    earlier: Option<(u64, PathBuf)>,
) -> Result<DatasetInfo> {
    let request = FetchRequest::Open {
        address: address.clone(),
        options: Box::new(options.clone()),
        earlier,
        index: RemoteIndexBuilder::file_name(&options.shards),
    };
    let fds: Vec<_> = listed.iter().map(|listed| listed.as_fd()).collect();
    process.send(&request, &fds)?;
    match process.reply()? {
        FetchReply::Opened(opened) => Ok(opened),
        other => Err(FETCHER.unexpected(&other)),
    }
}

impl FetchTask {
    /// Sends the requests to a new fetcher.
    fn begin(&self, process: &HelperProcess, replies: &Mutex<FetcherReplies>) -> Result<()> {
        let opened = open(
            process,
            (&self.address, self.listed.as_ref()),
            &self.options,
            Some((self.opened.room, self.opened.folder.clone())),
        )?;
        if opened.folder != self.opened.folder {
            return Err(Error::dataset(
                self.address.as_str(),
                "changed while it was read: start the run again",
            ));
        }
        self.send_order(process, replies)
    }

    /// Sends the order, if it is known.
    fn send_order(&self, process: &HelperProcess, replies: &Mutex<FetcherReplies>) -> Result<()> {
        let Some(order) = &self.order else {
            return Ok(());
        };
        let request = FetchRequest::Plan {
            options: Box::new(order.options.clone()),
            at: self.at,
            epochs: order.epochs,
        };
        let mut fds = vec![order.index.as_fd()];
        fds.extend(order.table.as_ref().map(AsFd::as_fd));
        process.send(&request, &fds)?;
        loop {
            match process.reply()? {
                FetchReply::Planned => return Ok(()),
                // A reply to an earlier request.
                other => lock(replies).record(other)?,
            }
        }
    }
}

/// Shards of a data set in an object store.
#[derive(Debug)]
pub(crate) struct Fetcher {
    helper: HelperSupervisor,
    task: FetchTask,
    /// Lease on the folder, even while no fetcher lives.
    in_use: Lease,
    held_shards: HeldShards,
    /// The first batch after those.
    next: Option<EpochMark>,
    watched: Instant,
    /// When it was last checked.
    last_check: Instant,
    replies: Mutex<FetcherReplies>,
    /// Whether the fetcher may not know the position of the run.
    must_resend: bool,
    /// The fetcher has ended with an error, which was returned.
    gave_up: bool,
    waited: Duration,
    /// Since the last batch whose shards were here.
    wait: ShardWait,
    /// Size of each shard in bytes, after a long wait was reported.
    shard_bytes: Option<Vec<u64>>,
}

impl Fetcher {
    /// The addresses of a list, if the data set is one.
    pub(crate) fn listed(&self) -> Option<&Index> {
        self.task.listed.as_ref()
    }

    /// Starts a fetcher, which downloads manifest and index. Returns the index too. For tar shards
    /// that are no cache, it is the stored one, or it is made now if `making` allows.
    ///
    /// # Errors
    /// The data set does not exist, or cannot be downloaded; tar shards without an index; the
    /// folder is not writable.
    pub(crate) fn open(
        address: StoreAddress,
        options: FetchOptions,
        executable: Option<PathBuf>,
        making: TarIndexPolicy<'_>,
    ) -> Result<(Self, Index, Option<ScanReport>)> {
        let helper = HelperSupervisor::start(&FETCHER, executable)?;
        let opened = open(&helper.process, (&address, None), &options, None);
        let mut fetcher = Self::new(helper, opened, (address, None), options)?;
        let FetchTask {
            address,
            options,
            opened: DatasetInfo { folder, tars, .. },
            ..
        } = &fetcher.task;
        let Some(tars) = tars else {
            refuse_shard_options(address, &options.shards)?;
            let index = Index::remote_cache(folder)?;
            return Ok((fetcher, index, None));
        };
        let list = TarList::read(folder)?;
        if list.has_packs() {
            let (index, scan) = list.index_of_packs(folder, &options.shards)?;
            return Ok((fetcher, index, Some(scan)));
        }
        let name = RemoteIndexBuilder::file_name(&options.shards);
        let mut tars = *tars;
        if tars.is_indexed {
            if let Some((index, scan)) = list.open_index(folder, &name)? {
                return Ok((fetcher, index, Some(scan)));
            }
            // Damaged, or of another version: like a missing one.
            let path = folder.join(&name);
            match fs::remove_file(&path) {
                // Another rank removed it.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                done => done.map_err(|e| Error::io_at("remove", &path, e))?,
            }
            fetcher = fetcher.reopened()?;
            tars = fetcher.task.opened.tars.unwrap_or(tars);
        }
        let (address, folder) = (&fetcher.task.address, fetcher.folder().to_owned());
        warn_of_unused(address, &tars);
        let no_progress = |_, _| {};
        let progress = match making {
            TarIndexPolicy::Always(progress) => progress,
            TarIndexPolicy::OfWholeSets if !fetcher.evicts() => {
                tracing::warn!(
                    "{address}: there is no index of its {} tar shards, so all are downloaded first \
                     ({}) to make one",
                    list.shards.len(),
                    size(list.bytes())
                );
                &no_progress
            }
            _ => return Err(list.is_not_indexed(address, &folder, &name)),
        };
        fetcher.make_index(&list, tars.most_of_index, progress)?;
        // Another fetcher, which knows the new checksums.
        let fetcher = fetcher.reopened()?;
        let indexed = match fetcher.folder() == folder {
            true => list.open_index(&folder, &name)?,
            false => None,
        };
        let Some((index, scan)) = indexed else {
            let what = "changed while it was indexed: wait until the writer has finished";
            return Err(Error::dataset(fetcher.task.address.as_str(), what));
        };
        Ok((fetcher, index, Some(scan)))
    }

    /// Starts a fetcher for the objects at the addresses of `listed`, which `address` names. Returns
    /// their index in packs, too.
    ///
    /// # Errors
    /// A dead address, unless the options leave those out; no answer from any; the folder is not
    /// writable.
    pub(crate) fn open_addresses(
        address: StoreAddress,
        listed: Index,
        options: FetchOptions,
        executable: Option<PathBuf>,
    ) -> Result<(Self, Index, Option<ScanReport>)> {
        let helper = HelperSupervisor::start(&FETCHER, executable)?;
        let opened = open(&helper.process, (&address, Some(&listed)), &options, None);
        let fetcher = Self::new(helper, opened, (address, Some(listed)), options)?;
        let FetchTask { opened, listed, .. } = &fetcher.task;
        let list = TarList::read(&opened.folder)?;
        let Some(listed) = listed else {
            return Err(Error::protocol("a fetcher of addresses has none"));
        };
        let (index, scan) = list.index_of_addresses(&opened.folder, listed)?;
        Ok((fetcher, index, Some(scan)))
    }

    /// With a helper that has `opened` the data set, or another one if it died meanwhile.
    fn new(
        mut helper: HelperSupervisor,
        opened: Result<DatasetInfo>,
        (address, listed): (StoreAddress, Option<Index>),
        options: FetchOptions,
    ) -> Result<Self> {
        let begin = |process: &_| open(process, (&address, listed.as_ref()), &options, None);
        let opened = helper.retry_after_death(opened, begin)?;
        helper.reset_deaths();
        Ok(Self {
            in_use: use_folder(&opened.folder)?,
            held_shards: HeldShards::new(opened.room, opened.evicts()),
            helper,
            task: FetchTask {
                address,
                listed,
                options,
                opened,
                order: None,
                at: EpochMark::new(0, 0),
            },
            next: None,
            watched: Instant::now(),
            last_check: Instant::now(),
            replies: Mutex::default(),
            must_resend: false,
            gave_up: false,
            waited: Duration::ZERO,
            wait: ShardWait::new(),
            shard_bytes: None,
        })
    }

    /// Starts a new fetcher process in place of this one. It opens the data set anew. The folder stays
    /// in use, and the counters continue.
    fn reopened(self) -> Result<Self> {
        let before = self.counts();
        let Self {
            mut helper,
            task,
            // The folder stays in use: its shards were just read.
            in_use: _shards_read,
            ..
        } = self;
        let (address, listed, options) = (task.address, task.listed, task.options);
        let opened =
            helper.restart(|process| open(process, (&address, listed.as_ref()), &options, None));
        let fetcher = Self::new(helper, opened, (address, listed), options)?;
        lock(&fetcher.replies).before = before;
        Ok(fetcher)
    }

    /// Downloads every shard once, in order, and stores their index in the folder. The index file
    /// may have at most `most` bytes; `None` = no limit.
    ///
    /// # Errors
    /// A shard cannot be downloaded or read; no index can be made.
    fn make_index(
        &mut self,
        list: &TarList,
        most: Option<u64>,
        progress: &dyn Fn(u64, u64),
    ) -> Result<()> {
        let (folder, names) = (self.task.opened.folder.clone(), list.names());
        let address = self.task.address.to_string();
        let options = self.task.options.shards.clone();
        let mut shards = RemoteIndexBuilder::new(&folder, &address, &options)?;
        // Batches of one sample, which is a shard.
        let index = placeholder_index(&folder, &names)?;
        let order = OrderOptions {
            batch: 1,
            sampler: Sampler::Sequential,
            ..OrderOptions::default()
        };
        let plan = EpochPlan::new(index.len(), order)?;
        let mut at = EpochMark::new(0, 0);
        self.set_order(&index, &plan, at, Some(1))?;
        for (number, name) in names.iter().enumerate() {
            while self.ready(&index, &plan, at, 1, READY)?.is_none() {}
            shards.read(name, list.address(number))?;
            at = plan.next_mark(at);
            progress(number as u64 + 1, names.len() as u64);
        }
        shards.save(most)
    }

    /// The folder of downloaded shards.
    pub(super) fn folder(&self) -> &Path {
        &self.task.opened.folder
    }

    /// Information about the data set.
    pub(super) fn opened(&self) -> &DatasetInfo {
        &self.task.opened
    }

    /// A shard was downloaded, so earlier deaths no longer count.
    pub(super) fn reset_deaths(&mut self) {
        self.helper.reset_deaths();
    }

    /// Checks regularly that the fetcher lives, while its shards are read and nothing else is
    /// needed. Its demand file protects the shards.
    ///
    /// # Errors
    /// It cannot be replaced. The shards stay anyway.
    pub(crate) fn check_helper(&mut self) -> Result<()> {
        if self.watched.elapsed() < ASK {
            return Ok(());
        }
        self.watched = Instant::now();
        self.watch()
    }

    /// Releases the leased batches, before another order.
    pub(super) fn release_batches(&mut self) {
        self.held_shards.release_all();
        self.next = None;
    }

    /// For tar shards of a store that are no cache: the file of their index, the address where it
    /// is shared, and its name there.
    ///
    /// # Errors
    /// The list cannot be read any more.
    pub(crate) fn index_location(&self) -> Result<Option<(PathBuf, StoreAddress, String)>> {
        if self.task.opened.tars.is_none() {
            return Ok(None);
        }
        let (folder, index) = (
            self.folder(),
            RemoteIndexBuilder::file_name(&self.task.options.shards),
        );
        let list = TarList::read(folder)?;
        if list.has_packs() {
            return Ok(None);
        }
        let base = list.base().clone();
        Ok(Some((
            folder.join(&index),
            base,
            shared_index(folder, &index),
        )))
    }

    /// Whether shards are deleted during the run, so no worker may keep one open.
    pub(crate) fn evicts(&self) -> bool {
        self.task.opened.evicts()
    }

    /// Starts downloads for a run at position `at`.
    ///
    /// # Errors
    /// The limit cannot work with this order.
    pub(crate) fn set_order(
        &mut self,
        index: &Index,
        plan: &EpochPlan,
        at: EpochMark,
        epochs: Option<u64>,
    ) -> Result<()> {
        let own = |fd: std::os::fd::BorrowedFd<'_>| {
            fd.try_clone_to_owned()
                .map_err(|e| Error::io("duplicate the descriptors of an order", e))
        };
        self.task.order = Some(RunOrder {
            options: plan.options().clone(),
            index: own(index.as_fd())?,
            table: plan.table().map(|table| own(table.as_fd())).transpose()?,
            epochs,
        });
        self.task.at = at;
        // World size, until the fetcher reports the number of ranks on this machine.
        self.held_shards.set_ranks(plan.options().world);
        self.next = Some(at);
        if std::mem::take(&mut self.gave_up) {
            return self.restart();
        }
        let sent = self.task.send_order(&self.helper.process, &self.replies);
        self.retry_after_death(sent)
    }

    /// Number of batches from `at` on whose shards are here and leased, at most `most`. `None` if
    /// the first is not complete within `limit`.
    ///
    /// # Errors
    /// A shard that is needed cannot be downloaded. The next call tries again.
    pub(crate) fn ready(
        &mut self,
        index: &Index,
        plan: &EpochPlan,
        at: EpochMark,
        most: usize,
        limit: Duration,
    ) -> Result<Option<usize>> {
        self.check_owner()?;
        self.go_to(at)?;
        let began = Instant::now();
        loop {
            while self.held_shards.len() < most.max(1) && self.lease_next(index, plan)? {}
            if !self.held_shards.is_empty() {
                self.wait = ShardWait::new();
                // The state of the fetcher matters only if a shard is missing.
                if self.watched.elapsed() >= WATCH {
                    self.watched = Instant::now();
                    self.resend_position()?;
                    match self.receive_replies(WATCH) {
                        Err(e) if e.is_protocol() => return Err(e),
                        _ => {}
                    }
                }
                return Ok(Some(self.held_shards.len()));
            }
            self.watch()?;
            let error = lock(&self.replies).error.take();
            if let Some(error) = error {
                self.gave_up = true;
                return Err(error);
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
            let waiting = Instant::now();
            thread::sleep(LOOK);
            let slept = waiting.elapsed();
            self.waited += slept;
            if self.wait.add_sleep(slept) {
                self.report_long_wait(index);
            }
        }
    }

    /// Reports a long wait for a shard.
    fn report_long_wait(&mut self, index: &Index) {
        let Some(shard) = self.held_shards.missing() else {
            return;
        };
        let (opened, path) = (&self.task.opened, index.shard_path(shard));
        let known = &mut self.shard_bytes;
        let line = self.wait.line(&path, || {
            let all = known.get_or_insert_with(|| opened.shard_bytes().unwrap_or_default());
            all.get(usize::try_from(shard).ok()?).copied()
        });
        if let Some(text) = line {
            tracing::warn!("{}: {text}", self.task.address);
        }
    }

    /// Moves the run to `at`, and releases earlier batches.
    fn go_to(&mut self, at: EpochMark) -> Result<()> {
        if self.held_shards.begins_at(at) {
            return Ok(());
        }
        self.task.at = at;
        if self.held_shards.advance_to(at) || self.next == Some(at) {
            return self.send_request(&FetchRequest::At(at));
        }
        self.next = Some(at);
        self.send_request(&FetchRequest::Jump(at))
    }

    /// Leases the next batch. Returns whether it is here.
    fn lease_next(&mut self, index: &Index, plan: &EpochPlan) -> Result<bool> {
        let Some(at) = self.next else {
            return Ok(false);
        };
        let is_over = |order: &RunOrder| order.epochs.is_some_and(|epochs| at.epoch >= epochs);
        if !self.held_shards.is_empty() && self.task.order.as_ref().is_some_and(is_over) {
            return Ok(false);
        }
        let is_held = self.held_shards.lease_batch(index, plan, at)?;
        if is_held {
            self.next = Some(plan.next_mark(at));
            self.helper.reset_deaths();
        }
        Ok(is_held)
    }

    /// Sends the position of the run. If the socket is full, the next check sends it again. If the
    /// fetcher died, the next check notices it.
    fn send_request(&mut self, request: &FetchRequest) -> Result<()> {
        self.must_resend |= !self.helper.process.try_send(request)?;
        Ok(())
    }

    /// Sends the position again, after a message was lost.
    fn resend_position(&mut self) -> Result<()> {
        if std::mem::take(&mut self.must_resend) {
            // Correct for any way to get there.
            self.send_request(&FetchRequest::Jump(self.task.at))?;
        }
        Ok(())
    }

    fn check_owner(&self) -> Result<()> {
        if self.helper.process.is_own() {
            return Ok(());
        }
        Err(Error::worker(
            "a loader cannot be used in a forked copy of the process that built it",
        ))
    }

    /// Checks that the fetcher lives and has no message. Restarts it if it died.
    fn watch(&mut self) -> Result<()> {
        if std::mem::take(&mut self.gave_up) {
            return self.restart();
        }
        if lock(&self.replies).error.is_some() {
            return Ok(());
        }
        self.resend_position()?;
        let replies = self.receive_replies(LOOK);
        self.retry_after_death(replies)
    }

    /// Receives replies of the fetcher, and checks regularly that it responds. A stopped or silent
    /// one is killed. The caller must call this repeatedly, with at most `planned` of sleep in
    /// between.
    ///
    /// # Errors
    /// It ended or was killed; an unexpected reply.
    fn receive_replies(&mut self, planned: Duration) -> Result<()> {
        let process = &self.helper.process;
        let mut replies = lock(&self.replies);
        while let Some(reply) = replies.reply_within(process, Duration::ZERO, planned)? {
            replies.record(reply)?;
        }
        // It ends then.
        if replies.error.is_some() {
            return Ok(());
        }
        if let Some(ranks) = replies.ranks.take() {
            self.held_shards.set_ranks(ranks);
        }
        if replies.silent.is_none() && self.last_check.elapsed() >= ASK {
            self.last_check = Instant::now();
            replies.silent = Some(RunningClock::start());
        }
        let Some(silent) = &mut replies.silent else {
            return Ok(());
        };
        if silent.read(planned) >= SILENCE {
            replies.silent = None;
            return Err(process.kill(&format!("did not respond for {SILENCE:?}")));
        }
        if !replies.is_asked {
            // If its socket is full, the next call tries again.
            replies.is_asked = process.try_send(&FetchRequest::Look)?;
        }
        Ok(())
    }

    /// Replaces a fetcher that has ended.
    fn restart(&mut self) -> Result<()> {
        self.reset_replies();
        let restarted = self
            .helper
            .restart(|process| self.task.begin(process, &self.replies));
        self.retry_after_death(restarted)
    }

    /// Returns `done`. If the fetcher died, another one gets all requests again.
    fn retry_after_death(&mut self, done: Result<()>) -> Result<()> {
        if done.as_ref().is_err_and(has_died) {
            self.reset_replies();
        }
        let begin = |process: &_| self.task.begin(process, &self.replies);
        let done = self.helper.retry_after_death(done, begin);
        let is_trouble = |e: &Error| !has_died(e) && !e.is_protocol();
        self.gave_up = done.as_ref().is_err_and(is_trouble);
        done
    }

    /// Resets what was known about an earlier fetcher.
    fn reset_replies(&mut self) {
        let mut replies = lock(&self.replies);
        *replies = FetcherReplies {
            before: replies.before + replies.counts,
            ..FetcherReplies::default()
        };
        self.must_resend = false;
        self.last_check = Instant::now();
    }

    /// Counters of all fetchers.
    fn counts(&self) -> TransferCounts {
        let (process, mut replies) = (&self.helper.process, lock(&self.replies));
        if self.check_owner().is_ok() && process.send(&FetchRequest::Report, &[]).is_ok() {
            // Keeps other replies too: their errors are needed later.
            while let Ok(Some(reply)) = replies.reply_within(process, REPORT_LIMIT, Duration::ZERO)
            {
                let is_last = matches!(reply, FetchReply::Report(_));
                if replies.record(reply).is_err() || is_last {
                    break;
                }
            }
        }
        replies.before + replies.counts
    }

    /// Counters so far.
    pub(crate) fn report(&self) -> FetchReport {
        let counts = self.counts();
        FetchReport {
            process: self.helper.process.pid.as_raw(),
            shards: counts.objects,
            bytes: counts.bytes,
            removed: counts.removed,
            retries: counts.retries,
            deaths: self.helper.total_deaths,
            wait_s: self.waited.as_secs_f64(),
        }
    }
}

/// # Errors
/// Options for tar shards with a cache, whose manifest decides them.
fn refuse_shard_options(address: &StoreAddress, options: &ShardOptions) -> Result<()> {
    let ShardOptions {
        labels,
        image_field,
        classes,
        keep: _,
    } = options;
    match (labels, image_field, classes) {
        (ShardLabels::Auto, None, None) => Ok(()),
        _ => Err(Error::dataset(
            address.as_str(),
            "is a cache, whose classes and labels are fixed: remove the options that say how tar \
             shards are read",
        )),
    }
}

/// Warns that a shared index in the store is not used.
fn warn_of_unused(address: &StoreAddress, tars: &TarSetInfo) {
    let Some(unused) = tars.unused else {
        return;
    };
    let why = match unused {
        UnusedIndex::TooLarge(bytes) => format!(
            "has {}, and `fetch_limit` leaves {} for one",
            size_rounded_up(bytes),
            size_rounded_down(tars.most_of_index.unwrap_or(0))
        ),
        UnusedIndex::NotWhole => "is damaged, of another version or of other shards".to_owned(),
    };
    tracing::warn!(
        "{address}: the shared index there {why}, so it is not used. `featherload index \
         --share` puts one there in its place"
    );
}

/// The data are valid between any two operations, so a poisoned lock is harmless.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
