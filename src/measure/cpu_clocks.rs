//! Measures unused processors among those that this process may use, from /proc/stat.
//!
//! Runs in the consumer. Counts the time of all processes on the allowed CPUs. The caller must
//! consider the quota of a cgroup.

use std::collections::BTreeMap;
use std::fs;

use nix::sched::sched_getaffinity;
use nix::unistd::Pid;

/// Clocks of the CPUs that this process may use, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuClocks {
    /// By number: idle time and total time, in kernel ticks.
    cpus: BTreeMap<usize, (u64, u64)>,
}

impl CpuClocks {
    /// `None` if /proc/stat or the affinity cannot be read.
    pub fn read() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let stat = fs::read_to_string("/proc/stat").ok()?;
        let clocks = Self::parse(&stat, |cpu| allowed.is_set(cpu).unwrap_or(false));
        (!clocks.cpus.is_empty()).then_some(clocks)
    }

    fn parse(stat: &str, is_allowed: impl Fn(usize) -> bool) -> Self {
        let cpu = |line: &str| {
            let (name, times) = line.split_once(' ')?;
            let cpu: usize = name.strip_prefix("cpu")?.parse().ok()?;
            // user nice system idle iowait irq softirq steal; time of guests is included in user.
            let times: Vec<u64> = times
                .split_whitespace()
                .take(8)
                .map_while(|time| time.parse().ok())
                .collect();
            let idle = times.get(3)? + times.get(4).copied().unwrap_or(0);
            is_allowed(cpu).then_some((cpu, (idle, times.iter().sum())))
        };
        Self {
            cpus: stat.lines().filter_map(cpu).collect(),
        }
    }

    /// Number of processors that were unused since `earlier`. `None` if the clocks did not advance,
    /// as in some sandboxes, or too little time passed.
    pub fn idle_since(&self, earlier: &Self) -> Option<f64> {
        let shares = self.cpus.iter().filter_map(|(cpu, now)| {
            let then = earlier.cpus.get(cpu)?;
            let all = now.1.checked_sub(then.1).filter(|ticks| *ticks >= LEAST)?;
            // Idle time may decrease slightly, because the kernel corrects it.
            let idle = now.0.saturating_sub(then.0);
            Some((idle as f64 / all as f64).min(1.0))
        });
        let shares: Vec<f64> = shares.collect();
        (!shares.is_empty()).then(|| shares.iter().sum())
    }
}

/// Fewest ticks of a CPU for a share, usually of 10 ms each.
const LEAST: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_what_the_allowed_cpus_did_not_do() {
        let at = |clocks: [[u64; 2]; 3]| {
            let line = |(cpu, [busy, idle]): (usize, &[u64; 2])| {
                format!("cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 7 7\n")
            };
            let lines: String = clocks.iter().enumerate().map(line).collect();
            let stat = format!("cpu  9 9 9 9 9 9 9 9 9 9\n{lines}intr 5 4\nctxt 3\n");
            CpuClocks::parse(&stat, |cpu| cpu != 1)
        };
        let before = at([[100, 100], [100, 100], [100, 100]]);
        assert_eq!(before.cpus.len(), 2);
        // CPU 0 was idle for a quarter of the time, CPU 2 for all of it.
        let after = at([[175, 125], [100, 200], [100, 200]]);
        assert_eq!(after.idle_since(&before), Some(1.25));
        // No time passed, or none of CPU 0.
        assert_eq!(before.idle_since(&before), None);
        let still = at([[100, 100], [100, 200], [150, 150]]);
        assert_eq!(still.idle_since(&before), Some(0.5));
        // Waiting for a disk is no work.
        let waits = CpuClocks::parse("cpu0 10 0 0 10 80 0 0 0 0 0", |_| true);
        assert_eq!(waits.cpus[&0], (90, 100));
    }

    #[test]
    fn this_machine_has_clocks() {
        let clocks = CpuClocks::read().unwrap();
        assert!(!clocks.cpus.is_empty());
    }
}
