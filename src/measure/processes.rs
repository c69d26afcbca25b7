//! Memory and processor time of a process tree, from /proc.
//!
//! RSS, PSS and USS as in the kernel's documents (`Documentation/filesystems/
//! proc.rst`): PSS divides each shared page among those who map it, so the sum
//! over a tree counts the ring once; a sum of RSS counts it for every process.

use std::fs;

use serde::Serialize;

use crate::error::{Error, Result};

/// One process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProcessUsage {
    pub pid: i32,
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    /// Private pages: what would be free if the process ended.
    pub uss_bytes: u64,
    /// User and system time of the process and of its reaped children.
    pub cpu_s: f64,
}

/// Several processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TreeUsage {
    pub processes: Vec<ProcessUsage>,
    pub pss_bytes: u64,
    pub uss_bytes: u64,
    pub cpu_s: f64,
}

impl ProcessUsage {
    /// Reads one process.
    ///
    /// # Errors
    /// When it is gone, or /proc does not show it.
    pub fn read(pid: i32) -> Result<Self> {
        let mut usage = Self {
            pid,
            cpu_s: cpu_seconds(pid)?,
            ..Self::default()
        };
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).map_err(|e| Error::io_at("read", &path, e))?;
        for line in text.lines().skip(1) {
            let mut words = line.split_whitespace();
            let (Some(key), Some(kib)) = (words.next(), words.next()) else {
                continue;
            };
            let bytes = kib.parse::<u64>().unwrap_or(0) * 1024;
            match key {
                "Rss:" => usage.rss_bytes = bytes,
                "Pss:" => usage.pss_bytes = bytes,
                "Private_Clean:" | "Private_Dirty:" => usage.uss_bytes += bytes,
                _ => {}
            }
        }
        Ok(usage)
    }
}

impl TreeUsage {
    /// Reads the given processes; those that ended meanwhile are left out.
    pub fn read(pids: impl IntoIterator<Item = i32>) -> Self {
        let mut tree = Self::default();
        for pid in pids {
            if let Ok(p) = ProcessUsage::read(pid) {
                tree.pss_bytes += p.pss_bytes;
                tree.uss_bytes += p.uss_bytes;
                tree.cpu_s += p.cpu_s;
                tree.processes.push(p);
            }
        }
        tree
    }
}

fn cpu_seconds(pid: i32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(|e| Error::io_at("read", &path, e))?;
    // The name, in brackets, may hold anything: count fields behind its end.
    let after = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|n| n.parse::<u64>().ok())
        .sum();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .unwrap_or(100);
    Ok(ticks as f64 / per_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_touched_is_seen() {
        let me = std::process::id() as i32;
        let before = ProcessUsage::read(me).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = ProcessUsage::read(me).unwrap();
        std::hint::black_box(&block);
        let grown = after.uss_bytes.saturating_sub(before.uss_bytes);
        assert!(grown > 48 << 20, "{grown}");
        assert!(after.rss_bytes >= after.pss_bytes && after.pss_bytes >= after.uss_bytes);
    }

    #[test]
    fn a_process_that_is_gone_is_left_out() {
        let tree = TreeUsage::read([i32::MAX, std::process::id() as i32]);
        assert_eq!(tree.processes.len(), 1);
    }
}
