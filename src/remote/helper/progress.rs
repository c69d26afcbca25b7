//! Running transfers of this helper, and the lines that report slow ones.
//!
//! Runs in the fetcher and in the uploader. Each has one thread, whose transfers are listed here.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::error::size;

/// Time until the first line of a request, and the longest time between two.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

thread_local! {
    /// By number, the oldest first.
    static TRANSFERS: RefCell<BTreeMap<u64, TransferState>> = const { RefCell::new(BTreeMap::new()) };
}

#[derive(Debug)]
struct TransferState {
    about: String,
    began: Instant,
    bytes: u64,
    of: Option<u64>,
}

impl TransferState {
    fn line(&self, now: Instant) -> String {
        let age = now.saturating_duration_since(self.began);
        let rate = self.bytes as f64 / age.as_secs_f64().max(0.001);
        line(&self.about, self.bytes, self.of, age, rate)
    }
}

/// Progress of a transfer, for a user who waits for it.
pub(crate) fn line(about: &str, bytes: u64, of: Option<u64>, age: Duration, rate: f64) -> String {
    let of = of.map_or_else(String::new, |of| format!(" of {}", size(of)));
    let (bytes, rate) = (size(bytes), size(rate as u64));
    let seconds = age.as_secs_f64();
    format!("waiting for {about}: {bytes}{of} after {seconds:.0} s ({rate}/s)")
}

/// A running transfer. It ends when dropped.
#[derive(Debug)]
pub(crate) struct TransferProgress(u64);

impl TransferProgress {
    /// `of`: its size in bytes, if known.
    pub(crate) fn begin(about: String, of: Option<u64>) -> Self {
        let state = TransferState {
            about,
            began: Instant::now(),
            bytes: 0,
            of,
        };
        TRANSFERS.with_borrow_mut(|all| {
            let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
            all.insert(number, state);
            Self(number)
        })
    }

    pub(crate) fn set_size(&self, bytes: u64) {
        self.change(|state| state.of = Some(bytes));
    }

    /// Sets the number of transferred bytes.
    pub(crate) fn set_done(&self, bytes: u64) {
        self.change(|state| state.bytes = bytes);
    }

    pub(crate) fn add_done(&self, bytes: u64) {
        self.change(|state| state.bytes = state.bytes.saturating_add(bytes));
    }

    fn change(&self, change: impl FnOnce(&mut TransferState)) {
        TRANSFERS.with_borrow_mut(|all| all.get_mut(&self.0).map(change));
    }
}

impl Drop for TransferProgress {
    fn drop(&mut self) {
        // The list may already be destroyed at the end of its thread.
        let _ = TRANSFERS.try_with(|all| all.borrow_mut().remove(&self.0));
    }
}

/// Decides when slow transfers are reported: after 5 s, then less and less often. Faster transfers
/// are not reported, however many there are.
#[derive(Debug)]
pub(crate) struct ProgressReports {
    /// Time between two lines.
    pause: Duration,
    /// Time until the next check.
    next_look: Duration,
    /// Whether another request starts anew.
    renews: bool,
}

impl ProgressReports {
    /// For single requests that a user waits for.
    pub(crate) fn for_single_requests() -> Self {
        Self {
            pause: FIRST,
            next_look: FIRST,
            renews: true,
        }
    }

    /// For many requests of one command.
    pub(crate) fn for_command() -> Self {
        Self {
            renews: false,
            ..Self::for_single_requests()
        }
    }

    pub(crate) fn begin(&mut self) {
        if self.renews {
            self.pause = FIRST;
        }
        self.next_look = self.pause;
    }

    /// Time until the next check.
    pub(crate) fn next_look(&self) -> Duration {
        self.next_look
    }

    /// The line that is due: of the oldest transfer, if that is slow.
    pub(crate) fn next(&mut self) -> Option<String> {
        self.next_at(Instant::now())
    }

    fn next_at(&mut self, now: Instant) -> Option<String> {
        TRANSFERS.with_borrow(|all| {
            let oldest = all.first_key_value().map(|(_, state)| state);
            let age = oldest.map_or(Duration::ZERO, |state| {
                now.saturating_duration_since(state.began)
            });
            if age < FIRST {
                self.next_look = FIRST - age;
                return None;
            }
            self.pause = (self.pause * 2).min(LONGEST);
            self.next_look = self.pause;
            oldest.map(|state| state.line(now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_transfer_is_reported_ever_more_rarely() {
        let mut reports = ProgressReports::for_single_requests();
        assert_eq!(reports.next_look(), Duration::from_secs(5));
        let now = Instant::now() + Duration::from_secs(10);
        assert_eq!(reports.next_at(now), None);
        let first = TransferProgress::begin("s3://b/index.fli".to_owned(), None);
        let second = TransferProgress::begin("s3://b/other".to_owned(), Some(7));
        first.set_size(40 << 20);
        first.add_done(10 << 20);
        first.add_done(10 << 20);
        let text = reports.next_at(now).unwrap();
        assert!(text.starts_with("waiting for s3://b/index.fli: "), "{text}");
        assert!(
            text.contains(&format!("{} of {}", size(20 << 20), size(40 << 20))),
            "{text}"
        );
        assert!(
            text.contains("after 10 s") && text.ends_with("/s)"),
            "{text}"
        );
        drop(first);
        assert!(reports.next_at(now).unwrap().contains("s3://b/other"));
        drop(second);
        let third = TransferProgress::begin("s3://b/third".to_owned(), None);
        let later = Instant::now() + Duration::from_secs(10);
        let mut pauses = Vec::new();
        for _ in 0..3 {
            reports.next_at(later);
            pauses.push(reports.next_look().as_secs());
        }
        assert_eq!(pauses, [40, 60, 60]);
        // A new request starts anew; one of many requests of a command does not.
        reports.begin();
        assert_eq!(reports.next_look(), FIRST);
        let mut reports = ProgressReports::for_command();
        reports.next_at(later);
        reports.begin();
        assert_eq!(reports.next_look(), FIRST * 2);
        drop(third);
    }

    #[test]
    fn short_transfers_that_follow_each_other_are_not_reported() {
        let mut reports = ProgressReports::for_single_requests();
        for number in 0..3 {
            let short = TransferProgress::begin(format!("s3://b/s-{number}.tar"), None);
            let began = TRANSFERS.with_borrow(|all| all[&short.0].began);
            assert_eq!(reports.next_at(began + Duration::from_secs(1)), None);
            // It is checked again when it is slow.
            assert_eq!(reports.next_look(), FIRST - Duration::from_secs(1));
        }
        let slow = TransferProgress::begin("s3://b/slow.tar".to_owned(), None);
        let began = TRANSFERS.with_borrow(|all| all[&slow.0].began);
        let text = reports.next_at(began + FIRST).unwrap();
        assert!(
            text.contains("slow.tar") && text.contains("after 5 s"),
            "{text}"
        );
        assert_eq!(reports.next_look(), FIRST * 2);
    }
}
