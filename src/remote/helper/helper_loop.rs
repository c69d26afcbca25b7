//! Main loop of a helper for a store, without its actual work: handshake, one thread for network,
//! consumer and clock, the socket, the end.
//!
//! Runs in the fetcher and in the uploader. Never in here: contents of messages.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::error::{Error, Result};
use crate::pool::coordinator::process::greet_consumer;
use crate::remote::helper::messages::{HelperError, HelperMessage, LONGEST, from_bytes, to_bytes};
use crate::remote::helper::progress::ProgressReports;
use crate::sys::memory;
use crate::sys::process;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::ReceiveOutcome;

/// Interval for checking that the consumer is alive. Usually its socket closes first.
const CONSUMER_LOOK: Duration = Duration::from_millis(250);

/// Runs a helper of this name on `socket`. Runs `serve` while its consumer lives, then `farewell`.
/// Returns the exit status. `patience`: how long to wait at the end for system calls that are
/// running.
pub(crate) fn run_helper(
    socket: OwnedFd,
    name: &CStr,
    serve: impl AsyncFnOnce(&HelperConnection) -> Result<()>,
    farewell: impl AsyncFnOnce(),
    patience: Duration,
) -> i32 {
    let lived = || {
        process::reset_signals()?;
        memory::leave_no_core()?;
        process::lead_own_group()?;
        let socket = process::above_standard_streams(socket)?;
        process::close_all_but(&[0, 1, 2, socket.as_raw_fd()])?;
        process::standard_streams_to_null()?;
        process::set_name(name);
        let consumer = greet_consumer(&socket)?;
        // Fails if it was installed before, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Error::not_started("start a helper for a store", e))?;
        let ended = runtime.block_on(async {
            let connection = HelperConnection::new(socket)?;
            let ended = {
                let (served, consumer_end) = (pin!(serve(&connection)), pin!(end_of(&consumer)));
                match select(served, consumer_end).await {
                    Either::Left((ended, _)) | Either::Right((ended, _)) => ended,
                }
            };
            farewell().await;
            ended
        });
        runtime.shutdown_timeout(patience);
        ended
    };
    let ended: Result<()> = lived();
    // After an error the consumer notices the end and starts another helper.
    i32::from(ended.is_err())
}

/// Returns when the consumer has ended. Its socket may still be open in a fork of it.
async fn end_of(consumer: &PidFd) -> Result<()> {
    while !socket::readable(consumer.as_fd(), Duration::ZERO)? {
        tokio::time::sleep(CONSUMER_LOOK).await;
    }
    Ok(())
}

/// The socket to the consumer, read without waiting.
pub(crate) struct HelperConnection(UnixStream);

impl HelperConnection {
    fn new(socket: OwnedFd) -> Result<Self> {
        let failed = |e| Error::io("wait for the consumer", e);
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true).map_err(failed)?;
        UnixStream::from_std(socket).map(Self).map_err(failed)
    }

    pub(crate) fn reply(&self, reply: &impl Serialize) -> Result<()> {
        socket::send(
            self.0.as_fd(),
            &to_bytes(&HelperMessage::Reply(reply))?,
            &[],
        )
    }

    /// Sends the final message: the reason for the end.
    pub(crate) fn give_up(&self, error: HelperError) -> Result<()> {
        let message: HelperMessage<()> = HelperMessage::Trouble(error);
        socket::send(self.0.as_fd(), &to_bytes(&message)?, &[])
    }

    /// Sends a warning for the user. Returns whether the consumer accepted it.
    pub(crate) fn warn(&self, text: &str) -> Result<bool> {
        let message: HelperMessage<()> = HelperMessage::Warning(text.to_owned());
        socket::try_send(self.0.as_fd(), &to_bytes(&message)?, &[])
    }

    /// Runs `work`, with regular warnings while the store is slow.
    pub(crate) async fn reporting<T>(
        &self,
        reports: &mut ProgressReports,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        let mut work = pin!(work);
        reports.begin();
        loop {
            let tick = tokio::time::timeout(reports.next_look(), &mut work);
            if let Ok(done) = tick.await {
                return Ok(done);
            }
            if let Some(text) = reports.next() {
                // If the consumer accepts none now, it has enough of them.
                self.warn(&text)?;
            }
        }
    }

    /// The next message, if there is one. An error if the other end is closed.
    pub(crate) fn receive<T: DeserializeOwned>(&self) -> Result<Option<(T, Vec<OwnedFd>)>> {
        let mut buffer = vec![0; LONGEST];
        let mut failed = None;
        // This error makes it wait for more.
        let received = self.0.try_io(Interest::READABLE, || {
            match socket::receive(self.0.as_fd(), &mut buffer, Duration::ZERO) {
                Ok(ReceiveOutcome::Timeout) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(received) => Ok(received),
                Err(e) => {
                    failed = Some(e);
                    Ok(ReceiveOutcome::Closed)
                }
            }
        });
        match (received, failed) {
            (_, Some(e)) => Err(e),
            (Ok(ReceiveOutcome::Message(n, fds)), None) => {
                Ok(Some((from_bytes(&buffer[..n])?, fds)))
            }
            (Ok(_), None) => Err(Error::protocol("the consumer has ended")),
            (Err(_), None) => Ok(None),
        }
    }

    /// Returns when there may be something to read.
    pub(crate) async fn readable(&self) -> Result<()> {
        let ready = self.0.readable().await;
        ready.map_err(|e| Error::io("wait for the consumer", e))
    }
}
