//! Batches by a plain loop in this process: no ring, no coordinator, no mapped
//! input. The independent truth that the pool is compared with, and what users
//! debug with.
//!
//! In the consumer.

use super::pool::Place;
use super::report::{LoaderReport, StageTimes};
use super::run::BadRow;
use crate::batch::{BufferPool, PooledBuffer};
use crate::coordinator::messages::PoolTimes;
use crate::error::Result;
use crate::index::Index;
use crate::packing::Sizes;
use crate::plan::SamplerTable;
use crate::ring::consumer_side::Ticket;
use crate::sys::cpu;
use crate::worker::attempts::{self, Attempts};
use crate::worker::images::ImageJob;
use crate::worker::input::InputMode;
use crate::worker::job::Job;
use crate::worker::meter::Meter;
use crate::worker::spec::ImageSpec;

/// The one job, and buffers for its batches.
#[derive(Debug)]
pub(super) struct InProcess {
    job: ImageJob,
    buffers: BufferPool,
    meter: Meter,
    attempts: Attempts,
}

impl InProcess {
    pub(super) fn new(
        spec: &ImageSpec,
        index: Index,
        sizes: Option<Sizes>,
        table: Option<SamplerTable>,
    ) -> Result<Self> {
        cpu::prepare_decoder()?;
        Ok(Self {
            job: ImageJob::new(spec, index, sizes, table, InputMode::Read)?,
            buffers: BufferPool::default(),
            meter: Meter::default(),
            attempts: Attempts {
                first: 0,
                tries: spec.tries,
            },
        })
    }

    /// Fills the batch at `place`, with rows where they would lie in a slot.
    /// Bytes of failed rows, and outside of rows, are whatever was there.
    pub(super) fn fill(&mut self, place: &Place) -> (PooledBuffer, Vec<BadRow>) {
        let ticket = Ticket {
            sequence: 1,
            epoch: place.epoch,
            batch: place.batch,
            rows: place.filled,
        };
        let mut buffer = self.buffers.take(self.job.batch_bytes(&ticket, place.rows));
        let mut bad = Vec::new();
        self.meter.start();
        for row in 0..place.filled {
            let out = self.job.place(&ticket, row);
            let out = &mut buffer.bytes_mut()[out];
            let mut first = None;
            let filled = attempts::fill(
                &mut self.job,
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
                fault,
                attempt: filled,
            }));
            self.meter.rows += 1;
        }
        (buffer, bad)
    }

    pub(super) fn report(&self) -> LoaderReport {
        LoaderReport {
            rows_by_worker: vec![self.meter.rows],
            times: StageTimes::from_pool(&PoolTimes {
                rows: self.meter.rows,
                input_bytes: self.meter.bytes,
                resized: self.meter.resized,
                stage_ns: self.meter.ns,
                first_commit_ns: 0,
            }),
            ..LoaderReport::default()
        }
    }
}
