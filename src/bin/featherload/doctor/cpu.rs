//! CPUs: their instruction sets, and how many may be used.

use std::env;

use featherload::measure::system::{self, CgroupLimits, CpuLevel};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::finding::DoctorFinding;

pub fn findings() -> Vec<DoctorFinding> {
    vec![instructions(), workers()]
}

fn instructions() -> DoctorFinding {
    let name = "instruction set";
    let forced = env::var("FEATHERLOAD_CPU").ok();
    let best = CpuLevel::ALL
        .into_iter()
        .rfind(|l| l.is_supported())
        .unwrap_or(CpuLevel::Scalar);
    match CpuLevel::detect() {
        Err(e) => DoctorFinding::missing(name, best.name(), format!("every run is rejected: {e}"))
            .breaks("a run with the current environment (FEATHERLOAD_CPU)"),
        Ok(level) if forced.is_some() && level != best => DoctorFinding::limited(
            name,
            format!("{} by FEATHERLOAD_CPU", level.name()),
            format!(
                "slower than {}, which this CPU supports; the bytes are the same",
                best.name()
            ),
        ),
        Ok(CpuLevel::Avx2) => DoctorFinding::ok(name, CpuLevel::Avx2.name(), "the fastest paths"),
        Ok(level) if cfg!(target_arch = "x86_64") => DoctorFinding::limited(
            name,
            level.name(),
            "the same bytes as with AVX2, more slowly",
        ),
        Ok(level) => DoctorFinding::limited(
            name,
            format!("{} on {}", level.name(), env::consts::ARCH),
            "slow; a stream is the same on all machines only on x86-64",
        ),
    }
}

fn workers() -> DoctorFinding {
    let name = "CPUs";
    let workers = system::default_workers();
    let meaning = format!("{workers} workers when --num-workers is not given");
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok().map(|set| {
        let is_set = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
        (0..CpuSet::count()).filter(is_set).count()
    });
    let allowed_text =
        allowed.map_or_else(|| "affinity unknown".into(), |n| format!("{n} allowed"));
    match CgroupLimits::read().cpus {
        Some(quota) if allowed.is_none_or(|n| quota < n as f64) => DoctorFinding::limited(
            name,
            format!("{allowed_text}, {quota:.2} by cgroup quota"),
            meaning,
        ),
        _ => DoctorFinding::ok(name, allowed_text, meaning),
    }
}
