//! Fills rows in a plain loop in this process: no ring, no coordinator, no mapped input. The pool
//! is tested against it, and users debug with it.
//!
//! Runs in the consumer.

use std::fmt;

use crate::error::{FaultKind, Result, SampleFault};
use crate::pool::batch_request::BatchRequest;
use crate::pool::buffers::BufferPool;
use crate::pool::filled_batch::{BadRow, FilledBatch, RowMemory};
use crate::pool::job::{Job, JobKind, JobRequest, RowParts};
use crate::pool::pool_report::{PoolReport, ProcessReport};
use crate::pool::ring::region::shorten_reason;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::AttemptRange;
use crate::pool::worker::meter::StageMeter;

/// The job, and buffers for its rows.
pub struct InProcessLoop {
    job: Box<dyn Job>,
    buffers: BufferPool,
    meter: StageMeter,
    attempts: AttemptRange,
}

impl fmt::Debug for InProcessLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl InProcessLoop {
    pub(crate) fn new(order: &JobRequest<'_>, kinds: &[JobKind]) -> Result<Self> {
        Ok(Self {
            job: order.build_here(kinds)?,
            buffers: BufferPool::default(),
            meter: StageMeter::default(),
            attempts: AttemptRange {
                first: 0,
                tries: order.job.tries,
            },
        })
    }

    /// Fills a batch. Rows lie at the same offsets as in a slot, and faults have the same texts as
    /// from a ring.
    pub(crate) fn fill(&mut self, place: BatchRequest) -> FilledBatch {
        let ticket = place.ticket(1);
        let bytes = match place.rows.checked_sub(1) {
            Some(last) => {
                let further = self.job.further_ranges(&ticket, last);
                let first = self.job.row_range(&ticket, last);
                further.last().map_or(first.end, |range| range.end)
            }
            None => 0,
        };
        let mut buffer = self.buffers.take(bytes);
        let mut bad = Vec::new();
        self.meter.start();
        for row in 0..place.rows_to_fill {
            let range = self.job.row_range(&ticket, row);
            let further = self.job.further_ranges(&ticket, row);
            let Some(mut out) = RowParts::of(buffer.bytes_mut(), range, &further) else {
                let fault = SampleFault::new(
                    FaultKind::Corrupt,
                    "its place in the batch is invalid: this is a defect of featherload, please \
                     report it",
                );
                let attempt = None;
                bad.push(BadRow {
                    row,
                    fault,
                    attempt,
                });
                continue;
            };
            let mut first = None;
            let filled = attempts::fill_or_substitute(
                &mut *self.job,
                &ticket,
                row,
                self.attempts,
                &mut out,
                &mut self.meter,
                |_, fault, _| {
                    first.get_or_insert(fault);
                },
            );
            bad.extend(first.map(|fault| BadRow {
                row,
                fault: SampleFault::new(fault.kind, shorten_reason(&fault.reason)),
                attempt: filled,
            }));
            self.meter.rows += 1;
        }
        FilledBatch {
            place,
            rows: RowMemory::Own(buffer),
            bad,
        }
    }

    pub(crate) fn report(&self) -> PoolReport {
        PoolReport {
            processes: ProcessReport {
                rows_by_worker: vec![self.meter.rows],
                ..ProcessReport::default()
            },
            rows: self.meter.rows,
            input_bytes: self.meter.bytes,
            counted: self.meter.counted,
            truncated: self.meter.truncated,
            decoded: self.meter.decoded,
            stage_ns: self.meter.ns,
            ..PoolReport::default()
        }
    }
}
