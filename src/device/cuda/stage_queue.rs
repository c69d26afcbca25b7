//! What the stages have in common: from a slot of the ring to rows on the device.
//!
//! In the consumer. A slot is kept until the device has read it. Whatever writes rows
//! goes through one stream, so they follow each other by that order alone; what other
//! streams copy or read is waited for by events.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::device::DeviceTimes;
use crate::device::cuda::context::{CudaContext, CudaEvent, CudaStream};
use crate::device::cuda::device_rows::DeviceRows;
use crate::device::cuda::memory::{DeviceBuffer, HostBuffer};
use crate::device::cuda::output_pool::{OutputBuffer, OutputPool};
use crate::device::cuda::pinned_ring::PinnedRing;
use crate::error::{Error, Result};
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;

/// What both stages have: the stream, what is under way in it, and where it ends.
#[derive(Debug)]
pub(super) struct StageQueue {
    /// Batches that are begun: others, too, write into their memory. In the stream's order,
    /// as those behind.
    begun: VecDeque<StartedBatch>,
    under_way: VecDeque<SubmittedBatch>,
    /// Of batches that failed half way: what the device may still read.
    stranded: Vec<BatchInputs>,
    /// Shared with whoever else lets the device read slots.
    pub(super) ring: Arc<PinnedRing>,
    pub(super) outputs: OutputPool,
    pub(super) stream: Arc<CudaStream>,
    times: DeviceTimes,
}

#[derive(Debug)]
struct SubmittedBatch {
    work: BatchWork,
    over: Arc<CudaEvent>,
    kept: BatchInputs,
}

#[derive(Debug)]
struct StartedBatch {
    work: BatchWork,
    kept: BatchInputs,
    output: Arc<OutputBuffer>,
    len: usize,
}

/// What was put into streams for a batch.
#[derive(Debug, Default)]
pub(super) struct BatchWork {
    pub(super) copies: Vec<EventSpan>,
    pub(super) kernels: Vec<EventSpan>,
    /// Bytes of the slot.
    pub(super) copied_bytes: u64,
    pub(super) in_place_bytes: u64,
}

/// From one moment of a stream to another.
#[derive(Debug)]
pub(super) struct EventSpan {
    began: CudaEvent,
    ended: Arc<CudaEvent>,
}

impl EventSpan {
    /// Around what `put` puts into a stream.
    pub(super) fn around(stream: &CudaStream, put: impl FnOnce() -> Result<()>) -> Result<Self> {
        let began = stream.record_timed()?;
        put()?;
        Ok(Self {
            began,
            ended: Arc::new(stream.record_timed()?),
        })
    }

    pub(super) fn ended(&self) -> &Arc<CudaEvent> {
        &self.ended
    }

    /// Once it is over.
    fn seconds(&self) -> Result<f64> {
        self.ended.seconds_since(&self.began)
    }
}

impl BatchWork {
    /// Once it is over.
    fn times(&self) -> Result<DeviceTimes> {
        let sum = |spans: &[EventSpan]| spans.iter().map(EventSpan::seconds).sum::<Result<f64>>();
        Ok(DeviceTimes {
            batches: 1,
            copy_s: sum(&self.copies)?,
            kernel_s: sum(&self.kernels)?,
            copied_bytes: self.copied_bytes,
            in_place_bytes: self.in_place_bytes,
            ..DeviceTimes::default()
        })
    }
}

/// What a batch's work reads of the host.
#[derive(Debug)]
pub(super) struct BatchInputs {
    /// Shared with whoever wants to put it on the device again.
    pub(super) slot: Arc<HeldSlot>,
    pub(super) descriptors: Option<HostBuffer>,
}

impl StageQueue {
    pub(super) fn new(
        context: &Arc<CudaContext>,
        ring: Arc<Ring>,
        outputs: usize,
        output_bytes: usize,
    ) -> Result<Self> {
        if outputs == 0 {
            return Err(Error::config("a device stage needs a buffer for a batch"));
        }
        Ok(Self {
            begun: VecDeque::new(),
            under_way: VecDeque::new(),
            stranded: Vec::new(),
            outputs: OutputPool::new(context, outputs, output_bytes)?,
            ring: Arc::new(PinnedRing::new(context, ring)?),
            stream: Arc::new(CudaStream::new(context)?),
            times: DeviceTimes::default(),
        })
    }

    fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    /// Drops the slots that the device has read. Their descriptors' buffers go to
    /// `spare`. Does not wait.
    pub(super) fn reap(&mut self, spare: &mut Vec<HostBuffer>) -> Result<()> {
        // With a context that another has reset the host's buffers are gone too.
        self.context().check()?;
        drop(self.context().enter()?);
        while let Some(first) = self.under_way.front() {
            if !first.over.is_done()? {
                break;
            }
            self.forget_first(spare)?;
        }
        Ok(())
    }

    /// Sleeps until the first slot under way was read, and drops it; false when there
    /// is none.
    pub(super) fn wait_one(&mut self, spare: &mut Vec<HostBuffer>) -> Result<bool> {
        self.context().check()?;
        let Some(first) = self.under_way.front() else {
            return Ok(false);
        };
        first.over.wait()?;
        self.forget_first(spare)?;
        Ok(true)
    }

    fn forget_first(&mut self, spare: &mut Vec<HostBuffer>) -> Result<()> {
        if let Some(done) = self.under_way.pop_front() {
            spare.extend(done.kept.descriptors);
            self.times += done.work.times()?;
        }
        Ok(())
    }

    pub(super) fn times(&self) -> DeviceTimes {
        self.times
    }

    /// Slots that the device still reads.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// A free output of so many bytes at least: written by nobody before [`OutputBuffer::after`].
    pub(super) fn output(&self, bytes: usize) -> Result<OutputBuffer> {
        self.outputs.take_for(bytes)
    }

    /// Runs `put`, which puts a batch's work into the stream, and keeps what that
    /// reads until it is over.
    pub(super) fn submit(
        &mut self,
        kept: BatchInputs,
        output: OutputBuffer,
        len: usize,
        put: impl FnOnce(&Self, &BatchInputs, &DeviceBuffer) -> Result<BatchWork>,
    ) -> Result<DeviceRows> {
        self.begin(kept, Arc::new(output), len, put)?;
        self.finish()
    }

    /// As [`StageQueue::run`], of a part of a batch: who else has its memory writes the rest.
    pub(super) fn begin(
        &mut self,
        kept: BatchInputs,
        output: Arc<OutputBuffer>,
        len: usize,
        put: impl FnOnce(&Self, &BatchInputs, &DeviceBuffer) -> Result<BatchWork>,
    ) -> Result<()> {
        let waits = || (output.after().iter()).try_for_each(|event| self.stream.wait_for(event));
        let done = match output.buffer() {
            Some(buffer) => waits().and_then(|()| put(self, &kept, buffer)),
            None => Err(Error::device("a batch's memory was given away twice")),
        };
        match done {
            Ok(work) => {
                self.begun.push_back(StartedBatch {
                    work,
                    kept,
                    output,
                    len,
                });
                Ok(())
            }
            Err(e) => Err(self.strand(kept, e)),
        }
    }

    /// The oldest batch that was begun, to which others have written all that is theirs.
    ///
    /// # Errors
    /// There is none, or somebody has its memory yet; a device error.
    pub(super) fn finish(&mut self) -> Result<DeviceRows> {
        let Some(begun) = self.begun.pop_front() else {
            return Err(Error::device("the end of a batch that was not begun"));
        };
        let StartedBatch {
            work,
            kept,
            output,
            len,
        } = begun;
        let mut output = match Arc::try_unwrap(output) {
            Ok(output) => output,
            Err(_) => {
                let why = Error::device("the end of a batch that others write yet");
                return Err(self.strand(kept, why));
            }
        };
        let over = match self.stream.record() {
            Ok(over) => Arc::new(over),
            Err(e) => return Err(self.strand(kept, e)),
        };
        output.was_written(over.clone());
        self.under_way.push_back(SubmittedBatch {
            work,
            over: over.clone(),
            kept,
        });
        Ok(DeviceRows::new(output, over, self.stream.clone(), len))
    }

    /// Some of a batch may be under way, and nothing says when it is over.
    fn strand(&mut self, kept: BatchInputs, why: Error) -> Error {
        self.stranded.push(kept);
        self.context().fail(why)
    }
}

impl Drop for StageQueue {
    fn drop(&mut self) {
        // Only then the slots, the pinned ring and the buffers, by the fields' order.
        self.stream.drain();
    }
}

/// Puts rows that workers finished on the device, as they are.
#[derive(Debug)]
pub(crate) struct RowsStage {
    lane: StageQueue,
}

impl RowsStage {
    /// A stage with memory for `outputs` batches of `output_bytes` each.
    ///
    /// # Errors
    /// When the ring cannot be pinned, or the device has not enough memory.
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        ring: Arc<Ring>,
        outputs: usize,
        output_bytes: usize,
    ) -> Result<Self> {
        Ok(Self {
            lane: StageQueue::new(context, ring, outputs, output_bytes)?,
        })
    }

    /// Puts the first `bytes` of a slot on the device: one copy.
    ///
    /// # Errors
    /// `SlotsHeld` when every batch of the stage is held (the slot is free again, its
    /// rows lost: ask [`Self::has_room`] first); else a device error, which
    /// is the answer to every later call.
    pub(crate) fn submit_rows(
        &mut self,
        slot: impl Into<Arc<HeldSlot>>,
        bytes: usize,
    ) -> Result<DeviceRows> {
        let slot = slot.into();
        self.reap()?;
        let (_, room) = self.lane.ring.on_device(&slot)?;
        if bytes > room {
            return Err(Error::device(format!("{bytes} bytes of a slot of {room}")));
        }
        let output = self.lane.output(bytes)?;
        let kept = BatchInputs {
            slot,
            descriptors: None,
        };
        self.lane.submit(kept, output, bytes, |lane, kept, to| {
            let from = kept.slot.bytes().as_ptr();
            // SAFETY: inside of the slot by the check above, which is pinned
            // (`on_device`); `StageQueue::run` keeps it, and nobody writes a held slot, until
            // the event behind this; `to` is the output that `StageQueue::output` gave us alone,
            // and the stream waits for its earlier readers.
            let copy = EventSpan::around(&lane.stream, || unsafe {
                lane.stream.upload(to, from, bytes)
            })?;
            Ok(BatchWork {
                copies: vec![copy],
                copied_bytes: bytes as u64,
                ..BatchWork::default()
            })
        })
    }

    /// Drops the slots that the device has read. Does not wait.
    pub(crate) fn reap(&mut self) -> Result<()> {
        self.lane.reap(&mut Vec::new())
    }

    /// Sleeps until the oldest slot under way was read, and drops it; false when there
    /// is none.
    pub(crate) fn wait_one(&mut self) -> Result<bool> {
        self.lane.wait_one(&mut Vec::new())
    }

    /// Slots that the device still reads.
    pub(crate) fn under_way(&self) -> usize {
        self.lane.under_way()
    }

    /// True when a batch has memory on the device.
    pub(crate) fn has_room(&self) -> bool {
        self.lane.outputs.has_free()
    }

    pub(crate) fn times(&self) -> DeviceTimes {
        self.lane.times()
    }

    pub(crate) fn pinned_bytes(&self) -> usize {
        self.lane.ring.bytes()
    }
}
