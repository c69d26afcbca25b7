//! The consumer's side: has a fetcher, tells it where the run stands, and waits for shards.
//!
//! In the consumer. Batches are only ordered when their shards are there and held, so workers
//! never wait for storage. A fetcher that dies is started again; nothing is lost with it but what
//! was under way, and of that only the last piece.

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
    nothing_done: "without getting a shard",
};

/// How long a fetcher may take to say what it did.
const REPORT_LIMIT: Duration = Duration::from_secs(2);

/// Between two looks for a shard.
const LOOK: Duration = Duration::from_millis(2);
/// Between two words to a fetcher that did not listen, while shards are there.
const WATCH: Duration = Duration::from_millis(50);

/// Between two questions whether the fetcher goes on.
const ASK: Duration = Duration::from_secs(1);
/// How long it may say nothing then, while this process runs.
const SILENCE: Duration = Duration::from_secs(20);

/// How long a shard is waited for at a time, while an index is made.
const READY: Duration = Duration::from_secs(1);

/// What a fetcher did, and what was waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FetchReport {
    /// Process id of the fetcher.
    pub process: i32,
    /// Shards that this rank's fetcher got, while it was the one of the machine that does.
    pub shards: u64,
    /// Their bytes, those of broken tries too.
    pub bytes: u64,
    /// Shards that it removed again.
    pub removed: u64,
    /// Requests that failed and were made again.
    pub retries: u64,
    /// Fetchers that died, and were started again.
    pub deaths: u64,
    /// Time that the consumer waited for shards, seconds.
    pub wait_s: f64,
}

/// Whether an index of tar shards that have none is made, by fetching all of them.
pub(crate) enum TarIndexPolicy<'a> {
    Never,
    /// Where the folder has room for all of them: they come anyway.
    OfWholeSets,
    /// Told how many shards were read, of how many.
    Always(&'a dyn Fn(u64, u64)),
}

/// The order of a run, once that is known.
#[derive(Debug)]
struct RunOrder {
    options: OrderOptions,
    index: OwnedFd,
    table: Option<OwnedFd>,
    epochs: Option<u64>,
}

/// What a fetcher is told; another one is told the same.
#[derive(Debug)]
struct FetchTask {
    address: StoreAddress,
    options: FetchOptions,
    opened: DatasetInfo,
    order: Option<RunOrder>,
    /// Where the run stands.
    at: EpochMark,
}

/// What the fetcher said. A report may hear it too.
#[derive(Debug, Default)]
struct FetcherReplies {
    /// Why nothing more comes, until somebody needed it.
    trouble: Option<Error>,
    /// Of this fetcher.
    counts: TransferCounts,
    /// Of fetchers before this one.
    before: TransferCounts,
    /// Ranks that use the folder.
    ranks: Option<u32>,
    /// Whether it was asked if it goes on, and did not answer yet.
    is_asked: bool,
    /// Since when an answer is wanted.
    silent: Option<RunningClock>,
}

impl FetcherReplies {
    /// # Errors
    /// What nobody asked for.
    fn hear(&mut self, reply: FetchReply) -> Result<()> {
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

    /// The next reply. Trouble of the fetcher is kept until somebody needs what it does not get.
    fn reply_within(
        &mut self,
        process: &HelperProcess,
        limit: Duration,
        planned: Duration,
    ) -> Result<Option<FetchReply>> {
        match process.reply_within(limit, planned) {
            Err(e) if !has_died(&e) && !e.is_protocol() => {
                self.trouble = Some(e);
                Ok(None)
            }
            heard => heard,
        }
    }
}

/// Has a fetcher get manifest and index. `room`: as a fetcher before this one found it.
///
/// # Errors
/// A data set that is not there, or cannot be had.
fn open(
    process: &HelperProcess,
    address: &StoreAddress,
    options: &FetchOptions,
    room: Option<u64>,
) -> Result<DatasetInfo> {
    let request = FetchRequest::Open {
        address: address.clone(),
        options: Box::new(options.clone()),
        room,
        index: RemoteIndexBuilder::file_name(&options.shards),
    };
    match process.ask(&request)? {
        FetchReply::Opened(opened) => Ok(opened),
        other => Err(FETCHER.unexpected(&other)),
    }
}

impl FetchTask {
    /// Tells a fetcher that was just started.
    fn begin(&self, process: &HelperProcess, heard: &Mutex<FetcherReplies>) -> Result<()> {
        let opened = open(
            process,
            &self.address,
            &self.options,
            Some(self.opened.room),
        )?;
        if opened.folder != self.opened.folder {
            return Err(Error::dataset(
                self.address.as_str(),
                "changed while it was read: start the run again",
            ));
        }
        self.send_order(process, heard)
    }

    /// Tells of the order, where it is known.
    fn send_order(&self, process: &HelperProcess, heard: &Mutex<FetcherReplies>) -> Result<()> {
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
                // An answer to what it was asked before.
                other => lock(heard).hear(other)?,
            }
        }
    }
}

/// Shards of a data set that lies in an object store.
#[derive(Debug)]
pub(crate) struct Fetcher {
    helper: HelperSupervisor,
    task: FetchTask,
    /// Of the folder, also while no fetcher lives.
    in_use: Lease,
    held: HeldShards,
    /// The first batch behind those.
    next: Option<EpochMark>,
    watched: Instant,
    /// When it was asked whether it goes on.
    asked: Instant,
    heard: Mutex<FetcherReplies>,
    /// Whether the fetcher may not know where the run stands.
    untold: bool,
    /// The fetcher has ended with trouble, and that was handed on.
    gave_up: bool,
    waited: Duration,
    /// Since the last batch whose shards were there.
    wait: ShardWait,
    /// Bytes of each shard, since a long wait was reported.
    shard_bytes: Option<Vec<u64>>,
}

impl Fetcher {
    /// Starts a fetcher, which gets manifest and index; the index. Of tar shards that are no cache
    /// it is the one that is kept, or is made now where `making` says so.
    ///
    /// # Errors
    /// A data set that is not there, or cannot be had; tar shards without an index; a folder that
    /// cannot be written.
    pub(crate) fn open(
        address: StoreAddress,
        options: FetchOptions,
        executable: Option<PathBuf>,
        making: TarIndexPolicy<'_>,
    ) -> Result<(Self, Index, Option<ScanReport>)> {
        let helper = HelperSupervisor::start(&FETCHER, executable)?;
        let opened = open(&helper.process, &address, &options, None);
        let mut fetcher = Self::new(helper, opened, address, options)?;
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
        let name = RemoteIndexBuilder::file_name(&options.shards);
        let mut tars = *tars;
        if tars.is_indexed {
            if let Some((index, scan)) = list.open_index(folder, &name)? {
                return Ok((fetcher, index, Some(scan)));
            }
            // Damaged, or of another version: as if there were none.
            let path = folder.join(&name);
            match fs::remove_file(&path) {
                // Another rank did.
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
                    "{address}: no index of its {} tar shards is kept, so all are fetched first \
                     ({}) to make one",
                    list.shards.len(),
                    size(list.bytes())
                );
                &no_progress
            }
            _ => return Err(list.is_not_indexed(address, &folder, &name)),
        };
        fetcher.make_index(&list, tars.most_of_index, progress)?;
        // Another one, which knows the checksums that were found.
        let fetcher = fetcher.reopened()?;
        let indexed = match fetcher.folder() == folder {
            true => list.open_index(&folder, &name)?,
            false => None,
        };
        let Some((index, scan)) = indexed else {
            let what = "changed while it was indexed: wait until whoever writes there is done";
            return Err(Error::dataset(fetcher.task.address.as_str(), what));
        };
        Ok((fetcher, index, Some(scan)))
    }

    /// Of a helper that has `opened` the data set; of another one, where it died of that.
    fn new(
        mut helper: HelperSupervisor,
        opened: Result<DatasetInfo>,
        address: StoreAddress,
        options: FetchOptions,
    ) -> Result<Self> {
        let begin = |process: &_| open(process, &address, &options, None);
        let opened = helper.retry_after_death(opened, begin)?;
        helper.goes_on();
        Ok(Self {
            in_use: use_folder(&opened.folder)?,
            held: HeldShards::new(opened.room, opened.evicts()),
            helper,
            task: FetchTask {
                address,
                options,
                opened,
                order: None,
                at: EpochMark::new(0, 0),
            },
            next: None,
            watched: Instant::now(),
            asked: Instant::now(),
            heard: Mutex::default(),
            untold: false,
            gave_up: false,
            waited: Duration::ZERO,
            wait: ShardWait::new(),
            shard_bytes: None,
        })
    }

    /// Another fetcher, which opens the data set as if there had been none. What was done counts
    /// on.
    fn reopened(self) -> Result<Self> {
        let before = self.counts();
        let Self {
            mut helper,
            task,
            // The folder stays in use: its shards were read just now.
            in_use: _shards_read,
            ..
        } = self;
        let (address, options) = (task.address, task.options);
        let opened = helper.renew(|process| open(process, &address, &options, None));
        let fetcher = Self::new(helper, opened, address, options)?;
        lock(&fetcher.heard).before = before;
        Ok(fetcher)
    }

    /// Has every shard come once, in their order, and keeps the index of them in the folder,
    /// which may take so many bytes where there is a limit.
    ///
    /// # Errors
    /// A shard that cannot be had or read; what no index can be made of.
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

    /// The folder that shards come to.
    pub(super) fn folder(&self) -> &Path {
        &self.task.opened.folder
    }

    /// What is known of the data set.
    pub(super) fn opened(&self) -> &DatasetInfo {
        &self.task.opened
    }

    /// A shard came: fetchers that died before are none in a row.
    pub(super) fn goes_on(&mut self) {
        self.helper.goes_on();
    }

    /// Looks now and then whether the fetcher lives, while shards that it brought are read and
    /// nothing more is waited for: it says in the folder what may not be removed.
    ///
    /// # Errors
    /// One that cannot be replaced. What it brought stays here all the same.
    pub(crate) fn check_helper(&mut self) -> Result<()> {
        if self.watched.elapsed() < ASK {
            return Ok(());
        }
        self.watched = Instant::now();
        self.watch()
    }

    /// Lets the batches go that are held, for those of another order.
    pub(super) fn release_batches(&mut self) {
        self.held.release_all();
        self.next = None;
    }

    /// Of tar shards that are no cache: the file that their index is kept in, the address that it
    /// is shared at, and its name there.
    ///
    /// # Errors
    /// A list that cannot be read any more.
    pub(crate) fn index_location(&self) -> Result<Option<(PathBuf, StoreAddress, String)>> {
        if self.task.opened.tars.is_none() {
            return Ok(None);
        }
        let (folder, index) = (
            self.folder(),
            RemoteIndexBuilder::file_name(&self.task.options.shards),
        );
        let base = TarList::read(folder)?.base().clone();
        Ok(Some((
            folder.join(&index),
            base,
            shared_index(folder, &index),
        )))
    }

    /// Whether shards are removed while the run goes on, so no worker may keep one open.
    pub(crate) fn evicts(&self) -> bool {
        self.task.opened.evicts()
    }

    /// Has shards come for a run that stands at `at`.
    ///
    /// # Errors
    /// An order under which the limit cannot work.
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
        // Of all machines, until the fetcher says how many came to this one.
        self.held.is_of_ranks(plan.options().world);
        self.next = Some(at);
        if std::mem::take(&mut self.gave_up) {
            return self.renew();
        }
        let sent = self.task.send_order(&self.helper.process, &self.heard);
        self.or_again(sent)
    }

    /// Batches from `at` on whose shards are there and stay, at most `most`; none where those of
    /// the first do not come within `limit`.
    ///
    /// # Errors
    /// What the fetcher cannot get, once it is needed. The next call tries again.
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
            while self.held.len() < most.max(1) && self.hold_next(index, plan)? {}
            if !self.held.is_empty() {
                self.wait = ShardWait::new();
                // What became of the fetcher matters when something is missing.
                if self.watched.elapsed() >= WATCH {
                    self.watched = Instant::now();
                    self.tell_again()?;
                    match self.hear(WATCH) {
                        Err(e) if e.is_protocol() => return Err(e),
                        _ => {}
                    }
                }
                return Ok(Some(self.held.len()));
            }
            self.watch()?;
            let trouble = lock(&self.heard).trouble.take();
            if let Some(trouble) = trouble {
                self.gave_up = true;
                return Err(trouble);
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
            let waiting = Instant::now();
            thread::sleep(LOOK);
            let slept = waiting.elapsed();
            self.waited += slept;
            if self.wait.adds(slept) {
                self.report_wait(index);
            }
        }
    }

    /// Reports a long wait for a shard.
    fn report_wait(&mut self, index: &Index) {
        let Some(shard) = self.held.missing() else {
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

    /// The run stands at `at`: what is behind it may go.
    fn go_to(&mut self, at: EpochMark) -> Result<()> {
        if self.held.begins_at(at) {
            return Ok(());
        }
        self.task.at = at;
        if self.held.advance_to(at) || self.next == Some(at) {
            return self.tell(&FetchRequest::At(at));
        }
        self.next = Some(at);
        self.tell(&FetchRequest::Jump(at))
    }

    /// Holds the batch behind those that are held; whether it is there.
    fn hold_next(&mut self, index: &Index, plan: &EpochPlan) -> Result<bool> {
        let Some(at) = self.next else {
            return Ok(false);
        };
        let is_over = |order: &RunOrder| order.epochs.is_some_and(|epochs| at.epoch >= epochs);
        if !self.held.is_empty() && self.task.order.as_ref().is_some_and(is_over) {
            return Ok(false);
        }
        let is_held = self.held.hold(index, plan, at)?;
        if is_held {
            self.next = Some(plan.next_mark(at));
            self.helper.goes_on();
        }
        Ok(is_held)
    }

    /// Tells the fetcher where the run stands. One that does not listen hears of it by the next
    /// look; one that is gone is noticed then.
    fn tell(&mut self, request: &FetchRequest) -> Result<()> {
        self.untold |= !self.helper.process.offer(request)?;
        Ok(())
    }

    /// Tells it once more where it stands, where a word was lost.
    fn tell_again(&mut self) -> Result<()> {
        if std::mem::take(&mut self.untold) {
            // By whichever way it came there.
            self.tell(&FetchRequest::Jump(self.task.at))?;
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

    /// Whether the fetcher lives, and has nothing to say. One that died is started again.
    fn watch(&mut self) -> Result<()> {
        if std::mem::take(&mut self.gave_up) {
            return self.renew();
        }
        if lock(&self.heard).trouble.is_some() {
            return Ok(());
        }
        self.tell_again()?;
        let heard = self.hear(LOOK);
        self.or_again(heard)
    }

    /// Hears what the fetcher says, and asks it now and then whether it goes on. One that was
    /// stopped, or says nothing, is killed. Whoever waits asks again and again, with a sleep of
    /// `planned` between at most.
    ///
    /// # Errors
    /// One that ended, or was killed; what nobody asked for.
    fn hear(&mut self, planned: Duration) -> Result<()> {
        let process = &self.helper.process;
        let mut heard = lock(&self.heard);
        while let Some(reply) = heard.reply_within(process, Duration::ZERO, planned)? {
            heard.hear(reply)?;
        }
        // It ends then.
        if heard.trouble.is_some() {
            return Ok(());
        }
        if let Some(ranks) = heard.ranks.take() {
            self.held.is_of_ranks(ranks);
        }
        if heard.silent.is_none() && self.asked.elapsed() >= ASK {
            self.asked = Instant::now();
            heard.silent = Some(RunningClock::start());
        }
        let Some(silent) = &mut heard.silent else {
            return Ok(());
        };
        if silent.read(planned) >= SILENCE {
            heard.silent = None;
            return Err(process.kill(&format!("said nothing for {SILENCE:?}")));
        }
        if !heard.is_asked {
            // One that does not drain its socket is asked again the next time.
            heard.is_asked = process.offer(&FetchRequest::Look)?;
        }
        Ok(())
    }

    /// Another fetcher in the place of one that has ended.
    fn renew(&mut self) -> Result<()> {
        self.forget();
        let begun = self
            .helper
            .renew(|process| self.task.begin(process, &self.heard));
        self.or_again(begun)
    }

    /// What is `done`; where the fetcher died of it, another one is told all again.
    fn or_again(&mut self, done: Result<()>) -> Result<()> {
        if done.as_ref().is_err_and(has_died) {
            self.forget();
        }
        let begin = |process: &_| self.task.begin(process, &self.heard);
        let done = self.helper.retry_after_death(done, begin);
        let is_trouble = |e: &Error| !has_died(e) && !e.is_protocol();
        self.gave_up = done.as_ref().is_err_and(is_trouble);
        done
    }

    /// What is known of the fetcher is of one before.
    fn forget(&mut self) {
        let mut heard = lock(&self.heard);
        *heard = FetcherReplies {
            before: heard.before + heard.counts,
            ..FetcherReplies::default()
        };
        self.untold = false;
        self.asked = Instant::now();
    }

    /// What all fetchers did.
    fn counts(&self) -> TransferCounts {
        let (process, mut heard) = (&self.helper.process, lock(&self.heard));
        if self.check_owner().is_ok() && process.send(&FetchRequest::Report, &[]).is_ok() {
            // What else it says would be lost: whoever needs a shard is told why none comes.
            while let Ok(Some(reply)) = heard.reply_within(process, REPORT_LIMIT, Duration::ZERO) {
                let is_last = matches!(reply, FetchReply::Report(_));
                if heard.hear(reply).is_err() || is_last {
                    break;
                }
            }
        }
        heard.before + heard.counts
    }

    /// What was done so far.
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
/// Options of tar shards for a cache, whose manifest decides them.
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

/// Warns of an index that is shared in the store and not used.
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
        "{address}: the index that is shared there {why}: it is not used. `featherload index \
         --share` puts one there in its place"
    );
}

/// What nobody leaves half done: a panic elsewhere changes nothing of it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
