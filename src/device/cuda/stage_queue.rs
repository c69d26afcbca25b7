//! What the stages share: from a slot of the ring to rows on the device.
//!
//! In the consumer. A slot is kept until the device has read it. All work that writes rows is in
//! one stream, so its order is enough. Copies and readers in other streams are ordered by events.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::device::DeviceTimes;
use crate::device::cuda::context::{CudaContext, CudaEvent, CudaStream};
use crate::device::cuda::device_rows::DeviceRows;
use crate::device::cuda::memory::{DeviceBuffer, HostBuffer};
use crate::device::cuda::output_pool::{OutputBuffer, OutputPool};
use crate::device::cuda::pinned_ring::PinnedRing;
use crate::device::stage_shapes::TrailingBytes;
use crate::error::{Error, Result};
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;

/// What both stages share: the stream, the work in it, and the batches' memory.
#[derive(Debug)]
pub(super) struct StageQueue {
    /// Batches that were begun and not finished: other streams write into their memory, too. In the
    /// stream's order.
    started: VecDeque<StartedBatch>,
    under_way: VecDeque<SubmittedBatch>,
    /// Inputs of failed batches. The device may still read them.
    failed_inputs: Vec<BatchInputs>,
    /// Shared with other readers of slots on the device.
    pub(super) ring: Arc<PinnedRing>,
    pub(super) outputs: OutputPool,
    pub(super) stream: Arc<CudaStream>,
    times: DeviceTimes,
}

#[derive(Debug)]
struct SubmittedBatch {
    work: BatchWork,
    done: Arc<CudaEvent>,
    inputs: BatchInputs,
}

#[derive(Debug)]
struct StartedBatch {
    work: BatchWork,
    inputs: BatchInputs,
    output: Arc<OutputBuffer>,
    len: usize,
}

/// The work in streams for one batch.
#[derive(Debug, Default)]
pub(super) struct BatchWork {
    pub(super) copies: Vec<EventSpan>,
    pub(super) kernels: Vec<EventSpan>,
    /// Bytes copied from the slot.
    pub(super) copied_bytes: u64,
    pub(super) in_place_bytes: u64,
}

/// Two events around work of a stream.
#[derive(Debug)]
pub(super) struct EventSpan {
    began: CudaEvent,
    ended: Arc<CudaEvent>,
}

impl EventSpan {
    /// Records events before and after the work that `put` adds to a stream.
    pub(super) fn record_around(
        stream: &CudaStream,
        put: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
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

    /// After both events are done.
    fn seconds(&self) -> Result<f64> {
        self.ended.seconds_since(&self.began)
    }
}

impl BatchWork {
    /// After the work is done.
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

/// Host memory that a batch's work reads.
#[derive(Debug)]
pub(super) struct BatchInputs {
    /// Shared with a caller that puts it on the device again.
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
            started: VecDeque::new(),
            under_way: VecDeque::new(),
            failed_inputs: Vec::new(),
            outputs: OutputPool::new(context, outputs, output_bytes)?,
            ring: Arc::new(PinnedRing::new(context, ring)?),
            stream: Arc::new(CudaStream::new(context)?),
            times: DeviceTimes::default(),
        })
    }

    fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    /// Drops the slots that the device has read. Their descriptor buffers go to `free_descriptors`.
    /// Does not wait.
    pub(super) fn drop_read_slots(&mut self, free_descriptors: &mut Vec<HostBuffer>) -> Result<()> {
        // If other code has reset the context, the host buffers are freed too.
        self.context().check()?;
        drop(self.context().enter()?);
        while let Some(first) = self.under_way.front() {
            if !first.done.is_done()? {
                break;
            }
            self.drop_first(free_descriptors)?;
        }
        Ok(())
    }

    /// Sleeps until the device has read the oldest slot, and drops that slot. False if there is
    /// none.
    pub(super) fn wait_one(&mut self, free_descriptors: &mut Vec<HostBuffer>) -> Result<bool> {
        self.context().check()?;
        let Some(first) = self.under_way.front() else {
            return Ok(false);
        };
        first.done.wait()?;
        self.drop_first(free_descriptors)?;
        Ok(true)
    }

    fn drop_first(&mut self, free_descriptors: &mut Vec<HostBuffer>) -> Result<()> {
        if let Some(done) = self.under_way.pop_front() {
            free_descriptors.extend(done.inputs.descriptors);
            self.times += done.work.times()?;
        }
        Ok(())
    }

    pub(super) fn times(&self) -> DeviceTimes {
        self.times
    }

    /// Number of slots that the device still reads.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// A free output of at least this number of bytes. May be written only after
    /// [`OutputBuffer::reads`].
    pub(super) fn output(&self, bytes: usize) -> Result<OutputBuffer> {
        self.outputs.take_for(bytes)
    }

    /// Runs `put`, which adds a batch's work to the stream, and keeps its inputs until the work is
    /// done.
    pub(super) fn submit(
        &mut self,
        inputs: BatchInputs,
        output: OutputBuffer,
        len: usize,
        put: impl FnOnce(&Self, &BatchInputs, &DeviceBuffer) -> Result<BatchWork>,
    ) -> Result<DeviceRows> {
        self.begin(inputs, Arc::new(output), len, put)?;
        self.finish()
    }

    /// Like [`StageQueue::submit`], for a part of a batch. Other owners of its memory write the
    /// rest.
    pub(super) fn begin(
        &mut self,
        inputs: BatchInputs,
        output: Arc<OutputBuffer>,
        len: usize,
        put: impl FnOnce(&Self, &BatchInputs, &DeviceBuffer) -> Result<BatchWork>,
    ) -> Result<()> {
        let waits = || (output.reads().iter()).try_for_each(|event| self.stream.wait_for(event));
        let done = match output.buffer() {
            Some(buffer) => waits().and_then(|()| put(self, &inputs, buffer)),
            None => Err(Error::device("the memory of a batch is missing")),
        };
        match done {
            Ok(work) => {
                self.started.push_back(StartedBatch {
                    work,
                    inputs,
                    output,
                    len,
                });
                Ok(())
            }
            Err(e) => Err(self.keep_failed_inputs(inputs, e)),
        }
    }

    /// Copies parts of a slot to places after the rows of a batch.
    ///
    /// # Safety
    /// `from` is the first byte of a pinned slot that has all parts ([`TrailingBytes::check`]), and
    /// stays, unwritten, until an event that is recorded in the stream after this. Nothing else
    /// reads or writes these bytes of `to` until then.
    pub(super) unsafe fn upload_trailing(
        &self,
        trailing: &[TrailingBytes],
        from: *const u8,
        to: &DeviceBuffer,
        work: &mut BatchWork,
    ) -> Result<()> {
        let all: usize = trailing.iter().map(|part| part.len).sum();
        if all == 0 {
            return Ok(());
        }
        let put = || {
            let parts = trailing.iter().filter(|part| part.len > 0);
            // SAFETY: this function's contract; `upload_at` checks `to`.
            let put = |part: &TrailingBytes| unsafe {
                self.stream
                    .upload_at(to, part.to, from.add(part.from), part.len)
            };
            parts.copied().try_for_each(|part| put(&part))
        };
        let copy = EventSpan::record_around(&self.stream, put)?;
        work.copies.push(copy);
        work.copied_bytes += all as u64;
        Ok(())
    }

    /// Writes bytes into the oldest batch that was begun, after all work that the stream has, and
    /// waits.
    ///
    /// # Errors
    /// There is none, or its memory still has another owner; bytes outside of it; a device error.
    pub(super) fn overwrite(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let first = self.started.front_mut();
        // Only its owners give the memory to other streams.
        let output = first.and_then(|started| Arc::get_mut(&mut started.output));
        match output.as_ref().and_then(|output| output.buffer()) {
            Some(buffer) => self.stream.write(buffer, at, bytes),
            None => Err(Error::device(
                "no batch was begun that only this stream writes, so none can be changed",
            )),
        }
    }

    /// The oldest batch that was begun, after all other writers have finished.
    ///
    /// # Errors
    /// There is none; its memory still has another owner; a device error.
    pub(super) fn finish(&mut self) -> Result<DeviceRows> {
        let Some(started) = self.started.pop_front() else {
            return Err(Error::device("no batch was begun, so none can be finished"));
        };
        let StartedBatch {
            work,
            inputs,
            output,
            len,
        } = started;
        let mut output = match Arc::try_unwrap(output) {
            Ok(output) => output,
            Err(_) => {
                let why = Error::device("a batch cannot be finished while other streams write it");
                return Err(self.keep_failed_inputs(inputs, why));
            }
        };
        let done = match self.stream.record() {
            Ok(done) => Arc::new(done),
            Err(e) => return Err(self.keep_failed_inputs(inputs, e)),
        };
        output.record_write(done.clone());
        self.under_way.push_back(SubmittedBatch {
            work,
            done: done.clone(),
            inputs,
        });
        Ok(DeviceRows::new(output, done, self.stream.clone(), len))
    }

    /// Keeps the inputs of a failed batch: some of its work may be under way, without an event
    /// after it.
    fn keep_failed_inputs(&mut self, inputs: BatchInputs, why: Error) -> Error {
        self.failed_inputs.push(inputs);
        self.context().fail(why)
    }
}

impl Drop for StageQueue {
    fn drop(&mut self) {
        // Only after this are the slots, the pinned ring and the buffers dropped, in the order of
        // the fields.
        self.stream.drain();
    }
}

/// Copies finished rows to the device.
#[derive(Debug)]
pub(crate) struct RowsStage {
    lane: StageQueue,
}

impl RowsStage {
    /// A stage with memory for `outputs` batches of `output_bytes` each.
    ///
    /// # Errors
    /// The ring cannot be pinned; the device has not enough memory.
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

    /// Copies the first `bytes` of a slot to the device, and further parts after them.
    ///
    /// # Errors
    /// `SlotsHeld` if the caller holds every batch of the stage. The slot is then free again and
    /// its rows are lost, so check [`Self::has_room`] first. Any other device error is returned by
    /// every later call, too.
    pub(crate) fn submit_rows(
        &mut self,
        slot: impl Into<Arc<HeldSlot>>,
        bytes: usize,
        trailing: &[TrailingBytes],
    ) -> Result<DeviceRows> {
        let slot = slot.into();
        self.drop_read_slots()?;
        let (_, room) = self.lane.ring.on_device(&slot)?;
        if bytes > room {
            return Err(Error::device(format!(
                "{bytes} bytes do not fit a slot of {room} bytes"
            )));
        }
        TrailingBytes::check(trailing, bytes, room)?;
        let end = TrailingBytes::end(trailing, bytes);
        let output = self.lane.output(end)?;
        let inputs = BatchInputs {
            slot,
            descriptors: None,
        };
        self.lane.submit(inputs, output, end, |lane, inputs, to| {
            let from = inputs.slot.bytes().as_ptr();
            // SAFETY: inside of the slot by the checks above, which is pinned (`on_device`);
            // `StageQueue::submit` keeps it, and nothing writes a held slot, until the event after
            // this; `to` is the output that `StageQueue::output` returned to us alone, and the
            // stream waits for its earlier readers.
            let copy = EventSpan::record_around(&lane.stream, || unsafe {
                lane.stream.upload(to, from, bytes)
            })?;
            let mut work = BatchWork {
                copies: vec![copy],
                copied_bytes: bytes as u64,
                ..BatchWork::default()
            };
            // SAFETY: as above; `trailing` ends in the output, after the rows.
            unsafe { lane.upload_trailing(trailing, from, to, &mut work)? };
            Ok(work)
        })
    }

    /// Drops the slots that the device has read. Does not wait.
    pub(crate) fn drop_read_slots(&mut self) -> Result<()> {
        self.lane.drop_read_slots(&mut Vec::new())
    }

    /// Sleeps until the device has read the oldest slot, and drops that slot. False if there is
    /// none.
    pub(crate) fn wait_one(&mut self) -> Result<bool> {
        self.lane.wait_one(&mut Vec::new())
    }

    /// Number of slots that the device still reads.
    pub(crate) fn under_way(&self) -> usize {
        self.lane.under_way()
    }

    /// Whether there is free device memory for a batch.
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
