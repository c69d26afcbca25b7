//! PID namespaces: in each a process has another number.
//!
//! /proc shows the numbers of the namespace that it was mounted for, which may be another one
//! than this process's (`unshare --pid` without `--mount-proc`). Read wherever a number leads
//! to a file in /proc.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The namespace of this process: the inode number of its file.
pub(crate) fn current() -> io::Result<u64> {
    inode(Path::new("/proc/self"), "pid")
}

/// The user namespace of this process, likewise; 0 by a kernel that has none.
pub(crate) fn of_users() -> io::Result<u64> {
    match inode(Path::new("/proc/self"), "user") {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(0),
        read => read,
    }
}

fn inode(process: &Path, kind: &str) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(fs::metadata(process.join("ns").join(kind))?.ino())
}

/// The folder in /proc of a process, by its number in the namespace of this one.
pub(crate) fn folder(pid: i32) -> io::Result<PathBuf> {
    if shows_own_numbers()? {
        return Ok(format!("/proc/{pid}").into());
    }
    let shown = shown_processes()?;
    let found = shown.into_iter().find(|(_, here)| *here == pid);
    let (number, _) = found.ok_or_else(|| io::Error::from(ErrorKind::NotFound))?;
    Ok(format!("/proc/{number}").into())
}

/// Every process of this namespace that /proc shows, with its parent.
#[cfg_attr(
    not(feature = "internals"),
    allow(dead_code, reason = "for programs alone")
)]
pub fn parents() -> Vec<(i32, i32)> {
    let Ok(shown) = shown_processes() else {
        return Vec::new();
    };
    let numbers: BTreeMap<i32, i32> = shown.into_iter().collect();
    let with_parent = |(number, here): (&i32, &i32)| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // One from outside is no process of this namespace.
        let parent = numbers.get(&parent(&stat)?).copied().unwrap_or(0);
        Some((*here, parent))
    };
    numbers.iter().filter_map(with_parent).collect()
}

/// The name, in brackets, may hold anything. State and parent follow it.
fn parent(stat: &str) -> Option<i32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

fn shows_own_numbers() -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    Ok(numbers(&status).count() <= 1)
}

/// Numbers of a process, from the namespace that /proc shows to its own. None by kernels
/// without namespaces.
fn numbers(status: &str) -> impl DoubleEndedIterator<Item = i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
}

/// The number in /proc, and the number here, of each process that /proc shows; of another
/// namespace's /proc only those that are in this one.
fn shown_processes() -> io::Result<Vec<(i32, i32)>> {
    let all = fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    if shows_own_numbers()? {
        return Ok(all.map(|number| (number, number)).collect());
    }
    let own = current()?;
    let here = |number: i32| {
        let process = PathBuf::from(format!("/proc/{number}"));
        let status = fs::read_to_string(process.join("status")).ok()?;
        let last = numbers(&status).next_back()?;
        (inode(&process, "pid").ok()? == own).then_some((number, last))
    };
    Ok(all.filter_map(here).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::getpid;

    #[test]
    fn a_process_is_found_in_proc() {
        let own = folder(getpid().as_raw()).unwrap();
        let status = fs::read_to_string(own.join("status")).unwrap();
        assert_eq!(numbers(&status).next_back(), Some(getpid().as_raw()));
        assert_eq!(inode(&own, "pid").unwrap(), current().unwrap());
        let me = getpid().as_raw();
        assert!(parents().iter().any(|(pid, _)| *pid == me));
    }

    #[test]
    fn the_last_number_is_that_of_the_process_itself() {
        let status = "Name:\tx\nNSpid:\t4711\t17\t1\nVmPeak:\t1 kB\n";
        assert_eq!(numbers(status).collect::<Vec<_>>(), [4711, 17, 1]);
        assert_eq!(numbers("Name:\tx\n").count(), 0);
    }

    #[test]
    fn a_parent_is_read_behind_any_name() {
        assert_eq!(parent("12 (a) R 4) S 31 12 0"), Some(31));
        assert_eq!(parent("12"), None);
    }
}
