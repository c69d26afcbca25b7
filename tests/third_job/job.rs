//! A third kind of job: rows are numbers that follow from their place, and some samples
//! are bad. The whole of it, worker side and consumer side.

use std::ops::Range;
use std::time::Duration;

use featherload::error::{FaultKind, Result, SampleFault};
use featherload::internals::{
    BatchKey, BatchRequest, FilledBatch, Job, JobKind, JobParts, JobRequest, JobStage, RingShape,
    RowFiller, StageMeter, Ticket, WorkerOptions,
};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

/// All that this executable can do: one line for each kind.
pub const KINDS: &[JobKind] = &[KIND];

const KIND: JobKind = JobKind {
    name: "numbers",
    build,
};

fn build(parts: JobParts) -> Result<Box<dyn Job>> {
    Ok(Box::new(Numbers(parts.spec()?)))
}

const COUNT: JobStage = JobStage::of_job(0);

/// What a worker must know.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Spec {
    pub seed: u64,
    /// Rows of a batch, and batches of an epoch.
    pub rows: u32,
    pub batches: u64,
    /// What a row takes, so that there is time to kill its worker.
    pub pause: Duration,
}

impl Spec {
    /// Bytes of a row.
    const BYTES: usize = 1000;

    /// Samples that may stand in for a bad one.
    const TRIES: u32 = 1;

    fn place(&self, (epoch, batch): (u64, u64)) -> BatchRequest {
        BatchRequest {
            key: BatchKey([epoch, batch]),
            epoch: Some(epoch),
            ..BatchRequest::numbered(batch, self.rows)
        }
    }

    /// The place `n` behind another.
    fn place_after(&self, (epoch, batch): (u64, u64), n: usize) -> (u64, u64) {
        let batch = batch + n as u64;
        (epoch + batch / self.batches, batch % self.batches)
    }
}

/// The worker side.
struct Numbers(Spec);

impl Job for Numbers {
    fn row_range(&mut self, _: &Ticket, row: u32) -> Range<usize> {
        let begin = row as usize * Spec::BYTES;
        begin..begin + Spec::BYTES
    }

    fn fill(
        &mut self,
        ticket: &Ticket,
        row: u32,
        attempt: u32,
        out: &mut [u8],
        meter: &mut StageMeter,
    ) -> Result<(), SampleFault> {
        let BatchKey([epoch, batch]) = ticket.key;
        let of = [epoch, batch, u64::from(row), u64::from(attempt)];
        let text = format!("{:?} of {}", of, self.0.seed);
        let hash = XxHash3_128::oneshot(text.as_bytes());
        if hash.is_multiple_of(7) {
            return Err(SampleFault::new(FaultKind::Corrupt, format!("bad: {text}")));
        }
        for (byte, n) in out.iter_mut().zip(1..) {
            *byte = (hash.rotate_left(n % 128) >> 8) as u8;
        }
        std::thread::sleep(self.0.pause);
        meter.bytes += text.len() as u64;
        meter.lap(COUNT);
        Ok(())
    }

    fn memory_limit(&self) -> u64 {
        16 << 20
    }

    fn describe(&self, ticket: &Ticket, row: u32, _: u32) -> String {
        let BatchKey([_, batch]) = ticket.key;
        format!("number {row} of batch {batch}")
    }
}

/// The consumer side: digests of batches in order.
pub struct Run {
    pub filler: RowFiller,
    spec: Spec,
    /// The next batch's epoch and number.
    pub at: (u64, u64),
}

impl Run {
    pub fn start(options: WorkerOptions, spec: Spec, at: (u64, u64)) -> Result<Self> {
        let ready = options.launch(KINDS)?;
        let shape = RingShape {
            slots: 4,
            rows: spec.rows,
            slot_bytes: u64::from(spec.rows) * Spec::BYTES as u64,
            lanes: ready.workers().max(1),
        };
        let order = JobRequest::new(KIND.name, &spec, Spec::TRIES, Vec::new())?;
        let too_large = |needed, free| format!("{needed} bytes of {free}");
        let filler = ready.start(&order, shape, spec.place(at), too_large)?;
        Ok(Self { filler, spec, at })
    }

    /// The digest of the next batch: its place, its rows, and which of them were bad.
    pub fn next(&mut self) -> Result<u128> {
        let (spec, at) = (self.spec, self.at);
        let upcoming = |n| Some(spec.place(spec.place_after(at, n)));
        let FilledBatch { place, rows, bad } = self.filler.next(&upcoming)?;
        self.at = spec.place_after(at, 1);
        let mut all = rows.bytes()[..place.rows as usize * Spec::BYTES].to_vec();
        for b in bad {
            let row = b.row as usize * Spec::BYTES;
            if b.attempt.is_none() {
                all[row..row + Spec::BYTES].fill(0);
            }
            all.extend(format!("{} {:?} {}", b.row, b.attempt, b.fault).bytes());
        }
        all.extend(format!("{place:?}").bytes());
        Ok(XxHash3_128::oneshot(&all))
    }
}
