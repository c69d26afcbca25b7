//! Main loop of the fetcher: executes the consumer's requests and waits for downloads.
//!
//! Runs in the fetcher. One thread waits for network, consumer and clock; the resolver of names has
//! another. Ends with its consumer. Logs nothing; errors are sent to the consumer.

use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::remote::fetch::messages::{FetchReply, FetchRequest};
use crate::remote::fetch::session::{FetchSession, LONG, SessionEnd};
use crate::remote::helper::helper_loop;
use crate::remote::helper::helper_loop::HelperConnection;
use crate::remote::helper::messages::{HelperError, name_of};
use crate::remote::helper::progress::ProgressReports;

/// Runs a fetcher on `socket`; returns its exit status.
pub(super) fn run_fetcher(socket: OwnedFd) -> i32 {
    // A running name lookup is not waited for.
    helper_loop::run_helper(
        socket,
        c"featherload-fe",
        serve,
        async || {},
        Duration::ZERO,
    )
}

async fn serve(connection: &HelperConnection) -> Result<()> {
    let mut session: Option<FetchSession> = None;
    loop {
        let done = async {
            while let Some((request, fds)) = connection.receive()? {
                match (request, &mut session) {
                    (
                        FetchRequest::Open {
                            address,
                            options,
                            earlier,
                            index,
                        },
                        None,
                    ) => {
                        let progress = |text: String| {
                            // If the consumer has ended, the next request notices it.
                            let _ = connection.warn(&format!("{address}: {text}"));
                        };
                        let listed = fds.into_iter().next().map(Index::from_fd);
                        let listed = listed.transpose()?;
                        let opened = FetchSession::open(
                            &address,
                            &options,
                            &index,
                            earlier,
                            listed.as_ref(),
                            &progress,
                        );
                        let opened = connection
                            .reporting(&mut ProgressReports::for_single_requests(), opened)
                            .await?;
                        let (opened, answer) = opened.map_err(SessionEnd::Trouble)?;
                        connection.reply(&FetchReply::Opened(answer))?;
                        session = Some(opened);
                    }
                    (
                        FetchRequest::Plan {
                            options,
                            at,
                            epochs,
                        },
                        Some(session),
                    ) => {
                        session.set_order(*options, at, epochs, fds)?;
                        connection.reply(&FetchReply::Planned)?;
                    }
                    (FetchRequest::At(at), Some(session)) => session.uses()?.advance_to(at),
                    (FetchRequest::Jump(at), Some(session)) => session.uses()?.move_to(at),
                    (FetchRequest::Report, Some(session)) => {
                        let leader = session.leader.as_ref();
                        let counts = leader.map(|leader| leader.counts).unwrap_or_default();
                        connection.reply(&FetchReply::Report(counts))?;
                    }
                    (FetchRequest::Look, Some(session)) => {
                        let ranks = session.ranks()?;
                        connection.reply(&FetchReply::GoesOn { ranks })?;
                    }
                    (request, _) => {
                        let what = format!("{} came out of order", name_of(&request));
                        return Err(SessionEnd::Failed(Error::protocol(what)));
                    }
                }
            }
            let pause = match &mut session {
                Some(session) => {
                    let pause = session.work()?;
                    send_warnings(connection, session)?;
                    pause
                }
                None => LONG,
            };
            wait(connection, &mut session, pause).await
        };
        match done.await {
            Ok(()) => {}
            Err(SessionEnd::Failed(e)) => {
                let folder_text = session.as_ref().map(|session| &session.files.folder);
                let folder_text =
                    folder_text.map_or_else(String::new, |f| f.path().display().to_string());
                // Fails if the socket failed; then there is no receiver anyway.
                let _ = connection.give_up(HelperError::new(folder_text, e.to_string()));
                return Err(e);
            }
            Err(SessionEnd::Trouble(error)) => {
                if let Some(session) = &session {
                    session.publish_error(&error);
                }
                return connection.give_up(error);
            }
        }
    }
}

/// Sends warnings for the user, the oldest first; later if the consumer accepts none now.
fn send_warnings(connection: &HelperConnection, session: &mut FetchSession) -> Result<()> {
    let Some(leader) = &mut session.leader else {
        return Ok(());
    };
    while let Some(text) = leader.warnings.front() {
        if !connection.warn(text)? {
            break;
        }
        leader.warnings.pop_front();
    }
    Ok(())
}

/// Waits for an event, or until the time is over.
async fn wait(
    connection: &HelperConnection,
    session: &mut Option<FetchSession>,
    pause: Duration,
) -> std::result::Result<(), SessionEnd> {
    let leader = session.as_mut().and_then(|session| session.leader.as_mut());
    let ended = async {
        match leader {
            Some(leader) => leader.ended().await,
            None => std::future::pending().await,
        }
    };
    let (readable, ended) = (pin!(connection.readable()), pin!(ended));
    match tokio::time::timeout(pause, select(readable, ended)).await {
        Err(_) => Ok(()),
        Ok(Either::Left((ready, _))) => Ok(ready?),
        Ok(Either::Right((ended, _))) => Ok(ended?),
    }
}
