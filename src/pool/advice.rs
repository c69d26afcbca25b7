//! What to do when a pool has ended: words for errors, whatever the work was.

/// How work goes on whose pool has ended.
pub(crate) const START_AGAIN: &str =
    "start again (a new loader from its last state, a cache build by the same command)";
