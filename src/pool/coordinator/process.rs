//! Start of the coordinator: detach from the parent, perform the handshake, map what the consumer
//! sends, run the supervisor.
//!
//! Runs in the coordinator. The same after a fork and after an exec.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Error, Result};
use crate::pool::coordinator::connection::ConsumerConnection;
use crate::pool::coordinator::messages::{
    CoordinatorCommand, CoordinatorReply, HELLO_BYTES, HELLO_LIMIT, HelloMessage, StartRequest,
    refusal, shorten_text,
};
use crate::pool::coordinator::supervisor::WorkerSupervisor;
use crate::pool::job::{JobKind, JobProcess};
use crate::pool::ring::Ring;
use crate::pool::sandbox;
use crate::pool::sandbox::WorkerSandbox;
use crate::sys::memory;
use crate::sys::process;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::ReceiveOutcome;
use crate::sys::stderr::StderrRelay;

/// Exit status after a failed handshake or start. The consumer has the reason.
const EXIT_NOT_STARTED: i32 = 2;
/// Exit status after a panic, the same as Rust's.
const EXIT_PANIC: i32 = 101;
/// Exit status after an error of the running pool.
const EXIT_BROKEN: i32 = 1;

/// Runs a coordinator on `socket`; returns its exit status. `kinds` are the jobs that it can do.
pub(crate) fn serve_as_coordinator(socket: OwnedFd, kinds: &[JobKind]) -> i32 {
    // After a fork, the panic hook and its descriptors belong to the caller.
    std::mem::forget(std::panic::take_hook());
    let mut stderr = match StderrRelay::install() {
        Ok(stderr) => stderr,
        Err(e) => {
            // Writing anything else might block, and a loader that has ended needs no reason.
            let _ = socket::send(socket.as_fd(), &refusal(&e.to_string()), &[]);
            return EXIT_NOT_STARTED;
        }
    };
    // Workers never return from here. After a panic only `stderr` is used, for its last lines.
    let run = AssertUnwindSafe(|| run_until_the_end(socket, kinds, &mut stderr));
    let code = catch_unwind(run).unwrap_or(EXIT_PANIC);
    stderr.end();
    code
}

fn run_until_the_end(socket: OwnedFd, kinds: &[JobKind], stderr: &mut StderrRelay) -> i32 {
    match greet_and_start(socket, kinds, stderr) {
        Ok(None) => 0,
        Ok(Some((supervisor, line, consumer, children))) => {
            match supervisor.run(&line, &consumer, &children, stderr) {
                Ok(()) => 0,
                Err(e) => {
                    tracing::error!("coordinator: {e}");
                    // The workers end by their parent-death signal.
                    EXIT_BROKEN
                }
            }
        }
        Err(e) => {
            tracing::error!("coordinator: {e}");
            EXIT_NOT_STARTED
        }
    }
}

/// Runs the helper executable as a coordinator. Standard input is the socket to the consumer.
/// Returns the exit status. The process has one thread. `kinds` are the jobs that it can do.
pub(crate) fn run_coordinator(kinds: &[JobKind]) -> i32 {
    match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => serve_as_coordinator(socket, kinds),
        // The reason cannot be reported: the socket has failed, and stderr might block.
        Err(_) => EXIT_NOT_STARTED,
    }
}

type CoordinatorParts = (WorkerSupervisor, ConsumerConnection, PidFd, SignalFd);

fn greet_and_start(
    socket: OwnedFd,
    kinds: &[JobKind],
    stderr: &mut StderrRelay,
) -> Result<Option<CoordinatorParts>> {
    process::reset_signals()?;
    // Its workers inherit this.
    memory::leave_no_core()?;
    process::lead_own_group()?;
    let socket = process::above_standard_streams(socket)?;
    let mut keep = vec![0, 1, 2, socket.as_raw_fd()];
    keep.extend(stderr.descriptors());
    process::close_all_but(&keep)?;
    process::standard_streams_to_null()?;
    process::set_name(c"featherload-co");
    let children = watch_children()?;
    let (line, consumer) = greet(socket)?;
    loop {
        let mut byte = [0; 1];
        // The consumer may read its data set for a long time, so there is no time limit. Its end is
        // noticed.
        stderr.pass_on();
        if consumer_ended(&consumer)? {
            return Ok(None);
        }
        let received = socket::receive(line.socket.as_fd(), &mut byte, Duration::from_millis(200));
        if let Err(e) = &received {
            // The consumer waits for an answer to its start command.
            let what = shorten_text(e.to_string());
            line.reply(&CoordinatorReply::Refused { what })?;
        }
        match received? {
            ReceiveOutcome::Timeout => {}
            ReceiveOutcome::Closed => return Ok(None),
            ReceiveOutcome::Message(_, fds) => match CoordinatorCommand::from_byte(byte[0]) {
                Some(CoordinatorCommand::Start) => match build_supervisor(fds, kinds) {
                    Ok(supervisor) => {
                        line.reply(&CoordinatorReply::Started)?;
                        return Ok(Some((supervisor, line, consumer, children)));
                    }
                    Err(e) => {
                        line.reply(&CoordinatorReply::Refused {
                            what: shorten_text(e.to_string()),
                        })?;
                        return Err(e);
                    }
                },
                Some(CoordinatorCommand::Stop) => return Ok(None),
                Some(CoordinatorCommand::Report) => {
                    return Err(Error::protocol("a report was requested before the start"));
                }
                None => return Err(Error::protocol(format!("command {} is unknown", byte[0]))),
            },
        }
    }
}

fn watch_children() -> Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block()
        .map_err(|e| Error::io("block SIGCHLD", e))?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(|e| Error::io("signalfd", e))
}

fn greet(socket: OwnedFd) -> Result<(ConsumerConnection, PidFd)> {
    let consumer = greet_consumer(&socket)?;
    Ok((ConsumerConnection { socket }, consumer))
}

/// The helper's part of the handshake. Returns the consumer's process.
///
/// # Errors
/// The consumer has ended, does not answer, or has another version.
pub(crate) fn greet_consumer(socket: &OwnedFd) -> Result<PidFd> {
    let ours = HelloMessage::ours();
    socket::send(socket.as_fd(), &ours.to_bytes(), &[])?;
    let mut buffer = [0; HELLO_BYTES + 1];
    let (n, fds) = match socket::receive(socket.as_fd(), &mut buffer, HELLO_LIMIT)? {
        ReceiveOutcome::Message(n, fds) => (n, fds),
        ReceiveOutcome::Closed => {
            return Err(Error::protocol("the consumer ended during the handshake"));
        }
        ReceiveOutcome::Timeout => {
            return Err(Error::protocol(format!(
                "the consumer did not answer within {HELLO_LIMIT:?}"
            )));
        }
    };
    let theirs = HelloMessage::read(&buffer[..n], "the consumer")?;
    ours.check("the helper", &theirs, "the consumer")?;
    let [consumer] = <[OwnedFd; 1]>::try_from(fds)
        .map_err(|_| Error::protocol("the consumer did not send its process descriptor"))?;
    Ok(PidFd::from_fd(consumer))
}

fn consumer_ended(consumer: &PidFd) -> Result<bool> {
    socket::readable(consumer.as_fd(), Duration::ZERO)
}

fn build_supervisor(fds: Vec<OwnedFd>, kinds: &[JobKind]) -> Result<WorkerSupervisor> {
    let mut fds = fds.into_iter();
    let (Some(request), Some(ring), Some(readable)) = (fds.next(), fds.next(), fds.next()) else {
        return Err(Error::protocol(
            "the start command lacks descriptors: the request, the ring, or the list of readable \
             files",
        ));
    };
    let request = StartRequest::unseal(request)?;
    let ring = Ring::open(ring, request.shape)?;
    let readable = sandbox::unseal_paths(readable)?;
    let sandbox = WorkerSandbox::prepare(request.sandbox, &readable)?;
    let job = request
        .job
        .build(kinds, fds.collect(), JobProcess::Worker)?;
    // Workers are forked below and use the map until they end, so it is never freed.
    let ring: &'static Ring = Box::leak(Box::new(ring));
    WorkerSupervisor::start(ring, job, sandbox, &request)
}
