//! Making a coordinator: by fork from a consumer that has one thread, or by
//! exec of the helper from any.
//!
//! Runs in the consumer, before any image data exists.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ipc_channel::ipc::IpcOneShotServer;
use nix::fcntl::{OFlag, open};
use nix::sys::prctl::get_dumpable;
use nix::sys::stat::Mode;
use nix::unistd::{Pid, getpid};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pool::coordinator::handle::CoordinatorHandle;
use crate::pool::coordinator::helper;
use crate::pool::coordinator::helper::{Helper, own_executable};
use crate::pool::coordinator::messages::{
    Bootstrap, COORDINATOR_COMMAND, HELLO_LIMIT, Hello, LONGEST_HELLO, refused,
};
use crate::pool::coordinator::own::{is_helper_without_init, refuse_to_nest};
use crate::pool::coordinator::process::{live, remove_socket};
use crate::pool::job::JobKind;
use crate::sys::process;
use crate::sys::process::{PidFd, hold_signals};
use crate::sys::socket;
use crate::sys::socket::Received;

/// How worker processes are started: by way of a coordinator, which forks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// An executable becomes the coordinator: works from any caller, with threads,
    /// CUDA, or gigabytes of memory, none of which reach a worker. It is, in this
    /// order:
    ///
    /// 1. the one that [`LoaderBuilder::helper`](crate::LoaderBuilder::helper) names;
    /// 2. the one that the variable `FEATHERLOAD_HELPER` names;
    /// 3. the caller's own, where [`init`](crate::init()) is the first line of `main`;
    /// 4. `featherload` beside the caller's own (of examples and tests: also one folder
    ///    above), where file and folder are the user's, root's or those of who installed
    ///    the caller, and nobody else may write them;
    /// 5. `featherload` on `PATH`.
    #[default]
    Exec,
    /// The caller is forked: needs no executable, but a caller with one thread
    /// and no CUDA. An error otherwise.
    Fork,
}

/// Makes a coordinator and shakes hands with it.
/// `kinds` are the jobs that a fork of this process can do.
pub(crate) fn launch(
    how: Launch,
    named_helper: Option<&Path>,
    kinds: &'static [JobKind],
) -> Result<CoordinatorHandle> {
    if is_helper_without_init() {
        return Err(refuse_to_nest());
    }
    process::check_proc()?;
    let (ours, theirs) = socket::pair()?;
    check_temporary_folder()?;
    // A signal that ends this process would leave the channel's first socket.
    // The coordinator clears its mask by itself.
    let _held = hold_signals()?;
    let (server, name) = IpcOneShotServer::<Bootstrap>::new().map_err(|e| {
        Error::io(
            "make the control channel's socket in the temporary folder",
            e,
        )
    })?;
    let door = Door::new(name);
    let channel = door.path();
    let (pid, helper) = match how {
        Launch::Exec => exec(theirs, &channel, named_helper, kinds)?,
        Launch::Fork => (
            fork(theirs, &channel, kinds)?,
            Helper::Other(own_executable()),
        ),
    };
    let pidfd = PidFd::open(pid).inspect_err(|_| end_by_number(pid))?;
    let mut started = Started {
        pidfd: &pidfd,
        armed: true,
    };
    greet(&ours, &helper)?;
    let (_, bootstrap) = server
        .accept()
        .map_err(|e| Error::protocol(format!("accept the control channel: {e}")))?;
    started.armed = false;
    drop(started);
    Ok(CoordinatorHandle::new(ours, bootstrap, pid, pidfd))
}

/// Where the coordinator finds the control channel's first socket.
enum Door {
    /// A descriptor of it. Its path is gone already: whoever is killed from here on leaves
    /// nothing behind.
    Open(OwnedFd),
    /// Its path. The coordinator takes it away.
    Path(String),
}

impl Door {
    fn new(path: String) -> Self {
        // Of such a process no other one may open descriptors.
        if !matches!(get_dumpable(), Ok(true)) {
            return Self::Path(path);
        }
        match open(
            path.as_str(),
            OFlag::O_PATH | OFlag::O_CLOEXEC,
            Mode::empty(),
        ) {
            Ok(socket) => {
                let open = Self::Open(socket);
                // Of another namespace of processes, /proc has others under our number.
                let of = |path: &str| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
                match of(&open.path()) {
                    Some(found) if Some(found) == of(&path) => {
                        remove_socket(Path::new(&path));
                        open
                    }
                    _ => Self::Path(path),
                }
            }
            Err(_) => Self::Path(path),
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Open(socket) => format!("/proc/{}/fd/{}", getpid(), socket.as_raw_fd()),
            Self::Path(path) => path.clone(),
        }
    }
}

/// The control channel's first socket has a path in the temporary folder, and
/// socket paths are short. ipc-channel cuts a longer one without a word, and panics when
/// the folder takes no file.
fn check_temporary_folder() -> Result<()> {
    const SOCKET_PATH: usize = 107;
    const OWN_PART: usize = "/.tmpXXXXXX/socket".len();
    let folder = std::env::temp_dir();
    match folder.to_str() {
        Some(path) if path.len() + OWN_PART <= SOCKET_PATH => {
            // A file without a name: nothing of it is left, whatever ends this process.
            let probe = tempfile::tempfile_in(&folder);
            probe.map(drop).map_err(|e| {
                let what = "make the control channel's socket in the temporary folder (TMPDIR)";
                Error::io_at(what, &folder, e)
            })
        }
        _ => Err(Error::config(format!(
            "the temporary folder {} cannot hold a socket: its path must be UTF-8 and at most {} \
             bytes long (TMPDIR)",
            folder.display(),
            SOCKET_PATH - OWN_PART
        ))),
    }
}

/// Kills and reaps a coordinator whose hand-shake failed.
struct Started<'a> {
    pidfd: &'a PidFd,
    armed: bool,
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.pidfd.kill();
            self.pidfd.reap(true);
        }
    }
}

/// The same where the system gives no descriptor of it. A child that nobody has reaped
/// keeps its number.
fn end_by_number(pid: Pid) {
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    let _ = nix::sys::wait::waitpid(pid, None);
}

/// No `pre_exec`, no ids, no groups: any of them would make the standard
/// library fork this process, page tables and all, instead of spawning.
fn exec(
    theirs: OwnedFd,
    channel: &str,
    named: Option<&Path>,
    kinds: &[JobKind],
) -> Result<(Pid, Helper)> {
    let helper = helper::find(named, !kinds.is_empty())?;
    let child = Command::new(helper.executable())
        .arg0(helper.to_string())
        .arg(COORDINATOR_COMMAND)
        .arg(channel)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| Error::io("start the helper ".to_owned() + &helper.to_string(), e))?;
    // `Child` has no destructor: the handle waits for the process by its pid.
    Ok((Pid::from_raw(child.id() as i32), helper))
}

fn fork(theirs: OwnedFd, channel: &str, kinds: &'static [JobKind]) -> Result<Pid> {
    if kinds.is_empty() {
        return Err(Error::config(
            "Launch::Fork needs the feature 'codecs', with which this library was not built; use \
             Launch::Exec",
        ));
    }
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
            Some(socket) => live(socket, channel, kinds),
            None => 1,
        }
    })
}

fn greet(socket: &OwnedFd, helper: &Helper) -> Result<()> {
    let failed = |what: &str| {
        let advice = helper.advice();
        Err(Error::worker(format!("{helper} {what}; {advice}")))
    };
    let mut buffer = [0; LONGEST_HELLO];
    let n = match socket::receive(socket.as_fd(), &mut buffer, HELLO_LIMIT)? {
        Received::Message(n, _) => n,
        Received::Closed => return failed("ended before the hand-shake"),
        Received::Timeout => return failed(&format!("did not greet within {HELLO_LIMIT:?}")),
    };
    if let Some(why) = refused(&buffer[..n]) {
        return Err(Error::worker(format!("{helper} refused to start: {why}")));
    }
    let name = helper.to_string();
    let theirs = Hello::read(&buffer[..n], &name)?;
    let ours = Hello::ours();
    ours.check(&own_executable().display().to_string(), &theirs, &name)?;
    let me = PidFd::current()?;
    socket::send(socket.as_fd(), &ours.to_bytes(), &[me.as_fd()])
}
