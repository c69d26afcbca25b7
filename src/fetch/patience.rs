//! How often and how long an object is tried, whatever direction it goes.
//!
//! In the fetcher, and in the sender.

use std::time::{Duration, Instant};

use crate::fetch::messages::Trouble;
use crate::fetch::store::Failure;

/// How long nothing at all may come of an object, or go to it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// The same of what a run begins with: its user is there, and may have given a wrong endpoint or
/// no credentials.
pub(crate) const PATIENCE_AT_FIRST: Duration = Duration::from_secs(15);
/// Between two tries: from here, twice as long each time, to there.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Tries of one object, as long as now and then something moves.
pub(crate) struct Patience {
    about: String,
    /// What does not happen when it fails.
    what: &'static str,
    limit: Duration,
    since: Instant,
    wait: Duration,
    pub(crate) retries: u64,
}

impl Patience {
    /// With what comes of `about`.
    pub(crate) fn new(about: String, limit: Duration) -> Self {
        Self {
            about,
            what: "nothing of it came",
            limit,
            since: Instant::now(),
            wait: FIRST_WAIT,
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

    pub(crate) fn something_moved(&mut self) {
        self.since = Instant::now();
        self.wait = FIRST_WAIT;
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn after(&mut self, failure: Failure) -> Result<(), Trouble> {
        let why = match failure {
            Failure::Lasting(trouble) => return Err(trouble),
            Failure::Passing(why) => why,
        };
        if self.since.elapsed() >= self.limit {
            return Err(Trouble::new(
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
}
