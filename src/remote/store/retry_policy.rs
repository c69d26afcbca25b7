//! How often and how long an object is tried, whatever direction it goes.
//!
//! In the fetcher, and in the sender.

use std::time::{Duration, Instant};

use object_store::Error as StoreError;

use crate::remote::helper::messages::HelperError;
use crate::remote::helper::progress::TransferProgress;
use crate::remote::store::client::StoreFailure;

/// How long nothing at all may come of an object, or go to it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// The same of what a run begins with: its user is there, and may have given a wrong endpoint or
/// no credentials.
pub(crate) const PATIENCE_AT_FIRST: Duration = Duration::from_secs(15);
/// The least rate of an object, bytes a second, and how long a lower one is borne.
const LEAST_RATE: u64 = 1024;
const SLOW_LIMIT: Duration = Duration::from_secs(180);
/// Most time that counts between two pieces: a whole job may have been stopped meanwhile.
const LONGEST_GAP: Duration = Duration::from_secs(30);
/// Between two tries: from here, twice as long each time, to there.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Tries of one object, as long as now and then something moves.
pub(crate) struct RetryPolicy {
    about: String,
    /// What does not happen when it fails.
    what: &'static str,
    limit: Duration,
    since: Instant,
    wait: Duration,
    /// The furthest byte that was reached: what comes again is no progress.
    furthest: u64,
    rate: Rate,
    transfer: TransferProgress,
    pub(crate) retries: u64,
}

/// Bytes of an object, and the time that they took.
#[derive(Debug)]
struct Rate {
    last: Instant,
    bytes: u64,
    took: Duration,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self {
            last: now,
            bytes: 0,
            took: Duration::ZERO,
        }
    }

    /// More bytes came. Whether all that came in [`SLOW_LIMIT`] is less than the least rate gives.
    fn is_too_low(&mut self, now: Instant, bytes: u64) -> bool {
        let gap = now.saturating_duration_since(self.last);
        self.took += gap.min(LONGEST_GAP);
        self.bytes = self.bytes.saturating_add(bytes);
        self.last = now;
        if self.bytes >= LEAST_RATE * SLOW_LIMIT.as_secs() {
            *self = Self::new(now);
        }
        self.took >= SLOW_LIMIT
    }
}

impl RetryPolicy {
    /// With what comes of `about`.
    pub(crate) fn new(about: String, limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            transfer: TransferProgress::begin(about.clone(), None),
            about,
            what: "nothing of it came",
            limit,
            since: now,
            wait: FIRST_WAIT,
            furthest: 0,
            rate: Rate::new(now),
            retries: 0,
        }
    }

    /// With what goes to `about`.
    pub(crate) fn sending(about: String, limit: Duration) -> Self {
        Self {
            what: "the store took nothing of it",
            ..Self::new(about, limit)
        }
    }

    /// The object has so many bytes.
    pub(crate) fn expects(&self, bytes: u64) {
        self.transfer.set_size(bytes);
    }

    /// `bytes` more came, so `reached` are there now.
    ///
    /// # Errors
    /// Too few for too long.
    pub(crate) fn moved(&mut self, bytes: u64, reached: u64) -> Result<(), HelperError> {
        self.moved_at(Instant::now(), bytes, reached)
    }

    fn moved_at(&mut self, now: Instant, bytes: u64, reached: u64) -> Result<(), HelperError> {
        self.transfer.set_done(reached);
        if reached > self.furthest {
            self.furthest = reached;
            self.since = now;
            self.wait = FIRST_WAIT;
        }
        if !self.rate.is_too_low(now, bytes) {
            return Ok(());
        }
        let what = format!(
            "less than {LEAST_RATE} bytes a second came of it for {} s ({reached} bytes are here): \
             check the network and the store, then start the run again",
            SLOW_LIMIT.as_secs()
        );
        Err(HelperError::new(&self.about, what))
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn after(&mut self, failure: StoreFailure) -> Result<(), HelperError> {
        let why = match failure {
            StoreFailure::Permanent(trouble) => return Err(trouble),
            StoreFailure::Transient(why) => why,
        };
        if self.since.elapsed() >= self.limit {
            return Err(HelperError::new(
                &self.about,
                format!(
                    "{} for {} s: {why}. Check network, endpoint and credentials in the \
                     environment",
                    self.what,
                    self.limit.as_secs()
                ),
            ));
        }
        self.retries += 1;
        tokio::time::sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        Ok(())
    }

    /// Tries a request until it is done. `failure`: what an error of it means.
    ///
    /// # Errors
    /// A lasting failure; failures for too long.
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

    /// How many seconds pass until it ends, with `bytes` each `every` seconds.
    fn ends_after(bytes: u64, every: u64, seconds: u64) -> Option<u64> {
        let mut patience = RetryPolicy::new("s3://b/x".to_owned(), PATIENCE);
        let mut now = Instant::now();
        let mut reached = 0;
        for n in (every..=seconds).step_by(every as usize) {
            now += Duration::from_secs(every);
            reached += bytes;
            if let Err(trouble) = patience.moved_at(now, bytes, reached) {
                assert!(trouble.what.contains("less than 1024 bytes a second"));
                assert_eq!(trouble.about, "s3://b/x");
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
        // A whole job that is stopped for an hour between two pieces is not to blame.
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
