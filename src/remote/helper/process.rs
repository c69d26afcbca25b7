//! The consumer's hold on a helper that works with a store: how one is started, what it says,
//! how it ends. And what a fetcher is started with.
//!
//! In the consumer. In a forked copy of it dropping does nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::wait::WaitStatus;
use nix::unistd::{Pid, getpid};
use serde::de::DeserializeOwned;

use crate::data::index::{ComingShards, ShardLabels, ShardOptions};
use crate::error::{Error, Result};
use crate::pool::coordinator::launch::launch_other;
use crate::pool::coordinator::messages::FETCHER_COMMAND;
use crate::remote::address::Address;
use crate::remote::fetch::FetchOptions;
use crate::remote::fetch::lease::{Lease, use_folder};
use crate::remote::fetch::messages::{LONGEST, Opened, Reply, Request, Said, from_bytes, to_bytes};
use crate::sys::clock::RunningClock;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::Received;

/// Between two looks whether it has ended, while an answer is awaited.
const LOOK: Duration = Duration::from_millis(50);
/// How long a fetcher may take to say what it did.
const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// How long a fetcher may take to end by itself.
const END_LIMIT: Duration = Duration::from_millis(200);
/// The same once it was killed. One that waits for storage which does not answer is left behind.
const KILL_LIMIT: Duration = Duration::from_secs(2);
/// Fetchers that may die one after the other without a shard between them.
pub(crate) const MOST_DEATHS: u32 = 8;
/// How long it may stand stopped while this process runs.
const STOP_LIMIT: Duration = Duration::from_secs(1);

/// What a fetcher is started with.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) address: Address,
    pub(crate) options: FetchOptions,
    /// The executable, where it is named.
    pub(crate) helper: Option<PathBuf>,
}

/// A live helper.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) socket: OwnedFd,
    pub(crate) pid: Pid,
    pidfd: PidFd,
    /// The process that owns this value; a forked copy of it does not.
    pub(crate) owner: Pid,
    /// What it is, for messages.
    what: &'static str,
    /// How long it may take to end by itself.
    end_limit: Duration,
    /// Since when it stands stopped.
    stopped: Mutex<Option<RunningClock>>,
}

/// An answer to another question.
pub(crate) fn unexpected(reply: Option<&Reply>) -> Error {
    let name = match reply {
        Some(Reply::Opened(_)) => "Opened",
        Some(Reply::Planned) => "Planned",
        Some(Reply::Report(_)) => "Report",
        Some(Reply::GoesOn { .. }) => "GoesOn",
        Some(Reply::Trouble(_)) => "Trouble",
        None => "nothing",
    };
    Error::protocol(format!("the fetcher answered {name} to another question"))
}

/// Whether the helper that an error is about is gone.
pub(crate) fn is_of_one_that_died(e: &Error) -> bool {
    e.is_worker() || e.is_io()
}

impl Start {
    /// A fetcher that has manifest and index, and the folder in use. One that dies meanwhile is
    /// replaced, and counted.
    ///
    /// # Errors
    /// As [`Start::process`] and [`Start::opened`].
    pub(crate) fn open(&self, deaths: &mut u64) -> Result<(Process, Opened, Lease)> {
        let mut in_a_row = 0;
        loop {
            let process = self.process()?;
            match self.opened(&process, None) {
                Ok(opened) => {
                    let lease = use_folder(&opened.folder)?;
                    return Ok((process, opened, lease));
                }
                Err(why) if is_of_one_that_died(&why) && in_a_row < MOST_DEATHS => {
                    in_a_row += 1;
                    *deaths += 1;
                    tracing::warn!("the fetcher died and is started again: {why}");
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// Starts one, and shakes hands with it.
    ///
    /// # Errors
    /// A helper that is missing, or cannot be a fetcher.
    pub(crate) fn process(&self) -> Result<Process> {
        Process::start(
            FETCHER_COMMAND,
            "fetcher",
            self.helper.as_deref(),
            END_LIMIT,
        )
    }

    /// # Errors
    /// Something is said of how tar shards are read, and it is a cache.
    pub(crate) fn refuse_shard_options(&self) -> Result<()> {
        let ShardOptions {
            labels,
            image_field,
            classes,
            keep: _,
        } = &self.options.shards;
        match (labels, image_field, classes) {
            (ShardLabels::Auto, None, None) => Ok(()),
            _ => Err(Error::dataset(
                self.address.as_str(),
                "is a cache, whose classes and labels are fixed: remove the options that say how \
                 tar shards are read",
            )),
        }
    }

    /// Has it get manifest and index. `room`: as a fetcher before this one found it.
    ///
    /// # Errors
    /// A cache that is not there, or cannot be had.
    pub(crate) fn opened(&self, process: &Process, room: Option<u64>) -> Result<Opened> {
        let request = Request::Open {
            address: self.address.clone(),
            options: Box::new(self.options.clone()),
            room,
            index: ComingShards::file_name(&self.options.shards),
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
    /// Starts `what` by its command, and shakes hands with it. Once its socket has ended it may
    /// take `end_limit` to end by itself.
    ///
    /// # Errors
    /// A helper that is missing, or cannot be one.
    pub(crate) fn start(
        command: &str,
        what: &'static str,
        helper: Option<&Path>,
        end_limit: Duration,
    ) -> Result<Self> {
        let lacks = match cfg!(all(feature = "stores", feature = "codecs")) {
            true => None,
            false => Some("stores"),
        };
        let (socket, pid, pidfd) = launch_other(command, helper, lacks)?;
        Ok(Self {
            socket,
            pid,
            pidfd,
            owner: getpid(),
            what,
            end_limit,
            stopped: Mutex::new(None),
        })
    }

    /// What it says; none when that takes longer than `limit`. Without one until it ends.
    pub(crate) fn answer<T: DeserializeOwned>(&self, limit: Option<Duration>) -> Result<Option<T>> {
        let mut buffer = vec![0; LONGEST];
        loop {
            let wait = limit.unwrap_or(LOOK);
            match socket::receive(self.socket.as_fd(), &mut buffer, wait)? {
                Received::Message(n, _) => match from_bytes(&buffer[..n])? {
                    Said::Reply(reply) => return Ok(Some(reply)),
                    Said::Warning(text) => tracing::warn!("{text}"),
                },
                Received::Timeout if limit.is_some() => return Ok(None),
                Received::Timeout => self.check_stopped(LOOK)?,
                Received::Closed => {
                    let how = match self.pidfd.reap(true) {
                        Some(WaitStatus::Exited(_, status)) => format!("ended with {status}"),
                        Some(WaitStatus::Signaled(_, signal, _)) => {
                            format!("was ended by {signal}")
                        }
                        _ => "ended".to_owned(),
                    };
                    let (what, pid) = (self.what, self.pid);
                    return Err(Error::worker(format!("the {what} (pid {pid}) {how}")));
                }
            }
        }
    }

    /// Has it say what it did; `hear` is given that, and what else it says until then.
    ///
    /// # Errors
    /// One that is gone, or does not answer.
    pub(crate) fn report(&self, hear: &mut dyn FnMut(Reply) -> Result<()>) -> Result<()> {
        socket::send(self.socket.as_fd(), &to_bytes(&Request::Report)?, &[])?;
        loop {
            let Some(reply) = self.answer(Some(REPORT_LIMIT))? else {
                return Err(Error::worker("the fetcher did not say what it did"));
            };
            let is_last = matches!(reply, Reply::Report(_) | Reply::Trouble(_));
            hear(reply)?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Kills it where it was stopped and is not let go on. Whoever waits asks again and again,
    /// with a sleep of `planned` between at most.
    ///
    /// # Errors
    /// That it was killed.
    pub(crate) fn check_stopped(&self, planned: Duration) -> Result<()> {
        // A clock is whole at every moment.
        let mut clock = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(signal) = self.pidfd.stopped() else {
            *clock = None;
            return Ok(());
        };
        if clock.get_or_insert_with(RunningClock::start).read(planned) < STOP_LIMIT {
            return Ok(());
        }
        Err(self.kill(&format!("was stopped by {signal} for {STOP_LIMIT:?}")))
    }

    /// Kills it; why, as an error.
    pub(crate) fn kill(&self, why: &str) -> Error {
        self.pidfd.kill();
        Error::worker(format!(
            "the {} (pid {}) {why}, and was killed",
            self.what, self.pid
        ))
    }

    /// Whether it ended within `limit`.
    fn ends_within(&self, limit: Duration) -> bool {
        // Also when somebody else has reaped it.
        let ended = matches!(socket::readable(self.pidfd.as_fd(), limit), Ok(true));
        if ended {
            self.pidfd.reap(false);
        }
        ended
    }
}

impl Drop for Process {
    /// It ends by itself when the socket does. Not in a forked copy: it is the parent's.
    fn drop(&mut self) {
        if getpid() != self.owner {
            return;
        }
        let end = socket::end(self.socket.as_fd());
        if end.is_ok() && self.ends_within(self.end_limit) {
            return;
        }
        self.pidfd.kill();
        self.ends_within(KILL_LIMIT);
    }
}
