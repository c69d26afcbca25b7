//! Detects a leader that hangs. It writes a changing number into `leader.lock`, and fetchers of
//! other ranks read it.
//!
//! Runs in the fetcher. The lock only shows that the leader is alive, even if it is stopped.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::remote::helper::messages::HelperError;
use crate::sys::clock::{RunningClock, monotonic_ns};
use crate::sys::pid_namespace;
use crate::sys::whole_file;

/// Least time between two heartbeats.
const EVERY: Duration = Duration::from_millis(250);

/// How long a leader may not respond while its shards are needed.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Longest content of the file.
const MOST_BYTES: u64 = 4096;

/// A gap of this length between two checks is normal.
const NO_WONDER: Duration = Duration::from_secs(1);

/// The lock of the leader, with its heartbeat.
#[derive(Debug)]
pub(super) struct LeaderLock {
    /// The locked file.
    file: File,
    path: PathBuf,
    /// PID namespace of this process's number.
    namespace: u64,
    last: Option<Instant>,
}

/// The leader, as other ranks see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaderProcess {
    pub(super) process: u32,
    /// Whether its number is valid in this process's PID namespace.
    pub(super) is_near: bool,
}

impl LeaderProcess {
    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        Some(Self {
            process: words.next()?.parse().ok()?,
            is_near: words.nth(1)?.parse() == Ok(pid_namespace::current().unwrap_or(0)),
        })
    }
}

impl LeaderLock {
    /// Uses the lock at `path`, which this process holds.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn begin(file: File, path: PathBuf) -> Result<Self> {
        let mut right = Self {
            file,
            path,
            namespace: pid_namespace::current().unwrap_or(0),
            last: None,
        };
        right.write_beat()?;
        Ok(right)
    }

    /// Writes a heartbeat, a few times per second.
    ///
    /// # Errors
    /// A system call that fails.
    pub(super) fn write_beat(&mut self) -> Result<()> {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return Ok(());
        }
        self.last = Some(Instant::now());
        // Always the same length, because it is overwritten.
        let (process, namespace) = (std::process::id(), self.namespace);
        let text = format!("{process:>10} {:>20} {namespace:>20}\n", monotonic_ns());
        let write = self.file.write_all_at(text.as_bytes(), 0);
        write.map_err(|e| Error::io_at("write", &self.path, e))
    }
}

/// Watches the leader from another rank.
#[derive(Debug)]
pub(super) struct LeaderWatch {
    path: PathBuf,
    limit: Duration,
    last_text: Vec<u8>,
    /// Time of this process, so that a suspended job blames no leader.
    clock: RunningClock,
    /// Reading of the clock at the last change, or when nothing was needed.
    since: Duration,
}

impl LeaderWatch {
    /// Watches the lock at `path`.
    pub(super) fn new(path: PathBuf, limit: Duration) -> Self {
        Self {
            path,
            limit,
            last_text: Vec::new(),
            clock: RunningClock::start(),
            since: Duration::ZERO,
        }
    }

    /// Checks the leader, after a sleep of at most `planned`. Returns its process if it has not
    /// responded for the limit while something was needed.
    pub(super) fn check_leader(
        &mut self,
        planned: Duration,
        is_needed: impl FnOnce() -> bool,
    ) -> Option<LeaderProcess> {
        let now = self.clock.read(planned);
        let last_text = whole_file::read(&self.path, MOST_BYTES).unwrap_or_default();
        if last_text != self.last_text {
            self.last_text = last_text;
            self.since = now;
            return None;
        }
        let still = now.saturating_sub(self.since);
        if still < NO_WONDER.min(self.limit) {
            return None;
        }
        // A leader that writes no such text is of an earlier version.
        let text = str::from_utf8(&self.last_text).ok()?;
        let leader = LeaderProcess::from_text(text)?;
        if !is_needed() {
            self.since = now;
            return None;
        }
        (still >= self.limit).then_some(leader)
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }
}

/// Error for a leader that does not respond.
pub(super) fn dead_leader_error(
    folder: &Path,
    leader: LeaderProcess,
    limit: Duration,
) -> HelperError {
    let LeaderProcess { process, is_near } = leader;
    let (place, way) = match is_near {
        true => (
            "",
            format!("continue it (kill -CONT {process}) or end it (kill -KILL {process})"),
        ),
        // Here the number is meaningless.
        false => (
            " of another PID namespace",
            "continue it or end it in its container".to_owned(),
        ),
    };
    HelperError::of_path(
        folder,
        format!(
            "process {process}{place} downloads for all runs of this folder, but has not responded \
             for {} s: {way}, then start this run again",
            limit.as_secs_f64()
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LOOK: Duration = Duration::from_millis(20);

    /// Checks until the leader is reported; returns the number of checks.
    fn looks_until_told(watch: &mut LeaderWatch, leader: LeaderProcess) -> usize {
        for n in 1..200 {
            std::thread::sleep(LOOK);
            if let Some(found) = watch.check_leader(LOOK, || true) {
                assert_eq!(found, leader);
                return n;
            }
        }
        panic!("not reported");
    }

    #[test]
    fn a_leader_that_stands_still_is_told_by_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leader.lock");
        let me = LeaderProcess {
            process: std::process::id(),
            is_near: true,
        };
        let mut watch = LeaderWatch::new(path.clone(), Duration::from_millis(200));
        // No leader, or one that writes nothing.
        assert_eq!(watch.check_leader(Duration::from_secs(9), || true), None);
        let file = File::create(&path).unwrap();
        assert_eq!(watch.check_leader(Duration::from_secs(9), || true), None);

        let mut right = LeaderLock::begin(file, path.clone()).unwrap();
        assert!(looks_until_told(&mut watch, me) >= 5);
        // One heartbeat is enough; it is not written more often than needed.
        right.last = None;
        right.write_beat().unwrap();
        assert_eq!(watch.check_leader(LOOK, || true), None);
        let written = fs::read(&path).unwrap();
        right.write_beat().unwrap();
        assert_eq!(fs::read(&path).unwrap(), written);
        assert_eq!(written.len(), 53);
        // Nothing is needed of it.
        for _ in 0..20 {
            std::thread::sleep(LOOK);
            assert_eq!(watch.check_leader(LOOK, || false), None);
        }
        assert!(looks_until_told(&mut watch, me) >= 5);
    }

    #[test]
    fn a_leader_of_another_namespace_is_known_as_such() {
        let own = pid_namespace::current().unwrap();
        let of =
            |namespace: u64| LeaderProcess::from_text(&format!("7 12345 {namespace}\n")).unwrap();
        assert!(of(own).is_near && !of(own + 1).is_near);
        assert_eq!(of(own + 1).process, 7);
        assert_eq!(LeaderProcess::from_text("7 12345\n"), None);
    }

    #[test]
    fn time_in_which_nobody_ran_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leader.lock");
        let file = File::create(&path).unwrap();
        let _right = LeaderLock::begin(file, path.clone()).unwrap();
        let mut watch = LeaderWatch::new(path, Duration::from_millis(150));
        assert_eq!(watch.check_leader(LOOK, || true), None);
        std::thread::sleep(Duration::from_millis(400));
        assert_eq!(watch.check_leader(LOOK, || true), None);
    }
}
