//! The consumer's side: has a sender, tells it what to do, and hears what is done.
//!
//! In the consumer. A sender that dies is started again, and told again what it had not done. In
//! a forked copy of the consumer dropping does nothing.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::data::shard::manifest::Hash128;
use crate::error::{Error, Result};
use crate::pool::coordinator::messages::SENDER_COMMAND;
use crate::remote::fetch::Address;
use crate::remote::fetch::messages::to_bytes;
use crate::remote::helper::process::{Process, is_of_one_that_died};
use crate::remote::upload::messages::{Counts, Reply, Request};
use crate::sys::socket;

/// Senders that may die one after the other with nothing done between them.
const MOST_DEATHS: u32 = 8;

/// How long it may take to end by itself: it ends what it has begun in the store.
const END_LIMIT: Duration = Duration::from_secs(3);

/// A live sender.
#[derive(Debug)]
pub(crate) struct Sender {
    address: Address,
    helper: Option<PathBuf>,
    process: Process,
    /// Requests for shards that are not answered, the first one first.
    waiting: VecDeque<(String, Request)>,
    /// One after the other.
    deaths: u32,
    pub(crate) total_deaths: u64,
    pub(crate) counts: Counts,
}

impl Sender {
    /// Starts one for the store at `address`. Nothing is asked of the store yet.
    ///
    /// # Errors
    /// A helper that is missing or cannot be a sender; an address that takes nothing.
    pub(crate) fn open(address: Address, helper: Option<PathBuf>) -> Result<Self> {
        let mut sender = Self {
            process: launched(helper.as_ref())?,
            address,
            helper,
            waiting: VecDeque::new(),
            deaths: 0,
            total_deaths: 0,
            counts: Counts::default(),
        };
        match opened(&sender.process, &sender.address) {
            Err(why) if is_of_one_that_died(&why) => sender.start_again(why)?,
            opened => opened?,
        }
        Ok(sender)
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Shards that were told of and are not there yet.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Asks for something while no shard is on its way, and waits for the answer.
    ///
    /// # Errors
    /// What the store does not do; senders that die.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Reply> {
        loop {
            let asked = socket::send(self.process.socket.as_fd(), &to_bytes(request)?, &[]);
            let answered = asked.and_then(|()| self.process.answer(None));
            match answered {
                Ok(Some(Reply::Trouble(trouble))) => return Err(trouble.into_error()),
                Ok(Some(reply)) => {
                    self.deaths = 0;
                    return Ok(reply);
                }
                Ok(None) => {}
                Err(e) if e.is_protocol() => return Err(e),
                Err(why) => self.start_again(why)?,
            }
        }
    }

    /// Tells of a shard.
    ///
    /// # Errors
    /// A request that fits into no packet; senders that die.
    pub(crate) fn send(&mut self, shard: String, request: Request) -> Result<()> {
        let bytes = to_bytes(&request)?;
        self.waiting.push_back((shard, request));
        match socket::send(self.process.socket.as_fd(), &bytes, &[]) {
            Ok(()) => Ok(()),
            Err(why) => self.start_again(why),
        }
    }

    /// The next shard that is in the store; none where that takes longer than `limit`.
    ///
    /// # Errors
    /// What the store does not take; senders that die.
    pub(crate) fn hear(&mut self, limit: Duration) -> Result<Option<String>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let heard = match self.process.answer(Some(limit)) {
            Ok(None) => self.process.check_stopped(limit).map(|()| None),
            heard => heard,
        };
        match heard {
            Ok(None) => Ok(None),
            Ok(Some(Reply::Up { shard, counts })) => {
                let first = self.waiting.pop_front();
                if first.is_none_or(|(name, _)| name != shard) {
                    return Err(Error::protocol(format!("{shard} went up out of turn")));
                }
                self.deaths = 0;
                self.counts = self.counts.and(counts);
                Ok(Some(shard))
            }
            Ok(Some(Reply::Trouble(trouble))) => Err(trouble.into_error()),
            Ok(Some(other)) => Err(unexpected(&other)),
            Err(e) if e.is_protocol() => Err(e),
            Err(why) => self.start_again(why).map(|()| None),
        }
    }

    /// Starts another one, which is told of what is not done.
    fn start_again(&mut self, mut why: Error) -> Result<()> {
        loop {
            self.deaths += 1;
            self.total_deaths += 1;
            if self.deaths > MOST_DEATHS {
                return Err(Error::worker(format!(
                    "the sender died {MOST_DEATHS} times with nothing done between: {why}"
                )));
            }
            tracing::warn!("the sender died and is started again: {why}");
            match self.start_another() {
                // That one died too, or was stopped.
                Err(e) if is_of_one_that_died(&e) => why = e,
                done => return done,
            }
        }
    }

    fn start_another(&mut self) -> Result<()> {
        self.process = launched(self.helper.as_ref())?;
        opened(&self.process, &self.address)?;
        for (_, request) in &self.waiting {
            socket::send(self.process.socket.as_fd(), &to_bytes(request)?, &[])?;
        }
        Ok(())
    }
}

/// Puts the file `from` into the store at `address`, as the object `name`, in place of whatever is
/// there.
///
/// # Errors
/// What the store does not take; a file that cannot be read.
pub(crate) fn put(
    address: &Address,
    helper: Option<&Path>,
    (name, from): (String, &Path),
) -> Result<()> {
    let (_, hash) = Hash128::of_file(from).map_err(|e| Error::io_at("read", from, e))?;
    let request = Request::Put {
        name,
        from: from.to_owned(),
        hash,
    };
    let mut sender = Sender::open(address.clone(), helper.map(Path::to_owned))?;
    match sender.ask(&request)? {
        Reply::Ended(_) => Ok(()),
        other => Err(unexpected(&other)),
    }
}

fn launched(helper: Option<&PathBuf>) -> Result<Process> {
    let helper = helper.map(PathBuf::as_path);
    Process::start(SENDER_COMMAND, "sender", helper, END_LIMIT)
}

/// Tells it which store it is for.
fn opened(process: &Process, address: &Address) -> Result<()> {
    let open = Request::Open {
        address: address.clone(),
    };
    socket::send(process.socket.as_fd(), &to_bytes(&open)?, &[])?;
    match process.answer(None)? {
        Some(Reply::Done) => Ok(()),
        Some(Reply::Trouble(trouble)) => Err(trouble.into_error()),
        Some(other) => Err(unexpected(&other)),
        None => Err(Error::protocol("the sender said nothing")),
    }
}

/// An answer to another question.
pub(crate) fn unexpected(reply: &Reply) -> Error {
    let name = reply.name();
    Error::protocol(format!("the sender answered {name} to another question"))
}
