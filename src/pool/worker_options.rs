//! Options for workers, and the order of a start: first the coordinator, then the caller reads its
//! data, then ring and job.
//!
//! Runs in the consumer. Shared by all builders.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::pool::batch_request::BatchRequest;
use crate::pool::consumer::{Pool, PoolOptions};
use crate::pool::coordinator::handle::CoordinatorHandle;
use crate::pool::coordinator::launch::{LaunchMethod, launch};
use crate::pool::coordinator::messages::StartRequest;
use crate::pool::in_process::InProcessLoop;
use crate::pool::job::{JobKind, JobRequest};
use crate::pool::ring::layout::MAX_LANES;
use crate::pool::ring::{Ring, RingLayout, RingShape};
use crate::pool::row_filler::RowFiller;
use crate::pool::sandbox;
use crate::pool::sandbox::Sandbox;
use crate::sys::clock::monotonic_ns;
use crate::sys::memory;

/// Options for the workers of a loader.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Number of worker processes; 0 = work in this process; `None` = number of usable CPUs.
    pub workers: Option<usize>,
    pub launch: LaunchMethod,
    /// The executable for `LaunchMethod::Exec`; `None` = search for it.
    pub helper: Option<PathBuf>,
    /// Time limit for one row.
    pub row_limit: Duration,
    /// How long to wait for a batch to be dropped when all slots are held.
    pub hold_timeout: Duration,
    pub sandbox: Sandbox,
    /// Kills a worker at this interval, to test the recovery.
    pub kill_every: Option<Duration>,
    /// First numbers of tickets and workers. They are 1, except in tests of the limits.
    pub first_sequence: u32,
    pub first_serial: u32,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            workers: None,
            launch: LaunchMethod::default(),
            helper: None,
            row_limit: Duration::from_secs(60),
            hold_timeout: Duration::from_secs(2),
            sandbox: Sandbox::default(),
            kill_every: None,
            first_sequence: 1,
            first_serial: 1,
        }
    }
}

/// Settings of a builder that only tests and drills change.
#[cfg(feature = "internals")]
pub trait DrillBuilder: Sized {
    fn worker_options(&mut self) -> &mut WorkerOptions;

    /// Kills a worker at this interval, to test the recovery. The batches stay the same.
    #[must_use]
    fn kill_workers_every(mut self, every: Duration) -> Self {
        self.worker_options().kill_every = Some(every);
        self
    }

    /// Sets the first numbers of tickets and workers, to test what happens at their maximum.
    #[must_use]
    fn first_counts(mut self, sequence: u32, serial: u32) -> Self {
        let options = self.worker_options();
        options.first_sequence = sequence;
        options.first_serial = serial;
        self
    }
}

/// Coordinator that waits for its job; none with zero workers. It starts before any data is read
/// and before any lock is taken.
#[derive(Debug)]
pub struct LaunchedWorkers {
    options: WorkerOptions,
    kinds: &'static [JobKind],
    workers: u32,
    coordinator: Option<CoordinatorHandle>,
    /// Start of the launch in nanoseconds of CLOCK_MONOTONIC.
    began_ns: u64,
}

/// Converts a number of workers.
///
/// # Errors
/// More workers than a ring has lanes.
pub(crate) fn check_worker_count(workers: usize) -> Result<u32> {
    match u32::try_from(workers) {
        Ok(count) if count <= MAX_LANES => Ok(count),
        _ => Err(Error::option(
            "num_workers",
            format!("`num_workers` is {workers}: use at most {MAX_LANES}"),
        )),
    }
}

impl WorkerOptions {
    /// Number of worker processes.
    ///
    /// # Errors
    /// More workers than a ring has lanes.
    pub fn count(&self) -> Result<u32> {
        check_worker_count(self.workers.unwrap_or_else(default_workers))
    }

    /// Starts the coordinator. `kinds` are the jobs that this process itself can do: with zero
    /// workers, and with `LaunchMethod::Fork`.
    ///
    /// # Errors
    /// A helper that is missing or of another version; a system call that fails.
    pub fn launch(self, kinds: &'static [JobKind]) -> Result<LaunchedWorkers> {
        let began_ns = monotonic_ns();
        let workers = self.count()?;
        let coordinator = match workers {
            0 if kinds.is_empty() => {
                return Err(Error::config(
                    "zero workers decode in this process, which needs the feature 'codecs', but \
                     this library was built without it: use at least 1 worker",
                ));
            }
            0 => None,
            _ => Some(launch(self.launch, self.helper.as_deref(), kinds)?),
        };
        Ok(LaunchedWorkers {
            options: self,
            kinds,
            workers,
            coordinator,
            began_ns,
        })
    }
}

impl LaunchedWorkers {
    /// Number of worker processes; 0 = this process.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Starts the job. `first` is its first batch; `None` = it is not known yet. `shape` gives rows
    /// and bytes per slot.
    ///
    /// With workers this allocates the whole ring. A ring larger than the available memory would
    /// trigger the out-of-memory killer. So it is rejected with the text of `too_large`, which gets
    /// the needed and the available bytes.
    ///
    /// # Errors
    /// Too little memory; a system call that fails.
    pub fn start(
        self,
        order: &JobRequest<'_>,
        shape: RingShape,
        first: impl Into<Option<BatchRequest>>,
        too_large: impl FnOnce(u64, u64) -> String,
    ) -> Result<RowFiller> {
        // Without workers there is no ring, but the same limits apply.
        let needed = RingLayout::new(shape)?.total_bytes() as u64;
        let Some(coordinator) = self.coordinator else {
            let process = InProcessLoop::new(order, self.kinds)?;
            return Ok(RowFiller::InProcess(Box::new(process)));
        };
        match memory::available_bytes() {
            Some(free) if needed > free => return Err(Error::config(too_large(needed, free))),
            _ => {}
        }
        let request = StartRequest {
            shape,
            job: order.job.clone(),
            row_limit_ms: self.options.row_limit.as_millis().max(1) as u64,
            kill_every_ms: self.options.kill_every.map(|d| d.as_millis() as u64),
            first_serial: self.options.first_serial,
            sandbox: self.options.sandbox,
        };
        let readable: Vec<_> = match self.options.sandbox {
            Sandbox::Auto | Sandbox::Require => {
                let files = order.reads.iter();
                files.flat_map(|files| files.readable_paths()).collect()
            }
            Sandbox::Off => Vec::new(),
        };
        let readable = sandbox::seal_paths(&readable)?;
        let mut descriptors = vec![readable.as_fd()];
        descriptors.extend_from_slice(&order.descriptors);
        let options = PoolOptions {
            hold_timeout: self.options.hold_timeout,
            row_limit: self.options.row_limit,
            first_sequence: self.options.first_sequence,
            began_ns: self.began_ns,
        };
        let ring = Ring::create(shape)?;
        let pool = Pool::start(
            coordinator,
            ring,
            request,
            &descriptors,
            options,
            first.into(),
        )?;
        Ok(RowFiller::Workers(Box::new(pool)))
    }
}

/// Default number of workers.
pub(crate) fn default_workers() -> usize {
    // Accounts for CPU affinity and cgroup quota. At least 1.
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
