//! A pair of connected packet sockets for small messages and descriptors.
//!
//! Used in the consumer, the coordinator and helpers; workers have no socket. SOCK_SEQPACKET keeps
//! message boundaries, so no framing is needed.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, Shutdown, SockFlag, SockType,
    recvmsg, sendmsg, shutdown, socketpair,
};

use super::clock::RunningClock;
use crate::error::{Error, Result};

/// Longest sleep, so that time while this process is stopped can be detected.
const SLEEP: Duration = Duration::from_millis(250);

/// Most descriptors per message.
const MAX_DESCRIPTORS: usize = 16;

/// Operation for error texts.
const TAKE: &str = "take the descriptors of a control message";

/// Two connected ends, both closed on exec.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .map_err(|e| Error::io("socketpair", e))
}

/// Result of `receive`.
pub(crate) enum ReceiveOutcome {
    /// Number of bytes in the buffer, and the descriptors.
    Message(usize, Vec<OwnedFd>),
    /// The other end is closed.
    Closed,
    /// No message within the limit.
    Timeout,
}

/// Sends one message. Fails at once if the peer's socket is full, so that no process can block this
/// one.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    match try_send(socket, bytes, fds)? {
        true => Ok(()),
        false => Err(Error::io("send a control message", Errno::EAGAIN)),
    }
}

/// Like [`send`], but returns false if the peer's socket is full.
pub(crate) fn try_send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> Result<bool> {
    if fds.len() > MAX_DESCRIPTORS {
        let what = format!("{} descriptors are more than {MAX_DESCRIPTORS}", fds.len());
        return Err(Error::protocol(what));
    }
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let cmsgs: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    loop {
        match sendmsg::<()>(
            socket.as_raw_fd(),
            &[IoSlice::new(bytes)],
            cmsgs,
            MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT,
            None,
        ) {
            Ok(n) if n == bytes.len() => return Ok(true),
            Ok(n) => {
                return Err(Error::protocol(format!(
                    "{n} of {} bytes of a control message were sent",
                    bytes.len()
                )));
            }
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(false),
            Err(e) => return Err(Error::io("send a control message", e)),
        }
    }
}

/// Shuts the connection down, even if another process has a copy of the socket.
pub(crate) fn shut_down(socket: BorrowedFd<'_>) -> Result<()> {
    shutdown(socket.as_raw_fd(), Shutdown::Both).map_err(|e| Error::io("end a socket", e))
}

/// Receives one message, waiting at most `limit`. Time while this process is stopped does not
/// count, because its peer may be stopped too.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
    limit: Duration,
) -> Result<ReceiveOutcome> {
    let mut clock = RunningClock::start();
    let mut left = limit;
    loop {
        let sleep = left.min(SLEEP);
        if !readable(socket, sleep)? {
            // The last check was without a sleep.
            if left.is_zero() {
                return Ok(ReceiveOutcome::Timeout);
            }
            left = limit.saturating_sub(clock.read(sleep));
            continue;
        }
        let mut space = cmsg_space!([RawFd; MAX_DESCRIPTORS]);
        let mut io = [IoSliceMut::new(buffer)];
        let message = match recvmsg::<()>(
            socket.as_raw_fd(),
            &mut io,
            Some(&mut space),
            MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT,
        ) {
            Ok(m) => m,
            Err(Errno::EINTR | Errno::EAGAIN) => continue,
            Err(Errno::ECONNRESET) => return Ok(ReceiveOutcome::Closed),
            Err(e) => return Err(Error::io("receive a control message", e)),
        };
        let mut fds = Vec::new();
        for c in message.cmsgs().map_err(|e| match e {
            // Descriptors were cut off although there was space: their limit is reached.
            Errno::ENOBUFS => Error::io(TAKE, Errno::EMFILE),
            e => Error::io(TAKE, e),
        })? {
            if let ControlMessageOwned::ScmRights(raw) = c {
                for fd in raw {
                    // SAFETY: the kernel has just installed `fd` for this
                    // message in this process; no other value owns it.
                    fds.push(unsafe { OwnedFd::from_raw_fd(fd) });
                }
            }
        }
        if message
            .flags
            .intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC)
        {
            return Err(Error::protocol(
                "a control message was longer than any we send",
            ));
        }
        return Ok(match message.bytes {
            0 => ReceiveOutcome::Closed,
            n => ReceiveOutcome::Message(n, fds),
        });
    }
}

/// Whether `fd` becomes readable (or its other end is closed) within `limit`.
pub(crate) fn readable(fd: BorrowedFd<'_>, limit: Duration) -> Result<bool> {
    let ms =
        PollTimeout::try_from(limit.min(Duration::from_secs(3600))).unwrap_or(PollTimeout::MAX);
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    match poll(&mut fds, ms) {
        Ok(0) | Err(Errno::EINTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(e) => Err(Error::io("poll", e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn messages_keep_their_boundaries_and_carry_descriptors() {
        let (a, b) = pair().unwrap();
        send(a.as_fd(), b"one", &[]).unwrap();
        send(a.as_fd(), b"two!", &[a.as_fd(), b.as_fd()]).unwrap();
        let mut buf = [0; 16];
        let ReceiveOutcome::Message(3, fds) =
            receive(b.as_fd(), &mut buf, Duration::from_secs(1)).unwrap()
        else {
            panic!("no first message");
        };
        assert!(fds.is_empty());
        let ReceiveOutcome::Message(4, fds) =
            receive(b.as_fd(), &mut buf, Duration::from_secs(1)).unwrap()
        else {
            panic!("no second message");
        };
        assert_eq!((&buf[..4], fds.len()), (&b"two!"[..], 2));
    }

    #[test]
    fn silence_and_a_closed_end_are_told_apart() {
        let (a, b) = pair().unwrap();
        let mut buf = [0; 4];
        assert!(matches!(
            receive(b.as_fd(), &mut buf, Duration::from_millis(1)).unwrap(),
            ReceiveOutcome::Timeout
        ));
        drop(a);
        assert!(matches!(
            receive(b.as_fd(), &mut buf, Duration::from_secs(1)).unwrap(),
            ReceiveOutcome::Closed
        ));
    }

    #[test]
    fn a_peer_that_does_not_read_never_blocks_us() {
        let (a, _b) = pair().unwrap();
        let blocked = (0..100_000).any(|_| send(a.as_fd(), &[0; 64], &[]).is_err());
        assert!(blocked);
    }
}
