//! The limits of this process: descriptors, locked memory, processes.

use std::fs;
use std::os::unix::fs::MetadataExt;

use featherload::measure::system::{self, CgroupLimits};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::unistd::geteuid;

use super::finding::DoctorFinding;
use crate::output::mib;

const WORKERS: &str = "as many workers as CPUs";

pub fn findings() -> Vec<DoctorFinding> {
    let found = [descriptors(), locked_memory(), user_processes()];
    let found = found.into_iter().flatten();
    found.chain([group_processes()]).collect()
}

/// The default number of workers, and the coordinator.
fn processes() -> u64 {
    system::default_workers() as u64 + 1
}

fn descriptors() -> Option<DoctorFinding> {
    /// A loader takes about ten descriptors, and its scan of folders a few more for a while.
    const LOADER: u64 = 32;
    let name = "RLIMIT_NOFILE";
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some(if soft < open + LOADER {
        DoctorFinding::limited(
            name,
            format!("{soft} (hard {hard}), {open} open"),
            "a loader needs about ten, and a few more while it reads folders: raise it with \
             ulimit -n",
        )
    } else {
        DoctorFinding::ok(
            name,
            soft.to_string(),
            "a loader needs about ten, for any number of workers",
        )
    })
}

fn locked_memory() -> Option<DoctorFinding> {
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).ok()?;
    let value = if soft == RLIM_INFINITY {
        "unlimited".into()
    } else {
        format!("{:.0} MiB", mib(soft))
    };
    Some(DoctorFinding::ok(
        "RLIMIT_MEMLOCK",
        value,
        "a run locks nothing itself; with --device the driver pins the ring, which did not \
         count against this limit in tests",
    ))
}

fn user_processes() -> Option<DoctorFinding> {
    let name = "RLIMIT_NPROC";
    let (soft, _) = getrlimit(Resource::RLIMIT_NPROC).ok()?;
    if soft == RLIM_INFINITY {
        return Some(DoctorFinding::ok(
            name,
            "unlimited",
            "any number of workers",
        ));
    }
    let user = geteuid();
    if user.is_root() {
        return Some(DoctorFinding::ok(
            name,
            soft.to_string(),
            "does not apply to root",
        ));
    }
    let running = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter(|e| e.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter(|e| e.metadata().is_ok_and(|m| m.uid() == user.as_raw()))
        .filter_map(|e| Some(fs::read_dir(e.path().join("task")).ok()?.count() as u64))
        .sum::<u64>();
    Some(fits(
        name,
        format!("{soft}, {running} running"),
        soft.saturating_sub(running),
        "raise it with ulimit -u",
    ))
}

fn group_processes() -> DoctorFinding {
    let name = "cgroup pids";
    match CgroupLimits::read().processes_left {
        None => DoctorFinding::ok(name, "no limit", "any number of workers"),
        Some(left) => fits(
            name,
            format!("{left} left"),
            left,
            "raise the container's limit (pids.max)",
        ),
    }
}

fn fits(name: &'static str, value: String, left: u64, way_out: &str) -> DoctorFinding {
    let needed = processes();
    if left >= needed {
        return DoctorFinding::ok(name, value, format!("room for {} workers", left - 1));
    }
    DoctorFinding::missing(
        name,
        value,
        format!(
            "a coordinator and {} workers do not fit: {way_out}, or pass --num-workers {}",
            needed - 1,
            left.saturating_sub(1)
        ),
    )
    .breaks(WORKERS)
}
