//! A worker's life: claim a row, fill it, commit it, until told to stop.
//!
//! Runs in workers only, single-threaded, without CUDA, sockets or an index of
//! its own. Everything it needs was mapped by the coordinator before the fork.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::unistd::{Pid, getpid};

use crate::error::{Result, limits};
use crate::pool::job::Job;
use crate::pool::ring::layout::worker_word;
use crate::pool::ring::receipt;
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::Words;
use crate::pool::ring::worker_side;
use crate::pool::ring::worker_side::{Claim, Next, Outcome, Prefers};
use crate::pool::ring::{Ring, Shape};
use crate::pool::sandbox::Walls;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::Attempts;
use crate::pool::worker::meter::{Meter, Stage};
use crate::pool::worker::sigbus;
use crate::sys::clock::monotonic_ns;
use crate::sys::sandbox::calls::Own;
use crate::sys::{memory, panics, process};

/// The longest sleep: the belt beside the braces of the wake-ups.
const SLEEP: Duration = Duration::from_millis(100);

/// Exit status after a broken protocol or an operation that the system refused.
const EXIT_FAILED: i32 = 70;

/// Where a worker works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Post {
    pub(crate) ring: &'static Ring,
    pub(crate) lane: u32,
    pub(crate) serial: u32,
    /// Samples that may stand in for a row's own.
    pub(crate) tries: u32,
    pub(crate) coordinator: Pid,
}

/// Lives as the worker of a lane; the return value is the exit status.
pub(crate) fn run_worker(post: Post, job: &mut dyn Job, walls: &Walls) -> i32 {
    match prepare_worker(post, job, walls).and_then(|()| work(post, job)) {
        Ok(()) => 0,
        Err(e) => {
            tracing::error!("worker {}: {e}", post.serial);
            EXIT_FAILED
        }
    }
}

fn prepare_worker(post: Post, job: &mut dyn Job, walls: &Walls) -> Result<()> {
    let Post { ring, lane, .. } = post;
    process::die_with(post.coordinator)?;
    memory::give_back_what_is_freed();
    // One line: of a decoder's panic the sample's fault tells, of any other the
    // coordinator, which sees the worker end.
    panics::report_all(|panic| tracing::warn!("in a worker: {panic}"));
    // The decoders are held to `max_scratch` by what headers say; this holds
    // them to it whatever they do.
    limits::take_over();
    memory::limit_growth(job.memory_limit())?;
    process::reset_signals()?;
    job.settle_in()?;
    let files = job.descriptors();
    process::standard_streams_to_null()?;
    process::prefer_for_oom();
    let record = ring.layout().worker(lane);
    let w = ring.words();
    w.store(record + worker_word::BROKEN_MAP, 0, Relaxed);
    w.store(record + worker_word::PID, getpid().as_raw() as u64, Relaxed);
    w.store(record + worker_word::REFUSED_CALL, 0, Relaxed);
    w.store(
        record + worker_word::SERIAL,
        u64::from(post.serial),
        Relaxed,
    );
    sigbus::install(ring.word(record + worker_word::BROKEN_MAP))?;
    ring.settle_in(lane)?;
    memory::lengthen_no_file(&files)?;
    walls.limit_files()?;
    process::close_all_but(&[&files[..], &[0, 1, 2]].concat())?;
    // Last: who looks for workers by their name finds what a worker holds, not what its
    // coordinator did.
    process::set_name(c"featherload-wk");
    let own = Own {
        process: std::process::id(),
        files: &files,
        shared: ring.addresses(),
    };
    walls.limit_calls(&own, ring.word(record + worker_word::REFUSED_CALL))
}

fn work(post: Post, job: &mut dyn Job) -> Result<()> {
    let Post {
        ring,
        lane,
        serial,
        tries,
        ..
    } = post;
    let (w, l) = (ring.words(), ring.layout());
    let choosy = job.is_choosy();
    let mut meter = Meter::default();
    let mut populated = Populated::new(l.shape());
    meter.start();
    loop {
        let mut prefers = |ticket: &Ticket, row| job.prefers(ticket, row);
        let prefers: Prefers<'_> = match choosy {
            true => Some(&mut prefers),
            false => None,
        };
        match worker_side::next(&w, l, serial, SLEEP, prefers) {
            Next::Stop => return Ok(()),
            Next::Again => meter.lap(Stage::IDLE),
            Next::Fill(claim) => {
                meter.lap(Stage::IDLE);
                let place = job.place(&claim.ticket, claim.row);
                if let Some(part) = populated.missing(claim.slot, &place) {
                    ring.populate(claim.slot, &part);
                }
                let filled = fill(ring, job, &claim, place, tries, &mut meter)?;
                publish(ring, lane, &mut meter);
                receipt::write(&w, l, (claim.slot, claim.row), &claim.ticket, filled);
                let outcome = match filled {
                    Some(_) => Outcome::Done,
                    None => Outcome::Failed,
                };
                worker_side::commit(&w, l, serial, claim, outcome)?;
            }
        }
    }
}

/// The attempt that filled the row, or none.
fn fill(
    ring: &Ring,
    job: &mut dyn Job,
    claim: &Claim,
    place: Range<usize>,
    tries: u32,
    meter: &mut Meter,
) -> Result<Option<u32>> {
    // SAFETY: `claim` came from `worker_side::next` of this process and is
    // committed only after this function, so the row is ours alone; `place` is
    // what the job says of it, and a job gives each row a place of its own.
    let out = unsafe { ring.row_mut(claim, place) }?;
    let attempts = Attempts {
        first: claim.attempt,
        tries,
    };
    Ok(attempts::fill(
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
    ))
}

/// Which pages of the slots this process has mapped already: places of own
/// sizes differ from batch to batch. One bit for 4 KiB of ring.
struct Populated {
    /// 64-bit words for each slot.
    stride: usize,
    bits: Vec<u64>,
}

impl Populated {
    const PAGE: usize = 4096;

    fn new(shape: Shape) -> Self {
        let pages = (shape.slot_bytes as usize).div_ceil(Self::PAGE);
        let stride = pages.div_ceil(64);
        Self {
            stride,
            bits: vec![0; stride * shape.slots as usize],
        }
    }

    /// The part of `place` from its first to its last page that is not mapped
    /// yet, which counts as mapped from now on; none when all are. Places that
    /// no slot has are none of ours.
    fn missing(&mut self, slot: u32, place: &Range<usize>) -> Option<Range<usize>> {
        let start = slot as usize * self.stride;
        let bits = self.bits.get_mut(start..start + self.stride)?;
        let pages = place.start / Self::PAGE..place.end.div_ceil(Self::PAGE);
        let mut missing: Option<Range<usize>> = None;
        for page in pages {
            let word = bits.get_mut(page / 64)?;
            let bit = 1 << (page % 64);
            if *word & bit == 0 {
                *word |= bit;
                let first = missing.map_or(page, |m| m.start);
                missing = Some(first..page + 1);
            }
        }
        let m = missing?;
        Some((m.start * Self::PAGE).max(place.start)..(m.end * Self::PAGE).min(place.end))
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
    add(worker_word::BYTES, std::mem::take(&mut meter.bytes));
    add(worker_word::COUNTED, std::mem::take(&mut meter.counted));
    add(worker_word::TRUNCATED, std::mem::take(&mut meter.truncated));
    for (i, ns) in meter.ns.iter_mut().enumerate() {
        add(worker_word::STAGES + i, std::mem::take(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_populated_once() {
        let mut p = Populated::new(Shape {
            slots: 2,
            rows: 3,
            slot_bytes: 300_000,
            lanes: 1,
        });
        assert_eq!(p.missing(0, &(100..5000)), Some(100..5000));
        assert_eq!(p.missing(0, &(100..5000)), None);
        assert_eq!(p.missing(0, &(5000..9000)), Some(8192..9000));
        assert_eq!(p.missing(1, &(5000..9000)), Some(5000..9000));
        assert_eq!(p.missing(1, &(0..300_000)), Some(0..300_000));
        assert_eq!(p.missing(0, &(299_999..300_000)), Some(299_999..300_000));
        assert_eq!(p.missing(0, &(7..7)), None);
        // Nothing that lies outside; the slice that would is refused elsewhere.
        p.missing(0, &(299_999..400_000));
        assert_eq!(p.missing(2, &(0..1)), None);
        assert_eq!(p.missing(u32::MAX, &(0..1)), None);
    }
}
