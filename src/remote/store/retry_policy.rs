//! How often and how long a transfer of an object is retried, in both directions.
//!
//! Runs in the fetcher and in the uploader.

use std::time::{Duration, Instant};

use object_store::Error as StoreError;

use crate::remote::helper::messages::HelperError;
use crate::remote::helper::progress::TransferProgress;
use crate::remote::store::client::StoreFailure;

/// How long a transfer may make no progress.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// The same at the start of a run. Its user is waiting, and may have given a wrong endpoint or no
/// credentials.
pub(crate) const PATIENCE_AT_FIRST: Duration = Duration::from_secs(15);
/// Lowest rate of a transfer in bytes per second, and how long a lower one is accepted.
const LEAST_RATE: u64 = 1024;
const SLOW_LIMIT: Duration = Duration::from_secs(180);
/// Most time that counts between two pieces, because the whole job may have been suspended.
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// Requests for an object that are answered by a wish for fewer requests. Each waits as long as the
/// host says.
const MOST_SLOWED: u32 = 200;
/// Wait between two attempts: the first, doubled each time, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Retries of one object, while it makes progress.
pub(crate) struct RetryPolicy {
    about: String,
    /// What does not happen when it fails.
    what: &'static str,
    /// What to check then.
    advice: &'static str,
    limit: Duration,
    since: Instant,
    wait: Duration,
    /// Highest byte that was reached. Repeated bytes are no progress.
    furthest: u64,
    /// Responses since the last progress that asked for fewer requests.
    slowed: u32,
    rate: Rate,
    transfer: TransferProgress,
    pub(crate) retries: u64,
}

/// Transferred bytes and their time.
#[derive(Debug)]
struct Rate {
    last: Instant,
    bytes: u64,
    elapsed: Duration,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self {
            last: now,
            bytes: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// Adds bytes. Returns whether the rate over [`SLOW_LIMIT`] is below the lowest rate.
    fn is_too_low(&mut self, now: Instant, bytes: u64) -> bool {
        let gap = now.saturating_duration_since(self.last);
        self.elapsed += gap.min(LONGEST_GAP);
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = now;
        if self.bytes >= LEAST_RATE * SLOW_LIMIT.as_secs() {
            *self = Self::new(now);
        }
        self.elapsed >= SLOW_LIMIT
    }
}

impl RetryPolicy {
    /// For a download of `about`.
    pub(crate) fn new(about: String, limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            transfer: TransferProgress::begin(about.clone(), None),
            about,
            what: "no data arrived",
            advice: "Check network, endpoint and credentials in the environment",
            limit,
            since: now,
            wait: FIRST_WAIT,
            furthest: 0,
            slowed: 0,
            rate: Rate::new(now),
            retries: 0,
        }
    }

    /// For a download of a web address, which needs no settings.
    pub(crate) fn of_web(about: String, limit: Duration) -> Self {
        Self {
            advice: "Check the network and the address",
            ..Self::new(about, limit)
        }
    }

    /// For an upload of `about`.
    pub(crate) fn for_upload(about: String, limit: Duration) -> Self {
        Self {
            what: "the store accepted no data",
            ..Self::new(about, limit)
        }
    }

    /// Sets the object's size in bytes.
    pub(crate) fn set_size(&self, bytes: u64) {
        self.transfer.set_size(bytes);
    }

    /// Records `bytes` more bytes; `reached` is the current position.
    ///
    /// # Errors
    /// The rate was too low for too long.
    pub(crate) fn record_progress(&mut self, bytes: u64, reached: u64) -> Result<(), HelperError> {
        self.moved_at(Instant::now(), bytes, reached)
    }

    fn moved_at(&mut self, now: Instant, bytes: u64, reached: u64) -> Result<(), HelperError> {
        self.transfer.set_done(reached);
        if reached > self.furthest {
            self.furthest = reached;
            self.since = now;
            self.wait = FIRST_WAIT;
            self.slowed = 0;
        }
        if !self.rate.is_too_low(now, bytes) {
            return Ok(());
        }
        let what = format!(
            "less than {LEAST_RATE} bytes per second arrived for {} s ({reached} bytes so far): \
             check the network and the store, then start the run again",
            SLOW_LIMIT.as_secs()
        );
        Err(HelperError::new(&self.about, what).that_may_pass())
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// There are no more attempts.
    pub(crate) async fn after(&mut self, failure: StoreFailure) -> Result<(), HelperError> {
        let why = match failure {
            StoreFailure::Permanent(error) => return Err(error),
            StoreFailure::Transient(why) => why,
            StoreFailure::Slowed(slow) if slow.is_over() => {
                return Err(HelperError::new(&self.about, slow.to_string()).that_may_pass());
            }
            // The host answers other requests.
            StoreFailure::Slowed(_) if self.slowed >= MOST_SLOWED => {
                let what = format!(
                    "the server has asked for fewer requests in place of the object, {} times: try \
                     again later",
                    self.slowed
                );
                return Err(HelperError::new(&self.about, what).that_may_pass());
            }
            StoreFailure::Slowed(_) => {
                self.slowed += 1;
                // The next request waits by itself, and the host is not silent.
                self.retries += 1;
                self.since = Instant::now();
                return Ok(());
            }
        };
        if self.since.elapsed() >= self.limit {
            return Err(HelperError::new(
                &self.about,
                format!(
                    "{} for {} s: {why}. {}",
                    self.what,
                    self.limit.as_secs(),
                    self.advice
                ),
            )
            .that_may_pass());
        }
        self.retries += 1;
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        Ok(())
    }

    /// Repeats a request until it succeeds. `failure` interprets an error.
    ///
    /// # Errors
    /// A permanent failure; failures for too long.
    pub(crate) async fn tries<T>(
        &mut self,
        failure: impl Fn(&StoreError) -> StoreFailure,
        mut does: impl AsyncFnMut() -> Result<T, StoreError>,
    ) -> Result<T, HelperError> {
        loop {
            match does().await {
                Ok(done) => return Ok(done),
                Err(e) => self.after(failure(&e)).await?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of seconds until it ends, with `bytes` per `every` seconds.
    fn ends_after(bytes: u64, every: u64, seconds: u64) -> Option<u64> {
        let mut patience = RetryPolicy::new("s3://b/x".to_owned(), PATIENCE);
        let mut now = Instant::now();
        let mut reached = 0;
        for n in (every..=seconds).step_by(every as usize) {
            now += Duration::from_secs(every);
            reached += bytes;
            if let Err(error) = patience.moved_at(now, bytes, reached) {
                assert!(error.what.contains("less than 1024 bytes per second"));
                assert_eq!(error.about, "s3://b/x");
                return Some(n);
            }
        }
        None
    }

    #[test]
    fn an_object_that_comes_too_slowly_for_three_minutes_is_given_up() {
        assert_eq!(ends_after(1, 1, 1000), Some(180));
        assert_eq!(ends_after(1023, 1, 10_000), Some(180));
        assert_eq!(ends_after(1024, 1, 10_000), None);
        assert_eq!(ends_after(20_480, 20, 10_000), None);
        // A job that is suspended for an hour between two pieces does not count as slow.
        let mut patience = RetryPolicy::new("s3://b/x".to_owned(), PATIENCE);
        let later = Instant::now() + Duration::from_secs(3600);
        assert!(patience.moved_at(later, 1, 1).is_ok());
    }

    #[test]
    fn what_comes_again_is_no_progress() {
        let mut patience = RetryPolicy::new("s3://b/x".to_owned(), PATIENCE);
        let began = patience.since;
        let at = |seconds| began + Duration::from_secs(seconds);
        assert!(patience.moved_at(at(1), 1 << 20, 1 << 20).is_ok());
        assert_eq!(patience.since, at(1));
        assert!(patience.moved_at(at(2), 1 << 19, 1 << 19).is_ok());
        assert!(patience.moved_at(at(3), 1 << 19, 1 << 20).is_ok());
        assert_eq!(patience.since, at(1));
        assert!(patience.moved_at(at(4), 1, (1 << 20) + 1).is_ok());
        assert_eq!(patience.since, at(4));
    }
}
