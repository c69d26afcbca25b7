//! Starts a coordinator, by fork or by exec of the helper.
//!
//! Runs in the consumer, before any image data exists. A fork needs a consumer with one thread.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pool::coordinator::find_helper;
use crate::pool::coordinator::find_helper::HelperProgram;
use crate::pool::coordinator::handle::CoordinatorHandle;
use crate::pool::coordinator::init::{is_helper_without_init, own_executable, refuse_to_nest};
use crate::pool::coordinator::messages::{
    COORDINATOR_COMMAND, HELLO_LIMIT, HelloMessage, LONGEST_HELLO, refused,
};
use crate::pool::coordinator::process::serve_as_coordinator;
use crate::pool::job::JobKind;
use crate::sys::process;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::ReceiveOutcome;
use crate::sys::stack;

/// Most helpers in a row that a signal may end before the handshake.
const MOST_KILLS: u32 = 8;
/// How long a helper may take to end after its socket has closed.
const END_LIMIT: Duration = Duration::from_millis(100);

/// How the coordinator is started, which then forks the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchMethod {
    /// Starts an executable as the coordinator. Works from any caller: with threads, CUDA or
    /// gigabytes of memory, as workers inherit none of these. The first of these executables is
    /// used:
    ///
    /// 1. the one that [`LoaderBuilder::helper`](crate::LoaderBuilder::helper) names;
    /// 2. the one that the variable `FEATHERLOAD_HELPER` names;
    /// 3. the caller's own, if [`init`](crate::init()) is the first line of `main`;
    /// 4. `featherload` next to the caller's own (for examples and tests also one folder above).
    ///    File and folder must belong to the user, root or the owner of the caller's executable,
    ///    and no other user may have write permission;
    /// 5. `featherload` on `PATH`.
    #[default]
    Exec,
    /// Forks the caller. Needs no executable, but a caller with one thread and without CUDA;
    /// otherwise it is an error.
    Fork,
}

/// Starts a coordinator and performs the handshake. `kinds` are the jobs that a fork of this
/// process can do.
pub(crate) fn launch(
    method: LaunchMethod,
    named_helper: Option<&Path>,
    kinds: &'static [JobKind],
) -> Result<CoordinatorHandle> {
    if is_helper_without_init() {
        return Err(refuse_to_nest());
    }
    stack::check()?;
    process::check_proc()?;
    let (own_socket, helper_socket) = socket::pair()?;
    let (pid, helper) = match method {
        LaunchMethod::Exec => {
            let lacks = kinds.is_empty().then_some("codecs");
            exec(helper_socket, COORDINATOR_COMMAND, named_helper, lacks)?
        }
        LaunchMethod::Fork => (
            fork(helper_socket, kinds)?,
            HelperProgram::Other(own_executable()),
        ),
    };
    let pidfd = greet_or_kill(&own_socket, pid, &helper).map_err(|failed| failed.error)?;
    Ok(CoordinatorHandle::new(own_socket, pid, pidfd))
}

/// Starts another helper by exec, with the argument `command`, and performs the handshake. Returns
/// its socket and its process. `lacks` names the missing feature if this program was built without
/// this helper.
///
/// # Errors
/// The helper is missing, lacks the feature, or has another version.
pub(crate) fn launch_helper(
    command: &str,
    named_helper: Option<&Path>,
    lacks: Option<&'static str>,
) -> Result<(OwnedFd, Pid, PidFd)> {
    if is_helper_without_init() {
        return Err(refuse_to_nest());
    }
    stack::check()?;
    process::check_proc()?;
    let mut kills = 0;
    loop {
        let (own_socket, helper_socket) = socket::pair()?;
        let (pid, helper) = exec(helper_socket, command, named_helper, lacks)?;
        match greet_or_kill(&own_socket, pid, &helper) {
            Ok(pidfd) => return Ok((own_socket, pid, pidfd)),
            Err(failed) if failed.was_killed && kills < MOST_KILLS => kills += 1,
            Err(failed) => return Err(failed.error),
        }
    }
}

/// A failed handshake.
struct FailedGreeting {
    error: Error,
    /// Whether a signal ended the helper, so that a retry may help.
    was_killed: bool,
}

/// Performs the handshake with a new helper, and ends the helper if that fails.
fn greet_or_kill(
    own_socket: &OwnedFd,
    pid: Pid,
    helper: &HelperProgram,
) -> std::result::Result<PidFd, FailedGreeting> {
    let pidfd = PidFd::open(pid).map_err(|error| {
        end_by_number(pid);
        FailedGreeting {
            error,
            was_killed: false,
        }
    })?;
    let mut started = HelperGuard {
        pidfd: &pidfd,
        kills_on_drop: true,
    };
    if let Err(error) = greet(own_socket, helper) {
        // The socket may close slightly before the process ends.
        let has_ended = matches!(socket::readable(pidfd.as_fd(), END_LIMIT), Ok(true));
        let status = has_ended.then(|| pidfd.reap(false)).flatten();
        let was_killed = matches!(status, Some(WaitStatus::Signaled(..)));
        return Err(FailedGreeting { error, was_killed });
    }
    started.kills_on_drop = false;
    drop(started);
    Ok(pidfd)
}

/// Kills and reaps the helper when dropped: its handshake failed.
struct HelperGuard<'a> {
    pidfd: &'a PidFd,
    kills_on_drop: bool,
}

impl Drop for HelperGuard<'_> {
    fn drop(&mut self) {
        if self.kills_on_drop {
            self.pidfd.kill();
            self.pidfd.reap(true);
        }
    }
}

/// The same by number, if the system provides no process descriptor. An unreaped child keeps its
/// number.
fn end_by_number(pid: Pid) {
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    let _ = nix::sys::wait::waitpid(pid, None);
}

/// Starts the helper. Uses no `pre_exec`, ids or groups: with any of them the standard library
/// forks this process instead of spawning.
fn exec(
    helper_socket: OwnedFd,
    command: &str,
    named: Option<&Path>,
    lacks: Option<&'static str>,
) -> Result<(Pid, HelperProgram)> {
    let helper = find_helper::find(named, lacks)?;
    let child = Command::new(helper.executable())
        .arg0(helper.to_string())
        .arg(command)
        .stdin(Stdio::from(helper_socket))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| Error::not_started(format!("start the helper {helper}"), e))?;
    // `Child` has no destructor. The handle waits for the process by its number.
    Ok((Pid::from_raw(child.id() as i32), helper))
}

fn fork(helper_socket: OwnedFd, kinds: &'static [JobKind]) -> Result<Pid> {
    if kinds.is_empty() {
        return Err(Error::config(
            "LaunchMethod::Fork needs the feature 'codecs', but this library was built without it: \
             use LaunchMethod::Exec",
        ));
    }
    if process::cuda_initialised()? {
        return Err(Error::config(
            "cannot fork: CUDA is initialised in this process and does not survive a fork; build \
             the loader before the first use of CUDA, or use LaunchMethod::Exec",
        ));
    }
    let mut helper_socket = Some(helper_socket);
    process::fork_never_returning(|| {
        // The caller's log may use descriptors that are closed next. Their numbers will be reused,
        // for example by the ring, so nothing may be logged.
        let silent = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::new());
        std::mem::forget(silent);
        match helper_socket.take() {
            Some(socket) => serve_as_coordinator(socket, kinds),
            None => 1,
        }
    })
}

fn greet(socket: &OwnedFd, helper: &HelperProgram) -> Result<()> {
    let failed = |what: &str| {
        let advice = helper.advice();
        Err(Error::worker(format!("{helper} {what}; {advice}")))
    };
    let mut buffer = [0; LONGEST_HELLO];
    let n = match socket::receive(socket.as_fd(), &mut buffer, HELLO_LIMIT)? {
        ReceiveOutcome::Message(n, _) => n,
        ReceiveOutcome::Closed => return failed("ended before the handshake"),
        ReceiveOutcome::Timeout => {
            return failed(&format!("did not answer within {HELLO_LIMIT:?}"));
        }
    };
    if let Some(why) = refused(&buffer[..n]) {
        return Err(Error::worker(format!("{helper} refused to start: {why}")));
    }
    let name = helper.to_string();
    let helper_socket = HelloMessage::read(&buffer[..n], &name)?;
    let own_socket = HelloMessage::ours();
    own_socket.check(
        &own_executable().display().to_string(),
        &helper_socket,
        &name,
    )?;
    let me = PidFd::current()?;
    socket::send(socket.as_fd(), &own_socket.to_bytes(), &[me.as_fd()])
}
