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
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) => Ok(Some(limit)),
        Err(_) => {
            // Large numbers with an exponent.
            let shown = format!("{seconds:?}");
            let shown = shown.strip_suffix(".0").unwrap_or(&shown);
            let why = format!("{shown} seconds are no limit: give 0 to {MOST_SECONDS:?}");
            Err(serde::de::Error::custom(why))
        }
    }
}
