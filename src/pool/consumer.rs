//! Batches by workers: posts tickets in order and takes ready slots in order.
//!
//! Runs in the consumer. Knows tickets and slots only, no samples and no recipes.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};
use crate::pool::advice::START_AGAIN;
use crate::pool::batch_request::BatchRequest;
use crate::pool::coordinator::handle::CoordinatorHandle;
use crate::pool::coordinator::messages::StartRequest;
use crate::pool::coordinator::stall_detector::heartbeat_limit;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::pool_report::{PoolReport, ProcessReport};
use crate::pool::ring::Ring;
use crate::pool::ring::consumer_side::{SlotDamage, SlotWait};
use crate::pool::ring::layout::worker_word;
use crate::pool::ring::slots::{PostedSlot, RingSlots, WatchedSlot};
use crate::pool::ring::words::RingWords;
use crate::sys::clock::RunningClock;

/// Longest sleep before checking that the coordinator is alive.
const LOOK: Duration = Duration::from_millis(50);

/// The same while cancelled rows are awaited. It is shorter, because a batch dropped by another
/// thread frees a slot without a wake.
const DRAIN_LOOK: Duration = Duration::from_millis(10);

/// A started pool.
#[derive(Debug)]
pub struct Pool {
    slots: RingSlots,
    coordinator: CoordinatorHandle,
    in_flight: VecDeque<(BatchRequest, PostedSlot)>,
    draining: Vec<PostedSlot>,
    sequence: u32,
    /// Number of substitutes for a failed sample.
    tries: u32,
    options: PoolOptions,
    waited: Duration,
    /// Runs while only live batches prevent the next ticket.
    held_since: Option<RunningClock>,
    /// Last value of the coordinator's heartbeat, and the time since it changed.
    heartbeat: (u64, RunningClock),
    /// Text of the error that ended the pool. Every later call returns it again.
    ended: Option<String>,
    owner: Pid,
}

/// Options of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolOptions {
    /// How long `next` waits when every slot is held.
    pub(crate) hold_timeout: Duration,
    pub(crate) row_limit: Duration,
    /// First number of a ticket: 1, except in tests of the limit.
    pub(crate) first_sequence: u32,
    /// Start of the launch in nanoseconds of CLOCK_MONOTONIC.
    pub(crate) began_ns: u64,
}

impl Pool {
    /// Sends ring and job to the waiting coordinator, and posts the first ticket if it is known.
    /// While workers start on it, this allocates the rest of the ring.
    pub(crate) fn start(
        coordinator: CoordinatorHandle,
        ring: Ring,
        request: StartRequest,
        job: &[BorrowedFd<'_>],
        options: PoolOptions,
        first: Option<BatchRequest>,
    ) -> Result<Self> {
        let tries = request.job.tries;
        coordinator.send_start(&request, ring.as_fd(), job)?;
        let mut pool = Self {
            slots: RingSlots::new(ring),
            coordinator,
            in_flight: VecDeque::new(),
            draining: Vec::new(),
            sequence: options.first_sequence.max(1),
            tries,
            options,
            waited: Duration::ZERO,
            held_since: None,
            heartbeat: (0, RunningClock::start()),
            ended: None,
            owner: getpid(),
        };
        let first_only = |n| first.filter(|_| n == 0);
        pool.post_ahead(&first_only);
        pool.slots.ring().allocate_rest()?;
        pool.coordinator.await_start()?;
        Ok(pool)
    }

    /// Number of slots of the ring.
    pub(crate) fn depth(&self) -> u32 {
        self.slots.ring().layout().shape().slots
    }

    pub(crate) fn ring(&self) -> Arc<Ring> {
        self.slots.shared_ring()
    }

    /// Posts the next batches while slots are free. `upcoming(n)` is the n-th batch after those in
    /// flight.
    fn post_ahead(&mut self, upcoming: &impl Fn(usize) -> Option<BatchRequest>) {
        self.slots.drain(&mut self.draining);
        // After the last number no ticket is posted. Batches in flight are still delivered.
        while self.sequence != u32::MAX
            && let Some(place) = upcoming(self.in_flight.len())
            && let Some(free) = self.slots.take_free()
        {
            let ticket = place.ticket(self.sequence);
            self.sequence += 1;
            let posted = self.slots.post(free, ticket);
            self.in_flight.push_back((place, posted));
        }
    }

    /// Like [`Pool::post_ahead`], after slots were freed.
    pub(crate) fn refill(&mut self, upcoming: &impl Fn(usize) -> Option<BatchRequest>) {
        if self.ended.is_none() && getpid() == self.owner {
            self.post_ahead(upcoming);
        }
    }

    /// Gives access to the final rows of the `n`-th batch in flight, while others are still open.
    /// `upcoming(0)` is the first batch in flight. `None` if the batch is not posted.
    pub(crate) fn watch(
        &mut self,
        n: usize,
        upcoming: &impl Fn(usize) -> Option<BatchRequest>,
    ) -> Option<(BatchRequest, WatchedSlot)> {
        self.refill(upcoming);
        let (place, posted) = self.in_flight.get(n)?;
        Some((*place, self.slots.watch(posted)))
    }

    /// Like [`Pool::next_within`], without waiting.
    pub(crate) fn next_finished(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<BatchRequest>,
    ) -> Result<Option<FilledBatch>> {
        self.check_owner()?;
        if self.ended.is_some() {
            return Ok(None);
        }
        self.post_ahead(upcoming);
        let next = self.take_first()?;
        if next.is_some() {
            self.post_ahead(&|n| upcoming(n + 1));
        }
        Ok(next)
    }

    /// The first batch in flight, if it is ready.
    fn take_first(&mut self) -> Result<Option<FilledBatch>> {
        let Some((place, posted)) = self.in_flight.pop_front() else {
            return Ok(None);
        };
        match self.slots.hold(posted) {
            Ok(held_since) => FilledBatch::of_slot(place, held_since, self.tries)
                .map(Some)
                .map_err(|damage| self.damage_error(damage, &place.to_string())),
            Err(posted) => {
                self.in_flight.push_front((place, posted));
                Ok(None)
            }
        }
    }

    /// The next batch; `None` if it is not ready within `limit`. `upcoming(0)` describes it,
    /// `upcoming(n)` the n-th batch after it, as far as the run is known. The limit on held slots
    /// spans several calls.
    pub(crate) fn next_within(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<BatchRequest>,
        limit: Duration,
    ) -> Result<Option<FilledBatch>> {
        self.check_owner()?;
        if let Some(text) = &self.ended {
            return Err(Error::worker(text.clone()));
        }
        let began = Instant::now();
        let result = self.wait_for_front(upcoming, began, limit);
        self.waited += began.elapsed();
        if !matches!(result, Ok(None)) {
            self.held_since = None;
        }
        let next = result?;
        if next.is_some() {
            // The first batch has left the queue, so `upcoming` shifts by one.
            self.post_ahead(&|n| upcoming(n + 1));
        }
        Ok(next)
    }

    fn wait_for_front(
        &mut self,
        upcoming: &impl Fn(usize) -> Option<BatchRequest>,
        began: Instant,
        limit: Duration,
    ) -> Result<Option<FilledBatch>> {
        loop {
            self.post_ahead(upcoming);
            let left = limit.saturating_sub(began.elapsed());
            let Some((place, posted)) = self.in_flight.front() else {
                if self.sequence == u32::MAX {
                    return Err(self.end(Error::worker(format!(
                        "{} batches were posted, the most that a pool can count: build a new \
                         loader from the state of this one",
                        u32::MAX
                    ))));
                }
                self.wait_for_slot(left)?;
                if left.is_zero() {
                    return Ok(None);
                }
                continue;
            };
            match self.slots.wait(posted, LOOK.min(left)) {
                SlotWait::Ready => {
                    if let Some(filled) = self.take_first()? {
                        return Ok(Some(filled));
                    }
                }
                SlotWait::Fatal => {
                    let why = self.fatal();
                    return Err(self.end(why));
                }
                SlotWait::Again => {
                    let (damage, place) = (self.slots.damage(posted), *place);
                    self.check_alive()?;
                    if let Some(damage) = damage {
                        return Err(self.damage_error(damage, &place.to_string()));
                    }
                    if left.is_zero() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Ends the pool: after damage in one batch nothing in the ring is reliable.
    fn damage_error(&mut self, damage: SlotDamage, batch: &str) -> Error {
        let what = match damage {
            SlotDamage::Ticket => "the ticket".to_owned(),
            SlotDamage::Row(row) => format!("row {row}"),
        };
        self.end(Error::protocol(format!(
            "{what} of {batch} was overwritten in shared memory by a faulty decoder; build a new \
             loader from the last state"
        )))
    }

    pub(crate) fn check_owner(&self) -> Result<()> {
        if getpid() == self.owner {
            return Ok(());
        }
        Err(Error::worker(
            "a loader cannot be used in a forked copy of the process that built it",
        ))
    }

    fn check_alive(&mut self) -> Result<()> {
        if self.coordinator.check_running() {
            return self.check_heartbeat();
        }
        let why = self.coordinator.ended();
        Err(self.end(why))
    }

    /// Detects a coordinator that is alive but hangs, for example while it writes a log to
    /// unresponsive storage. Then dead workers are not replaced.
    fn check_heartbeat(&mut self) -> Result<()> {
        let ring = self.slots.ring();
        let heartbeat = ring.words().load(ring.layout().heartbeat(), Relaxed);
        if heartbeat != self.heartbeat.0 {
            self.heartbeat = (heartbeat, RunningClock::start());
            return Ok(());
        }
        let limit = heartbeat_limit(self.options.row_limit);
        if self.heartbeat.1.read(LOOK) < limit {
            return Ok(());
        }
        let why = Error::worker(format!(
            "the coordinator (pid {}) has not responded for {} s: the file that stderr goes to may \
             lie on storage that does not answer; {START_AGAIN}",
            self.coordinator.pid(),
            limit.as_secs()
        ));
        Err(self.end(why))
    }

    /// Ends the pool. Every later call returns the same error.
    pub(crate) fn end(&mut self, why: Error) -> Error {
        self.ended = Some(why.to_string());
        why
    }

    /// Waits once, at most `most`, while no slot is free: workers finish rows of cancelled tickets,
    /// or live batches hold every slot.
    fn wait_for_slot(&mut self, most: Duration) -> Result<()> {
        self.check_alive()?;
        if !self.draining.is_empty() {
            // Cancelled rows are not the user's doing, so this does not count against the limit.
            let look = DRAIN_LOOK.min(most);
            return match self.slots.wait_drained(&mut self.draining, look) {
                SlotWait::Ready => Ok(()),
                SlotWait::Again => match self.slots.damage_of_cancelled(&self.draining) {
                    None => Ok(()),
                    Some(damage) => Err(self.damage_error(damage, "a cancelled batch")),
                },
                SlotWait::Fatal => {
                    let why = self.fatal();
                    Err(self.end(why))
                }
            };
        }
        let limit = self.options.hold_timeout;
        // While this process is stopped, the threads that drop batches do not run either.
        let clock = self.held_since.get_or_insert_with(RunningClock::start);
        let left = limit.saturating_sub(clock.read(LOOK));
        if self.slots.wait_free(left.min(LOOK).min(most)) || !left.is_zero() {
            return Ok(());
        }
        let depth = self.depth();
        Err(Error::SlotsHeld {
            what: format!(
                "all {depth} slots are held by live batches and none was dropped within \
                 {limit:?}: drop batches earlier, or raise depth above {depth}"
            ),
        })
    }

    fn fatal(&self) -> Error {
        match self.coordinator.report() {
            Ok(r) => Error::worker(format!(
                "the worker pool failed: {}",
                r.fatal.as_deref().unwrap_or("no reason was given")
            )),
            Err(e) => e,
        }
    }

    /// Cancels every posted ticket. Does nothing in a forked copy, which shares the ring with its
    /// parent.
    pub(crate) fn cancel(&mut self) {
        if getpid() != self.owner {
            return;
        }
        let posted = self.in_flight.drain(..).map(|(_, posted)| posted);
        self.draining.extend(posted);
        self.slots.drain(&mut self.draining);
    }

    pub(crate) fn report(&self) -> Result<PoolReport> {
        self.check_owner()?;
        let ring = self.slots.ring();
        let rows_by_worker = ring.rows_by_lane().collect();
        let mut report = PoolReport {
            consumer_wait_s: self.waited.as_secs_f64(),
            ..PoolReport::default()
        };
        // Workers write these words, so they may hold any number.
        report.rows = ring.rows_committed();
        let mut first_commit = u64::MAX;
        for lane in 0..ring.layout().shape().lanes {
            let record = ring.layout().worker(lane);
            let get = |word| ring.words().load(record + word, Relaxed);
            report.input_bytes = report.input_bytes.wrapping_add(get(worker_word::BYTES));
            report.counted = report.counted.wrapping_add(get(worker_word::COUNTED));
            report.truncated = report.truncated.wrapping_add(get(worker_word::TRUNCATED));
            report.decoded = report.decoded.wrapping_add(get(worker_word::DECODED));
            for (stage, ns) in report.stage_ns.iter_mut().enumerate() {
                *ns = ns.wrapping_add(get(worker_word::STAGES + stage));
            }
            match get(worker_word::FIRST_COMMIT) {
                0 => {}
                first => first_commit = first_commit.min(first),
            }
        }
        report.first_row_ms = (first_commit != u64::MAX)
            .then(|| first_commit.saturating_sub(self.options.began_ns) as f64 * 1e-6);
        report.processes = ProcessReport {
            coordinator: Some(self.coordinator.pid()),
            rows_by_worker,
            ring_bytes: ring.bytes() as u64,
            ..self.coordinator.report()?.processes
        };
        Ok(report)
    }
}
