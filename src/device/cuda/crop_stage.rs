//! The stage of the crops kernel: makes rows of a batch on the device from pixels that workers
//! decoded.
//!
//! In the consumer. A row of a slot has tables, then pixels. Tables are always copied. Pixels are
//! read in place or copied first. A batch is copied in two parts, in a separate stream. So the copy
//! engine copies the second part, or the next batch, while the kernel works on the first.

use std::sync::Arc;

use crate::device::crop_launch::{CropPass, ELSEWHERE, KernelEmission, KernelRow, MASKED};
use crate::device::cuda::bounds::{pixel_bytes, used_bytes};
use crate::device::cuda::context::{CudaContext, CudaEvent, CudaStream};
use crate::device::cuda::crop_kernel::{CropKernel, LaunchAddresses};
use crate::device::cuda::device_rows::DeviceRows;
use crate::device::cuda::memory::{CopyRect, DeviceBuffer, HostBuffer};
use crate::device::cuda::output_pool::OutputBuffer;
use crate::device::cuda::pinned_ring::PinnedRing;
use crate::device::cuda::stage_queue::{BatchInputs, BatchWork, EventSpan, StageQueue};
use crate::device::stage_shapes::{CropShape, RowPlaces, TURNS, TrailingBytes};
use crate::device::{DeviceTimes, UploadMode};
use crate::error::{Error, Result};
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;

/// The used width of rows is rounded up to a multiple of this for copies.
const COPY_STEP: usize = 64;
/// Parts in which a batch is copied: the kernel works on one while the next is copied.
const PARTS: usize = 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct CropStage {
    // First: its drop waits for all work under way.
    lane: StageQueue,
    kernel: Arc<CropKernel>,
    shape: CropShape,
    /// The stream that copies pixels.
    copies: CudaStream,
    /// Copied tables, or whole rows.
    source: DeviceBuffer,
    /// The last kernels that read the parts of `source`. The last entry is the last of all.
    readers: [Option<Arc<CudaEvent>>; PARTS],
    /// Number of rows of the last batch, and their distance in `source`. If the next batch differs,
    /// its parts begin at other bytes.
    last_parts: (usize, usize),
    /// Used alternately: the descriptors of one batch are copied while the kernel reads those of
    /// the last.
    descriptors: [DeviceBuffer; TURNS],
    turn: usize,
    /// Descriptor buffers, one for each slot that is not under way.
    free_descriptors: Vec<HostBuffer>,
}

/// The memory and the kernel for the rows of a batch. May be written only after
/// [`OutputBuffer::pending_events`].
#[derive(Debug, Clone)]
pub(crate) struct BatchTarget {
    pub(super) output: Arc<OutputBuffer>,
    pub(super) kernel: Arc<CropKernel>,
    /// Keeps slots pinned.
    pub(super) pinned: Arc<PinnedRing>,
}

impl CropStage {
    /// # Errors
    /// The ring cannot be pinned; the device has not enough memory; the driver cannot load the
    /// kernel.
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        ring: Arc<Ring>,
        shape: CropShape,
    ) -> Result<Self> {
        shape.check()?;
        let free_descriptors = (0..ring.layout().shape().slots)
            .map(|_| HostBuffer::new(context, shape.descriptor_bytes(), "descriptors"));
        let descriptors = || DeviceBuffer::new(context, shape.descriptor_bytes(), "descriptors");
        Ok(Self {
            free_descriptors: free_descriptors.collect::<Result<_>>()?,
            kernel: Arc::new(CropKernel::load(context)?),
            copies: CudaStream::new(context)?,
            readers: Default::default(),
            last_parts: (0, 0),
            source: DeviceBuffer::new(context, shape.source_bytes, "copied rows")?,
            descriptors: [descriptors()?, descriptors()?],
            turn: 0,
            lane: StageQueue::new(context, ring, shape.outputs, shape.output_bytes)?,
            shape,
        })
    }

    /// Puts a batch on the device: copies its descriptors, and its tables or all used bytes, and
    /// launches the kernel. One launch for pixels in place, or one for each copied part. One more
    /// before each if a row needs its mean. Offsets in `rows` count from the beginning of the slot.
    ///
    /// # Errors
    /// `SlotsHeld` if the caller holds every batch of the stage. The slot is then free again and
    /// its rows are lost, so check [`Self::has_room`] first. A device error for a row that names
    /// bytes of other rows, before any work. Any other device error is returned by every later
    /// call, too.
    pub(crate) fn submit(
        &mut self,
        slot: impl Into<Arc<HeldSlot>>,
        rows: &[KernelRow],
        places: RowPlaces,
        emission: &KernelEmission,
        read: UploadMode,
        trailing: &[TrailingBytes],
    ) -> Result<DeviceRows> {
        let target = self.reserve(rows.len(), emission)?;
        self.begin(slot, rows, places, emission, read, (target, trailing))?;
        self.finish()
    }

    /// Reserves memory for a batch with this number of rows.
    ///
    /// # Errors
    /// `SlotsHeld` if the caller holds every batch of the stage.
    pub(crate) fn reserve(&self, rows: usize, emission: &KernelEmission) -> Result<BatchTarget> {
        let bytes = rows * emission.elements() * self.shape.dtype.size();
        Ok(BatchTarget {
            output: Arc::new(self.lane.output(bytes)?),
            kernel: self.kernel.clone(),
            pinned: self.lane.ring.clone(),
        })
    }

    /// The oldest batch that was begun. All other writers must have dropped its target.
    ///
    /// # Errors
    /// As [`StageQueue::finish`].
    pub(crate) fn finish(&mut self) -> Result<DeviceRows> {
        self.lane.finish()
    }

    /// Writes bytes into the oldest batch that was begun. All other writers must have dropped its
    /// target.
    ///
    /// # Errors
    /// As [`StageQueue::overwrite`].
    pub(crate) fn overwrite(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        self.lane.overwrite(at, bytes)
    }

    /// Like [`CropStage::submit`], for all rows that are not [`ELSEWHERE`].
    pub(crate) fn begin(
        &mut self,
        slot: impl Into<Arc<HeldSlot>>,
        rows: &[KernelRow],
        places: RowPlaces,
        emission: &KernelEmission,
        read: UploadMode,
        (target, trailing): (BatchTarget, &[TrailingBytes]),
    ) -> Result<()> {
        let slot = slot.into();
        self.drop_read_slots()?;
        let (on_device, room) = self.lane.ring.on_device(&slot)?;
        let most = used_bytes(rows, places, emission, room, self.shape.rows)?;
        if read == UploadMode::Copied && !self.shape.copies {
            return Err(Error::device(
                "pixels are to be copied, but the stage was made without memory for copies",
            ));
        }
        let bytes = rows.len() * emission.elements() * self.shape.dtype.size();
        let output = target.output;
        let end = TrailingBytes::end(trailing, bytes);
        if output.buffer().is_none_or(|buffer| end > buffer.len()) {
            return Err(Error::device(format!(
                "a batch of {end} bytes does not match its memory"
            )));
        }
        TrailingBytes::check(trailing, bytes, room)?;
        // There is one per slot, and each batch under way has a slot.
        let mut written = self
            .free_descriptors
            .pop()
            .ok_or_else(|| Error::device("more batches under way than the ring has slots"))?;
        let pitch = places.copied(read);
        if rows.len() * pitch > self.shape.source_bytes {
            return Err(Error::device(format!(
                "{} rows of {pitch} bytes do not fit the {} bytes for copies",
                rows.len(),
                self.shape.source_bytes
            )));
        }
        let descriptors_len = size_of_val(rows);
        let pixels = match read {
            UploadMode::InPlace => on_device,
            UploadMode::Copied => self.source.address(),
        };
        let room = written.bytes_mut()[..descriptors_len].chunks_exact_mut(size_of::<KernelRow>());
        for ((i, row), to) in rows.iter().enumerate().zip(room) {
            let mut row = *row;
            if row.flags & (MASKED | ELSEWHERE) == 0 {
                // `used_bytes` has checked that they are inside of the row's part.
                let copied = |place: u64| place - (i * places.capacity) as u64 + (i * pitch) as u64;
                row.tables = copied(row.tables);
                if read == UploadMode::Copied {
                    row.pixels = copied(row.pixels);
                }
            }
            to.copy_from_slice(bytemuck::bytes_of(&row));
        }
        let passes: &[CropPass] = match rows.iter().any(KernelRow::takes_mean) {
            true => &[CropPass::Sums, CropPass::Rows],
            false => &[CropPass::Rows],
        };
        let (width, parts) = match read {
            UploadMode::InPlace => (places.tables, 1),
            UploadMode::Copied => (
                most.next_multiple_of(COPY_STEP).min(pitch),
                PARTS.min(rows.len()),
            ),
        };
        let inputs = BatchInputs {
            slot,
            descriptors: Some(written),
        };
        let Self {
            lane,
            kernel,
            copies,
            source,
            readers,
            last_parts,
            descriptors,
            turn,
            ..
        } = self;
        *turn = (*turn + 1) % TURNS;
        let descriptors = &descriptors[*turn];
        let same_parts = std::mem::replace(last_parts, (rows.len(), pitch)) == (rows.len(), pitch);
        let row_bytes = bytes / rows.len();
        lane.begin(inputs, output, end, |lane, inputs, out| {
            let from = inputs.slot.bytes().as_ptr();
            let mut work = BatchWork::default();
            // In place, a second stream would bring nothing.
            let copies = match read {
                UploadMode::InPlace => &*lane.stream,
                UploadMode::Copied => &*copies,
            };
            // SAFETY: `TrailingBytes::check` has found `trailing` inside of the slot, which is pinned
            // (`on_device`) and kept by `StageQueue::begin`, unwritten, until the event after this;
            // `out` is the target's, and `StageQueue::begin` has made this stream wait for its
            // earlier readers; the kernels and other writers write rows alone, which end before.
            unsafe { lane.upload_trailing(trailing, from, out, &mut work)? };
            for part in 0..parts {
                let (first, end) = (part * rows.len() / parts, (part + 1) * rows.len() / parts);
                let count = end - first;
                // Kernels run in one stream, in order: waiting for the last waits for all.
                let reader = if same_parts { part } else { PARTS - 1 };
                if read == UploadMode::Copied
                    && let Some(reader) = &readers[reader]
                {
                    copies.wait_for(reader)?;
                }
                if part == 0
                    && let Some(written) = &inputs.descriptors
                {
                    // SAFETY: `written` is kept by `StageQueue::begin`, unwritten, until the event
                    // behind this; `descriptors` was read last by the kernels of the batch
                    // before the last one, which came before those that this stream has waited
                    // for, or has in front.
                    let put =
                        || unsafe { copies.upload(descriptors, written.as_ptr(), descriptors_len) };
                    work.copies.push(EventSpan::record_around(copies, put)?);
                }
                let lines = CopyRect {
                    first,
                    width,
                    count,
                };
                let to = (&*source, first * pitch);
                // SAFETY: `used_bytes` has checked that the rows are inside of the slot, which is
                // pinned (`on_device`) and kept by `StageQueue::begin`, unwritten, until the event
                // after this: the kernels' stream waits for these copies, and `drop` for both
                // streams. The kernels that read this part of `source` were waited for.
                let put = || unsafe { copies.upload_rows(to, pitch, from, places.capacity, lines) };
                let copy = EventSpan::record_around(copies, put)?;
                if read == UploadMode::Copied {
                    lane.stream.wait_for(copy.ended())?;
                }
                work.copies.push(copy);
                work.copied_bytes += (width * count) as u64;
                let at = LaunchAddresses {
                    tables: source.address(),
                    pixels,
                    rows: descriptors.address() + (first * size_of::<KernelRow>()) as u64,
                    out: out.address() + (first * row_bytes) as u64,
                };
                // SAFETY: as above; `used_bytes` has checked each row against its part of the slot,
                // of which the same bytes are in `source`, at the places that `copied` returns;
                // `out` is the target's, large enough, and `StageQueue::begin` has made the stream
                // wait for its earlier readers; others write other rows of it, which are
                // `ELSEWHERE` here; a second pass comes after the first in the stream.
                let put = || unsafe {
                    (passes.iter()).try_for_each(|pass| {
                        kernel.launch(&lane.stream, at, count as u32, *emission, *pass)
                    })
                };
                let kernel = EventSpan::record_around(&lane.stream, put)?;
                work.kernels.push(kernel);
            }
            for (part, reader) in readers.iter_mut().enumerate() {
                let kernel = work.kernels.get(part).or(work.kernels.last());
                *reader = kernel.map(|kernel| kernel.ended().clone());
            }
            if read == UploadMode::InPlace {
                work.in_place_bytes = pixel_bytes(rows);
            }
            Ok(work)
        })
    }

    /// Drops the slots that the device has read. Does not wait.
    pub(crate) fn drop_read_slots(&mut self) -> Result<()> {
        self.lane.drop_read_slots(&mut self.free_descriptors)
    }

    /// Sleeps until the device has read the oldest slot, and drops that slot. False if there is
    /// none.
    pub(crate) fn wait_one(&mut self) -> Result<bool> {
        self.lane.wait_one(&mut self.free_descriptors)
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

impl Drop for CropStage {
    fn drop(&mut self) {
        // Nothing has waited for the copies of a failed batch. The slots are dropped with `lane`.
        self.copies.drain();
    }
}
