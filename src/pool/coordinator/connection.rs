//! The coordinator's socket to the consumer.
//!
//! Runs in the coordinator.

use std::os::fd::{AsFd, OwnedFd};

use crate::error::Result;
use crate::pool::coordinator::messages::CoordinatorReply;
use crate::sys::socket;

/// The coordinator's socket to the consumer.
pub(crate) struct ConsumerConnection {
    pub(crate) socket: OwnedFd,
}

impl ConsumerConnection {
    /// Answers the outstanding request. The consumer waits for one reply at a time, so the socket
    /// has room. A consumer that stopped waiting repeats its request.
    pub(crate) fn reply(&self, reply: &CoordinatorReply) -> Result<()> {
        socket::try_send(self.socket.as_fd(), &reply.to_bytes()?, &[]).map(drop)
    }
}
