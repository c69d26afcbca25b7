//! Times, as a caller says them: in seconds.
//!
//! In the consumer.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A number of seconds.
pub(super) fn seconds<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Duration>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(from)? else {
        return Ok(None);
    };
    let limit = Duration::try_from_secs_f64(seconds);
    let limit = limit.map_err(|e| serde::de::Error::custom(format!("{seconds} seconds: {e}")))?;
    Ok(Some(limit))
}
