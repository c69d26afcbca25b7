//! Lets the caller's own executable be its helper.
//!
//! Runs at the very start of `main`: in the consumer, and in the helper, which it turns into the
//! coordinator. Starts no thread.

use std::env;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use nix::sys::socket::{SockType, getsockopt, sockopt};

use crate::error::Error;
use crate::pool::coordinator::messages::{COORDINATOR_COMMAND, is_helper_command, refusal};
use crate::pool::coordinator::process::run_coordinator;
use crate::pool::job::JobKind;
use crate::sys::process;
use crate::sys::socket;

/// Name of the command line program.
pub(super) const NAME: &str = "featherload";

/// Exit status of a helper that cannot become a coordinator.
const EXIT_REFUSED: i32 = 2;

/// Number of threads at the first call of [`init`]; inner `None` if it is unknown.
static THREADS: OnceLock<Option<usize>> = OnceLock::new();

/// Whether this executable can be its own helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitState {
    /// `init` was not called.
    NotCalled,
    /// `init` was called with one thread.
    Ready,
    /// `init` was called while this number of threads ran.
    ThreadsRunning(usize),
    /// `init` could not count the threads.
    ThreadsUnknown,
}

pub(crate) fn init_state() -> InitState {
    match THREADS.get() {
        None => InitState::NotCalled,
        Some(Some(1)) => InitState::Ready,
        Some(Some(threads)) => InitState::ThreadsRunning(*threads),
        Some(None) => InitState::ThreadsUnknown,
    }
}

/// A helper other than the coordinator: its argument, and its main function. The function gets the
/// socket to the loader and returns the exit status.
#[derive(Debug, Clone, Copy)]
pub struct HelperEntry {
    pub command: &'static str,
    pub run: fn(OwnedFd) -> i32,
}

/// The first line of `main` of a program that can do `kinds`. [`featherload::init`](crate::init())
/// does the same for the library's own kinds.
#[cfg(feature = "internals")]
pub fn init(kinds: &[JobKind]) {
    init_with_others(kinds, &[]);
}

/// Like [`init`], for a program that can also be other helpers.
pub(crate) fn init_with_others(kinds: &[JobKind], others: &[HelperEntry]) {
    let mut args = env::args_os().skip(1);
    let Some(first) = args.next().filter(|first| is_helper_command(first)) else {
        THREADS.get_or_init(|| process::thread_count().ok());
        return;
    };
    let code = if args.next().is_none() && is_started_by_a_loader() {
        match others.iter().find(|helper| first == helper.command) {
            Some(helper) => run_other_helper(helper),
            None if first == COORDINATOR_COMMAND => run_as_coordinator(kinds),
            None => refuse("this program does not have this helper"),
        }
    } else {
        // A user's mistake. The process ends here.
        let text = format!(
            "the argument {} is reserved: a loader passes it to its helper; remove it\n",
            first.display()
        );
        let _ = io::stderr().write_all(text.as_bytes());
        EXIT_REFUSED
    };
    std::process::exit(code)
}

/// Whether this process is a helper that did not call `init`. It would start a helper of its own,
/// and so on without end.
pub(crate) fn is_helper_without_init() -> bool {
    let first = env::args_os().nth(1);
    first.is_some_and(|first| is_helper_command(&first)) && is_started_by_a_loader()
}

/// Reports the error to the loader that started this process, and returns it.
pub(crate) fn refuse_to_nest() -> Error {
    let why = "this program is named as a helper and does not call featherload::init(): make it \
               the first line of main";
    match socket::send(io::stdin().as_fd(), &refusal(why), &[]) {
        Ok(()) => {}
        Err(e) => tracing::error!("{why}; tell the loader: {e}"),
    }
    Error::option("helper", why)
}

/// A helper's standard input is a packet socket to its loader.
fn is_started_by_a_loader() -> bool {
    getsockopt(&io::stdin(), sockopt::SockType).is_ok_and(|kind| kind == SockType::SeqPacket)
}

/// Runs a coordinator. It forks, so it must have one thread.
fn run_as_coordinator(kinds: &[JobKind]) -> i32 {
    let why = match process::thread_count() {
        Ok(1) => return run_coordinator(kinds),
        Ok(threads) => why_not(threads, process::preloaded()),
        Err(e) => format!(
            "the helper forks workers and must count its threads before that: {e}; mount /proc"
        ),
    };
    refuse(&why)
}

/// Sends the reason to the loader, which waits for the first message. It does not write to stderr,
/// which might block.
fn refuse(why: &str) -> i32 {
    let _ = socket::send(io::stdin().as_fd(), &refusal(why), &[]);
    EXIT_REFUSED
}

/// Runs another helper, with standard input as its socket.
fn run_other_helper(helper: &HelperEntry) -> i32 {
    match io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => (helper.run)(socket),
        Err(e) => refuse(&format!("cannot duplicate its socket: {e}")),
    }
}

/// Why a coordinator cannot run with several threads. A thread may hold a lock during the fork, and
/// a child would wait for it forever. This includes threads of preloaded libraries. Those are not
/// removed, because a worker might need them to find its files.
fn why_not(threads: usize, preloaded: Option<String>) -> String {
    // The command line has no `main` of the user.
    let when = match preloaded.is_some() || is_command_line() {
        true => "main",
        false => "featherload::init()",
    };
    let before =
        format!("{threads} threads ran before {when}, but a helper that forks may have only one");
    match preloaded {
        Some(libraries) => format!(
            "{before}: a library of LD_PRELOAD={libraries} is likely to have started the rest; \
             start the program without it, or name a script as the helper (FEATHERLOAD_HELPER) \
             that unsets LD_PRELOAD and runs `exec featherload \"$@\"`"
        ),
        None if is_command_line() => format!(
            "{before}: start it without tools that add threads, such as a debugger or a profiler"
        ),
        None => format!(
            "{before}: make it the first line of main, or name another helper with \
             LoaderBuilder::helper"
        ),
    }
}

/// Path of this program for messages.
pub(crate) fn own_executable() -> PathBuf {
    env::current_exe().unwrap_or_else(|_| PathBuf::from("this process"))
}

/// Whether this program is featherload's command line, by its file name.
pub(crate) fn is_command_line() -> bool {
    own_executable()
        .file_name()
        .is_some_and(|name| name == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preloaded_thread_is_no_mistake_of_main() {
        let message = why_not(2, Some("agent.so".to_owned()));
        assert!(
            message.starts_with("2 threads ran before main, "),
            "{message}"
        );
        assert!(message.contains("LD_PRELOAD=agent.so") && !message.contains("init()"));
        assert!(why_not(2, None).contains("2 threads ran before featherload::init()"));
    }
}
