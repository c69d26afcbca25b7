//! Times, as a caller says them: in seconds.
//!
//! In the consumer.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// The largest number of seconds that a [`Duration`] holds.
const MOST_SECONDS: f64 = 1.8e19;

/// A number of seconds.
pub(super) fn seconds<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Duration>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(from)? else {
        return Ok(None);
    };
    let limit = Duration::try_from_secs_f64(seconds);
    Ok(Some(limit.map_err(|_| {
        serde::de::Error::custom(no_limit(seconds))
    })?))
}

/// Large numbers with an exponent, not with 300 digits.
fn no_limit(seconds: f64) -> String {
    let shown = format!("{seconds:?}");
    let shown = shown.strip_suffix(".0").unwrap_or(&shown);
    format!("{shown} seconds are no limit: give 0 to {MOST_SECONDS:?}")
}
