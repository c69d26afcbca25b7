//! The coordinator's ends of its connection to the consumer.
//!
//! Runs in the coordinator.

use std::os::fd::OwnedFd;

use ipc_channel::ipc::{IpcReceiver, IpcSender};

use crate::error::{Error, Result};
use crate::pool::coordinator::messages::{Reply, Request};

/// The coordinator's ends of the connection.
pub(crate) struct Line {
    pub(crate) socket: OwnedFd,
    pub(crate) requests: IpcReceiver<Request>,
    pub(crate) replies: IpcSender<Reply>,
}

impl Line {
    /// Answers the one outstanding request. The consumer asked and waits, so
    /// the channel has room.
    pub(crate) fn reply(&self, reply: Reply) -> Result<()> {
        self.replies
            .send(reply)
            .map_err(|e| Error::protocol(format!("reply to the consumer: {e}")))
    }
}
