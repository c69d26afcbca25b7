//! The measuring process: starts a consumer, samples it and its pool from outside, and ends it.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use featherload::measure::{PoolProcess, ProcessMemory, SteadyMemory, TreeSample};
use featherload::{Error, Result};

use super::child::CHILD_COMMAND;
use super::messages::{ChildMessage, ChildStatus, ReadyMessage};
use super::report::without_ring;
use crate::line_process::LineProcess;
use crate::{output, pool_processes};

/// Rows that every worker must commit before steady samples begin.
pub const WARM_ROWS: u64 = 20;

/// Least number of steady samples.
pub const SAMPLES: usize = 20;

/// Least number of samples of each epoch.
const SAMPLES_AN_EPOCH: usize = 3;

/// Most time between two samples.
const INTERVAL: Duration = Duration::from_millis(200);

/// Most time between two samples before the steady ones, and while epochs are measured.
const CLOSE_INTERVAL: Duration = Duration::from_millis(40);

/// Timeout for the end of a process tree.
const END: Duration = Duration::from_secs(5);

/// A consumer with its pool. Dropping it ends them and waits for their end.
pub struct WatchedMemory {
    consumer: LineProcess,
    began: Instant,
    ready: Option<ReadyMessage>,
    status: Option<ChildStatus>,
    epoch_over: Option<u64>,
    peak: MemoryPeak,
}

/// The largest figures of all samples, each separately.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryPeak {
    pub pss_bytes: u64,
    pub pss_without_ring_bytes: u64,
    /// When PSS was largest, since the start of the consumer.
    pub at: Duration,
}

/// Steady samples, and the time of the last one.
pub struct MemoryAverage {
    pub memory: SteadyMemory,
    pub took: Duration,
}

/// One row for each number of workers. `measure` makes it from a fresh pool.
pub fn rows<N, R>(
    numbers: impl ExactSizeIterator<Item = N>,
    json: bool,
    mut measure: impl FnMut(N) -> Result<R>,
) -> Result<Vec<R>> {
    let bar = output::steps(numbers.len() as u64, "pools", !json);
    let rows = numbers.map(|number| {
        let row = measure(number)?;
        bar.inc(1);
        Ok(row)
    });
    let rows = rows.collect();
    bar.finish_and_clear();
    rows
}

impl WatchedMemory {
    /// Starts a consumer with `workers` workers, in the mode `how`.
    pub fn start(workers: usize, how: &str) -> Result<Self> {
        // The arguments of `rss` mean the same to the child.
        let own = std::env::args_os().skip(2);
        let args = [CHILD_COMMAND, &workers.to_string(), how].map(OsString::from);
        Ok(Self {
            consumer: LineProcess::start("the measured consumer", args.into_iter().chain(own))?,
            began: Instant::now(),
            ready: None,
            status: None,
            epoch_over: None,
            peak: MemoryPeak::default(),
        })
    }

    /// Samples until every worker has committed its rows.
    pub fn warm_up(&mut self) -> Result<()> {
        while !self.is_warm() {
            self.sample();
            self.listen(CLOSE_INTERVAL)?;
        }
        Ok(())
    }

    /// Samples for `length`, and until there are enough samples.
    pub fn steady(&mut self, length: Duration) -> Result<MemoryAverage> {
        let began = Instant::now();
        let interval = (length / (SAMPLES as u32 + 5)).min(INTERVAL);
        let mut samples = Vec::new();
        let mut taken = 0;
        while samples.len() < SAMPLES || began.elapsed() < length {
            self.listen(interval)?;
            let sample = self.sample();
            taken += 1;
            if sample.is_complete() {
                samples.push(sample);
            }
            if taken > 100 * SAMPLES && samples.len() < SAMPLES {
                return Err(Error::worker(format!(
                    "{} of {taken} samples found all processes alive, and {SAMPLES} are needed: \
                     workers die too often",
                    samples.len()
                )));
            }
        }
        Ok(MemoryAverage {
            memory: SteadyMemory::of(&samples),
            took: began.elapsed(),
        })
    }

    /// Samples through `epochs` epochs. The consumer waits at the end of each until there are
    /// enough samples of it. Samples are steady after every worker has committed its first rows.
    pub fn epochs(&mut self, epochs: u64) -> Result<(MemoryAverage, Vec<SteadyMemory>)> {
        let began = Instant::now();
        let mut steady = Vec::new();
        let mut found = Vec::new();
        for epoch in 0..epochs {
            let mut samples = Vec::new();
            let last = epoch + 1 == epochs;
            loop {
                let over = self.epoch_over == Some(epoch);
                let enough =
                    samples.len() >= SAMPLES_AN_EPOCH && (!last || steady.len() >= SAMPLES);
                if over && enough {
                    break;
                }
                if over && last && !self.is_warm() {
                    return Err(Error::config(format!(
                        "{epochs} epochs ended before every worker had filled {WARM_ROWS} rows: \
                         use more --epochs, or fewer --num-workers"
                    )));
                }
                self.listen(CLOSE_INTERVAL)?;
                let sample = self.sample();
                if sample.is_complete() && self.ready.is_some() && self.status.is_some() {
                    if self.is_warm() {
                        steady.push(sample.clone());
                    }
                    samples.push(sample);
                }
            }
            found.push(SteadyMemory::of(&samples));
            if !last {
                self.consumer.write("\n")?;
            }
        }
        let steady = MemoryAverage {
            memory: SteadyMemory::of(&steady),
            took: began.elapsed(),
        };
        Ok((steady, found))
    }

    pub fn ready(&self) -> ReadyMessage {
        self.ready.clone().unwrap_or_default()
    }

    pub fn status(&self) -> ChildStatus {
        self.status.clone().unwrap_or_default()
    }

    pub fn peak(&self) -> MemoryPeak {
        self.peak
    }

    fn is_warm(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|s| s.every_worker_committed(WARM_ROWS))
    }

    fn members(&self) -> Vec<PoolProcess> {
        match &self.status {
            Some(status) => status.members(),
            // Its pool starts before it reports the processes.
            None => pool_processes::pool_of(self.consumer.id()),
        }
    }

    fn sample(&mut self) -> TreeSample {
        let sample = TreeSample::read(&self.members());
        let total = sample.total();
        let without_ring = without_ring(&total);
        let peak = &mut self.peak;
        peak.pss_without_ring_bytes = peak.pss_without_ring_bytes.max(without_ring);
        if total.pss_bytes > peak.pss_bytes {
            peak.pss_bytes = total.pss_bytes;
            peak.at = self.began.elapsed();
        }
        sample
    }

    /// Reads the consumer's messages for `length`.
    fn listen(&mut self, length: Duration) -> Result<()> {
        let until = Instant::now() + length;
        while let Some(line) = self.consumer.line(Some(until))? {
            let message = serde_json::from_str(&line);
            self.take_in(message.map_err(|e| Error::worker(format!("'{line}': {e}")))?)?;
        }
        Ok(())
    }

    fn take_in(&mut self, message: ChildMessage) -> Result<()> {
        match message {
            ChildMessage::Ready(ready) => self.ready = Some(ready),
            ChildMessage::Status(status) => self.status = Some(status),
            ChildMessage::EpochOver(epoch) => self.epoch_over = Some(epoch),
            ChildMessage::Failed {
                is_usage: true,
                what,
            } => return Err(Error::config(what)),
            ChildMessage::Failed { what, .. } => return Err(Error::worker(what)),
        }
        Ok(())
    }
}

impl Drop for WatchedMemory {
    fn drop(&mut self) {
        // Before the consumer ends: then its processes can no longer be found by parent process.
        let members = self.members();
        // A process that has ended cannot be killed, and need not be.
        self.consumer.end();
        // Its coordinator and workers end by themselves. Remaining processes would share pages with
        // the next pool.
        let until = Instant::now() + END;
        while Instant::now() < until && members.iter().any(|m| is_there(m.pid)) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Whether the process still has memory. A zombie has none.
fn is_there(pid: i32) -> bool {
    ProcessMemory::read(pid).is_ok_and(|memory| memory.rss_bytes > 0)
}
