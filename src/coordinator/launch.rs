//! Making a coordinator: by fork from a consumer that has one thread, or by
//! exec of the helper from any.
//!
//! Runs in the consumer, before any image data exists.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ipc_channel::ipc::IpcOneShotServer;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::handle::CoordinatorHandle;
use super::helper;
use super::messages::{Bootstrap, HELLO_BYTES, HELLO_LIMIT, Hello};
use crate::error::{Error, Result};
use crate::sys::process::{PidFd, hold_signals};
use crate::sys::socket::{self, Received};

/// The hidden sub-command under which the helper becomes a coordinator.
pub const COORDINATOR_COMMAND: &str = "__coordinator";

/// How the coordinator is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// The `featherload` executable is started: works from any caller, with
    /// threads, CUDA, or gigabytes of memory, none of which reach a worker.
    #[default]
    Exec,
    /// The caller is forked: needs no executable, but a caller with one thread
    /// and no CUDA. An error otherwise.
    Fork,
}

/// Makes a coordinator and shakes hands with it.
pub(crate) fn launch(how: Launch, named_helper: Option<&Path>) -> Result<CoordinatorHandle> {
    let (ours, theirs) = socket::pair()?;
    check_temporary_folder()?;
    // A signal that ends this process would leave the channel's first socket.
    // The coordinator clears its mask by itself.
    let _held = hold_signals()?;
    let (server, channel) = IpcOneShotServer::<Bootstrap>::new().map_err(|e| {
        Error::io(
            "make the control channel's socket in the temporary folder",
            e,
        )
    })?;
    let (pid, executable) = match how {
        Launch::Exec => exec(theirs, &channel, named_helper)?,
        Launch::Fork => (fork(theirs, &channel)?, own_executable()),
    };
    let mut started = Started { pid, armed: true };
    let pidfd = PidFd::open(pid)?;
    greet(&ours, &executable)?;
    let (_, bootstrap) = server
        .accept()
        .map_err(|e| Error::protocol(format!("accept the control channel: {e}")))?;
    started.armed = false;
    Ok(CoordinatorHandle::new(ours, bootstrap, pid, pidfd))
}

/// The control channel's first socket has a path in the temporary folder, and
/// socket paths are short. ipc-channel cuts a longer one without a word.
fn check_temporary_folder() -> Result<()> {
    const SOCKET_PATH: usize = 107;
    const OWN_PART: usize = "/.tmpXXXXXX/socket".len();
    let folder = std::env::temp_dir();
    match folder.to_str() {
        Some(path) if path.len() + OWN_PART <= SOCKET_PATH => Ok(()),
        _ => Err(Error::config(format!(
            "the temporary folder {} cannot hold a socket: its path must be UTF-8 and at most {} \
             bytes long (TMPDIR)",
            folder.display(),
            SOCKET_PATH - OWN_PART
        ))),
    }
}

/// Kills and reaps a coordinator whose hand-shake failed.
struct Started {
    pid: Pid,
    armed: bool,
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.armed {
            let _ = nix::sys::signal::kill(self.pid, nix::sys::signal::Signal::SIGKILL);
            let _ = nix::sys::wait::waitpid(self.pid, None);
        }
    }
}

fn own_executable() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("this process"))
}

/// No `pre_exec`, no ids, no groups: any of them would make the standard
/// library fork this process, page tables and all, instead of spawning.
fn exec(theirs: OwnedFd, channel: &str, named: Option<&Path>) -> Result<(Pid, PathBuf)> {
    let helper = helper::find(named)?;
    let child = Command::new(&helper)
        .arg(COORDINATOR_COMMAND)
        .arg(channel)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| Error::io_at("start the helper", &helper, e))?;
    // `Child` has no destructor: the handle waits for the process by its pid.
    Ok((Pid::from_raw(child.id() as i32), helper))
}

#[cfg(feature = "codecs")]
fn fork(theirs: OwnedFd, channel: &str) -> Result<Pid> {
    use crate::sys::process;
    if process::cuda_initialised() {
        return Err(Error::config(
            "cannot fork: CUDA is initialised in this process and does not survive a fork; build \
             the loader before the first use of CUDA, or use Launch::Exec",
        ));
    }
    let mut theirs = Some(theirs);
    process::fork_never_returning(|| {
        // The caller's subscriber may own descriptors, which are closed next:
        // their numbers will be the ring's, and must not be logged into.
        let silent = tracing::subscriber::set_default(tracing::subscriber::NoSubscriber::new());
        std::mem::forget(silent);
        match theirs.take() {
            Some(socket) => super::process::live(socket, channel),
            None => 1,
        }
    })
}

#[cfg(not(feature = "codecs"))]
fn fork(_theirs: OwnedFd, _channel: &str) -> Result<Pid> {
    Err(Error::config(
        "Launch::Fork needs the feature 'codecs', with which this library was not built; use \
         Launch::Exec",
    ))
}

fn greet(socket: &OwnedFd, executable: &Path) -> Result<()> {
    let name = executable.display().to_string();
    let mut buffer = [0; HELLO_BYTES + 1];
    let n = match socket::receive(socket.as_fd(), &mut buffer, HELLO_LIMIT)? {
        Received::Message(n, _) => n,
        Received::Closed => {
            return Err(Error::worker(format!(
                "{name} ended before the hand-shake; run it with --version to see whether it runs \
                 at all"
            )));
        }
        Received::Timeout => {
            return Err(Error::worker(format!(
                "{name} did not greet within {HELLO_LIMIT:?}"
            )));
        }
    };
    let theirs = Hello::read(&buffer[..n], &name)?;
    let ours = Hello::ours();
    ours.check(&own_executable().display().to_string(), &theirs, &name)?;
    let me = PidFd::current()?;
    socket::send(socket.as_fd(), &ours.to_bytes(), &[me.as_fd()])
}
