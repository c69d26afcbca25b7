//! Finding processes by parent, by mapped file, by environment; killing them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One line of /proc/PID/stat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub name: String,
    pub state: char,
    pub parent: i32,
}

impl Process {
    pub fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, tail) = text.rsplit_once(')')?;
        let mut fields = tail.split_whitespace();
        Some(Self {
            pid,
            name: head.split_once('(')?.1.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

pub fn all_processes() -> Vec<Process> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter_map(Process::read)
        .collect()
}

/// Live children (zombies are not alive).
pub fn children(pid: i32) -> Vec<Process> {
    all_processes()
        .into_iter()
        .filter(|p| p.parent == pid && p.state != 'Z')
        .collect()
}

/// The coordinator that `consumer` has now.
pub fn coordinator_of(consumer: i32) -> Option<i32> {
    children(consumer)
        .into_iter()
        .find(|p| p.name == "featherload-co")
        .map(|p| p.pid)
}

pub fn send(pid: i32, signal: Signal) -> bool {
    kill(Pid::from_raw(pid), signal).is_ok()
}

/// The worker of `coordinator` that has `file` mapped now.
pub fn worker_with(coordinator: i32, file: &Path) -> Option<i32> {
    children(coordinator)
        .into_iter()
        .map(|p| p.pid)
        .find(|pid| has_mapped(*pid, file))
}

pub fn has_mapped(pid: i32, file: &Path) -> bool {
    let wanted = file.to_str().unwrap();
    fs::read_to_string(format!("/proc/{pid}/maps"))
        .is_ok_and(|maps| maps.lines().any(|line| line.ends_with(wanted)))
}

/// Asks until there is an answer, at most `limit`.
pub fn wait_for<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

pub const MARK: &str = "FEATHERLOAD_TEST_MARK";

/// A value of [`MARK`] that no other process has.
pub fn fresh_mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    format!("{}-{n}-{}", std::process::id(), now.as_nanos())
}

/// Live processes that carry `mark` in their environment, but for this one.
pub fn marked(mark: &str) -> Vec<Process> {
    let entry = format!("{MARK}={mark}");
    let me = std::process::id() as i32;
    all_processes()
        .into_iter()
        .filter(|p| p.pid != me && p.state != 'Z')
        .filter(|p| {
            fs::read(format!("/proc/{}/environ", p.pid))
                .is_ok_and(|bytes| bytes.split(|b| *b == 0).any(|e| e == entry.as_bytes()))
        })
        .collect()
}

/// Waits until no process carries `mark`; how long it took, or who is left
/// after `limit`.
pub fn wait_gone(mark: &str, limit: Duration) -> Result<Duration, Vec<Process>> {
    let began = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(began.elapsed());
        }
        if began.elapsed() > limit {
            return Err(left);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Children of this process that have ended and were not waited for.
pub fn zombies(names: &[&str]) -> Vec<Process> {
    let me = std::process::id() as i32;
    all_processes()
        .into_iter()
        .filter(|p| p.parent == me && p.state == 'Z' && names.contains(&p.name.as_str()))
        .collect()
}
