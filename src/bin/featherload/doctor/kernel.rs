//! The kernel, and which of its features a container permits.

use std::fs;

use featherload::measure::system::{self, SystemCall};

use super::finding::{DoctorFinding, FindingVerdict};

/// The oldest kernel that is tested and supported.
const OLDEST: (u32, u32) = (5, 10);
const POOL: &str = "worker processes over a shared ring (Linux 5.10 or newer)";

pub fn findings() -> Vec<DoctorFinding> {
    let calls = system::system_calls();
    let all_needed = calls.iter().all(|c| !c.needed || c.outcome.is_ok());
    let mut findings = vec![version(all_needed)];
    findings.extend(calls.iter().map(call));
    findings.extend(seccomp(all_needed));
    findings.push(DoctorFinding::ok(
        "/dev/shm",
        "not used",
        "the ring is anonymous memory; a container's 64 MB limit for /dev/shm has no effect",
    ));
    findings
}

fn version(all_needed: bool) -> DoctorFinding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    match parse(release) {
        Some(found) if found >= OLDEST => DoctorFinding::ok("kernel", release, "5.10 is needed"),
        Some(_) if all_needed => DoctorFinding::limited(
            "kernel",
            release,
            "older than 5.10, the oldest tested version. The calls that a pool needs are there",
        ),
        Some(_) => DoctorFinding::missing("kernel", release, "5.10 is needed").breaks(POOL),
        None => DoctorFinding::limited(
            "kernel",
            format!("'{release}'"),
            "the version cannot be read; 5.10 is needed",
        ),
    }
}

fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn call(call: &SystemCall) -> DoctorFinding {
    let purpose = match call.name {
        "memfd_create" => "the ring, sealed and allocated before the run",
        "pidfd_open" => "processes are watched without a race",
        "pidfd_send_signal" => "a process is killed without hitting another one with the same id",
        "close_range" => "workers hold no descriptors of the caller",
        "MADV_POPULATE_WRITE" => "a row's pages are mapped by one call, not one fault each",
        _ => "used by a pool",
    };
    let e = match &call.outcome {
        Ok(()) => return DoctorFinding::ok(call.name, "works", purpose),
        Err(e) => e,
    };
    let value = format!("{e} (Linux {})", call.since);
    if !call.needed {
        let meaning = format!("a little slower without it ({purpose})");
        return DoctorFinding::limited(call.name, value, meaning);
    }
    let fix = match e.is_limit() {
        true => "",
        false => ". A container's seccomp profile may block it: allow it there",
    };
    let meaning = format!("without it only --num-workers 0 runs ({purpose}){fix}");
    DoctorFinding::missing(call.name, value, meaning).breaks(POOL)
}

fn seccomp(all_needed: bool) -> Option<DoctorFinding> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mode = status.lines().find_map(|l| l.strip_prefix("Seccomp:"))?;
    let (verdict, value, meaning) = match (mode.trim(), all_needed) {
        ("0", _) => (FindingVerdict::Ok, "none", "no system call is filtered"),
        (_, true) => (
            FindingVerdict::Ok,
            "filter",
            "system calls are filtered; the calls that a pool needs are allowed",
        ),
        (_, false) => (
            FindingVerdict::Limited,
            "filter",
            "system calls are filtered, which may be why calls above fail: allow them in the \
             container's profile",
        ),
    };
    Some(DoctorFinding::new(verdict, "seccomp", value, meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_up_to_the_second_number() {
        assert_eq!(parse("6.18.44-fc"), Some((6, 18)));
        assert_eq!(parse("5.10-rc1"), Some((5, 10)));
        assert_eq!(parse("linux"), None);
        assert!(parse("5.9.16") < Some(OLDEST) && parse("10.0") > Some(OLDEST));
    }
}
