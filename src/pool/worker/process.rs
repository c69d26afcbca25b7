//! The loop of a worker: claim a row, fill it, commit it, until the stop.
//!
//! Runs in workers only, with one thread, without CUDA, sockets or an index of its own. The
//! coordinator maps everything that it needs before the fork.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result, limits};
use crate::pool::job::{Job, RowParts};
use crate::pool::ring::layout::worker_word;
use crate::pool::ring::receipt;
use crate::pool::ring::ticket::Ticket;
use crate::pool::ring::words::RingWords;
use crate::pool::ring::worker_side;
use crate::pool::ring::worker_side::{RowClaim, RowOutcome, RowPreference, WorkerStep};
use crate::pool::ring::{Ring, RingShape};
use crate::pool::sandbox::WorkerSandbox;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::AttemptRange;
use crate::pool::worker::meter::{JobStage, StageMeter};
use crate::pool::worker::sigbus;
use crate::sys::clock::monotonic_ns;
use crate::sys::sandbox::calls::AllowedResources;
use crate::sys::{memory, panics, process};

/// Longest sleep, in case a wake is lost.
const SLEEP: Duration = Duration::from_millis(100);

/// Exit status after a protocol error or a failed system call.
const EXIT_FAILED: i32 = 70;

/// The surroundings of a worker: its ring, lane and limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerContext {
    pub(crate) ring: &'static Ring,
    pub(crate) lane: u32,
    pub(crate) serial: u32,
    /// Number of substitutes for a row's own sample.
    pub(crate) tries: u32,
    pub(crate) coordinator: Pid,
}

/// Runs a worker; returns its exit status.
pub(crate) fn run_worker(
    context: WorkerContext,
    job: &mut dyn Job,
    sandbox: &WorkerSandbox,
) -> i32 {
    match prepare_worker(context, job, sandbox).and_then(|()| work(context, job)) {
        Ok(()) => 0,
        Err(e) => {
            tracing::error!("worker {}: {e}", context.serial);
            EXIT_FAILED
        }
    }
}

fn prepare_worker(
    context: WorkerContext,
    job: &mut dyn Job,
    sandbox: &WorkerSandbox,
) -> Result<()> {
    let WorkerContext { ring, lane, .. } = context;
    process::die_with_parent(context.coordinator)?;
    memory::return_freed_memory();
    // One line per panic. The sample's fault reports a panic in a decoder; the coordinator reports
    // any other, as the worker ends.
    panics::report_all(|panic| tracing::warn!("in a worker: {panic}"));
    // Decoders check headers against `max_scratch`. This limit holds even if they fail to.
    limits::disable_reading();
    memory::limit_growth(job.memory_limit())?;
    process::reset_signals()?;
    job.enter_worker(lane)?;
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
        u64::from(context.serial),
        Relaxed,
    );
    sigbus::install(ring.word(record + worker_word::BROKEN_MAP))?;
    ring.restrict_writes(lane)?;
    memory::limit_file_length(&files)?;
    sandbox.limit_files()?;
    process::close_all_but(&[&files[..], &[0, 1, 2]].concat())?;
    // Last: a search for workers by name then finds processes with the worker's memory, not the
    // coordinator's.
    process::set_name(c"featherload-wk");
    let own = AllowedResources {
        process: std::process::id(),
        files: &files,
        shared: ring.addresses(),
    };
    sandbox.limit_calls(&own, ring.word(record + worker_word::REFUSED_CALL))
}

fn work(context: WorkerContext, job: &mut dyn Job) -> Result<()> {
    let WorkerContext {
        ring,
        lane,
        serial,
        tries,
        ..
    } = context;
    let (w, l) = (ring.words(), ring.layout());
    let choosy = job.has_preferences();
    let mut meter = StageMeter::default();
    let mut populated = PopulatedPages::new(l.shape());
    meter.start();
    loop {
        let mut prefers = |ticket: &Ticket, row| job.prefers(ticket, row);
        let prefers: RowPreference<'_> = match choosy {
            true => Some(&mut prefers),
            false => None,
        };
        match worker_side::next(&w, l, serial, SLEEP, prefers) {
            WorkerStep::Stop => return Ok(()),
            WorkerStep::Again => meter.lap(JobStage::IDLE),
            WorkerStep::Fill(claim) => {
                meter.lap(JobStage::IDLE);
                let place = job.row_range(&claim.ticket, claim.row);
                let further = job.further_ranges(&claim.ticket, claim.row);
                for place in std::iter::once(&place).chain(&further) {
                    if let Some(part) = populated.take_unmapped_pages(claim.slot, place) {
                        ring.populate(claim.slot, &part);
                    }
                }
                let places = (place, further);
                let filled = fill_claimed_row(ring, job, &claim, places, tries, &mut meter)?;
                publish_counters(ring, lane, &mut meter);
                receipt::write(&w, l, (claim.slot, claim.row), &claim.ticket, filled);
                let outcome = match filled {
                    Some(_) => RowOutcome::Done,
                    None => RowOutcome::Failed,
                };
                worker_side::commit(&w, l, serial, claim, outcome)?;
            }
        }
    }
}

/// Fills the row. Returns the attempt that succeeded, or `None`.
fn fill_claimed_row(
    ring: &Ring,
    job: &mut dyn Job,
    claim: &RowClaim,
    (first, further): (Range<usize>, Vec<Range<usize>>),
    tries: u32,
    meter: &mut StageMeter,
) -> Result<Option<u32>> {
    let mut end = first.end;
    for range in &further {
        if range.start < end || range.end < range.start {
            return Err(Error::protocol("the ranges of a row do not ascend"));
        }
        end = range.end;
    }
    let part = |place| {
        // SAFETY: `claim` came from `worker_side::next` of this process and is committed only after
        // this function, so only this process writes the row. `place` is one of the job's ranges
        // for it. Ranges of two rows never overlap, and those of this row ascend: see above.
        unsafe { ring.row_mut(claim, place) }
    };
    let mut out = RowParts {
        first: part(first)?,
        further: further.into_iter().map(part).collect::<Result<_>>()?,
    };
    let attempts = AttemptRange {
        first: claim.attempt,
        tries,
    };
    Ok(attempts::fill_or_substitute(
        job,
        &claim.ticket,
        claim.row,
        attempts,
        &mut out,
        meter,
        |attempt, fault, next| {
            if attempt == 0 {
                ring.write_fault(claim.slot, claim.row, &fault);
            }
            if let Some(next) = next {
                worker_side::record_attempt(&ring.words(), ring.layout(), claim, next);
            }
        },
    ))
}

/// Pages of the slots that this process has mapped, with one bit per 4 KiB. Needed because rows of
/// varying size differ from batch to batch.
struct PopulatedPages {
    /// Number of 64-bit words per slot.
    stride: usize,
    bits: Vec<u64>,
}

impl PopulatedPages {
    const PAGE: usize = 4096;

    fn new(shape: RingShape) -> Self {
        let pages = (shape.slot_bytes as usize).div_ceil(Self::PAGE);
        let stride = pages.div_ceil(64);
        Self {
            stride,
            bits: vec![0; stride * shape.slots as usize],
        }
    }

    /// The part of `place` from its first to its last unmapped page, which is then marked as
    /// mapped. `None` if all pages are mapped, or the slot does not have this range.
    fn take_unmapped_pages(&mut self, slot: u32, place: &Range<usize>) -> Option<Range<usize>> {
        let start = slot as usize * self.stride;
        let bits = self.bits.get_mut(start..start + self.stride)?;
        let pages = place.start / Self::PAGE..place.end.div_ceil(Self::PAGE);
        let mut unmapped: Option<Range<usize>> = None;
        for page in pages {
            let word = bits.get_mut(page / 64)?;
            let bit = 1 << (page % 64);
            if *word & bit == 0 {
                *word |= bit;
                let first = unmapped.map_or(page, |m| m.start);
                unmapped = Some(first..page + 1);
            }
        }
        let m = unmapped?;
        Some((m.start * Self::PAGE).max(place.start)..(m.end * Self::PAGE).min(place.end))
    }
}

/// Adds the counters to the lane's record, which outlives this process.
fn publish_counters(ring: &Ring, lane: u32, meter: &mut StageMeter) {
    let w = ring.words();
    let record = ring.layout().worker(lane);
    // A lane has one live process, so load and store suffice.
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
    add(worker_word::DECODED, std::mem::take(&mut meter.decoded));
    for (i, ns) in meter.ns.iter_mut().enumerate() {
        add(worker_word::STAGES + i, std::mem::take(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_populated_once() {
        let mut p = PopulatedPages::new(RingShape {
            slots: 2,
            rows: 3,
            slot_bytes: 300_000,
            lanes: 1,
        });
        assert_eq!(p.take_unmapped_pages(0, &(100..5000)), Some(100..5000));
        assert_eq!(p.take_unmapped_pages(0, &(100..5000)), None);
        assert_eq!(p.take_unmapped_pages(0, &(5000..9000)), Some(8192..9000));
        assert_eq!(p.take_unmapped_pages(1, &(5000..9000)), Some(5000..9000));
        assert_eq!(p.take_unmapped_pages(1, &(0..300_000)), Some(0..300_000));
        assert_eq!(
            p.take_unmapped_pages(0, &(299_999..300_000)),
            Some(299_999..300_000)
        );
        assert_eq!(p.take_unmapped_pages(0, &(7..7)), None);
        // Ranges outside return nothing; `row_mut` rejects them.
        p.take_unmapped_pages(0, &(299_999..400_000));
        assert_eq!(p.take_unmapped_pages(2, &(0..1)), None);
        assert_eq!(p.take_unmapped_pages(u32::MAX, &(0..1)), None);
    }
}
