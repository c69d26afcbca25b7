//! Runs a ring in one process, with a worker that overwrites any word. Only for `fuzz/`.
//!
//! The steps of consumer, workers and coordinator are the real functions. This file decides their
//! order, and checks the outcome: no panic, no endless wait, and every delivered batch is the
//! posted one.
//!
//! Time is counted in rounds, with a row limit of [`ROW_LIMIT`]. Words of the ring are overwritten
//! between steps. Bytes of rows are not, because any pixels could be written there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use crate::error::{FaultKind, Result, SampleFault};
use crate::pool::batch_request::BatchRequest;
use crate::pool::coordinator::row_timeouts::RowTimeouts;
use crate::pool::coordinator::stall_detector::{StallDetector, StallStatus};
use crate::pool::filled_batch::FilledBatch;
use crate::pool::ring::consumer_side::SlotWait;
use crate::pool::ring::coordinator_side::{ClaimedRow, RowVerdict};
use crate::pool::ring::layout::worker_word;
use crate::pool::ring::slots::{PostedSlot, RingSlots};
use crate::pool::ring::ticket::BatchKey;
use crate::pool::ring::words::{RingWords, WordIndex};
use crate::pool::ring::worker_side::{RowClaim, RowOutcome, WorkerStep};
use crate::pool::ring::{Ring, RingShape, coordinator_side, receipt, worker_side};

const SHAPE: RingShape = RingShape {
    slots: 3,
    rows: 4,
    slot_bytes: 4 * ROW as u64,
    lanes: 2,
};
/// Bytes of a row: four words that identify it.
const ROW: usize = 32;
/// Number of substitutes for a row's own sample.
const TRIES: u32 = 2;
/// Duration of a round.
const ROUND: Duration = Duration::from_secs(1);
/// Time limit for one row.
const ROW_LIMIT: Duration = Duration::from_secs(3);
/// Rounds until a run without further damage must end.
const ROUNDS: usize = 64;
/// Workers that end in a row without finishing a row, until the pool fails.
const ENDS: u32 = 3;

/// Why no more batches come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrillEnd {
    /// The consumer detected damage.
    Destroyed,
    /// The coordinator failed the pool, or its word says so.
    Fatal,
}

#[derive(Debug)]
struct Worker {
    serial: u32,
    at: Option<RowClaim>,
}

/// One run.
#[derive(Debug)]
pub struct RingDrill {
    slots: RingSlots,
    in_flight: VecDeque<(BatchRequest, PostedSlot)>,
    draining: Vec<PostedSlot>,
    batches: Vec<FilledBatch>,
    workers: Vec<Worker>,
    next_serial: u32,
    sequence: u32,
    overdue: RowTimeouts,
    progress: StallDetector,
    /// Rows taken from dead workers.
    returned: u64,
    round: u32,
    /// Workers that ended in a row, without a finished row in between.
    ends: u32,
    delivered: u64,
    end: Option<DrillEnd>,
}

impl RingDrill {
    pub fn new() -> Result<Self> {
        let ring = Ring::create(SHAPE)?;
        ring.allocate_rest()?;
        let mut drill = Self {
            slots: RingSlots::new(ring),
            in_flight: VecDeque::new(),
            draining: Vec::new(),
            batches: Vec::new(),
            workers: Vec::new(),
            next_serial: 1,
            sequence: 1,
            overdue: RowTimeouts::new(ROW_LIMIT),
            progress: StallDetector::new(ROW_LIMIT, ROUND),
            returned: 0,
            round: 0,
            ends: 0,
            delivered: 0,
            end: None,
        };
        for lane in 0..SHAPE.lanes {
            let worker = drill.fork(lane);
            drill.workers.push(worker);
        }
        Ok(drill)
    }

    /// Number of delivered batches.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// How the run ended, if it ended early.
    pub fn end(&self) -> Option<DrillEnd> {
        self.end
    }

    /// Number of words before the rows' bytes.
    pub fn words(&self) -> usize {
        self.slots.ring().layout().slot_data(0).0 / 8
    }

    pub fn word(&self, word: WordIndex) -> u64 {
        self.slots.ring().words().load(word, Acquire)
    }

    /// A faulty decoder writes into the ring.
    pub fn overwrite(&self, word: WordIndex, value: u64) {
        self.slots.ring().words().store(word, value, Release);
    }

    /// Posts a ticket into each free slot, as the pool does before each check.
    pub fn post(&mut self) {
        if self.end.is_some() {
            return;
        }
        self.slots.drain(&mut self.draining);
        while let Some(free) = self.slots.take_free() {
            let number = u64::from(self.sequence);
            let rows = 1 + self.sequence % SHAPE.rows;
            let place = BatchRequest {
                key: BatchKey([number / 5, number * 7]),
                ..BatchRequest::numbered(number, rows)
            };
            let posted = self.slots.post(free, place.ticket(self.sequence));
            self.sequence += 1;
            self.in_flight.push_back((place, posted));
        }
    }

    /// Like `Pool::next_within`, without the sleep. Panics if a batch is not the posted one.
    pub fn consume(&mut self) {
        if self.end.is_some() {
            return;
        }
        let Some((place, posted)) = self.in_flight.pop_front() else {
            self.wait_for_slot();
            return;
        };
        match self.slots.wait(&posted, Duration::ZERO) {
            SlotWait::Ready => match self.slots.hold(posted) {
                Ok(slot) => match FilledBatch::of_slot(place, slot, TRIES) {
                    Ok(filled) => self.hand_over(filled),
                    Err(_) => self.end = Some(DrillEnd::Destroyed),
                },
                Err(posted) => self.in_flight.push_front((place, posted)),
            },
            SlotWait::Fatal => self.end = Some(DrillEnd::Fatal),
            SlotWait::Again => {
                if self.slots.damage(&posted).is_some() {
                    self.end = Some(DrillEnd::Destroyed);
                }
                self.in_flight.push_front((place, posted));
            }
        }
    }

    fn wait_for_slot(&mut self) {
        if self.draining.is_empty() {
            return;
        }
        match self.slots.wait_drained(&mut self.draining, Duration::ZERO) {
            SlotWait::Ready => {}
            SlotWait::Again if self.slots.damage_of_cancelled(&self.draining).is_none() => {}
            SlotWait::Again => self.end = Some(DrillEnd::Destroyed),
            SlotWait::Fatal => self.end = Some(DrillEnd::Fatal),
        }
    }

    fn hand_over(&mut self, filled: FilledBatch) {
        let BatchKey([first, second]) = filled.place.key;
        for row in 0..filled.place.rows_to_fill {
            let bad = filled.bad.iter().find(|bad| bad.row == row);
            let attempt = bad.map_or(Some(0), |bad| bad.attempt);
            let found = &filled.rows.bytes()[row as usize * ROW..][..ROW];
            if let Some(attempt) = attempt {
                let want = pixels([first, second, u64::from(row), u64::from(attempt)]);
                assert!(
                    found == want,
                    "row {row} of {} has another sample",
                    filled.place
                );
            }
        }
        self.delivered += 1;
        self.batches.push(filled);
    }

    /// Drops the delivered batches.
    pub fn release(&mut self) {
        self.batches.clear();
    }

    /// Like `Pool::cancel`.
    pub fn cancel(&mut self) {
        let posted = self.in_flight.drain(..).map(|(_, posted)| posted);
        self.draining.extend(posted);
        self.slots.drain(&mut self.draining);
    }

    fn fork(&mut self, lane: u32) -> Worker {
        let serial = self.next_serial;
        self.next_serial += 1;
        let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
        let serial_word = l.worker(lane) + worker_word::SERIAL;
        w.store(serial_word, u64::from(serial), Release);
        Worker { serial, at: None }
    }

    /// A worker claims a row, or commits its row. With `fails` the attempt fails.
    pub fn work(&mut self, lane: usize, fails: bool) {
        let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
        let worker = &mut self.workers[lane];
        let Some(claim) = worker.at.take() else {
            match worker_side::next(&w, l, worker.serial, Duration::ZERO, None) {
                WorkerStep::Fill(claim) => worker.at = Some(claim),
                WorkerStep::Again => {}
                WorkerStep::Stop => self.settle_dead_worker(lane, RowVerdict::Retry),
            }
            return;
        };
        let (slot, row) = (claim.slot, claim.row);
        let attempt = claim.attempt.min(TRIES);
        if fails {
            let fault = SampleFault::new(FaultKind::Corrupt, "a drill");
            if attempt == 0 {
                self.slots.ring().write_fault(slot, row, &fault);
            }
            if attempt < TRIES {
                worker_side::record_attempt(&w, l, &claim, attempt + 1);
                worker.at = Some(RowClaim {
                    attempt: attempt + 1,
                    ..claim
                });
                return;
            }
        } else {
            let BatchKey([first, second]) = claim.ticket.key;
            let bytes = [first, second, row.into(), attempt.into()];
            let at = l.slot_data(slot).0 + row as usize * ROW;
            for (i, part) in pixels(bytes).chunks_exact(8).enumerate() {
                let part = <[u8; 8]>::try_from(part).unwrap_or_default();
                w.store(at / 8 + i, u64::from_le_bytes(part), Relaxed);
            }
        }
        let (filled, outcome) = match fails {
            true => (None, RowOutcome::Failed),
            false => (Some(attempt), RowOutcome::Done),
        };
        receipt::write(&w, l, (slot, row), &claim.ticket, filled);
        match worker_side::commit(&w, l, worker.serial, claim, outcome) {
            Ok(()) => self.ends = 0,
            // It ends, as a worker must if its row has another owner.
            Err(_) => self.settle_dead_worker(lane, RowVerdict::Retry),
        }
    }

    /// A worker dies at any point.
    pub fn die(&mut self, lane: usize, verdict: u8) {
        let verdicts = [RowVerdict::Retry, RowVerdict::NextAttempt, RowVerdict::Fail];
        self.settle_dead_worker(lane, verdicts[usize::from(verdict) % verdicts.len()]);
    }

    fn settle_dead_worker(&mut self, lane: usize, verdict: RowVerdict) {
        let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
        let serial = self.workers[lane].serial;
        let claims: Vec<ClaimedRow> = coordinator_side::rows_claimed_by(&w, l, serial).collect();
        let is_posted = |claim: &ClaimedRow| coordinator_side::is_posted(&w, l, claim, TRIES);
        if claims.len() > 1 || !claims.iter().all(is_posted) {
            coordinator_side::give_up(&w, l);
        }
        let settled = coordinator_side::resolve_rows_of(&w, l, serial, |claim| {
            self.record_fault(claim, verdict)
        });
        self.returned += u64::from(settled);
        self.ends = if settled == 0 { self.ends + 1 } else { 0 };
        if self.ends > ENDS {
            coordinator_side::give_up(&w, l);
        }
        self.workers[lane] = self.fork(lane as u32);
    }

    fn record_fault(&self, claim: ClaimedRow, verdict: RowVerdict) -> RowVerdict {
        let ring = self.slots.ring();
        let (w, l) = (ring.words(), ring.layout());
        let verdict = match verdict {
            RowVerdict::NextAttempt if claim.attempt >= TRIES => RowVerdict::Fail,
            verdict => verdict,
        };
        let ticket = crate::pool::ring::ticket::read(&w, l, claim.slot, claim.sequence);
        if verdict != RowVerdict::Retry && claim.attempt == 0 {
            let fault = SampleFault::new(FaultKind::Quarantined, "a drill");
            ring.write_fault(claim.slot, claim.row, &fault);
        }
        if verdict == RowVerdict::Fail {
            receipt::write(&w, l, (claim.slot, claim.row), &ticket, None);
        }
        verdict
    }

    /// The coordinator's check: claims without a worker, several claims of one worker, rows that
    /// take too long.
    pub fn check(&mut self) {
        self.round += 1;
        let (w, l) = (self.slots.ring().words(), self.slots.ring().layout());
        let claimed: Vec<ClaimedRow> = coordinator_side::claimed_rows(&w, l).collect();
        let lane = |owner| self.workers.iter().position(|w| w.serial == owner);
        let twice =
            |claim: &ClaimedRow| claimed.iter().filter(|h| h.owner == claim.owner).count() > 1;
        let is_posted = |claim: &ClaimedRow| coordinator_side::is_posted(&w, l, claim, TRIES);
        let damaged = |h: &ClaimedRow| lane(h.owner).is_none() || twice(h) || !is_posted(h);
        if claimed.iter().any(damaged) {
            coordinator_side::give_up(&w, l);
            return;
        }
        let now = ROUND * self.round;
        let standings = coordinator_side::ticket_progress(&w, l, TRIES);
        match self.progress.check(now, standings, self.returned) {
            StallStatus::Progressing => {}
            StallStatus::Stalled => {
                for idle in 0..self.workers.len() {
                    let serial = self.workers[idle].serial;
                    if claimed.iter().all(|h| h.owner != serial) {
                        self.settle_dead_worker(idle, RowVerdict::Retry);
                    }
                }
            }
            StallStatus::StalledTwice => {
                let ring = self.slots.ring();
                coordinator_side::give_up(&ring.words(), ring.layout());
                return;
            }
        }
        for claim in self.overdue.check(now, claimed.into_iter()) {
            if let Some(lane) = self.workers.iter().position(|w| w.serial == claim.owner) {
                self.settle_dead_worker(lane, RowVerdict::Fail);
            }
        }
    }

    /// Without further damage, every posted batch and `more` further ones are delivered, or the run
    /// ends with an error. Panics if neither happens in time.
    pub fn settle(&mut self, more: u64) {
        let mut wanted = None;
        for _ in 0..ROUNDS {
            self.release();
            self.post();
            let wanted = *wanted.get_or_insert(self.delivered + more);
            for lane in 0..self.workers.len() {
                self.work(lane, false);
                self.work(lane, false);
            }
            self.check();
            self.consume();
            if self.end.is_some() || self.delivered >= wanted {
                return;
            }
        }
        panic!("no batch and no error after {ROUNDS} rounds");
    }
}

/// The bytes of a row.
fn pixels(words: [u64; 4]) -> [u8; ROW] {
    let mut bytes = [0; ROW];
    for (part, word) in bytes.chunks_exact_mut(8).zip(words) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
