//! The consumer's hold on a fetcher: how one is started, what it says, how it ends.
//!
//! In the consumer. In a forked copy of it dropping does nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};
use crate::fetch::address::Address;
use crate::fetch::messages::{LONGEST, Opened, Reply, Request, from_bytes, to_bytes};
use crate::fetch::options::FetchOptions;
use crate::pool::coordinator::launch::launch_other;
use crate::pool::coordinator::messages::FETCHER_COMMAND;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::Received;

/// Between two looks whether it has ended, while an answer is awaited.
const LOOK: Duration = Duration::from_millis(50);
/// How long a fetcher may take to say what it did.
const REPORT_LIMIT: Duration = Duration::from_secs(2);
/// How long it may take to end by itself.
const END_LIMIT: Duration = Duration::from_millis(200);

/// What a fetcher is started with.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) address: Address,
    pub(super) options: FetchOptions,
    /// The executable, where it is named.
    pub(super) helper: Option<PathBuf>,
}

/// A live fetcher.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) socket: OwnedFd,
    pub(super) pid: Pid,
    pidfd: PidFd,
    /// The process that owns this value; a forked copy of it does not.
    pub(super) owner: Pid,
}

/// What was said where something else was asked for.
pub(super) fn unexpected(reply: Option<&Reply>) -> Error {
    Error::protocol(format!("the fetcher said {reply:?} where nobody asked"))
}

impl Start {
    /// Starts one, and shakes hands with it.
    ///
    /// # Errors
    /// A helper that is missing, or cannot be a fetcher.
    pub(super) fn process(&self) -> Result<Process> {
        let lacks = match cfg!(all(feature = "stores", feature = "codecs")) {
            true => None,
            false => Some("stores"),
        };
        let (socket, pid, pidfd) = launch_other(FETCHER_COMMAND, self.helper.as_deref(), lacks)?;
        Ok(Process {
            socket,
            pid,
            pidfd,
            owner: getpid(),
        })
    }

    /// Has it get manifest and index. `room`: as a fetcher before this one found it.
    ///
    /// # Errors
    /// A cache that is not there, or cannot be had.
    pub(super) fn opened(&self, process: &Process, room: Option<u64>) -> Result<Opened> {
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
    pub(super) fn answer(&self, limit: Option<Duration>) -> Result<Option<Reply>> {
        let mut buffer = vec![0; LONGEST];
        loop {
            let wait = limit.unwrap_or(LOOK);
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

    /// What it did; or what else it had to say.
    pub(super) fn report(&self) -> Result<Reply> {
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
