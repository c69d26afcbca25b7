//! The coordinator's end of its connection to the consumer.
//!
//! Runs in the coordinator.

use std::os::fd::{AsFd, OwnedFd};

use crate::error::Result;
use crate::pool::coordinator::messages::CoordinatorReply;
use crate::sys::socket;

/// The coordinator's end of the connection.
pub(crate) struct ConsumerConnection {
    pub(crate) socket: OwnedFd,
}

impl ConsumerConnection {
    /// Answers the one outstanding request. The consumer asked and waits, so
    /// the socket has room; one that gave up waiting asks again.
    pub(crate) fn reply(&self, reply: &CoordinatorReply) -> Result<()> {
        socket::offer(self.socket.as_fd(), &reply.to_bytes()?, &[]).map(drop)
    }
}
