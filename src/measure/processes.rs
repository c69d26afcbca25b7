//! Memory and processor time of processes, from /proc.
//!
//! RSS, PSS and USS are defined as in the kernel's documentation
//! (`Documentation/filesystems/proc.rst`). PSS divides each shared page among the processes that
//! map it. So a sum of PSS over a tree counts the ring once, and a sum of RSS counts it for every
//! process.

use std::collections::BTreeMap;
use std::fs;
use std::iter::Sum;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::measure::statistics::median;
use crate::pool::ring::region::MEMFD_NAME;
use crate::scene::image_store;
use crate::sys::pid_namespace;

/// Memory of one process, or a sum over several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProcessMemory {
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    /// Private pages, which would be free after the process ends.
    pub uss_bytes: u64,
    /// Resident pages that another process also maps: RSS minus USS.
    pub shared_bytes: u64,
    /// Locked by the process, or pinned for a device (`VmLck` and `VmPin`).
    pub pinned_bytes: u64,
    /// Swapped memory. Shared pages are divided as in PSS.
    pub swap_bytes: u64,
    /// Part of PSS: heap, stacks and private copies.
    pub pss_anon_bytes: u64,
    /// Part of PSS: page cache, that is, executable, libraries, mapped input.
    pub pss_file_bytes: u64,
    /// Part of PSS: shared memory, that is, the ring, the index, and mapped files on tmpfs.
    pub pss_shmem_bytes: u64,
    /// Part of `pss_shmem_bytes`: the ring. Allocated pages that no process maps are in no figure.
    pub pss_ring_bytes: u64,
    /// Part of `pss_shmem_bytes`: decoded images of a scene.
    pub pss_store_bytes: u64,
    /// Part of PSS: page cache of mapped input, that is, regular files mapped to read that are
    /// neither executable nor library. It stays in memory after unmapping, until other memory is
    /// needed.
    pub pss_input_bytes: u64,
}

impl ProcessMemory {
    /// Reads one process.
    ///
    /// # Errors
    /// The process has ended, or /proc does not show it.
    pub fn read(pid: i32) -> Result<Self> {
        let read = |file: &str| {
            let path = in_proc(pid)?.join(file);
            fs::read_to_string(&path).map_err(|e| Error::io_at("read", &path, e))
        };
        let rollup = read("smaps_rollup")?;
        let mut memory = Self::parse(&rollup, &read("status")?);
        // The rollup has kinds of memory without names, and smaps has names.
        let mapped = Mapped::of(&read("smaps")?);
        memory.pss_ring_bytes = mapped.ring;
        memory.pss_store_bytes = mapped.store;
        memory.pss_input_bytes = mapped.input;
        Ok(memory)
    }

    fn parse(rollup: &str, status: &str) -> Self {
        let mut memory = Self::default();
        for line in rollup.lines().skip(1).chain(status.lines()) {
            let mut words = line.split_whitespace();
            let (Some(key), Some(kib)) = (words.next(), words.next()) else {
                continue;
            };
            let sum = match key {
                "Rss:" => &mut memory.rss_bytes,
                "Pss:" => &mut memory.pss_bytes,
                "Private_Clean:" | "Private_Dirty:" => &mut memory.uss_bytes,
                "Shared_Clean:" | "Shared_Dirty:" => &mut memory.shared_bytes,
                "VmLck:" | "VmPin:" => &mut memory.pinned_bytes,
                "SwapPss:" => &mut memory.swap_bytes,
                "Pss_Anon:" => &mut memory.pss_anon_bytes,
                "Pss_File:" => &mut memory.pss_file_bytes,
                "Pss_Shmem:" => &mut memory.pss_shmem_bytes,
                _ => continue,
            };
            *sum += kib.parse::<u64>().unwrap_or(0) * 1024;
        }
        memory
    }

    /// Median of each figure separately; zeros without samples.
    pub fn median(samples: &[Self]) -> Self {
        let mut columns: [Vec<f64>; FIGURES] = Default::default();
        for sample in samples {
            for (column, figure) in columns.iter_mut().zip(sample.figures()) {
                column.push(figure as f64);
            }
        }
        let mut medians = Self::default();
        for (figure, column) in medians.figures_mut().into_iter().zip(columns) {
            *figure = median(column).unwrap_or(0.0) as u64;
        }
        medians
    }

    fn figures(mut self) -> [u64; FIGURES] {
        self.figures_mut().map(|figure| *figure)
    }

    fn figures_mut(&mut self) -> [&mut u64; FIGURES] {
        [
            &mut self.rss_bytes,
            &mut self.pss_bytes,
            &mut self.uss_bytes,
            &mut self.shared_bytes,
            &mut self.pinned_bytes,
            &mut self.swap_bytes,
            &mut self.pss_anon_bytes,
            &mut self.pss_file_bytes,
            &mut self.pss_shmem_bytes,
            &mut self.pss_ring_bytes,
            &mut self.pss_store_bytes,
            &mut self.pss_input_bytes,
        ]
    }
}

const FIGURES: usize = 12;

/// PSS of mappings in bytes, by kind.
#[derive(Debug, Default, PartialEq)]
struct Mapped {
    ring: u64,
    store: u64,
    input: u64,
}

/// Mappings of one file that may be input.
#[derive(Default)]
struct File {
    read: u64,
    /// A part of it is executable.
    runs: bool,
}

impl Mapped {
    fn of(smaps: &str) -> Self {
        let (mut ring, mut store) = (0, 0);
        // By device and inode, because a library is mapped in parts, one of which is executable.
        let mut files: BTreeMap<(&str, &str), File> = BTreeMap::new();
        let mut at: Option<Mapping<'_>> = None;
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            if first == "Pss:" {
                let kib = words.next().and_then(|n| n.parse().ok()).unwrap_or(0u64);
                let memfd = at.as_ref().and_then(Mapping::memfd);
                match &at {
                    Some(_) if memfd == Some(MEMFD_NAME) => ring += kib * 1024,
                    Some(_) if memfd == Some(image_store::MEMFD_NAME) => store += kib * 1024,
                    Some(mapping) if mapping.is_read() => {
                        files.entry(mapping.file).or_default().read += kib * 1024;
                    }
                    _ => {}
                }
            } else if !first.ends_with(':') {
                at = Mapping::of(line);
                if let Some(mapping) = at.as_ref().filter(|m| m.rights.contains('x')) {
                    files.entry(mapping.file).or_default().runs = true;
                }
            }
        }
        let input = files.values().filter(|file| !file.runs);
        Self {
            ring,
            store,
            input: input.map(|file| file.read).sum(),
        }
    }
}

/// First line of a named mapping in smaps: range, rights, offset, device, inode, path.
struct Mapping<'a> {
    rights: &'a str,
    /// Device and inode.
    file: (&'a str, &'a str),
    name: &'a str,
}

impl<'a> Mapping<'a> {
    fn of(head: &'a str) -> Option<Self> {
        let (fields, name) = head.split_at(head.find('/')?);
        let mut fields = fields.split_whitespace();
        let mapping = Self {
            rights: fields.nth(1)?,
            file: (fields.nth(1)?, fields.next()?),
            name: name.strip_suffix(" (deleted)").unwrap_or(name),
        };
        // Fields after the path mean that it is not a plain file.
        fields.next().is_none().then_some(mapping)
    }

    /// Name of the memory, if it is not a file's.
    fn memfd(&self) -> Option<&'a str> {
        self.name.strip_prefix("/memfd:")
    }

    /// Whether it maps a regular file to read that is no library by its name.
    fn is_read(&self) -> bool {
        let base = self.name.rsplit('/').next().unwrap_or_default();
        let is_library = base.ends_with(".so") || base.contains(".so.");
        let is_device = self.name.starts_with("/dev/") && !self.name.starts_with("/dev/shm/");
        let is_memory = self.name.starts_with("/memfd:") || self.name.starts_with("/SYSV");
        !self.rights.contains('w') && !is_library && !is_device && !is_memory
    }
}

impl AddAssign for ProcessMemory {
    fn add_assign(&mut self, other: Self) {
        for (sum, figure) in self.figures_mut().into_iter().zip(other.figures()) {
            *sum += figure;
        }
    }
}

impl Sum for ProcessMemory {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

/// Memory and time of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProcessUsage {
    pub pid: i32,
    #[serde(flatten)]
    pub memory: ProcessMemory,
    /// User and system time of the process and of its reaped children.
    pub cpu_s: f64,
    /// Time during which its first thread was ready to run but had no processor. `None` if the
    /// kernel does not count it.
    pub queued_s: Option<f64>,
}

/// Memory and time of several processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TreeUsage {
    pub processes: Vec<ProcessUsage>,
    /// Sum over all processes.
    #[serde(flatten)]
    pub memory: ProcessMemory,
    pub cpu_s: f64,
}

impl ProcessUsage {
    /// Reads one process.
    ///
    /// # Errors
    /// The process has ended, or /proc does not show it.
    pub fn read(pid: i32) -> Result<Self> {
        Ok(Self {
            pid,
            cpu_s: cpu_seconds(pid)?,
            queued_s: queued_seconds(pid),
            memory: ProcessMemory::read(pid)?,
        })
    }
}

impl TreeUsage {
    /// Reads the given processes, without those that have ended.
    pub fn read(pids: impl IntoIterator<Item = i32>) -> Self {
        let mut tree = Self::default();
        for pid in pids {
            if let Ok(p) = ProcessUsage::read(pid) {
                tree.memory += p.memory;
                tree.cpu_s += p.cpu_s;
                tree.processes.push(p);
            }
        }
        tree
    }
}

fn in_proc(pid: i32) -> Result<PathBuf> {
    let failed = |e| Error::io(format!("find process {pid} in /proc"), e);
    pid_namespace::folder(pid).map_err(failed)
}

/// The process's own time in nanoseconds, and the time of its reaped children in kernel ticks
/// (usually 10 ms).
fn cpu_seconds(pid: i32) -> Result<f64> {
    let own = clock_getcpuclockid(Pid::from_raw(pid))
        .and_then(ClockId::now)
        .map_err(|e| Error::io(format!("read the CPU clock of process {pid}"), e))?;
    let path = in_proc(pid)?.join("stat");
    let text = fs::read_to_string(&path).map_err(|e| Error::io_at("read", &path, e))?;
    // The name, in parentheses, may contain anything, so fields are counted after it.
    let after = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|n| n.parse::<u64>().ok())
        .sum();
    let per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .unwrap_or(100);
    Ok(Duration::from(own).as_secs_f64() + ticks as f64 / per_second as f64)
}

/// The second number of schedstat, in nanoseconds.
fn queued_seconds(pid: i32) -> Option<f64> {
    let text = fs::read_to_string(in_proc(pid).ok()?.join("schedstat")).ok()?;
    let ns: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(ns as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_in_bytes_and_parts_are_added() {
        let rollup = "5592-7fff ---p 00000000 00:00 0 [rollup]\nRss: 90 kB\nPss: 50 kB\n\
                      Pss_Dirty: 7 kB\nPss_Anon: 20 kB\nPss_File: 18 kB\nPss_Shmem: 12 kB\n\
                      Shared_Clean: 30 kB\nShared_Dirty: 20 kB\nPrivate_Clean: 4 kB\n\
                      Private_Dirty: 36 kB\nSwap: 8 kB\nSwapPss: 3 kB\nLocked: 1 kB\n";
        let status = "Name:\tRss: 77 kB\nVmLck:\t       5 kB\nVmPin:\t       6 kB\n";
        let m = ProcessMemory::parse(rollup, status);
        let kib = m.figures().map(|bytes| bytes / 1024);
        assert_eq!(kib, [90, 50, 40, 50, 11, 3, 20, 18, 12, 0, 0, 0]);
    }

    #[test]
    fn of_the_shared_memory_the_ring_is_told_by_its_name() {
        let ring_pss = |smaps: &str| Mapped::of(smaps).ring;
        let mapping = |name: &str, pss: u32| {
            format!(
                "7f00-7f01 rw-s 00000000 00:01 77    {name}\nSize:   900 kB\nRss:  800 kB\n\
                 Pss:   {pss} kB\nPss_Dirty:  5 kB\nSwapPss:  3 kB\nVmFlags: rd wr sh\n"
            )
        };
        let smaps: String = [
            mapping("", 1),
            mapping("/memfd:featherload-ring (deleted)", 20),
            mapping("/memfd:featherload-index (deleted)", 300),
            mapping("/memfd:featherload-sizes (deleted)", 4000),
            mapping("/memfd:featherload-ring (deleted)", 50_000),
            mapping("/memfd:featherload-store (deleted)", 9),
            mapping("/dev/shm/memfd:featherload-ring", 600_000),
            mapping("[heap]", 7_000_000),
        ]
        .concat();
        assert_eq!(ring_pss(&smaps), 50_020 * 1024);
        assert_eq!(ring_pss(""), 0);
        assert_eq!(Mapped::of(&smaps).store, 9 * 1024);
    }

    /// A shard that is read counts. Libraries and the executable do not, though most of each is
    /// mapped without the right to run. Neither do written files and devices.
    #[test]
    fn input_is_what_is_read_of_files_that_do_not_run() {
        let mapping = |rights: &str, inode: u32, name: &str, pss: u32| {
            format!(
                "7f00-7f01 {rights} 00001000 08:01 {inode}                    {name}\n\
                 Size:   900 kB\nPss:   {pss} kB\nPss_Dirty:  5 kB\nVmFlags: rd\n"
            )
        };
        let smaps: String = [
            mapping("r--p", 1, "/usr/bin/featherload", 1),
            mapping("r-xp", 1, "/usr/bin/featherload", 20),
            mapping("r--p", 1, "/usr/bin/featherload", 300),
            mapping("r--p", 2, "/usr/lib/libc.so.6", 4000),
            mapping("r--p", 3, "/usr/lib/plugin.so (deleted)", 4000),
            mapping("r--s", 4, "/data/a b/shard-000000.tar", 50_000),
            mapping("r--s", 4, "/data/a b/shard-000000.tar", 1),
            mapping("r--s", 5, "/data/x.sofa/1.jpg (deleted)", 600_000),
            mapping("rw-s", 6, "/data/state", 7_000_000),
            mapping("rw-s", 7, "/dev/nvidia0", 7_000_000),
            mapping("r--s", 8, "/dev/nvidiactl", 7_000_000),
            mapping("r--s", 9, "/memfd:featherload-index (deleted)", 7_000_000),
            mapping("rw-s", 10, "/memfd:featherload-ring (deleted)", 9),
            mapping("rw-p", 0, "[heap]", 7_000_000),
            mapping("r--p", 0, "", 7_000_000),
            mapping("r--p", 0, "[anon: a/b.tar]", 7_000_000),
            mapping("r--s", 11, "/dev/shm/shard.tar", 2),
        ]
        .concat();
        let found = Mapped::of(&smaps);
        let kib = |n: u64| n * 1024;
        assert_eq!((found.ring, found.input), (kib(9), kib(650_003)));
    }

    #[test]
    fn each_figure_has_its_own_median_and_sums_are_by_figure() {
        let sample = |pss, rss| ProcessMemory {
            pss_bytes: pss,
            rss_bytes: rss,
            ..ProcessMemory::default()
        };
        let samples = [sample(1, 30), sample(3, 20), sample(2, 10)];
        assert_eq!(ProcessMemory::median(&samples), sample(2, 20));
        assert_eq!(ProcessMemory::median(&[]), ProcessMemory::default());
        assert_eq!(samples.into_iter().sum::<ProcessMemory>(), sample(6, 60));
    }

    #[test]
    fn memory_that_is_touched_is_seen() {
        let me = std::process::id() as i32;
        let before = ProcessMemory::read(me).unwrap();
        let block = vec![1u8; 64 << 20];
        let after = ProcessMemory::read(me).unwrap();
        std::hint::black_box(&block);
        let grown = after.uss_bytes.saturating_sub(before.uss_bytes);
        assert!(grown > 48 << 20, "{grown}");
        assert!(after.rss_bytes >= after.pss_bytes && after.pss_bytes >= after.uss_bytes);
        assert!(after.pss_anon_bytes > 48 << 20);
    }

    #[test]
    fn a_process_that_is_gone_is_left_out() {
        let tree = TreeUsage::read([i32::MAX, std::process::id() as i32]);
        assert_eq!(tree.processes.len(), 1);
        assert_eq!(tree.memory, tree.processes[0].memory);
    }
}
