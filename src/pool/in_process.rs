//! Rows by a plain loop in this process: no ring, no coordinator, no mapped input.
//! The independent truth that the pool is compared with, and what users debug with.
//!
//! In the consumer.

use std::fmt;

use crate::error::{Result, SampleFault};
use crate::pool::buffers::BufferPool;
use crate::pool::filled::{BadRow, Filled, Rows};
use crate::pool::job::{Job, JobKind, JobOrder};
use crate::pool::place::BatchPlace;
use crate::pool::report::{PoolReport, ProcessReport};
use crate::pool::ring::region::told_of;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::Attempts;
use crate::pool::worker::meter::Meter;

/// The one job, and buffers for its rows.
pub struct InProcess {
    job: Box<dyn Job>,
    buffers: BufferPool,
    meter: Meter,
    attempts: Attempts,
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcess")
    }
}

impl InProcess {
    pub(crate) fn new(order: &JobOrder<'_>, kinds: &[JobKind]) -> Result<Self> {
        Ok(Self {
            job: order.build_here(kinds)?,
            buffers: BufferPool::default(),
            meter: Meter::default(),
            attempts: Attempts {
                first: 0,
                tries: order.job.tries,
            },
        })
    }

    /// Fills the batch at `place`, with rows where they would lie in a slot, and
    /// faults as they would come out of a ring.
    pub(crate) fn fill(&mut self, place: BatchPlace) -> Filled {
        let ticket = place.ticket(1);
        let bytes = match place.rows.checked_sub(1) {
            Some(last) => self.job.place(&ticket, last).end,
            None => 0,
        };
        let mut buffer = self.buffers.take(bytes);
        let mut bad = Vec::new();
        self.meter.start();
        for row in 0..place.filled {
            let out = self.job.place(&ticket, row);
            let out = &mut buffer.bytes_mut()[out];
            let mut first = None;
            let filled = attempts::fill(
                &mut *self.job,
                &ticket,
                row,
                self.attempts,
                out,
                &mut self.meter,
                |_, fault, _| {
                    first.get_or_insert(fault);
                },
            );
            bad.extend(first.map(|fault| BadRow {
                row,
                fault: SampleFault::new(fault.kind, told_of(&fault.reason)),
                attempt: filled,
            }));
            self.meter.rows += 1;
        }
        Filled {
            place,
            rows: Rows::Own(buffer),
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
            stage_ns: self.meter.ns,
            ..PoolReport::default()
        }
    }
}
