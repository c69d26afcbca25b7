//! A worker's life: claim a row, fill it, commit it, until told to stop.
//!
//! Runs in workers only, single-threaded, without CUDA, sockets or an index of
//! its own. Everything it needs was mapped by the coordinator before the fork.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::unistd::{Pid, getpid};

use super::attempts::{self, Attempts};
use super::job::Job;
use super::meter::{Meter, Stage};
use super::sigbus;
use crate::error::Result;
use crate::ring::Ring;
use crate::ring::layout::worker_word;
use crate::ring::words::Words;
use crate::ring::worker_side::{self, Claim, Next, Outcome};
use crate::sys::clock::monotonic_ns;
use crate::sys::{memory, process};

/// The longest sleep: the belt beside the braces of the wake-ups.
const SLEEP: Duration = Duration::from_millis(100);

/// Exit status after a broken protocol or an operation that the system refused.
const EXIT_FAILED: i32 = 70;

/// Lives as the worker of a lane; the return value is the exit status.
pub(crate) fn live(
    ring: &'static Ring,
    job: &mut dyn Job,
    lane: u32,
    serial: u32,
    tries: u32,
    coordinator: Pid,
) -> i32 {
    let run = settle_in(ring, lane, serial, coordinator, job.memory_limit())
        .and_then(|()| work(ring, job, lane, serial, tries));
    match run {
        Ok(()) => 0,
        Err(e) => {
            tracing::error!("worker {serial}: {e}");
            EXIT_FAILED
        }
    }
}

fn settle_in(
    ring: &'static Ring,
    lane: u32,
    serial: u32,
    coordinator: Pid,
    memory_limit: u64,
) -> Result<()> {
    process::die_with(coordinator)?;
    memory::give_back_what_is_freed();
    // The decoders are held to `max_scratch` by what headers say; this holds
    // them to it whatever they do.
    memory::limit_growth(memory_limit)?;
    process::reset_signals()?;
    process::close_all_but(&[0, 1, 2])?;
    process::standard_streams_to_null()?;
    process::prefer_for_oom();
    process::set_name(c"featherload-wk");
    let record = ring.layout().worker(lane);
    let w = ring.words();
    w.store(record + worker_word::BROKEN_MAP, 0, Relaxed);
    w.store(record + worker_word::PID, getpid().as_raw() as u64, Relaxed);
    w.store(record + worker_word::SERIAL, u64::from(serial), Relaxed);
    sigbus::install(ring.word(record + worker_word::BROKEN_MAP))
}

fn work(ring: &Ring, job: &mut dyn Job, lane: u32, serial: u32, tries: u32) -> Result<()> {
    let (w, l) = (ring.words(), ring.layout());
    let mut meter = Meter::default();
    let shape = l.shape();
    let mut populated = vec![false; shape.slots as usize * shape.rows as usize];
    meter.start();
    loop {
        match worker_side::next(&w, l, serial, SLEEP) {
            Next::Stop => return Ok(()),
            Next::Again => meter.lap(Stage::Idle),
            Next::Fill(claim) => {
                meter.lap(Stage::Idle);
                let row = claim.slot as usize * shape.rows as usize + claim.row as usize;
                if !std::mem::replace(&mut populated[row], true) {
                    ring.populate_row(&claim);
                }
                let outcome = fill(ring, job, &claim, tries, &mut meter);
                publish(ring, lane, &mut meter);
                worker_side::commit(&w, l, serial, claim, outcome)?;
            }
        }
    }
}

fn fill(ring: &Ring, job: &mut dyn Job, claim: &Claim, tries: u32, meter: &mut Meter) -> Outcome {
    // SAFETY: `claim` came from `worker_side::next` of this process and is
    // committed only after this function, so the row is ours alone.
    let out = unsafe { ring.row_mut(claim) };
    let attempts = Attempts {
        first: claim.attempt,
        tries,
    };
    let filled = attempts::fill(
        job,
        &claim.ticket,
        claim.row,
        attempts,
        out,
        meter,
        |attempt, fault, next| {
            if attempt == 0 {
                ring.write_fault(claim.slot, claim.row, &fault);
            }
            if let Some(next) = next {
                worker_side::move_on(&ring.words(), ring.layout(), claim, next);
            }
        },
    );
    match filled {
        Some(_) => Outcome::Done,
        None => Outcome::Failed,
    }
}

/// Adds the counters to the lane's record, which outlives this process.
fn publish(ring: &Ring, lane: u32, meter: &mut Meter) {
    let w = ring.words();
    let record = ring.layout().worker(lane);
    // This lane has one live process, so load and store need no swap.
    let add = |word, n| {
        let at = record + word;
        w.store(at, w.load(at, Relaxed).wrapping_add(n), Relaxed);
    };
    if w.load(record + worker_word::FIRST_COMMIT, Relaxed) == 0 {
        w.store(record + worker_word::FIRST_COMMIT, monotonic_ns(), Relaxed);
    }
    add(worker_word::ROWS, 1);
    add(worker_word::BYTES, meter.bytes);
    for (i, ns) in meter.ns.iter_mut().enumerate() {
        add(worker_word::STAGES + i, std::mem::take(ns));
    }
    meter.bytes = 0;
}
