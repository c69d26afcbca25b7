//! Nobody in the pool waits for whoever reads stderr, and nobody of it leaves a core.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::unistd::{pipe, setsid};
use serde_json::Value;

use crate::common::command::command;
use crate::common::data;
use crate::common::processes::{
    MARK, Process, children, coordinator_of, fresh_mark, marked, send, wait_for, wait_gone,
};

/// Longer is a hang.
const HANG: Duration = Duration::from_secs(60);

/// A `bench` that ends with this test, whatever becomes of it.
struct Bench {
    child: Child,
    mark: String,
}

impl Bench {
    fn start(data: &Path, epochs: &str, make: impl FnOnce(&mut std::process::Command)) -> Self {
        let mark = fresh_mark();
        let mut command = command(&["bench", data.to_str().unwrap()]);
        command
            .args([
                "--num-workers",
                "2",
                "--batch-size",
                "4",
                "--digest",
                "--json",
            ])
            .args(["--epochs", epochs])
            .env(MARK, &mark)
            .stdout(Stdio::piped());
        make(&mut command);
        let child = command.spawn().unwrap();
        Self { child, mark }
    }

    fn coordinator(&self) -> i32 {
        let found = wait_for(HANG, || coordinator_of(self.child.id() as i32));
        found.expect("a coordinator")
    }

    /// Ends workers, which the coordinator reports one by one: always the older of both, so
    /// that none ends before it has done something. A pool in which several do is given up.
    fn end_workers(&self, times: usize) {
        let coordinator = self.coordinator();
        let (mut ended, mut alive) = (Vec::new(), Vec::new());
        while ended.len() < times {
            let worker = wait_for(HANG, || {
                let now = children(coordinator).into_iter();
                let now = now.filter(|p| p.name == "featherload-wk" && !ended.contains(&p.pid));
                let now: Vec<i32> = now.map(|p| p.pid).collect();
                alive.retain(|pid| now.contains(pid));
                let new: Vec<i32> = (now.into_iter())
                    .filter(|pid| !alive.contains(pid))
                    .collect();
                alive.extend(new);
                (alive.len() == 2).then(|| alive.remove(0))
            });
            let Some(worker) = worker else {
                let state = Process::read(coordinator);
                panic!("no new worker after {} ends: {state:?}", ended.len());
            };
            send(worker, Signal::SIGTERM);
            ended.push(worker);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it prints on stdout, once it has ended by itself.
    fn report(&mut self) -> Value {
        let ended = wait_for(HANG, || self.child.try_wait().unwrap());
        let state = Process::read(self.child.id() as i32);
        let status = ended.unwrap_or_else(|| panic!("hangs: {state:?} {:?}", marked(&self.mark)));
        assert!(status.success(), "{status}");
        serde_json::from_reader(self.child.stdout.take().unwrap()).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for process in marked(&self.mark) {
            send(process.pid, Signal::SIGKILL);
        }
        // Reaped already, where the test went well.
        let _ = self.child.wait();
    }
}

/// A pipe of 4 KiB that nobody reads.
fn unread() -> (OwnedFd, OwnedFd) {
    let (from, to) = pipe().unwrap();
    assert_eq!(fcntl(&to, FcntlArg::F_SETPIPE_SZ(4096)), Ok(4096));
    (from, to)
}

/// How often workers end: more than a pipe of 4 KiB can be told of.
const ENDS: usize = 45;
/// Of a run that takes longer than so many ends.
const EPOCHS: &str = "300";

#[test]
fn a_run_whose_stderr_nobody_reads_ends_with_its_digest() {
    let dir = data(2, 20);
    let quiet = |c: &mut std::process::Command| _ = c.stderr(Stdio::null());
    let want = Bench::start(dir.path(), EPOCHS, quiet).report()["digest"].clone();
    assert!(want.is_string(), "{want}");
    let (from, to) = unread();
    let mut run = Bench::start(dir.path(), EPOCHS, |c| _ = c.stderr(to));
    run.end_workers(ENDS);
    let report = run.report();
    assert_eq!(report["digest"], want);
    assert_eq!(report["worker_deaths"], ENDS);
    let lost = report["loader"]["stderr_lost"].as_u64();
    assert!(lost.is_some_and(|n| n > 0 && n < ENDS as u64), "{lost:?}");
    drop(run);
    let mut message = String::new();
    File::from(from).read_to_string(&mut message).unwrap();
    // Whole lines, and every one that was not dropped.
    assert!(message.ends_with('\n'), "{message}");
    let output = message.lines().filter(|l| l.contains("worker ")).count();
    assert_eq!(Some((ENDS - output) as u64), lost, "{message}");
}

#[test]
fn a_killed_run_whose_stderr_nobody_reads_leaves_nothing() {
    let dir = data(2, 20);
    let (_from, to) = unread();
    let run = Bench::start(dir.path(), "1000000000", |c| _ = c.stderr(to));
    run.end_workers(ENDS);
    send(run.child.id() as i32, Signal::SIGKILL);
    let gone = wait_gone(&run.mark, Duration::from_secs(2));
    assert!(gone.is_ok(), "left behind: {gone:?}");
}

/// The flags of an open file belong to everybody who has it: the shell, too.
#[test]
fn the_flags_of_the_callers_stderr_stay() {
    let dir = data(1, 9);
    let (from, to) = unread();
    let twin = to.try_clone().unwrap();
    let run = Bench::start(dir.path(), "1000000000", |c| _ = c.stderr(to));
    run.end_workers(3);
    let flags = fcntl(&twin, FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
    assert!(!flags.unwrap().contains(OFlag::O_NONBLOCK));
    drop(run);
    drop(twin);
    let mut message = String::new();
    File::from(from).read_to_string(&mut message).unwrap();
    assert!(message.contains("SIGTERM"), "{message}");
}

/// `stty tostop`: the coordinator has a process group of its own, so its words are
/// those of a job in the background.
#[test]
fn a_terminal_that_stops_jobs_in_the_background_stops_nobody() {
    let dir = data(1, 9);
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: fills two integers; no name, attributes or size are asked for.
    let made = unsafe {
        libc::openpty(
            &mut master,
            &mut slave,
            std::ptr::null_mut(),
            std::ptr::null(),
            std::ptr::null(),
        )
    };
    assert_eq!(made, 0);
    // SAFETY: the descriptors are new, and nobody else's.
    let (master, slave) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    // SAFETY: all zeros are a value of it, which the next call fills.
    let mut attributes: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: a terminal, and attributes that live through the calls.
    unsafe {
        assert_eq!(libc::tcgetattr(slave.as_raw_fd(), &mut attributes), 0);
        attributes.c_lflag |= libc::TOSTOP;
        assert_eq!(
            libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &attributes),
            0
        );
    }
    let run = Bench::start(dir.path(), "1000000000", |c| {
        c.stderr(slave);
        let session = || {
            setsid()?;
            // SAFETY: 2 is the terminal; the call takes integers.
            match unsafe { libc::ioctl(2, libc::TIOCSCTTY, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: two system calls, nothing is allocated.
        unsafe { c.pre_exec(session) };
    });
    let coordinator = run.coordinator();
    run.end_workers(20);
    assert_ne!(Process::read(coordinator).unwrap().state, 'T');
    let mut message = [0; 4096];
    let n = File::from(master).read(&mut message).unwrap();
    let message = String::from_utf8_lossy(&message[..n]).into_owned();
    assert!(message.contains("SIGTERM"), "{message}");
}

/// The flags of a map in smaps that is called so, in the process.
fn flags_of(pid: i32, name: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mut flags = Vec::new();
    let mut is_it = false;
    for line in text.lines() {
        if let Some(of_map) = line.strip_prefix("VmFlags: ") {
            if is_it {
                flags.push(of_map.to_owned());
            }
        } else if !line
            .split(' ')
            .next()
            .is_some_and(|word| word.ends_with(':'))
        {
            is_it = line.contains(name);
        }
    }
    flags
}

#[test]
fn what_is_shared_is_in_nobodys_core() {
    let dir = data(1, 9);
    let run = Bench::start(dir.path(), "1000000000", |c| _ = c.stderr(Stdio::null()));
    let coordinator = run.coordinator();
    let worker = wait_for(HANG, || {
        let named = |p: &Process| p.name == "featherload-wk";
        children(coordinator).into_iter().find(named)
    });
    let worker = worker.unwrap().pid;
    for pid in [run.child.id() as i32, coordinator, worker] {
        let flags = flags_of(pid, "memfd:featherload");
        assert!(!flags.is_empty(), "{pid} maps no shared memory");
        for of_map in flags {
            assert!(
                of_map.split(' ').any(|flag| flag == "dd"),
                "{pid}: {of_map}"
            );
        }
    }
    for pid in [coordinator, worker] {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits.lines().find(|l| l.starts_with("Max core file size"));
        let numbers: Vec<u64> = line
            .unwrap()
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        assert!(matches!(numbers[..], [0 | 1, 0 | 1]), "{pid}: {line:?}");
    }
}

/// Where the machine writes cores into the working folder, one would lie there.
#[test]
fn a_crashing_worker_writes_no_core() {
    let dir = data(2, 20);
    let folder = tempfile::tempdir().unwrap();
    let run = Bench::start(dir.path(), "1000000000", |c| {
        c.stderr(Stdio::null()).current_dir(folder.path());
        let unlimited = || {
            let infinity = nix::sys::resource::RLIM_INFINITY;
            let core = nix::sys::resource::Resource::RLIMIT_CORE;
            let (_, hard) = nix::sys::resource::getrlimit(core)?;
            nix::sys::resource::setrlimit(core, hard.min(infinity), hard)?;
            Ok(())
        };
        // SAFETY: two system calls, nothing is allocated.
        unsafe { c.pre_exec(unlimited) };
    });
    let coordinator = run.coordinator();
    let worker = wait_for(HANG, || {
        let named = |p: &Process| p.name == "featherload-wk";
        children(coordinator).into_iter().find(named)
    });
    let worker = worker.unwrap().pid;
    send(worker, Signal::SIGSEGV);
    let gone = wait_for(HANG, || Process::read(worker).is_none().then_some(()));
    assert!(gone.is_some());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
