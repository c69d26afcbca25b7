//! What the system offers to a run, by the same functions that decide the number of workers and
//! whether a ring fits.
//!
//! Runs in the consumer. Changes nothing.

use crate::error::{Error, Result};
use crate::jobs::images::crop_sections;
use crate::pool::ring::{RingLayout, RingShape};
use crate::pool::worker_options;
use crate::recipe::{Recipe, SampleProgram};
use crate::sys::{cgroup, probe};

pub use crate::sys::cpu::CpuLevel;
pub use crate::sys::memory::available_bytes as available_memory;
pub use crate::sys::stack::check as check_stack;

/// A system call that a pool needs, and the result of trying it.
#[derive(Debug)]
#[non_exhaustive]
pub struct SystemCall {
    pub name: &'static str,
    /// First kernel version that has it.
    pub since: &'static str,
    /// False if it only affects the speed.
    pub needed: bool,
    /// An error of the kernel, or of a container's filter.
    pub outcome: Result<()>,
}

/// Tries each of the less common system calls of a pool once.
pub fn system_calls() -> Vec<SystemCall> {
    let call = |name, since, needed, outcome| SystemCall {
        name,
        since,
        needed,
        outcome,
    };
    vec![
        call("memfd_create", "3.17", true, probe::sealed_memory()),
        call("pidfd_open", "5.3", true, probe::pidfd_open()),
        call("pidfd_send_signal", "5.1", true, probe::pidfd_send_signal()),
        call("close_range", "5.9", true, probe::close_range()),
        call("MADV_POPULATE_WRITE", "5.14", false, probe::populate()),
    ]
}

/// Limits of this process's control groups (version 1 or 2); `None` where there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct CgroupLimits {
    /// CPU quota in processors: 1.5 is one and a half.
    pub cpus: Option<f64>,
    pub memory_bytes: Option<u64>,
    /// Processes and threads that may still be started.
    pub processes_left: Option<u64>,
}

impl CgroupLimits {
    /// Reads the limits of this process.
    pub fn read() -> Self {
        Self {
            cpus: cgroup::cpu_quota(),
            memory_bytes: cgroup::memory_limit(),
            processes_left: cgroup::processes_left(),
        }
    }
}

/// Default number of workers: the CPUs that this process may use, by affinity and cgroup quota; at
/// least 1.
pub fn default_workers() -> usize {
    worker_options::default_workers()
}

/// Bytes of the ring of a loader with these options.
///
/// # Errors
/// The recipe cannot run; its rows vary in size, so that only the data determine the ring; a number
/// is out of range.
pub fn ring_bytes(recipe: &Recipe, batch_size: u32, depth: u32, workers: u32) -> Result<u64> {
    let program = SampleProgram::compile(recipe)?;
    if program.extent.is_of_data() {
        return Err(Error::config(format!(
            "the ring of recipe '{}' depends on the images, not on the recipe alone",
            recipe.name
        )));
    }
    let shape = RingShape {
        slots: depth,
        rows: batch_size,
        slot_bytes: crop_sections::slot_bytes(&program, (0, 0), batch_size),
        lanes: workers.max(1),
    };
    Ok(RingLayout::new(shape)?.total_bytes() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_a_pool_needs_is_there() {
        let calls = system_calls();
        assert_eq!(calls.len(), 5);
        for call in calls.iter().filter(|c| c.needed) {
            assert!(call.outcome.is_ok(), "{call:?}");
        }
    }

    #[test]
    fn a_ring_is_its_rows_and_little_more() {
        let rows = 64 * 3 * 224 * 224 * 2;
        for depth in [1, 3, 10] {
            let bytes = ring_bytes(&Recipe::train224(), 64, depth, 8).unwrap();
            let rows = rows * u64::from(depth);
            assert!(
                (rows..rows + rows / 50).contains(&bytes),
                "{depth}: {bytes}"
            );
        }
        assert!(ring_bytes(&Recipe::train224(), 0, 3, 8).is_err());
        assert!(ring_bytes(&Recipe::full(), 64, 3, 8).is_err());
    }

    #[test]
    fn limits_are_limits() {
        let limits = CgroupLimits::read();
        assert!(limits.cpus.is_none_or(|c| c > 0.0));
        assert!(limits.memory_bytes.is_none_or(|b| b > 1 << 20));
        assert!(available_memory() <= limits.memory_bytes.or(Some(u64::MAX)));
        assert!(default_workers() > 0);
    }
}
