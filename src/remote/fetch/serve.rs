//! The fetcher's life: do what the consumer says, wait for what comes.
//!
//! In the fetcher. One thread that waits for network, consumer and clock at once; the resolver
//! of names has another. Ends when its consumer does. Nothing is logged: the consumer is told.

use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::error::{Error, Result};
use crate::remote::fetch::listing::ListProgress;
use crate::remote::fetch::messages::{Reply, Request};
use crate::remote::fetch::session::{LONG, Session, Stop};
use crate::remote::helper::helper_loop;
use crate::remote::helper::helper_loop::Line;
use crate::remote::helper::messages::{Trouble, name_of};
use crate::remote::helper::progress::Reports;

/// Lives as a fetcher on `socket`; the exit status.
pub(super) fn live(socket: OwnedFd) -> i32 {
    // A name that is being resolved is not waited for.
    helper_loop::live(
        socket,
        c"featherload-fe",
        serve,
        async || {},
        Duration::ZERO,
    )
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
                        let progress = |listed: ListProgress| {
                            // Whoever is gone is met when something is asked for.
                            let _ = line.warn(&format!("{address}: the store has listed {listed}"));
                        };
                        let opened = Session::open(&address, &options, &index, room, &progress);
                        let opened = line.reporting(&mut Reports::of_each(), opened).await?;
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
                    (Request::At(at), Some(session)) => session.uses()?.go_on(at),
                    (Request::Jump(at), Some(session)) => session.uses()?.jump(at),
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
                        let what = format!("{} came out of turn", name_of(&request));
                        return Err(Stop::Failed(Error::protocol(what)));
                    }
                }
            }
            let pause = match &mut session {
                Some(session) => {
                    let pause = session.work()?;
                    tell_warnings(line, session)?;
                    pause
                }
                None => LONG,
            };
            wait(line, &mut session, pause).await
        };
        match done.await {
            Ok(()) => {}
            Err(Stop::Failed(e)) => {
                let about = session.as_ref().map(|session| &session.files.folder);
                let about = about.map_or_else(String::new, |f| f.path().display().to_string());
                // Fails where it was the socket that did, and nobody is there to hear it.
                let _ = line.give_up(Trouble::new(about, e.to_string()));
                return Err(e);
            }
            Err(Stop::Trouble(trouble)) => {
                if let Some(session) = &session {
                    session.tell_others(&trouble);
                }
                return line.give_up(trouble);
            }
        }
    }
}

/// What the user is warned of, the oldest first; later where the consumer takes nothing now.
fn tell_warnings(line: &Line, session: &mut Session) -> Result<()> {
    let Some(leader) = &mut session.leader else {
        return Ok(());
    };
    while let Some(text) = leader.warnings.front() {
        if !line.warn(text)? {
            break;
        }
        leader.warnings.pop_front();
    }
    Ok(())
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
    let (readable, ended) = (pin!(line.readable()), pin!(ended));
    match tokio::time::timeout(pause, select(readable, ended)).await {
        Err(_) => Ok(()),
        Ok(Either::Left((ready, _))) => Ok(ready?),
        Ok(Either::Right((ended, _))) => Ok(ended?),
    }
}
