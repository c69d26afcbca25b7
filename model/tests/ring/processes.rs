//! The processes of the model: what each does around the production functions.
//!
//! Each `*_step` is one *routine*: a plain function from one local state to the next. Everything
//! else comes through ring words or the kernel's calls, so it can run again from its record.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use crate::faults;
use crate::faults::{Fault, Tampered};
use crate::memory::{Replay, payload};
use crate::plan::Config;
use crate::pool::ring::attempt;
use crate::pool::ring::consumer_side;
use crate::pool::ring::consumer_side::SlotWait;
use crate::pool::ring::coordinator_side;
use crate::pool::ring::coordinator_side::{ClaimedRow, RowVerdict};
use crate::pool::ring::layout::RingLayout;
use crate::pool::ring::row_word::RowState;
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::RingWords;
use crate::pool::ring::worker_side;
use crate::pool::ring::worker_side::{RowClaim, RowOutcome, WorkerStep};

/// Ignored: a process of the model sleeps until it is woken.
pub(crate) const LIMIT: Duration = Duration::MAX;

/// Marks the bytes of a row as complete.
const WHOLE: u64 = 1 << 63;

/// The bytes of a row, as written by an attempt.
fn whole(sequence: u32, row: u32, attempt: u32) -> u64 {
    WHOLE | torn(sequence, row, attempt)
}

/// The bytes of a row, half written.
fn torn(sequence: u32, row: u32, attempt: u32) -> u64 {
    u64::from(attempt) << 16 | u64::from(sequence) << 8 | u64::from(row)
}

/// Distinguishes the two halves of a write.
pub(crate) fn is_whole(bytes: u64) -> bool {
    bytes & WHOLE != 0
}

/// State of a slot in the consumer. The number is the ticket's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SlotUse {
    Free,
    Posted(usize),
    ClaimedRow(usize),
}

/// State of the consumer between routines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Consumer {
    /// Next ticket to post.
    post: usize,
    /// Next ticket to deliver.
    deliver: usize,
    slots: Vec<SlotUse>,
    /// The ready slot that is not checked yet.
    ready: Option<u32>,
}

/// State of the coordinator between routines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Coordinator {
    /// Serial of each lane's worker.
    serials: Vec<u32>,
    next_serial: u32,
    deaths: u32,
}

impl Coordinator {
    /// To distinguish states.
    pub(crate) fn forget_serials(&mut self) {
        self.serials.clear();
        self.next_serial = 0;
    }
}

/// The local state of a process between routines.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Local {
    Worker { serial: u32 },
    Consumer(Consumer),
    Coordinator(Coordinator),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum End {
    /// A worker read the stop word, or the coordinator noticed the consumer's end.
    Stopped,
    /// The consumer delivered its plan.
    Delivered,
    /// The consumer learned that the pool failed.
    GivenUp,
    /// The consumer noticed the coordinator's death.
    CoordinatorLost,
}

/// What follows a routine.
pub(crate) enum Flow {
    Go(Local),
    End(End),
}

/// The initial state of a consumer.
pub(crate) fn consumer(c: &Config) -> Local {
    Local::Consumer(Consumer {
        post: 0,
        deliver: 0,
        slots: vec![SlotUse::Free; c.slots as usize],
        ready: None,
    })
}

/// The initial state of a coordinator. Its workers have serials from 1.
pub(crate) fn coordinator(c: &Config) -> Local {
    Local::Coordinator(Coordinator {
        serials: (1..=c.workers).collect(),
        next_serial: c.workers + 1,
        deaths: 0,
    })
}

/// Runs one routine. `Err` is a broken property that the process itself detected.
pub(crate) fn step(
    c: &Config,
    l: &RingLayout,
    replay: &Replay<'_>,
    local: &Local,
) -> Result<Flow, String> {
    let w = &Tampered {
        inner: replay,
        layout: l,
        fault: c.fault,
    };
    match local {
        Local::Worker { serial } => worker_step(c, l, w, *serial),
        Local::Consumer(s) => consumer_step(c, l, replay, w, s),
        Local::Coordinator(s) => coordinator_step(c, l, replay, w, s),
    }
}

fn worker_step<W: RingWords>(
    c: &Config,
    l: &RingLayout,
    w: &W,
    serial: u32,
) -> Result<Flow, String> {
    let next = match c.fault {
        Fault::WaitUnchecked => faults::next_unchecked(w, l, serial),
        Fault::ClaimInTwoSteps => faults::next_in_two_steps(w, l, serial),
        _ if c.prefers => {
            // Each worker prefers half of the rows.
            let mut prefers = |_: &Ticket, row: u32| row % 2 == serial % 2;
            worker_side::next(w, l, serial, LIMIT, Some(&mut prefers))
        }
        _ => worker_side::next(w, l, serial, LIMIT, None),
    };
    match next {
        WorkerStep::Stop => return Ok(Flow::End(End::Stopped)),
        WorkerStep::Again => {}
        WorkerStep::Fill(claim) => {
            let t = claim.ticket;
            if t != c.ticket(t.sequence as usize - 1) {
                return Err(format!("worker {serial} claimed a row of {t:?}"));
            }
            let outcome = fill(c, l, w, &claim);
            match c.fault {
                Fault::CommitByStore => faults::commit_by_store(w, l, serial, claim),
                Fault::ReadyByCounter => faults::commit_and_count(w, l, serial, claim),
                _ => worker_side::commit(w, l, serial, claim, outcome),
            }
            .map_err(|e| e.to_string())?;
        }
    }
    Ok(Flow::Go(Local::Worker { serial }))
}

/// What the worker's loop over attempts does to the ring.
fn fill<W: RingWords>(c: &Config, l: &RingLayout, w: &W, claim: &RowClaim) -> RowOutcome {
    let at = payload(l, claim.slot, claim.row);
    let (sequence, row) = (claim.ticket.sequence, claim.row);
    let first = match c.fault {
        Fault::StaleAttempt => faults::attempt_of_any_ticket(w, l, claim),
        _ => claim.attempt,
    };
    for attempt in first.min(c.tries)..=c.tries {
        w.store(at, torn(sequence, row, attempt), Relaxed);
        if attempt >= c.bad {
            w.store(at, whole(sequence, row, attempt), Relaxed);
            return RowOutcome::Done;
        }
        if attempt < c.tries {
            worker_side::record_attempt(w, l, claim, attempt + 1);
        }
    }
    RowOutcome::Failed
}

fn coordinator_step<W: RingWords>(
    c: &Config,
    l: &RingLayout,
    kernel: &Replay<'_>,
    w: &W,
    s: &Coordinator,
) -> Result<Flow, String> {
    let mut s = s.clone();
    if matches!(c.fault, Fault::ReturnFromTheLiving | Fault::CommitByStore) && s.deaths == 0 {
        s.deaths = 1;
        coordinator_side::resolve_rows_of(w, l, s.serials[0], |_| RowVerdict::Retry);
        return Ok(Flow::Go(Local::Coordinator(s)));
    }
    let Some(lane) = kernel.reap() else {
        consumer_side::stop(w, l);
        kernel.all_ended();
        return Ok(Flow::End(End::Stopped));
    };
    s.deaths += 1;
    let dead = std::mem::replace(&mut s.serials[lane], s.next_serial);
    let given_up = c.give_up_at.is_some_and(|at| s.deaths >= at);
    let verdict = |held: ClaimedRow| match (c.quarantine, held.attempt < c.tries) {
        (true, true) => RowVerdict::NextAttempt,
        (true, false) => RowVerdict::Fail,
        (false, _) => RowVerdict::Retry,
    };
    match c.fault {
        Fault::BuryWithoutWake => faults::return_silently(w, l, dead),
        Fault::OpenThenMoveOn => faults::open_then_move_on(w, l, dead),
        Fault::WakeForkReturn => {
            faults::wake_fork_return(w, l, dead, || kernel.fork(lane, s.next_serial));
        }
        _ => {
            coordinator_side::resolve_rows_of(w, l, dead, verdict);
        }
    }
    if given_up {
        coordinator_side::give_up(w, l);
    } else if c.fault != Fault::WakeForkReturn {
        kernel.fork(lane, s.next_serial);
    }
    s.next_serial += 1;
    Ok(Flow::Go(Local::Coordinator(s)))
}

fn consumer_step<W: RingWords>(
    c: &Config,
    l: &RingLayout,
    kernel: &Replay<'_>,
    w: &W,
    s: &Consumer,
) -> Result<Flow, String> {
    let mut s = s.clone();
    let go = |s| Ok(Flow::Go(Local::Consumer(s)));
    let all_delivered = s.deliver == c.tickets();

    // A batch is ready: check every row, then keep it.
    if let Some(slot) = s.ready.take() {
        check_batch(c, l, w, slot, s.deliver)?;
        s.slots[slot as usize] = SlotUse::ClaimedRow(s.deliver);
        s.deliver += 1;
        return go(s);
    }
    // Release the oldest batch, which must not have changed.
    let held = |u: &SlotUse| match u {
        SlotUse::ClaimedRow(ticket) => Some(*ticket),
        _ => None,
    };
    if s.slots.iter().filter_map(held).count() > if all_delivered { 0 } else { c.hold } {
        let oldest = s.slots.iter().filter_map(held).min();
        let slot = s.slots.iter().position(|u| held(u) == oldest);
        if let (Some(ticket), Some(slot)) = (oldest, slot) {
            check_batch(c, l, w, slot as u32, ticket)?;
            s.slots[slot] = SlotUse::Free;
            return go(s);
        }
    }
    // Post into every free slot.
    if s.post < c.known(s.deliver)
        && let Some(slot) = s.slots.iter().position(|u| *u == SlotUse::Free)
    {
        faults::before_post(c.fault, w, l, slot as u32);
        consumer_side::post(w, l, slot as u32, c.ticket(s.post));
        s.slots[slot] = SlotUse::Posted(s.post);
        s.post += 1;
        return go(s);
    }
    // Cancel the epoch's tickets, until every slot is free.
    if let Some(next) = c.break_at(s.deliver) {
        let done = w.load(l.done(), Acquire);
        let mut idle = true;
        for slot in 0..c.slots {
            if let SlotUse::Posted(ticket) = s.slots[slot as usize] {
                let t = c.ticket(ticket);
                idle &= match c.fault {
                    Fault::DrainInOnePass => faults::drain_in_one_pass(w, l, slot, t),
                    Fault::DrainMissesReturned => faults::drain_missing_returned(w, l, slot, t),
                    _ => consumer_side::drain(w, l, slot, t),
                };
            }
        }
        if idle || c.fault == Fault::ReuseUndrained {
            (s.post, s.deliver) = (next, next);
            for u in &mut s.slots {
                if matches!(u, SlotUse::Posted(_)) {
                    *u = SlotUse::Free;
                }
            }
            return go(s);
        }
        if w.load(l.fatal(), Acquire) != 0 {
            return give_up(w, l);
        }
        w.wait(l.done(), done, LIMIT);
        return if kernel.coordinator_lives() {
            go(s)
        } else {
            Ok(Flow::End(End::CoordinatorLost))
        };
    }
    if all_delivered {
        consumer_side::stop(w, l);
        return Ok(Flow::End(End::Delivered));
    }
    // Wait for the lowest sequence.
    let slot = s
        .slots
        .iter()
        .position(|u| *u == SlotUse::Posted(s.deliver));
    let slot = slot.expect("the ticket to deliver is posted") as u32;
    let ticket = c.ticket(s.deliver);
    let wait = match c.fault {
        Fault::ReadyByCounter => faults::wait_by_counter(w, l, slot, ticket),
        _ => consumer_side::wait_ready(w, l, slot, ticket, LIMIT),
    };
    match wait {
        SlotWait::Ready => s.ready = Some(slot),
        SlotWait::Fatal => return give_up(w, l),
        SlotWait::Again if kernel.coordinator_lives() => {}
        SlotWait::Again => return Ok(Flow::End(End::CoordinatorLost)),
    }
    go(s)
}

fn give_up<W: RingWords>(w: &W, l: &RingLayout) -> Result<Flow, String> {
    consumer_side::stop(w, l);
    Ok(Flow::End(End::GivenUp))
}

/// Checks that every row is final. Unless it failed at the last attempt, it must have exactly the
/// bytes of its recorded attempt: the first that succeeds, or one after those that killed.
fn check_batch<W: RingWords>(
    c: &Config,
    l: &RingLayout,
    w: &W,
    slot: u32,
    ticket: usize,
) -> Result<(), String> {
    let t = c.ticket(ticket);
    for row in 0..t.rows {
        if consumer_side::row_failed(w, l, slot, row) {
            if !c.quarantine && c.bad <= c.tries {
                return Err(format!(
                    "{:?} delivered for row {row} of {t:?}",
                    RowState::Failed
                ));
            }
            let attempt = attempt::load(w, l, slot, row, t.sequence);
            if attempt != c.tries {
                return Err(format!(
                    "row {row} of {t:?} failed at attempt {attempt} of {}",
                    c.tries
                ));
            }
            continue;
        }
        let bytes = w.load(payload(l, slot, row), Relaxed);
        let attempt = attempt::load(w, l, slot, row, t.sequence);
        if bytes != whole(t.sequence, row, attempt) {
            return Err(format!(
                "row {row} of {t:?} at attempt {attempt} delivered with payload {bytes:#x}"
            ));
        }
        if attempt < c.bad || attempt > c.bad && !c.quarantine {
            return Err(format!(
                "row {row} of {t:?} delivered with attempt {attempt}"
            ));
        }
    }
    Ok(())
}
