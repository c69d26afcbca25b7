//! The consumer's handle of its uploader: sends requests and receives replies.
//!
//! Runs in the consumer. An uploader that dies is restarted, and gets the open requests again. In a
//! forked copy of the consumer, dropping does nothing.

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
    // It aborts its unfinished upload.
    end_limit: Duration::from_secs(3),
    without_progress: "with nothing done between",
};

/// A live uploader.
#[derive(Debug)]
pub(crate) struct CacheUploader {
    address: StoreAddress,
    helper: HelperSupervisor,
    /// Unanswered requests for shards, in order.
    waiting: VecDeque<(String, UploadRequest)>,
    pub(crate) counts: TransferCounts,
}

impl CacheUploader {
    /// Starts an uploader for the store at `address`. Makes no request to the store yet.
    ///
    /// # Errors
    /// The executable is missing or cannot be an uploader; the address takes no objects.
    pub(crate) fn open(address: StoreAddress, executable: Option<PathBuf>) -> Result<Self> {
        let mut sender = Self {
            helper: HelperSupervisor::start(&SENDER, executable)?,
            address,
            waiting: VecDeque::new(),
            counts: TransferCounts::default(),
        };
        let started = begin(&sender.helper.process, &sender.address, &sender.waiting);
        sender.retry_after_death(started)?;
        Ok(sender)
    }

    pub(crate) fn address(&self) -> &StoreAddress {
        &self.address
    }

    pub(crate) fn total_deaths(&self) -> u64 {
        self.helper.total_deaths
    }

    /// Number of shards that are not uploaded yet.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sends a request while no shard is being uploaded, and waits for the reply.
    ///
    /// # Errors
    /// The store fails; uploaders die repeatedly.
    pub(crate) fn call(&mut self, request: &UploadRequest) -> Result<UploadReply> {
        loop {
            match self.helper.process.call(request) {
                Ok(reply) => {
                    self.helper.reset_deaths();
                    return Ok(reply);
                }
                Err(why) => self.retry_after_death(Err(why))?,
            }
        }
    }

    /// Requests the upload of a shard.
    ///
    /// # Errors
    /// The request does not fit into a packet; uploaders die repeatedly.
    pub(crate) fn send_shard(&mut self, shard: String, request: UploadRequest) -> Result<()> {
        let sent = self.helper.process.send(&request, &[]);
        self.waiting.push_back((shard, request));
        let done = self.retry_after_death(sent);
        if done.is_err() {
            // A request that was not sent gets no reply.
            self.waiting.pop_back();
        }
        done
    }

    /// The next uploaded shard; `None` if it takes longer than `limit`.
    ///
    /// # Errors
    /// The store rejects it; uploaders die repeatedly.
    pub(crate) fn next_uploaded(&mut self, limit: Duration) -> Result<Option<String>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        match self.helper.process.reply_within(limit, limit) {
            Ok(None) => Ok(None),
            Ok(Some(UploadReply::Up { shard, counts })) => {
                let first = self.waiting.pop_front();
                if first.is_none_or(|(name, _)| name != shard) {
                    return Err(Error::protocol(format!(
                        "{shard} was uploaded out of order"
                    )));
                }
                self.helper.reset_deaths();
                self.counts = self.counts + counts;
                Ok(Some(shard))
            }
            Ok(Some(other)) => Err(unexpected(&other)),
            Err(why) => self.retry_after_death(Err(why)).map(|()| None),
        }
    }

    /// Returns `done`. If the uploader died, another one gets all open requests.
    fn retry_after_death(&mut self, done: Result<()>) -> Result<()> {
        let begin = |process: &_| begin(process, &self.address, &self.waiting);
        self.helper.retry_after_death(done, begin)
    }
}

/// Sends the store's address and the open requests.
fn begin(
    process: &HelperProcess,
    address: &StoreAddress,
    waiting: &VecDeque<(String, UploadRequest)>,
) -> Result<()> {
    let address = address.clone();
    match process.call(&UploadRequest::Open { address })? {
        UploadReply::Done => {}
        other => return Err(unexpected(&other)),
    }
    let mut requests = waiting.iter().map(|(_, request)| request);
    requests.try_for_each(|request| process.send(request, &[]))
}

/// Uploads the file `from` to the store at `address`, as the object `name`, replacing any.
///
/// # Errors
/// The store rejects it; the file cannot be read.
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
    let mut sender = CacheUploader::open(address.clone(), helper.map(Path::to_owned))?;
    match sender.call(&request)? {
        UploadReply::Ended(_) => Ok(()),
        other => Err(unexpected(&other)),
    }
}

/// Downloads the object `name` of the store at `address` into the file `to`. Returns whether there
/// is such an object.
///
/// # Errors
/// The store cannot be read; the file cannot be written.
pub(crate) fn get(
    address: &StoreAddress,
    helper: Option<&Path>,
    (name, to): (String, &Path),
) -> Result<bool> {
    let to = to.to_owned();
    let mut sender = CacheUploader::open(address.clone(), helper.map(Path::to_owned))?;
    match sender.call(&UploadRequest::Get { name, to })? {
        UploadReply::Found(found) => Ok(found),
        other => Err(unexpected(&other)),
    }
}

/// Error for a reply to another request.
pub(crate) fn unexpected(reply: &UploadReply) -> Error {
    SENDER.unexpected(reply)
}
