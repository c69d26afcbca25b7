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

use nix::unistd::getpid;
use serde::Serialize;

use crate::data::index::{ComingShards, Index, ScanReport, one_for_each};
use crate::data::shard::manifest::{CACHE_MANIFEST, CacheManifest, Manifest};
use crate::error::{Error, Result, needed, room, size};
use crate::plan::{Mark, Plan, PlanOptions, Sampler};
use crate::remote::address::Address;
use crate::remote::fetch::held_shards::HeldShards;
use crate::remote::fetch::lease::Lease;
use crate::remote::fetch::messages::{
    Counts, Opened, Place, Reply, Request, Trouble, Unused, to_bytes,
};
use crate::remote::fetch::options::FetchOptions;
use crate::remote::fetch::shard_wait::ShardWait;
use crate::remote::fetch::tar_list::{TarList, shared_index};
use crate::remote::helper::process::{
    MOST_DEATHS, Process, Start, is_of_one_that_died, unexpected,
};
use crate::sys::clock::RunningClock;
use crate::sys::socket;

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
pub(crate) enum Making<'a> {
    Never,
    /// Where the folder has room for all of them: they come anyway.
    OfWholeSets,
    /// Told how many shards were read, of how many.
    Always(&'a dyn Fn(u64, u64)),
}

/// What it is told of the order, once that is known.
#[derive(Debug)]
struct Order {
    options: PlanOptions,
    index: OwnedFd,
    table: Option<OwnedFd>,
    epochs: Option<u64>,
}

/// What the fetcher said. A report may hear it too.
#[derive(Debug, Default)]
struct Heard {
    /// Why nothing more comes, until somebody needed it.
    trouble: Option<Trouble>,
    /// Of this fetcher.
    counts: Counts,
    /// Ranks that use the folder.
    ranks: Option<u32>,
    /// Whether it was asked if it goes on, and did not answer yet.
    is_asked: bool,
    /// Since when an answer is wanted.
    silent: Option<RunningClock>,
}

impl Heard {
    /// # Errors
    /// What nobody asked for.
    fn hear(&mut self, reply: Reply) -> Result<()> {
        match reply {
            Reply::Trouble(trouble) => self.trouble = Some(trouble),
            Reply::Report(counts) => self.counts = counts,
            Reply::GoesOn { ranks } => {
                self.ranks = Some(ranks);
                (self.is_asked, self.silent) = (false, None);
            }
            other => return Err(unexpected(Some(&other))),
        }
        Ok(())
    }
}

/// Shards of a data set that lies in an object store.
#[derive(Debug)]
pub(crate) struct Fetcher {
    start: Start,
    process: Process,
    opened: Opened,
    /// Of the folder, also while no fetcher lives.
    in_use: Lease,
    order: Option<Order>,
    held: HeldShards,
    /// The first batch behind those.
    next: Option<Mark>,
    watched: Instant,
    /// When it was asked whether it goes on.
    asked: Instant,
    deaths: u32,
    heard: Mutex<Heard>,
    /// Whether the fetcher may not know where the run stands.
    untold: bool,
    /// Of fetchers before this one.
    before: Counts,
    /// The fetcher has ended with that, and was told of.
    gave_up: bool,
    total_deaths: u64,
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
        address: Address,
        options: FetchOptions,
        helper: Option<PathBuf>,
        making: Making<'_>,
    ) -> Result<(Self, Index, Option<ScanReport>)> {
        let mut start = Start {
            address,
            options,
            helper,
        };
        let mut deaths = 0;
        let (mut process, mut opened, mut in_use) = start.open(&mut deaths)?;
        let Some(mut tars) = opened.tars else {
            start.refuse_shard_options()?;
            let index = Index::cache_to_come(&opened.folder)?;
            let mut fetcher = Self::new(start, (process, opened, in_use), index.shards());
            fetcher.total_deaths = deaths;
            return Ok((fetcher, index, None));
        };
        let list = TarList::read(&opened.folder)?;
        let name = ComingShards::file_name(&start.options.shards);
        if tars.is_indexed {
            if let Some((index, scan)) = list.open_index(&opened.folder, &name)? {
                let mut fetcher = Self::new(start, (process, opened, in_use), index.shards());
                fetcher.total_deaths = deaths;
                return Ok((fetcher, index, Some(scan)));
            }
            // Damaged, or of another version: as if there were none.
            let path = opened.folder.join(&name);
            match fs::remove_file(&path) {
                // Another rank did.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                done => done.map_err(|e| Error::io_at("remove", &path, e))?,
            }
            (process, opened, in_use) = start.open(&mut deaths)?;
            tars = opened.tars.unwrap_or(tars);
        }
        if let Some(unused) = tars.unused {
            let why = match unused {
                Unused::TooLarge(bytes) => format!(
                    "has {}, and `fetch_limit` leaves {} for one",
                    needed(bytes),
                    room(tars.most_of_index.unwrap_or(0))
                ),
                Unused::NotWhole => "is damaged, of another version or of other shards".to_owned(),
            };
            tracing::warn!(
                "{}: the index that is shared there {why}: it is not used. `featherload index \
                 --share` puts one there in its place",
                start.address
            );
        }
        let no_progress = |_, _| {};
        let progress = match making {
            Making::Always(progress) => progress,
            Making::OfWholeSets if !opened.evicts() => {
                tracing::warn!(
                    "{}: no index of its {} tar shards is kept, so all are fetched first ({}) to \
                     make one",
                    start.address,
                    list.shards.len(),
                    size(list.bytes())
                );
                &no_progress
            }
            _ => return Err(list.is_not_indexed(&start.address, &opened.folder, &name)),
        };
        let folder = opened.folder.clone();
        let mut fetcher = Self::new(start, (process, opened, in_use), list.shards.len() as u64);
        fetcher.make_index(&list, tars.most_of_index, progress)?;
        let made = fetcher.report();
        // The folder stays in use: its shards were read just now.
        let (same, shards_read) = fetcher.into_start();
        start = same;
        // Another one, which knows the checksums that were found.
        let (process, opened, in_use) = start.open(&mut deaths)?;
        drop(shards_read);
        let indexed = match opened.folder == folder {
            true => list.open_index(&folder, &name)?,
            false => None,
        };
        let Some((index, scan)) = indexed else {
            let what = "changed while it was indexed: wait until whoever writes there is done";
            return Err(Error::dataset(start.address.as_str(), what));
        };
        let mut fetcher = Self::new(start, (process, opened, in_use), index.shards());
        // Of one run, for whoever reads the report.
        fetcher.before = Counts {
            shards: made.shards,
            bytes: made.bytes,
            removed: made.removed,
            retries: made.retries,
        };
        fetcher.total_deaths = deaths + made.deaths;
        Ok((fetcher, index, Some(scan)))
    }

    fn new(start: Start, of: (Process, Opened, Lease), shards: u64) -> Self {
        let (process, opened, in_use) = of;
        Self {
            in_use,
            held: HeldShards::new(shards, opened.room, opened.evicts()),
            start,
            process,
            opened,
            order: None,
            next: None,
            watched: Instant::now(),
            asked: Instant::now(),
            deaths: 0,
            heard: Mutex::default(),
            untold: false,
            before: Counts::default(),
            gave_up: false,
            total_deaths: 0,
            waited: Duration::ZERO,
            wait: ShardWait::new(),
            shard_bytes: None,
        }
    }

    /// Ends the fetcher.
    fn into_start(self) -> (Start, Lease) {
        (self.start, self.in_use)
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
        let (folder, names) = (self.opened.folder.clone(), list.names());
        let address = self.start.address.to_string();
        let options = self.start.options.shards.clone();
        let mut shards = ComingShards::new(&folder, &address, &options)?;
        // Batches of one sample, which is a shard.
        let index = one_for_each(&folder, &names)?;
        let order = PlanOptions {
            batch: 1,
            sampler: Sampler::Sequential,
            ..PlanOptions::default()
        };
        let plan = Plan::new(index.len(), order)?;
        let mut at = Mark::new(0, 0);
        self.plan(&index, &plan, at, Some(1))?;
        for (number, name) in names.iter().enumerate() {
            while self.ready(&index, &plan, at, 1, READY)?.is_none() {}
            shards.read(name, list.address(number))?;
            at = plan.behind(at);
            progress(number as u64 + 1, names.len() as u64);
        }
        shards.keep(most)
    }

    /// The folder that shards come to.
    pub(super) fn folder(&self) -> &Path {
        &self.opened.folder
    }

    /// Bytes of shards that may be in it at a time.
    pub(super) fn room(&self) -> u64 {
        self.opened.room
    }

    pub(super) fn is_of_tars(&self) -> bool {
        self.opened.tars.is_some()
    }

    /// A shard came: fetchers that died before are none in a row.
    pub(super) fn goes_on(&mut self) {
        self.deaths = 0;
    }

    /// Looks now and then whether the fetcher lives, while what is at `at` is held and nothing more
    /// is waited for: it says in the folder what may not be removed.
    ///
    /// # Errors
    /// One that cannot be replaced.
    pub(super) fn look_after(&mut self, at: Mark) -> Result<()> {
        if self.watched.elapsed() < ASK {
            return Ok(());
        }
        self.watched = Instant::now();
        self.watch(at)
    }

    /// Lets the batches go that are held, for those of another order.
    pub(super) fn let_go(&mut self) {
        self.held.let_go();
        self.next = None;
    }

    /// Of tar shards that are no cache: the file that their index is kept in, the address that it
    /// is shared at, and its name there.
    ///
    /// # Errors
    /// A list that cannot be read any more.
    pub(crate) fn kept_index(&self) -> Result<Option<(PathBuf, Address, String)>> {
        if !self.is_of_tars() {
            return Ok(None);
        }
        let (folder, index) = (
            self.folder(),
            ComingShards::file_name(&self.start.options.shards),
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
        self.opened.evicts()
    }

    /// Has shards come for a run that stands at `at`.
    ///
    /// # Errors
    /// An order under which the limit cannot work.
    pub(crate) fn plan(
        &mut self,
        index: &Index,
        plan: &Plan,
        at: Mark,
        epochs: Option<u64>,
    ) -> Result<()> {
        let own = |fd: std::os::fd::BorrowedFd<'_>| {
            fd.try_clone_to_owned()
                .map_err(|e| Error::io("duplicate the descriptors of an order", e))
        };
        self.order = Some(Order {
            options: plan.options().clone(),
            index: own(index.as_fd())?,
            table: plan.table().map(|table| own(table.as_fd())).transpose()?,
            epochs,
        });
        // Of all machines, until the fetcher says how many came to this one.
        self.held.is_of_ranks(plan.options().world);
        self.next = Some(at);
        match self.send_plan(at) {
            Err(why) if is_of_one_that_died(&why) => self.start_again(at, why),
            done => done,
        }
    }

    fn send_plan(&mut self, at: Mark) -> Result<()> {
        let Some(order) = &self.order else {
            return Ok(());
        };
        let request = Request::Plan {
            options: Box::new(order.options.clone()),
            at: at.into(),
            epochs: order.epochs,
        };
        let mut fds = vec![order.index.as_fd()];
        fds.extend(order.table.as_ref().map(AsFd::as_fd));
        socket::send(self.process.socket.as_fd(), &to_bytes(&request)?, &fds)?;
        loop {
            match self.process.answer(None)? {
                Some(Reply::Planned) => return Ok(()),
                Some(Reply::Trouble(trouble)) => return Err(trouble.into_error()),
                // An answer to what it was asked before.
                Some(other) => lock(&self.heard).hear(other)?,
                None => {}
            }
        }
    }

    /// Batches from `at` on whose shards are there and stay, at most `most`; none where those of
    /// the first do not come within `limit`.
    ///
    /// # Errors
    /// What the fetcher cannot get, once it is needed. The next call tries again.
    pub(crate) fn ready(
        &mut self,
        index: &Index,
        plan: &Plan,
        at: Mark,
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
                    self.tell_again(at)?;
                    match self.hear(WATCH) {
                        Err(e) if e.is_protocol() => return Err(e),
                        _ => {}
                    }
                }
                return Ok(Some(self.held.len()));
            }
            self.watch(at)?;
            let trouble = lock(&self.heard).trouble.take();
            if let Some(trouble) = trouble {
                self.gave_up = true;
                return Err(trouble.into_error());
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
        let (opened, path) = (&self.opened, index.shard_path(shard));
        let known = &mut self.shard_bytes;
        let line = self.wait.line(&path, || {
            let all = known.get_or_insert_with(|| bytes_of_shards(opened));
            all.get(usize::try_from(shard).ok()?).copied()
        });
        if let Some(text) = line {
            tracing::warn!("{}: {text}", self.start.address);
        }
    }

    /// The run stands at `at`: what is behind it may go.
    fn go_to(&mut self, at: Mark) -> Result<()> {
        if self.held.begins_at(at) {
            return Ok(());
        }
        let place = Place::from(at);
        if self.held.go_to(at) || self.next == Some(at) {
            return self.tell(&Request::At(place));
        }
        self.next = Some(at);
        self.tell(&Request::Jump(place))
    }

    /// Holds the batch behind those that are held; whether it is there.
    fn hold_next(&mut self, index: &Index, plan: &Plan) -> Result<bool> {
        let Some(at) = self.next else {
            return Ok(false);
        };
        let is_over = |order: &Order| order.epochs.is_some_and(|epochs| at.epoch >= epochs);
        if !self.held.is_empty() && self.order.as_ref().is_some_and(is_over) {
            return Ok(false);
        }
        let is_held = self.held.hold(index, plan, at)?;
        if is_held {
            self.next = Some(plan.behind(at));
            self.deaths = 0;
        }
        Ok(is_held)
    }

    /// Tells the fetcher where the run stands. One that does not listen hears of it by the next
    /// look; one that is gone is noticed then.
    fn tell(&mut self, request: &Request) -> Result<()> {
        let offered = socket::offer(self.process.socket.as_fd(), &to_bytes(request)?, &[]);
        self.untold |= !matches!(offered, Ok(true));
        Ok(())
    }

    /// Tells it once more where it stands, where a word was lost.
    fn tell_again(&mut self, at: Mark) -> Result<()> {
        if std::mem::take(&mut self.untold) {
            // By whichever way it came there.
            self.tell(&Request::Jump(at.into()))?;
        }
        Ok(())
    }

    fn check_owner(&self) -> Result<()> {
        if getpid() == self.process.owner {
            return Ok(());
        }
        Err(Error::worker(
            "a loader cannot be used in a forked copy of the process that built it",
        ))
    }

    /// Whether the fetcher lives, and has nothing to say. One that died is started again.
    fn watch(&mut self, at: Mark) -> Result<()> {
        if std::mem::take(&mut self.gave_up) {
            return match self.start_another(at) {
                Err(why) if is_of_one_that_died(&why) => self.start_again(at, why),
                done => done,
            };
        }
        if lock(&self.heard).trouble.is_some() {
            return Ok(());
        }
        self.tell_again(at)?;
        match self.hear(LOOK) {
            Err(e) if e.is_protocol() => Err(e),
            Err(why) => self.start_again(at, why),
            Ok(()) => Ok(()),
        }
    }

    /// Hears what the fetcher says, and asks it now and then whether it goes on. One that was
    /// stopped, or says nothing, is killed. Whoever waits asks again and again, with a sleep of
    /// `planned` between at most.
    ///
    /// # Errors
    /// One that ended, or was killed; what nobody asked for.
    fn hear(&mut self, planned: Duration) -> Result<()> {
        while let Some(reply) = self.process.answer(Some(Duration::ZERO))? {
            let is_last = matches!(reply, Reply::Trouble(_));
            lock(&self.heard).hear(reply)?;
            // It ends then.
            if is_last {
                return Ok(());
            }
        }
        self.process.check_stopped(planned)?;
        let mut heard = lock(&self.heard);
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
            return Err(self.process.kill(&format!("said nothing for {SILENCE:?}")));
        }
        if !heard.is_asked {
            // One that does not drain its socket is asked again the next time.
            let look = to_bytes(&Request::Look)?;
            let offered = socket::offer(self.process.socket.as_fd(), &look, &[]);
            heard.is_asked = matches!(offered, Ok(true));
        }
        Ok(())
    }

    fn start_again(&mut self, at: Mark, mut why: Error) -> Result<()> {
        loop {
            self.deaths += 1;
            self.total_deaths += 1;
            if self.deaths > MOST_DEATHS {
                // The next call tries again.
                self.deaths = 0;
                return Err(Error::worker(format!(
                    "the fetcher died {MOST_DEATHS} times without getting a shard: {why}"
                )));
            }
            tracing::warn!("the fetcher died and is started again: {why}");
            match self.start_another(at) {
                // That one died too, or was stopped.
                Err(e) if is_of_one_that_died(&e) => why = e,
                done => return done,
            }
        }
    }

    fn start_another(&mut self, at: Mark) -> Result<()> {
        self.renew()?;
        self.send_plan(at)
    }

    /// Another fetcher, which knows no order yet.
    pub(super) fn renew(&mut self) -> Result<()> {
        let process = self.start.process()?;
        let opened = self.start.opened(&process, Some(self.opened.room))?;
        if opened.folder != self.opened.folder {
            return Err(Error::dataset(
                self.start.address.as_str(),
                "changed while it was read: start the run again",
            ));
        }
        self.process = process;
        self.untold = false;
        self.asked = Instant::now();
        let heard = std::mem::take(&mut *lock(&self.heard));
        self.before = self.before.and(heard.counts);
        Ok(())
    }

    /// What was done so far.
    pub(crate) fn report(&self) -> FetchReport {
        let mut heard = lock(&self.heard);
        if self.check_owner().is_ok() {
            // What else it says would be lost: whoever needs a shard is told why it does not come.
            let _ = self.process.report(&mut |reply| heard.hear(reply));
        }
        let now = self.before.and(heard.counts);
        FetchReport {
            process: self.process.pid.as_raw(),
            shards: now.shards,
            bytes: now.bytes,
            removed: now.removed,
            retries: now.retries,
            deaths: self.total_deaths,
            wait_s: self.waited.as_secs_f64(),
        }
    }
}

/// Bytes of each shard, by manifest or list; empty where that cannot be read.
fn bytes_of_shards(opened: &Opened) -> Vec<u64> {
    let bytes: Result<Vec<u64>> = match opened.tars {
        Some(_) => TarList::read(&opened.folder)
            .map(|list| list.shards.iter().map(|shard| shard.bytes).collect()),
        None => CacheManifest::read(&opened.folder.join(CACHE_MANIFEST))
            .map(|(manifest, _)| manifest.shards.iter().map(|shard| shard.bytes).collect()),
    };
    bytes.unwrap_or_default()
}

/// What nobody leaves half done: a panic elsewhere changes nothing of it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
