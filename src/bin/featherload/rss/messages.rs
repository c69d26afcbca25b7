//! Messages between the measured consumer and the measuring process. The consumer sends JSON lines.
//! The measuring process sends an empty line to begin the next epoch.

use featherload::measure::{PoolProcess, ProcessRole};
use serde::{Deserialize, Serialize};

/// From the consumer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ChildMessage {
    /// The pool runs.
    Ready(ReadyMessage),
    /// The progress.
    Status(ChildStatus),
    /// Epoch `.0`, counted from 0, has ended. The next begins on request.
    EpochOver(u64),
    /// It ended with an error.
    Failed { is_usage: bool, what: String },
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReadyMessage {
    /// Samples of the data set.
    pub samples: u64,
    pub ring_bytes: u64,
    /// Entries that the scan left out, as JSON.
    pub scan: serde_json::Value,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ChildStatus {
    pub consumer: i32,
    pub coordinator: Option<i32>,
    pub workers: Vec<i32>,
    pub rows_by_worker: Vec<u64>,
    pub batches: u64,
    /// Epochs that have ended.
    pub epochs: u64,
    /// Failed samples that were delivered as masked rows.
    pub skipped: u64,
    pub worker_deaths: u64,
}

impl ChildStatus {
    /// The processes to sample.
    pub fn members(&self) -> Vec<PoolProcess> {
        let member = |role| move |pid| PoolProcess { role, pid };
        let workers = self.workers.iter().copied();
        std::iter::once(self.consumer)
            .map(member(ProcessRole::Consumer))
            .chain(self.coordinator.map(member(ProcessRole::Coordinator)))
            .chain(workers.map(member(ProcessRole::Worker)))
            .collect()
    }

    /// Whether every worker has committed `rows` rows, and none is missing.
    pub fn every_worker_committed(&self, rows: u64) -> bool {
        let all_there =
            self.coordinator.is_none() || self.workers.len() == self.rows_by_worker.len();
        all_there && self.rows_by_worker.iter().all(|&r| r >= rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_lacks_rows_or_is_missing_is_waited_for() {
        let status = |workers: &[i32], rows: &[u64]| ChildStatus {
            consumer: 1,
            coordinator: Some(2),
            workers: workers.to_vec(),
            rows_by_worker: rows.to_vec(),
            ..ChildStatus::default()
        };
        assert!(status(&[3, 4], &[20, 21]).every_worker_committed(20));
        assert!(!status(&[3, 4], &[20, 19]).every_worker_committed(20));
        assert!(!status(&[3], &[20, 20]).every_worker_committed(20));
        let alone = ChildStatus {
            coordinator: None,
            ..status(&[], &[20])
        };
        assert!(alone.every_worker_committed(20));
        assert_eq!(alone.members().len(), 1);
        assert_eq!(status(&[3, 4], &[0, 0]).members().len(), 4);
    }
}
