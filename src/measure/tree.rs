//! Memory of a pool's processes, from samples of all of them.
//!
//! Runs in a separate process that is not counted. A sample is not one instant, because processes
//! are read one after the other. So a page that becomes shared meanwhile may be counted slightly
//! more or less than once.

use serde::Serialize;

use super::processes::ProcessMemory;

/// The role of a process in its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    Consumer,
    Coordinator,
    Worker,
}

impl ProcessRole {
    pub const ALL: [Self; 3] = [Self::Consumer, Self::Coordinator, Self::Worker];

    pub fn name(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Coordinator => "coordinator",
            Self::Worker => "worker",
        }
    }
}

/// A process of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct PoolProcess {
    pub role: ProcessRole,
    pub pid: i32,
}

/// All processes of a pool, read once.
#[derive(Debug, Clone, Default)]
pub struct TreeSample {
    processes: Vec<(PoolProcess, ProcessMemory)>,
    missing: bool,
}

impl TreeSample {
    /// Reads the processes, without those that have ended.
    pub fn read(members: &[PoolProcess]) -> Self {
        let processes: Vec<_> = members
            .iter()
            .filter_map(|m| Some((*m, ProcessMemory::read(m.pid).ok()?)))
            .collect();
        Self {
            missing: processes.len() < members.len(),
            processes,
        }
    }

    /// False if a process had ended, so the sample does not represent the pool.
    pub fn is_complete(&self) -> bool {
        !self.missing
    }

    pub fn total(&self) -> ProcessMemory {
        self.processes.iter().map(|(_, memory)| *memory).sum()
    }

    fn of_role(&self, role: ProcessRole) -> ProcessMemory {
        let own = self.processes.iter().filter(|(m, _)| m.role == role);
        own.map(|(_, memory)| *memory).sum()
    }
}

/// Medians over samples, each figure separately. So parts need not add up exactly to the total.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SteadyMemory {
    pub samples: usize,
    /// All processes together.
    pub total: ProcessMemory,
    pub consumer: ProcessMemory,
    pub coordinator: ProcessMemory,
    /// All workers together.
    pub all_workers: ProcessMemory,
    pub processes: Vec<SteadyProcess>,
}

/// One process, over the samples in which it was alive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SteadyProcess {
    #[serde(flatten)]
    pub member: PoolProcess,
    /// Fewer than the pool's if it died, or replaced one that did.
    pub samples: usize,
    #[serde(flatten)]
    pub memory: ProcessMemory,
}

impl SteadyMemory {
    pub fn of(samples: &[TreeSample]) -> Self {
        let median = |of: &dyn Fn(&TreeSample) -> ProcessMemory| {
            ProcessMemory::median(&samples.iter().map(of).collect::<Vec<_>>())
        };
        let mut members: Vec<PoolProcess> = Vec::new();
        for (member, _) in samples.iter().flat_map(|s| &s.processes) {
            if !members.contains(member) {
                members.push(*member);
            }
        }
        Self {
            samples: samples.len(),
            total: median(&TreeSample::total),
            consumer: median(&|s| s.of_role(ProcessRole::Consumer)),
            coordinator: median(&|s| s.of_role(ProcessRole::Coordinator)),
            all_workers: median(&|s| s.of_role(ProcessRole::Worker)),
            processes: members
                .into_iter()
                .map(|m| SteadyProcess::of(m, samples))
                .collect(),
        }
    }

    /// The processes of a role.
    pub fn of_role(&self, role: ProcessRole) -> impl Iterator<Item = &SteadyProcess> {
        self.processes.iter().filter(move |p| p.member.role == role)
    }
}

impl SteadyProcess {
    fn of(member: PoolProcess, samples: &[TreeSample]) -> Self {
        let own: Vec<ProcessMemory> = samples
            .iter()
            .flat_map(|s| &s.processes)
            .filter(|(m, _)| *m == member)
            .map(|(_, memory)| *memory)
            .collect();
        Self {
            member,
            samples: own.len(),
            memory: ProcessMemory::median(&own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(processes: &[(ProcessRole, i32, u64)]) -> TreeSample {
        let processes = processes.iter().map(|&(role, pid, pss_bytes)| {
            let memory = ProcessMemory {
                pss_bytes,
                ..ProcessMemory::default()
            };
            (PoolProcess { role, pid }, memory)
        });
        TreeSample {
            processes: processes.collect(),
            missing: false,
        }
    }

    #[test]
    fn a_worker_that_was_replaced_has_its_own_line_and_the_sum_stays() {
        use ProcessRole::{Consumer, Worker};
        let samples = [
            sample(&[(Consumer, 1, 10), (Worker, 2, 5), (Worker, 3, 6)]),
            sample(&[(Consumer, 1, 12), (Worker, 2, 5), (Worker, 3, 6)]),
            sample(&[(Consumer, 1, 11), (Worker, 2, 7), (Worker, 9, 4)]),
        ];
        let steady = SteadyMemory::of(&samples);
        assert_eq!(steady.samples, 3);
        assert_eq!(steady.total.pss_bytes, 22);
        assert_eq!(steady.consumer.pss_bytes, 11);
        assert_eq!(steady.all_workers.pss_bytes, 11);
        assert_eq!(steady.coordinator, ProcessMemory::default());
        let workers: Vec<_> = steady
            .of_role(Worker)
            .map(|p| (p.member.pid, p.samples, p.memory.pss_bytes))
            .collect();
        assert_eq!(workers, [(2, 3, 5), (3, 2, 6), (9, 1, 4)]);
    }

    #[test]
    fn a_sample_without_a_member_is_not_complete() {
        let me = PoolProcess {
            role: ProcessRole::Consumer,
            pid: std::process::id() as i32,
        };
        let gone = PoolProcess {
            role: ProcessRole::Worker,
            pid: i32::MAX,
        };
        assert!(TreeSample::read(&[me]).is_complete());
        let sample = TreeSample::read(&[me, gone]);
        assert!(!sample.is_complete());
        assert!(sample.total().pss_bytes > 0);
    }
}
