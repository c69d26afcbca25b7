//! The coordinator's beginning: cut the ties to the parent, shake hands, map
//! what the consumer sends, hand over to the supervisor.
//!
//! Runs in the coordinator. The same path after a fork and after an exec.

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

/// Exit status when the hand-shake or the start failed; the consumer knows why.
const EXIT_NOT_STARTED: i32 = 2;
/// Exit status after a panic, as Rust's own.
const EXIT_PANIC: i32 = 101;
/// Exit status when the pool's work broke off with an error.
const EXIT_BROKEN: i32 = 1;

/// Lives as a coordinator on `socket`; the return value is the exit status.
/// `kinds` are the jobs that it can be told to do.
pub(crate) fn live_as_coordinator(socket: OwnedFd, kinds: &[JobKind]) -> i32 {
    // A forked caller's hook is the caller's, as are the descriptors that it writes to.
    std::mem::forget(std::panic::take_hook());
    let mut stderr = match StderrRelay::install() {
        Ok(stderr) => stderr,
        Err(e) => {
            // Nothing can be said without waiting; a loader that is gone needs no reason.
            let _ = socket::send(socket.as_fd(), &refusal(&e.to_string()), &[]);
            return EXIT_NOT_STARTED;
        }
    };
    // Workers do not return from here, and nothing is used after a panic but `stderr`,
    // which has its last words.
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
                    // The workers' death signal does the rest.
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

/// The helper executable's life as a coordinator: standard input is the socket
/// to the consumer. Returns the exit status. The process has one thread. `kinds` are
/// the jobs that it can be told to do.
pub(crate) fn run_coordinator(kinds: &[JobKind]) -> i32 {
    match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => live_as_coordinator(socket, kinds),
        // There is nobody to tell: the socket is the loader's, and stderr may have to be
        // waited for.
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
    // For its workers as well.
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
        // The consumer may scan its data set for long: no limit here, but its
        // end is noticed.
        stderr.pass_on();
        if consumer_ended(&consumer)? {
            return Ok(None);
        }
        let received = socket::receive(line.socket.as_fd(), &mut byte, Duration::from_millis(200));
        if let Err(e) = &received {
            // The consumer waits for an answer: a start came, without its descriptors.
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
                    return Err(Error::protocol("a report was asked for before the start"));
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

/// A helper's part of the hand-shake; the consumer's process.
///
/// # Errors
/// One that is gone, does not answer, or is of another version.
pub(crate) fn greet_consumer(socket: &OwnedFd) -> Result<PidFd> {
    let ours = HelloMessage::ours();
    socket::send(socket.as_fd(), &ours.to_bytes(), &[])?;
    let mut buffer = [0; HELLO_BYTES + 1];
    let (n, fds) = match socket::receive(socket.as_fd(), &mut buffer, HELLO_LIMIT)? {
        ReceiveOutcome::Message(n, fds) => (n, fds),
        ReceiveOutcome::Closed => {
            return Err(Error::protocol("the consumer ended in the hand-shake"));
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
        .map_err(|_| Error::protocol("the consumer sent no descriptor of itself"))?;
    Ok(PidFd::from_fd(consumer))
}

fn consumer_ended(consumer: &PidFd) -> Result<bool> {
    socket::readable(consumer.as_fd(), Duration::ZERO)
}

fn build_supervisor(fds: Vec<OwnedFd>, kinds: &[JobKind]) -> Result<WorkerSupervisor> {
    let mut fds = fds.into_iter();
    let (Some(request), Some(ring), Some(readable)) = (fds.next(), fds.next(), fds.next()) else {
        return Err(Error::protocol(
            "a start came without its request, a ring, or what workers may read",
        ));
    };
    let request = StartRequest::unseal(request)?;
    let ring = Ring::open(ring, request.shape)?;
    let readable = sandbox::unseal_paths(readable)?;
    let walls = WorkerSandbox::prepare(request.sandbox, &readable)?;
    let job = request
        .job
        .build(kinds, fds.collect(), JobProcess::Worker)?;
    // Lives as long as the process: workers are forked out of this function's
    // callee and use the map until they end.
    let ring: &'static Ring = Box::leak(Box::new(ring));
    WorkerSupervisor::start(ring, job, walls, &request)
}
