//! Memory: whether the ring of an ordinary run fits, and how the kernel grants memory.

use std::fs;

use featherload::Recipe;
use featherload::measure::system::{self, CgroupLimits};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::finding::DoctorFinding;
use crate::output::mib;

/// The ordinary run: `train224`, batches of 64.
const BATCH: u32 = 64;
const DEPTH: u32 = 3;
/// Most slots of a ring.
const MOST: u64 = 1024;
const FITS: &str = "the memory of a run is known and checked before it begins";

pub fn findings() -> Vec<DoctorFinding> {
    let recipe = Recipe::train224();
    let ring = |depth| system::ring_bytes(&recipe, BATCH, depth, system::default_workers() as u32);
    let (ring, slot) = match (ring(DEPTH), ring(DEPTH + 1)) {
        (Ok(ring), Ok(more)) => (ring, more - ring),
        (Err(e), _) | (_, Err(e)) => {
            return vec![DoctorFinding::missing(
                "ring",
                e.to_string(),
                "no ring can be laid out",
            )];
        }
    };
    let mut findings = vec![available(ring, slot), cgroup()];
    findings.extend(overcommit(ring));
    findings.extend(address_space(ring));
    findings.extend(huge_pages());
    findings
}

fn available(ring: u64, slot: u64) -> DoctorFinding {
    let name = "memory";
    let Some(free) = system::available_memory() else {
        return DoctorFinding::limited(
            name,
            "unknown",
            "neither /proc/meminfo nor a cgroup reports it, so a ring that does not fit is \
             refused only by the kernel",
        )
        .breaks(FITS);
    };
    let value = format!("{:.0} MiB available", mib(free));
    let most = (free / slot).min(MOST);
    let takes = format!(
        "the ring of train224 with --batch-size {BATCH} takes {:.1} MiB at --depth {DEPTH}",
        mib(ring)
    );
    if free < ring {
        let refused = format!("{takes} and is refused: lower one of the two");
        DoctorFinding::limited(name, value, refused)
    } else {
        let fits = format!("{takes}; up to --depth {most} would fit");
        DoctorFinding::ok(name, value, fits)
    }
}

fn cgroup() -> DoctorFinding {
    let name = "cgroup memory";
    match CgroupLimits::read().memory_bytes {
        None => DoctorFinding::ok(name, "no limit", "the machine's memory limits a run"),
        Some(limit) => DoctorFinding::ok(
            name,
            format!("limit {:.0} MiB", mib(limit)),
            "counts each page of the ring once, and the scratch of every worker. The kernel \
             kills a run above it",
        ),
    }
}

/// Mode 2 counts every reservation of memory against a fixed sum.
fn overcommit(ring: u64) -> Option<DoctorFinding> {
    let name = "overcommit";
    let mode = fs::read_to_string("/proc/sys/vm/overcommit_memory").ok()?;
    let mode = mode.trim();
    if mode != "2" {
        return Some(DoctorFinding::ok(
            name,
            mode,
            "forks of a small coordinator are never refused for lack of memory",
        ));
    }
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |key| -> Option<u64> {
        let line = meminfo.lines().find_map(|l| l.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let left = kib("CommitLimit:")?.saturating_sub(kib("Committed_AS:")?) * 1024;
    let value = format!("2, {:.0} MiB left to reserve", mib(left));
    Some(if left < 2 * ring {
        DoctorFinding::limited(
            name,
            value,
            "the ring or a worker's fork may be refused: raise vm.overcommit_ratio, or lower \
             --batch-size, --depth or --num-workers",
        )
    } else {
        DoctorFinding::ok(name, value, "enough for the ring and forked workers")
    })
}

fn address_space(ring: u64) -> Option<DoctorFinding> {
    /// Code, stacks and scratch of one process, estimated generously.
    const REST: u64 = 1 << 30;
    let name = "RLIMIT_AS";
    let (soft, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    let maps = "every process maps the whole ring";
    let value = format!("{:.0} MiB", mib(soft));
    Some(if soft == RLIM_INFINITY {
        DoctorFinding::ok(name, "unlimited", maps)
    } else if soft < ring + REST {
        let meaning = format!(
            "{maps} ({:.0} MiB) beside its scratch (--max-scratch): workers may fail to decode \
             large images",
            mib(ring)
        );
        DoctorFinding::limited(name, value, meaning)
    } else {
        DoctorFinding::ok(name, value, format!("{maps}, and that fits"))
    })
}

fn huge_pages() -> Option<DoctorFinding> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").ok()?;
    let chosen = text.split(['[', ']']).nth(1)?.to_owned();
    let meaning = match chosen.as_str() {
        "always" | "within_size" | "force" => "the ring may use huge pages",
        _ => "the ring uses pages of 4 KiB, mapped a row at a time; nothing to change",
    };
    Some(DoctorFinding::ok("huge pages (shmem)", chosen, meaning))
}
