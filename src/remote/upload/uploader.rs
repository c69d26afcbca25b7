//! The consumer's side: has a sender, tells it what to do, and hears what is done.
//!
//! In the consumer. A sender that dies is started again, and told again what it had not done. In
//! a forked copy of the consumer dropping does nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::data::shard::manifest::HexHash128;
use crate::error::{Error, Result};
use crate::pool::coordinator::messages::SENDER_COMMAND;
use crate::remote::address::StoreAddress;
use crate::remote::helper::messages::TransferCounts;
use crate::remote::helper::process::{HelperKind, HelperProcess};
use crate::remote::helper::restarts::HelperSupervisor;
use crate::remote::upload::messages::{UploadReply, UploadRequest};

static SENDER: HelperKind = HelperKind {
    name: "sender",
    command: SENDER_COMMAND,
    // It ends what it has begun in the store.
    end_limit: Duration::from_secs(3),
    nothing_done: "with nothing done between",
};

/// A live sender.
#[derive(Debug)]
pub(crate) struct Uploader {
    address: StoreAddress,
    helper: HelperSupervisor,
    /// Requests for shards that are not answered, the first one first.
    waiting: VecDeque<(String, UploadRequest)>,
    pub(crate) counts: TransferCounts,
}

impl Uploader {
    /// Starts one for the store at `address`. Nothing is asked of the store yet.
    ///
    /// # Errors
    /// An executable that is missing or cannot be a sender; an address that takes nothing.
    pub(crate) fn open(address: StoreAddress, executable: Option<PathBuf>) -> Result<Self> {
        let mut sender = Self {
            helper: HelperSupervisor::start(&SENDER, executable)?,
            address,
            waiting: VecDeque::new(),
            counts: TransferCounts::default(),
        };
        let begun = begin(&sender.helper.process, &sender.address, &sender.waiting);
        sender.or_again(begun)?;
        Ok(sender)
    }

    pub(crate) fn address(&self) -> &StoreAddress {
        &self.address
    }

    pub(crate) fn total_deaths(&self) -> u64 {
        self.helper.total_deaths
    }

    /// Shards that were told of and are not there yet.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Asks for something while no shard is on its way, and waits for the answer.
    ///
    /// # Errors
    /// What the store does not do; senders that die.
    pub(crate) fn ask(&mut self, request: &UploadRequest) -> Result<UploadReply> {
        loop {
            match self.helper.process.ask(request) {
                Ok(reply) => {
                    self.helper.goes_on();
                    return Ok(reply);
                }
                Err(why) => self.or_again(Err(why))?,
            }
        }
    }

    /// Tells of a shard.
    ///
    /// # Errors
    /// A request that fits into no packet; senders that die.
    pub(crate) fn send_shard(&mut self, shard: String, request: UploadRequest) -> Result<()> {
        let sent = self.helper.process.send(&request, &[]);
        self.waiting.push_back((shard, request));
        let done = self.or_again(sent);
        if done.is_err() {
            // No answer will come to what was not sent.
            self.waiting.pop_back();
        }
        done
    }

    /// The next shard that is in the store; none where that takes longer than `limit`.
    ///
    /// # Errors
    /// What the store does not take; senders that die.
    pub(crate) fn next_uploaded(&mut self, limit: Duration) -> Result<Option<String>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        match self.helper.process.reply_within(limit, limit) {
            Ok(None) => Ok(None),
            Ok(Some(UploadReply::Up { shard, counts })) => {
                let first = self.waiting.pop_front();
                if first.is_none_or(|(name, _)| name != shard) {
                    return Err(Error::protocol(format!("{shard} went up out of turn")));
                }
                self.helper.goes_on();
                self.counts = self.counts + counts;
                Ok(Some(shard))
            }
            Ok(Some(other)) => Err(unexpected(&other)),
            Err(why) => self.or_again(Err(why)).map(|()| None),
        }
    }

    /// `done`, or, where the sender died meanwhile, another sender that gets all waiting requests.
    fn or_again(&mut self, done: Result<()>) -> Result<()> {
        let begin = |process: &_| begin(process, &self.address, &self.waiting);
        self.helper.retry_after_death(done, begin)
    }
}

/// Tells a sender which store it is for, and what it has to do.
fn begin(
    process: &HelperProcess,
    address: &StoreAddress,
    waiting: &VecDeque<(String, UploadRequest)>,
) -> Result<()> {
    let address = address.clone();
    match process.ask(&UploadRequest::Open { address })? {
        UploadReply::Done => {}
        other => return Err(unexpected(&other)),
    }
    let mut requests = waiting.iter().map(|(_, request)| request);
    requests.try_for_each(|request| process.send(request, &[]))
}

/// Puts the file `from` into the store at `address`, as the object `name`, in place of whatever is
/// there.
///
/// # Errors
/// What the store does not take; a file that cannot be read.
pub(crate) fn put(
    address: &StoreAddress,
    helper: Option<&Path>,
    (name, from): (String, &Path),
) -> Result<()> {
    let (bytes, hash) = HexHash128::of_file(from).map_err(|e| Error::io_at("read", from, e))?;
    let request = UploadRequest::Put {
        name,
        from: from.to_owned(),
        bytes,
        hash,
    };
    let mut sender = Uploader::open(address.clone(), helper.map(Path::to_owned))?;
    match sender.ask(&request)? {
        UploadReply::Ended(_) => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// An answer to another question.
pub(crate) fn unexpected(reply: &UploadReply) -> Error {
    SENDER.unexpected(reply)
}
