//! The consumer's side: starts the fetcher, waits for shards, and holds those that workers may
//! be reading.
//!
//! In the consumer. Batches are only ordered when their shards are there and held, so workers
//! never wait for storage. A fetcher that dies is started again; nothing is lost with it but what
//! was under way, and of that only the last piece.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::getpid;
use serde::Serialize;

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::fetch::address::Address;
use crate::fetch::lease::Lease;
use crate::fetch::messages::{
    Counts, LONGEST, Opened, Place, Reply, Request, Trouble, from_bytes, to_bytes,
};
use crate::fetch::options::FetchOptions;
use crate::plan::{Mark, Plan, PlanOptions};
use crate::pool::coordinator::launch::launch_other;
use crate::pool::coordinator::messages::FETCHER_COMMAND;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::Received;

/// Between two looks for a shard.
const LOOK: Duration = Duration::from_millis(2);
/// Between two looks at the fetcher, while shards are there.
const WATCH: Duration = Duration::from_millis(50);
/// How long a fetcher may take to say what it did.
const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// How long it may take to end by itself.
const END_LIMIT: Duration = Duration::from_millis(200);

/// Fetchers that may die one after the other without a shard between them.
const MOST_DEATHS: u32 = 8;

/// What part of the folder's room a rank may hold ahead of the batch that is asked for.
const HELD_AHEAD: u64 = 4;

/// What a fetcher did, and what was waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FetchReport {
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

/// What a fetcher is started with.
#[derive(Debug)]
struct Start {
    address: Address,
    options: FetchOptions,
    helper: Option<PathBuf>,
}

/// What it is told of the order, once that is known.
#[derive(Debug)]
struct Order {
    options: PlanOptions,
    index: OwnedFd,
    table: Option<OwnedFd>,
    epochs: Option<u64>,
}

/// A live fetcher.
#[derive(Debug)]
struct Process {
    socket: OwnedFd,
    pidfd: PidFd,
    owner: nix::unistd::Pid,
}

/// Shards of a cache that lies in an object store.
#[derive(Debug)]
pub(crate) struct Fetcher {
    start: Start,
    process: Process,
    opened: Opened,
    order: Option<Order>,
    /// Shards that are there for good: of a folder that has room for all.
    settled: Vec<bool>,
    /// Batches whose shards are held, in their order, the one that is asked for first.
    held: VecDeque<(Mark, Vec<u64>)>,
    leases: HashMap<u64, (Lease, u32)>,
    /// The first batch behind those.
    next: Option<Mark>,
    watched: Instant,
    deaths: u32,
    /// Why nothing more comes, until somebody needed it. A report may hear it too.
    trouble: Mutex<Option<Trouble>>,
    /// Whether the fetcher may not know where the run stands.
    untold: bool,
    /// Of this fetcher as last heard, and of those before it.
    counted: Mutex<Counts>,
    before: Counts,
    /// The fetcher has ended with that, and was told of.
    gave_up: bool,
    total_deaths: u64,
    waited: Duration,
}

impl Fetcher {
    /// Starts a fetcher, which gets manifest and index; the index.
    ///
    /// # Errors
    /// A cache that is not there, or cannot be had; a folder that cannot be written.
    pub(crate) fn open(
        address: Address,
        options: FetchOptions,
        helper: Option<PathBuf>,
    ) -> Result<(Self, Index)> {
        let start = Start {
            address,
            options,
            helper,
        };
        let process = start.process()?;
        let opened = start.opened(&process, None)?;
        let index = Index::cache_to_come(&opened.folder)?;
        let fetcher = Self {
            settled: vec![false; index.shards() as usize],
            start,
            process,
            opened,
            order: None,
            held: VecDeque::new(),
            leases: HashMap::new(),
            next: None,
            watched: Instant::now(),
            deaths: 0,
            trouble: Mutex::new(None),
            untold: false,
            counted: Mutex::new(Counts::default()),
            before: Counts::default(),
            gave_up: false,
            total_deaths: 0,
            waited: Duration::ZERO,
        };
        Ok((fetcher, index))
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
        self.next = Some(at);
        self.send_plan(at)
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
        match self.process.answer(None)? {
            Some(Reply::Planned) => Ok(()),
            Some(Reply::Trouble(trouble)) => Err(trouble.into_error()),
            other => Err(unexpected(other.as_ref())),
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
                // What became of the fetcher matters when something is missing.
                if self.watched.elapsed() >= WATCH {
                    self.watched = Instant::now();
                    self.tell_again(at)?;
                }
                return Ok(Some(self.held.len()));
            }
            self.watch(at)?;
            if let Some(trouble) = lock(&self.trouble).take() {
                self.gave_up = true;
                return Err(trouble.into_error());
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
            let waiting = Instant::now();
            thread::sleep(LOOK);
            self.waited += waiting.elapsed();
        }
    }

    /// The run stands at `at`: what is behind it may go.
    fn go_to(&mut self, at: Mark) -> Result<()> {
        if self.held.front().is_some_and(|(first, _)| *first == at) {
            return Ok(());
        }
        let known = self.held.iter().any(|(mark, _)| *mark == at);
        while self.held.front().is_some_and(|(first, _)| *first != at) {
            let gone = self.held.pop_front();
            self.release(gone.map(|(_, shards)| shards).unwrap_or_default());
        }
        let place = Place::from(at);
        if known || self.next == Some(at) {
            return self.tell(&Request::At(place));
        }
        self.next = Some(at);
        self.tell(&Request::Jump(place))
    }

    fn release(&mut self, shards: Vec<u64>) {
        for shard in shards {
            if let Some((_, count)) = self.leases.get_mut(&shard) {
                *count -= 1;
                if *count == 0 {
                    self.leases.remove(&shard);
                }
            }
        }
    }

    /// Holds the shards of the batch behind those that are held; whether all are there.
    fn hold_next(&mut self, index: &Index, plan: &Plan) -> Result<bool> {
        let Some(at) = self.next else {
            return Ok(false);
        };
        let is_over = |order: &Order| order.epochs.is_some_and(|epochs| at.epoch >= epochs);
        if !self.held.is_empty() && self.order.as_ref().is_some_and(is_over) {
            return Ok(false);
        }
        let mut shards: Vec<u64> = (0..plan.filled_rows_at(at))
            .filter_map(|row| index.part(plan.row_at(at, row).id))
            .map(|part| part.shard)
            .collect();
        shards.sort_unstable();
        shards.dedup();
        let is_held = match self.evicts() {
            true => self.lease(index, &shards)?,
            false => self.settle(index, &shards)?,
        };
        if !is_held {
            return Ok(false);
        }
        self.held.push_back((at, shards));
        self.next = Some(plan.behind(at));
        Ok(true)
    }

    /// Of a folder that has room for all: whether these are there.
    fn settle(&mut self, index: &Index, shards: &[u64]) -> Result<bool> {
        for &shard in shards {
            let Some(settled) = self.settled.get_mut(shard as usize) else {
                continue;
            };
            if !*settled {
                let path = index.shard_path(shard);
                *settled = path
                    .try_exists()
                    .map_err(|e| Error::io_at("look at", &path, e))?;
                if !*settled {
                    return Ok(false);
                }
                self.deaths = 0;
            }
        }
        Ok(true)
    }

    /// Of a folder that has not: holds these, all or none.
    fn lease(&mut self, index: &Index, shards: &[u64]) -> Result<bool> {
        if !self.held.is_empty() {
            // Ahead of what is asked for a rank holds little: others must get on.
            let bytes = |shards: &mut dyn Iterator<Item = u64>| {
                let paths = shards.map(|shard| index.shard_path(shard));
                let lengths = paths.map(|path| path.metadata().map_or(0, |meta| meta.len()));
                lengths.fold(0, u64::saturating_add)
            };
            let new = shards
                .iter()
                .copied()
                .filter(|s| !self.leases.contains_key(s));
            let new: Vec<u64> = new.collect();
            if !new.is_empty() {
                let world = self
                    .order
                    .as_ref()
                    .map_or(1, |o| u64::from(o.options.world));
                let most = self.opened.room / HELD_AHEAD / world.max(1);
                let all = &mut self.leases.keys().copied().chain(new);
                if bytes(all) > most {
                    return Ok(false);
                }
            }
        }
        let mut taken = Vec::new();
        for &shard in shards {
            if self.leases.contains_key(&shard) {
                continue;
            }
            let path = index.shard_path(shard);
            let lease = Lease::take(&path).map_err(|e| Error::io_at("hold the shard", &path, e))?;
            match lease {
                Some(lease) => taken.push((shard, lease)),
                None => return Ok(false),
            }
        }
        for (shard, lease) in taken {
            self.leases.insert(shard, (lease, 0));
            self.deaths = 0;
        }
        for shard in shards {
            if let Some((_, count)) = self.leases.get_mut(shard) {
                *count += 1;
            }
        }
        Ok(true)
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
            return self.start_another(at);
        }
        if lock(&self.trouble).is_some() {
            return Ok(());
        }
        self.tell_again(at)?;
        match self.process.answer(Some(Duration::ZERO)) {
            Ok(None) => Ok(()),
            Ok(Some(Reply::Trouble(trouble))) => {
                *lock(&self.trouble) = Some(trouble);
                Ok(())
            }
            // The late answer to a question that was given up.
            Ok(Some(Reply::Report(_))) => Ok(()),
            Ok(other) => Err(unexpected(other.as_ref())),
            Err(why) => self.start_again(at, &why),
        }
    }

    fn start_again(&mut self, at: Mark, why: &Error) -> Result<()> {
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
        self.start_another(at)
    }

    fn start_another(&mut self, at: Mark) -> Result<()> {
        let process = self.start.process()?;
        let opened = self.start.opened(&process, Some(self.opened.room))?;
        if opened.folder != self.opened.folder {
            return Err(Error::dataset(
                self.start.address.as_str(),
                "was built again while it was read: start the run again",
            ));
        }
        self.process = process;
        self.untold = false;
        let counted = std::mem::take(&mut *lock(&self.counted));
        self.before = self.before.and(counted);
        self.send_plan(at)
    }

    /// What was done so far.
    pub(crate) fn report(&self) -> FetchReport {
        let mut counted = lock(&self.counted);
        if self.check_owner().is_ok() {
            match self.process.report() {
                Ok(Reply::Report(counts)) => *counted = counts,
                // It would be lost: whoever needs the shard is told.
                Ok(Reply::Trouble(trouble)) => *lock(&self.trouble) = Some(trouble),
                Ok(_) | Err(_) => {}
            }
        }
        let now = self.before.and(*counted);
        FetchReport {
            shards: now.shards,
            bytes: now.bytes,
            removed: now.removed,
            retries: now.retries,
            deaths: self.total_deaths,
            wait_s: self.waited.as_secs_f64(),
        }
    }
}

/// What nobody leaves half done: a panic elsewhere changes nothing of it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unexpected(reply: Option<&Reply>) -> Error {
    Error::protocol(format!("the fetcher said {reply:?} where nobody asked"))
}

impl Start {
    fn process(&self) -> Result<Process> {
        let lacks = match cfg!(all(feature = "stores", feature = "codecs")) {
            true => None,
            false => Some("stores"),
        };
        let (socket, _, pidfd) = launch_other(FETCHER_COMMAND, self.helper.as_deref(), lacks)?;
        Ok(Process {
            socket,
            pidfd,
            owner: getpid(),
        })
    }

    /// `room`: as a fetcher before this one found it.
    fn opened(&self, process: &Process, room: Option<u64>) -> Result<Opened> {
        let request = Request::Open {
            address: self.address.clone(),
            options: self.options.clone(),
            room,
        };
        socket::send(process.socket.as_fd(), &to_bytes(&request)?, &[])?;
        match process.answer(None)? {
            Some(Reply::Opened(opened)) => Ok(opened),
            Some(Reply::Trouble(trouble)) => Err(trouble.into_error()),
            other => Err(unexpected(other.as_ref())),
        }
    }
}

impl Process {
    /// What it says; none when that takes longer than `limit`. Without one until it ends.
    fn answer(&self, limit: Option<Duration>) -> Result<Option<Reply>> {
        let mut buffer = vec![0; LONGEST];
        loop {
            let wait = limit.unwrap_or(WATCH);
            match socket::receive(self.socket.as_fd(), &mut buffer, wait)? {
                Received::Message(n, _) => return from_bytes(&buffer[..n]).map(Some),
                Received::Timeout if limit.is_some() => return Ok(None),
                Received::Timeout => {}
                Received::Closed => {
                    let how = match self.pidfd.reap(true) {
                        Some(how) => format!(" ({how:?})"),
                        None => String::new(),
                    };
                    return Err(Error::worker(format!("the fetcher ended{how}")));
                }
            }
        }
    }

    fn report(&self) -> Result<Reply> {
        socket::send(self.socket.as_fd(), &to_bytes(&Request::Report)?, &[])?;
        let answer = self.answer(Some(REPORT_LIMIT))?;
        answer.ok_or_else(|| Error::worker("the fetcher did not say what it did"))
    }
}

impl Drop for Process {
    /// It ends by itself when the socket does. Not in a forked copy: it is the parent's.
    fn drop(&mut self) {
        if getpid() != self.owner {
            return;
        }
        let began = Instant::now();
        let end = socket::end(self.socket.as_fd());
        while end.is_ok() && began.elapsed() < END_LIMIT {
            if self.pidfd.reap(false).is_some() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        self.pidfd.kill();
        self.pidfd.reap(true);
    }
}
