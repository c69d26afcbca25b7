//! Images: one row = one sample, from its place in the epoch to finished
//! elements.
//!
//! Runs in workers, and in the consumer with zero workers. Which sample it is,
//! and the bytes of its file; what becomes of them is `sample`.

use std::ops::Range;

use super::input::{Input, InputMode};
use super::job::Job;
use super::meter::Meter;
use super::sample::{self, RowRequest, SampleDecoder};
use super::shards::{Home, Pattern};
use super::spec::ImageSpec;
use crate::error::{FaultKind, Result, SampleFault};
use crate::index::Index;
use crate::packing::{PackedBatch, Packing, Sizes};
use crate::plan::{Plan, RowStatus, SamplerTable};
use crate::ring::consumer_side::Ticket;

/// Everything that a worker keeps from sample to sample.
#[derive(Debug)]
pub(crate) struct ImageJob {
    index: Index,
    plan: Plan,
    input: Input,
    decoder: SampleDecoder,
    packing: Packing,
    packed: PackedBatch,
    max_scratch: u64,
    home: Home,
}

/// What a worker takes beside the scratch of a decode: its resampler, a row of
/// the output, the decoders' working memory.
pub(super) const BESIDE_SCRATCH: u64 = 64 << 20;

impl ImageJob {
    /// `sizes` are those of the samples, where rows have sizes of their own;
    /// `table` is the sampler's, if it needs one.
    pub(crate) fn new(
        spec: &ImageSpec,
        index: Index,
        sizes: Option<Sizes>,
        table: Option<SamplerTable>,
        mode: InputMode,
    ) -> Result<Self> {
        let plan = Plan::with_table(index.len(), spec.plan.clone(), table)?;
        let limits = spec.limits;
        let packing = Packing::new(&spec.program, plan.clone(), spec.tries, limits, sizes)?;
        let pattern = Pattern::of(&spec.plan.sampler);
        Ok(Self {
            home: Home::new(&index, pattern),
            index,
            plan,
            input: Input::new(mode, spec.limits.max_scratch, pattern),
            decoder: SampleDecoder::new(&spec.program, &spec.limits)?,
            packing,
            packed: PackedBatch::default(),
            max_scratch: spec.limits.max_scratch,
        })
    }

    /// Bytes that the first `rows` rows of a batch take, with what lies in
    /// front of them.
    pub(crate) fn batch_bytes(&mut self, ticket: &Ticket, rows: u32) -> usize {
        let at = (ticket.epoch, ticket.batch);
        self.packing.batch_bytes(&mut self.packed, at, rows)
    }
}

impl Job for ImageJob {
    fn place(&mut self, ticket: &Ticket, row: u32) -> Range<usize> {
        let at = (ticket.epoch, ticket.batch);
        self.packing.place(&mut self.packed, at, row)
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut [u8],
        meter: &mut Meter,
    ) -> std::result::Result<(), SampleFault> {
        let row = self.plan.attempt(ticket.epoch, ticket.batch, row, attempt);
        if row.status == RowStatus::Padding {
            // Nobody posts padding: the ticket's words were scribbled on.
            return Err(SampleFault::new(
                FaultKind::Corrupt,
                "its ticket names a row that holds no sample",
            ));
        }
        if row.status == RowStatus::Failed {
            return Err(SampleFault::new(
                FaultKind::Unreadable,
                "its identity has no further sample",
            ));
        }
        self.home.go_to(&self.index, row.id);
        let bytes = self.input.open(&self.index, row.id)?;
        meter.bytes += bytes.len() as u64;
        let request = RowRequest {
            random: &self.plan.random(ticket.epoch, row.position),
            size: row.size,
            admit: &|size| self.packing.check(row.id, size),
        };
        self.decoder.fill(&bytes, &request, out, meter)
    }

    fn is_choosy(&self) -> bool {
        self.home.is_choosy()
    }

    fn prefers(&self, ticket: &Ticket, row: u32) -> bool {
        self.home.prefers(&self.index, || {
            // Its words may be scribbled on.
            let is_there = ticket.batch < self.plan.batches() && row < ticket.rows;
            is_there.then(|| self.plan.attempt(ticket.epoch, ticket.batch, row, 0).id)
        })
    }

    fn memory_limit(&self) -> u64 {
        // What is kept of earlier samples may lie beside the whole of this one's.
        self.max_scratch
            .saturating_add(sample::KEEP as u64)
            .saturating_add(BESIDE_SCRATCH)
    }

    fn describe(&self, ticket: &Ticket, row: u32, attempt: u32) -> String {
        let row = self.plan.attempt(ticket.epoch, ticket.batch, row, attempt);
        let id = row.id;
        format!("sample {id} ({})", self.index.path(id).display())
    }
}
