//! Batches by a plain loop in this process: no ring, no coordinator, no mapped
//! input. The independent truth that the pool is compared with, and what users
//! debug with.
//!
//! In the consumer.

use super::pool::Place;
use super::report::{LoaderReport, StageTimes};
use crate::batch::{BufferPool, PooledBuffer};
use crate::coordinator::messages::PoolTimes;
use crate::error::{Result, SampleFault};
use crate::index::Index;
use crate::ring::consumer_side::Ticket;
use crate::sys::cpu;
use crate::worker::images::ImageJob;
use crate::worker::input::InputMode;
use crate::worker::job::Job;
use crate::worker::meter::Meter;
use crate::worker::spec::ImageSpec;

/// The one job, and buffers for its batches.
#[derive(Debug)]
pub(super) struct InProcess {
    job: ImageJob,
    row_bytes: usize,
    buffers: BufferPool,
    meter: Meter,
}

impl InProcess {
    pub(super) fn new(spec: &ImageSpec, index: Index) -> Result<Self> {
        cpu::prepare_decoder()?;
        Ok(Self {
            row_bytes: spec.program.row_bytes() as usize,
            job: ImageJob::new(spec, index, InputMode::Read)?,
            buffers: BufferPool::default(),
            meter: Meter::default(),
        })
    }

    /// Fills the batch at `place`; failed and padding rows are zero.
    pub(super) fn fill(&mut self, place: &Place) -> (PooledBuffer, Vec<(u32, SampleFault)>) {
        let ticket = Ticket {
            sequence: 1,
            epoch: place.epoch,
            batch: place.batch,
            rows: place.filled,
        };
        let mut buffer = self.buffers.take(self.row_bytes * place.rows as usize);
        let mut faults = Vec::new();
        let rows = buffer.bytes_mut().chunks_exact_mut(self.row_bytes);
        self.meter.start();
        for (row, out) in (0..place.rows).zip(rows) {
            if row >= place.filled {
                out.fill(0);
                continue;
            }
            if let Err(fault) = self.job.fill(&ticket, row, out, &mut self.meter) {
                out.fill(0);
                faults.push((row, fault));
            }
            self.meter.rows += 1;
        }
        (buffer, faults)
    }

    pub(super) fn report(&self) -> LoaderReport {
        LoaderReport {
            rows_by_worker: vec![self.meter.rows],
            times: StageTimes::from_pool(&PoolTimes {
                rows: self.meter.rows,
                input_bytes: self.meter.bytes,
                stage_ns: self.meter.ns,
                first_commit_ns: 0,
            }),
            ..LoaderReport::default()
        }
    }
}
