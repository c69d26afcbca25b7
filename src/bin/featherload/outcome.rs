//! How a command ended.

/// How a sub-command ended, when not by an error.
pub enum Outcome {
    Done,
    /// What was checked does not hold.
    CheckFailed,
    /// By SIGINT or SIGTERM.
    Interrupted(i32),
}
