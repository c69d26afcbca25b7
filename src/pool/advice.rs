//! What to do after a pool has ended, for error texts of any job.

/// Tells the user how to continue after the pool has ended.
pub(crate) const START_AGAIN: &str =
    "start again (a new loader from its last state, a cache build by the same command)";
