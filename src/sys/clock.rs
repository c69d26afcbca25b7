//! The monotonic clock, whose readings compare across processes.
//!
//! Runs in every process. No wall-clock time: it jumps.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC: one time line for every process of the machine.
pub(crate) fn monotonic_ns() -> u64 {
    match clock_gettime(ClockId::CLOCK_MONOTONIC) {
        Ok(t) => t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64,
        // The kernel has this clock since 2.6; a filter that denies the call
        // only makes time stand still, which no protocol step depends on.
        Err(_) => 0,
    }
}
