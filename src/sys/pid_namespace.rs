//! PID namespaces: in each of them a process has another number.
//!
//! /proc shows the numbers of the namespace that it was mounted for. That may differ from the
//! namespace of this process (`unshare --pid` without `--mount-proc`). So every access to /proc by
//! a number uses this module.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The PID namespace of this process, as inode number.
pub(crate) fn current() -> io::Result<u64> {
    inode(Path::new("/proc/self"), "pid")
}

/// The user namespace of this process, as inode number; 0 if the kernel has none.
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

/// The folder in /proc of a process, given its number in this process's namespace.
pub(crate) fn folder(pid: i32) -> io::Result<PathBuf> {
    if shows_own_numbers()? {
        return Ok(format!("/proc/{pid}").into());
    }
    let shown = shown_processes()?;
    let found = shown.into_iter().find(|(_, here)| *here == pid);
    let (number, _) = found.ok_or_else(|| io::Error::from(ErrorKind::NotFound))?;
    Ok(format!("/proc/{number}").into())
}

/// Every process of this namespace in /proc, with its parent.
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
        // A parent outside is not a process of this namespace.
        let parent = numbers.get(&parent(&stat)?).copied().unwrap_or(0);
        Some((*here, parent))
    };
    numbers.iter().filter_map(with_parent).collect()
}

/// The name, in parentheses, may contain anything. State and parent follow it.
fn parent(stat: &str) -> Option<i32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

fn shows_own_numbers() -> io::Result<bool> {
    let status = fs::read_to_string("/proc/self/status")?;
    Ok(numbers(&status).count() <= 1)
}

/// The numbers of a process, from the namespace of /proc to its own. Empty for kernels without
/// namespaces.
fn numbers(status: &str) -> impl DoubleEndedIterator<Item = i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
}

/// Number in /proc and number in this namespace, for each process that is in both.
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
