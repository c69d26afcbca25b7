//! The fetcher's life: shake hands, do what the consumer says, wait for what comes.
//!
//! In the fetcher. One thread that waits for network, consumer and clock at once; the resolver
//! of names has another. Ends when its consumer does. Nothing is logged: the consumer is told.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::error::{Error, Result};
use crate::fetch::messages::{LONGEST, Reply, Request, Trouble, from_bytes, to_bytes};
use crate::fetch::session::{LONG, Session, Stop};
use crate::pool::coordinator::process::greet_consumer;
use crate::sys::memory;
use crate::sys::process;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::Received;

/// Between two looks whether the consumer lives, beside its socket, which mostly says it.
const CONSUMER_LOOK: Duration = Duration::from_millis(250);

const EXIT_ENDED: i32 = 0;
const EXIT_FAILED: i32 = 1;

/// Lives as a fetcher on `socket`; the exit status.
pub(super) fn live(socket: OwnedFd) -> i32 {
    match lead(socket) {
        Ok(()) => EXIT_ENDED,
        // The consumer sees that it ended, and starts another.
        Err(_) => EXIT_FAILED,
    }
}

fn lead(socket: OwnedFd) -> Result<()> {
    process::reset_signals()?;
    memory::leave_no_core()?;
    process::lead_own_group()?;
    let socket = process::above_standard_streams(socket)?;
    process::close_all_but(&[0, 1, 2, socket.as_raw_fd()])?;
    process::standard_streams_to_null()?;
    process::set_name(c"featherload-fe");
    let consumer = greet_consumer(&socket)?;
    // Fails where it was done before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::io("start the fetcher", e))?;
    let ended = runtime.block_on(async {
        let line = Line::new(socket)?;
        let (served, gone) = (pin!(serve(&line)), pin!(end_of(&consumer)));
        match select(served, gone).await {
            Either::Left((served, _)) => served,
            Either::Right((ended, _)) => ended,
        }
    });
    // A name that is being resolved is not waited for.
    runtime.shutdown_background();
    ended
}

/// Returns when the consumer has ended. A copy of its socket may be open all the same, in a fork
/// of it.
async fn end_of(consumer: &PidFd) -> Result<()> {
    while !socket::readable(consumer.as_fd(), Duration::ZERO)? {
        tokio::time::sleep(CONSUMER_LOOK).await;
    }
    Ok(())
}

/// The socket to the consumer, read without waiting.
struct Line(UnixStream);

impl Line {
    fn new(socket: OwnedFd) -> Result<Self> {
        let failed = |e| Error::io("wait for the consumer", e);
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true).map_err(failed)?;
        UnixStream::from_std(socket).map(Self).map_err(failed)
    }

    fn reply(&self, reply: &Reply) -> Result<()> {
        socket::send(self.0.as_fd(), &to_bytes(reply)?, &[])
    }

    /// What came, if anything did; an error when the other end is closed.
    fn receive(&self) -> Result<Option<(Request, Vec<OwnedFd>)>> {
        let mut buffer = vec![0; LONGEST];
        let mut failed = None;
        // The error that says that nothing is there has it wait for more.
        let received = self.0.try_io(Interest::READABLE, || {
            match socket::receive(self.0.as_fd(), &mut buffer, Duration::ZERO) {
                Ok(Received::Timeout) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(received) => Ok(received),
                Err(e) => {
                    failed = Some(e);
                    Ok(Received::Closed)
                }
            }
        });
        match (received, failed) {
            (_, Some(e)) => Err(e),
            (Ok(Received::Message(n, fds)), None) => Ok(Some((from_bytes(&buffer[..n])?, fds))),
            (Ok(_), None) => Err(Error::protocol("the consumer is gone")),
            (Err(_), None) => Ok(None),
        }
    }
}

async fn serve(line: &Line) -> Result<()> {
    let mut session: Option<Session> = None;
    loop {
        let done = async {
            while let Some((request, fds)) = line.receive()? {
                match (request, &mut session) {
                    (
                        Request::Open {
                            address,
                            options,
                            room,
                            index,
                        },
                        None,
                    ) => {
                        let opened = Session::open(&address, &options, &index, room).await;
                        let (opened, answer) = opened.map_err(Stop::Trouble)?;
                        line.reply(&Reply::Opened(answer))?;
                        session = Some(opened);
                    }
                    (
                        Request::Plan {
                            options,
                            at,
                            epochs,
                        },
                        Some(session),
                    ) => {
                        session.plan(*options, at, epochs, fds)?;
                        line.reply(&Reply::Planned)?;
                    }
                    (
                        Request::At(at),
                        Some(Session {
                            uses: Some(uses), ..
                        }),
                    ) => {
                        uses.go_on(at.into());
                    }
                    (
                        Request::Jump(at),
                        Some(Session {
                            uses: Some(uses), ..
                        }),
                    ) => {
                        uses.jump(at.into());
                    }
                    (Request::Report, Some(session)) => {
                        let leader = session.leader.as_ref();
                        let counts = leader.map(|leader| leader.counts).unwrap_or_default();
                        line.reply(&Reply::Report(counts))?;
                    }
                    (Request::Look, Some(session)) => {
                        let ranks = session.ranks()?;
                        line.reply(&Reply::GoesOn { ranks })?;
                    }
                    (request, _) => {
                        let what = format!("{request:?} came out of turn");
                        return Err(Stop::Failed(Error::protocol(what)));
                    }
                }
            }
            let pause = match &mut session {
                Some(session) => session.work()?,
                None => LONG,
            };
            wait(line, &mut session, pause).await
        };
        match done.await {
            Ok(()) => {}
            Err(Stop::Failed(e)) => {
                let about = session.as_ref().map(|session| &session.cache.folder);
                let about = about.map_or_else(String::new, |f| f.path().display().to_string());
                // Fails where it was the socket that did, and nobody is there to hear it.
                let _ = line.reply(&Reply::Trouble(Trouble::new(about, e.to_string())));
                return Err(e);
            }
            Err(Stop::Trouble(trouble)) => {
                if let Some(session) = &session {
                    session.tell_others(&trouble);
                }
                return line.reply(&Reply::Trouble(trouble));
            }
        }
    }
}

/// Until something came, or the time is over.
async fn wait(
    line: &Line,
    session: &mut Option<Session>,
    pause: Duration,
) -> std::result::Result<(), Stop> {
    let leader = session.as_mut().and_then(|session| session.leader.as_mut());
    let ended = async {
        match leader {
            Some(leader) => leader.ended().await,
            None => std::future::pending().await,
        }
    };
    let (readable, ended) = (pin!(line.0.readable()), pin!(ended));
    match tokio::time::timeout(pause, select(readable, ended)).await {
        Err(_) => Ok(()),
        Ok(Either::Left((ready, _))) => {
            Ok(ready.map_err(|e| Error::io("wait for the consumer", e))?)
        }
        Ok(Either::Right((ended, _))) => Ok(ended?),
    }
}
