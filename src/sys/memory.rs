//! How much memory this process may still take.
//!
//! Asked in the consumer, before the ring is allocated.

use std::fs;

use super::cgroup;

/// What the machine has available and what the cgroup leaves, the smaller of
/// the two; none where neither is told.
pub(crate) fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| available_in_meminfo(&text));
    [machine, cgroup::memory_left()].into_iter().flatten().min()
}

fn available_in_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        let text = "MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable:    7 kB\n";
        assert_eq!(available_in_meminfo(text), Some(7 * 1024));
        assert_eq!(available_in_meminfo("MemTotal: 10 kB"), None);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(available_bytes().is_none_or(|b| b > 1 << 20));
    }
}
