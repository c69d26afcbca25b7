//! The page cache: files that the kernel keeps in memory after reading. It belongs to no process;
//! the PSS of a process includes what it maps of it.
//!
//! Used by measurements, for their own cgroup or for the machine.

use std::fs;

use serde::Serialize;

use crate::sys::cgroup;
use crate::sys::text_file::number;

/// Cached files, without shared memory, which the kernel counts as cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageCache {
    pub bytes: u64,
    /// The group or machine, and the file and figures it was computed from.
    pub source: String,
}

impl PageCache {
    /// The page cache of this process's memory cgroup, version 2 or 1. Without a group, or in the
    /// root group, that of the machine. `None` without /proc.
    pub fn read() -> Option<Self> {
        cgroup::memory_statistics()
            .and_then(|(file, key)| {
                let text = fs::read_to_string(&file).ok()?;
                Some(Self {
                    bytes: less_shared_memory(&text, key, "shmem", 1)?,
                    source: format!("this cgroup: {key} less shmem of {}", file.display()),
                })
            })
            .or_else(|| {
                let text = fs::read_to_string("/proc/meminfo").ok()?;
                Some(Self {
                    bytes: less_shared_memory(&text, "Cached:", "Shmem:", 1024)?,
                    source: "the whole machine: Cached less Shmem of /proc/meminfo".into(),
                })
            })
    }
}

/// Figure `key` minus figure `shared`, in units of `unit` bytes.
fn less_shared_memory(text: &str, key: &str, shared: &str, unit: u64) -> Option<u64> {
    // Version 1 has separate names for sums over child groups.
    let of_all = number(text, &format!("total_{shared}"));
    let shared = of_all.or_else(|| number(text, shared));
    Some(number(text, key)?.saturating_sub(shared.unwrap_or(0)) * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_taken_off() {
        let v2 = "anon 5\nfile 100\nshmem 30\n";
        assert_eq!(less_shared_memory(v2, "file", "shmem", 1), Some(70));
        let v1 = "cache 1\nshmem 1\ntotal_cache 100\ntotal_shmem 40\n";
        assert_eq!(less_shared_memory(v1, "total_cache", "shmem", 1), Some(60));
        let machine = "Cached:  9 kB\nShmem:  2 kB\n";
        assert_eq!(
            less_shared_memory(machine, "Cached:", "Shmem:", 1024),
            Some(7 * 1024)
        );
        assert_eq!(less_shared_memory("", "file", "shmem", 1), None);
    }

    #[test]
    fn this_machine_says_where_its_number_is_from() {
        let cache = PageCache::read().unwrap();
        assert!(cache.source.contains(" less "), "{}", cache.source);
    }
}
