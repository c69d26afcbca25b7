//! Reports a long wait for a shard.
//!
//! Runs in the consumer. The progress is read from the folder, so ranks whose fetcher does not lead
//! report it too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::remote::fetch::lease::PART_END;
use crate::remote::helper::progress::line;

/// Time until the first line, and the longest time between two.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);
/// When the first rate starts to be measured.
const MEASURE: Duration = Duration::from_secs(1);

/// Time that the consumer has slept since the last batch whose shards were here.
#[derive(Debug)]
pub(super) struct ShardWait {
    slept: Duration,
    next: Duration,
    pause: Duration,
    /// Bytes of a file at a time.
    measured: Option<(PathBuf, u64, Duration)>,
}

impl ShardWait {
    pub(super) fn new() -> Self {
        Self {
            slept: Duration::ZERO,
            next: FIRST,
            pause: FIRST,
            measured: None,
        }
    }

    /// Adds a sleep. Returns whether [`ShardWait::line`] is due.
    pub(super) fn add_sleep(&mut self, slept: Duration) -> bool {
        self.slept += slept;
        self.slept >= self.next || (self.measured.is_none() && self.slept >= MEASURE)
    }

    /// The line for the shard at `path`, which has `bytes` when complete.
    pub(super) fn line(
        &mut self,
        path: &Path,
        bytes: impl FnOnce() -> Option<u64>,
    ) -> Option<String> {
        let mut part = path.as_os_str().to_owned();
        part.push(PART_END);
        let here = [Path::new(&part), path].map(|file| fs::metadata(file).map_or(0, |m| m.len()));
        let here = here[0].max(here[1]);
        let before = self.measured.replace((path.to_owned(), here, self.slept));
        if self.slept < self.next {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST);
        self.next = self.slept + self.pause;
        let (then, at) = match before {
            Some((of, then, at)) if of == path => (then, at),
            _ => (0, Duration::ZERO),
        };
        let rate = here.saturating_sub(then) as f64 / (self.slept - at).as_secs_f64().max(0.001);
        let of = bytes();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let mut text = line(&name, here, of, self.slept, rate);
        if of == Some(here) {
            text.push_str(", its checksum is compared");
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::size;

    #[test]
    fn a_long_wait_reports_what_is_here_of_the_shard() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shard-000003.tar");
        let part = dir.path().join("shard-000003.tar.part");
        let second = Duration::from_secs(1);
        let mut wait = ShardWait::new();
        assert!(!wait.add_sleep(second / 2));
        assert!(wait.add_sleep(second / 2));
        fs::write(&part, vec![0; 1 << 20]).unwrap();
        assert_eq!(wait.line(&path, || None), None);
        for _ in 0..3 {
            assert!(!wait.add_sleep(second));
        }
        fs::write(&part, vec![0; 5 << 20]).unwrap();
        assert!(wait.add_sleep(second));
        let text = wait.line(&path, || Some(8 << 20)).unwrap();
        let want = format!(
            "waiting for shard-000003.tar: {} of {} after 5 s ({}/s)",
            size(5 << 20),
            size(8 << 20),
            size(1 << 20)
        );
        assert_eq!(text, want);
        // Ever more rarely.
        assert!(!wait.add_sleep(second * 9));
        assert!(wait.add_sleep(second));
        fs::write(&part, vec![0; 8 << 20]).unwrap();
        let text = wait.line(&path, || Some(8 << 20)).unwrap();
        assert!(text.contains("after 15 s") && text.ends_with("checksum is compared"));
        assert!(!wait.add_sleep(second * 19));
    }
}
