//! Who makes the rows, as a user asks for it; and the order of a start: first the
//! coordinator, then whatever the caller reads, then ring and job.
//!
//! In the consumer. Everything that two builders would otherwise both write.

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

/// What a builder was told of its workers.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// 0 = this process; none = as many as it has CPUs.
    pub workers: Option<usize>,
    pub launch: LaunchMethod,
    /// The executable of `Launch::Exec`; none = searched for.
    pub helper: Option<PathBuf>,
    /// Most time that one row may take.
    pub row_limit: Duration,
    /// How long to wait for a batch to be dropped when all slots are held.
    pub hold_timeout: Duration,
    pub sandbox: Sandbox,
    /// Kills a worker that often: a test of the recovery.
    pub kill_every: Option<Duration>,
    /// Where tickets and workers begin to be counted: 1, but in tests of the limits.
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

/// A builder that has a crew: what tests and drills change of it, and users do not.
#[cfg(feature = "internals")]
pub trait DrillBuilder: Sized {
    fn worker_options(&mut self) -> &mut WorkerOptions;

    /// Kills a worker that often: a test of the recovery. The bytes stay the same.
    #[must_use]
    fn kill_workers_every(mut self, every: Duration) -> Self {
        self.worker_options().kill_every = Some(every);
        self
    }

    /// Starts the counts that never wrap elsewhere than at 1: for tests of
    /// their limits.
    #[must_use]
    fn first_counts(mut self, sequence: u32, serial: u32) -> Self {
        let crew = self.worker_options();
        crew.first_sequence = sequence;
        crew.first_serial = serial;
        self
    }
}

/// A coordinator that waits for its job; none with zero workers. Made before
/// any data exists and before anything is locked.
#[derive(Debug)]
pub struct LaunchedWorkers {
    crew: WorkerOptions,
    kinds: &'static [JobKind],
    workers: u32,
    coordinator: Option<CoordinatorHandle>,
    /// When the launch began, nanoseconds of CLOCK_MONOTONIC.
    began_ns: u64,
}

/// A number of workers that a ring has room for.
///
/// # Errors
/// More than that.
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
    /// Worker processes.
    ///
    /// # Errors
    /// More than can be counted.
    pub fn count(&self) -> Result<u32> {
        check_worker_count(self.workers.unwrap_or_else(default_workers))
    }

    /// Makes the coordinator. `kinds` are the jobs that this process can do itself:
    /// with zero workers, and by `Launch::Fork`.
    ///
    /// # Errors
    /// A helper that is missing or of another version, a system that refuses.
    pub fn launch(self, kinds: &'static [JobKind]) -> Result<LaunchedWorkers> {
        let began_ns = monotonic_ns();
        let workers = self.count()?;
        let coordinator = match workers {
            0 if kinds.is_empty() => {
                return Err(Error::config(
                    "zero workers decode in this process, and this library was built without the \
                     feature 'codecs'; use at least 1 worker",
                ));
            }
            0 => None,
            _ => Some(launch(self.launch, self.helper.as_deref(), kinds)?),
        };
        Ok(LaunchedWorkers {
            crew: self,
            kinds,
            workers,
            coordinator,
            began_ns,
        })
    }
}

impl LaunchedWorkers {
    /// Worker processes; 0 = this process.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Starts the job, whose first batch stands at `first`; none = nothing can be made yet.
    /// Slots of so many rows and bytes. With workers the whole ring is allocated: one that is larger than
    /// what is free would call the out-of-memory killer, so `too_large` says of
    /// the bytes that are needed and those that are available what to change.
    ///
    /// # Errors
    /// Too little memory, a system that refuses.
    pub fn start(
        self,
        order: &JobRequest<'_>,
        shape: RingShape,
        first: impl Into<Option<BatchRequest>>,
        too_large: impl FnOnce(u64, u64) -> String,
    ) -> Result<RowFiller> {
        // Zero workers have no ring, but the same limits.
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
            row_limit_ms: self.crew.row_limit.as_millis().max(1) as u64,
            kill_every_ms: self.crew.kill_every.map(|d| d.as_millis() as u64),
            first_serial: self.crew.first_serial,
            sandbox: self.crew.sandbox,
        };
        let readable = match (order.reads, self.crew.sandbox) {
            (Some(files), Sandbox::Auto | Sandbox::Require) => files.readable_paths(),
            _ => Vec::new(),
        };
        let readable = sandbox::seal_paths(&readable)?;
        let mut descriptors = vec![readable.as_fd()];
        descriptors.extend_from_slice(&order.descriptors);
        let options = PoolOptions {
            hold_timeout: self.crew.hold_timeout,
            row_limit: self.crew.row_limit,
            first_sequence: self.crew.first_sequence,
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

/// Workers where nobody says another number.
pub(crate) fn default_workers() -> usize {
    // Affinity and cgroup quota are both in it; at least 1 by its type.
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
