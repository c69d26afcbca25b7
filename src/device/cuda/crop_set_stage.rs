//! The stage of samples with several crops: makes all crops of a batch on the device, from the
//! decoded hulls that workers hand over.
//!
//! In the consumer. The rows of a slot are copied once, up to the end of the longest, and one launch
//! makes all crops. All work is in one stream, so its order is enough.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;

use crate::decode_plan::hull_row::HULL_HEADER;
use crate::device::DeviceTimes;
use crate::device::crop_set_launch::{
    CropSetShape, KernelSetCrop, KernelSetForm, SET_KERNEL, SET_THREADS, SET_TURNS,
};
use crate::device::cuda::context::CudaContext;
use crate::device::cuda::device_rows::DeviceRows;
use crate::device::cuda::loaded_kernel::{LaunchGrid, LoadedKernel};
use crate::device::cuda::memory::{CopyRect, DeviceBuffer, HostBuffer};
use crate::device::cuda::stage_queue::{BatchInputs, BatchWork, EventSpan, StageQueue};
use crate::error::{Error, Result};
use crate::pool::ring::Ring;
use crate::pool::ring::slots::HeldSlot;
use crate::recipe::HullRule;

const PTX: &str = include_str!("../../../kernels/crop_sets.ptx");

/// The used width of rows is rounded up to a multiple of this for copies.
const COPY_STEP: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct CropSetStage {
    // First: its drop waits for all work under way.
    lane: StageQueue,
    kernel: LoadedKernel,
    shape: CropSetShape,
    rule: HullRule,
    /// Bytes of each crop of a row in a batch.
    crop_bytes: Vec<usize>,
    forms: DeviceBuffer,
    /// Copied rows.
    source: DeviceBuffer,
    descriptors: DeviceBuffer,
    scratch: DeviceBuffer,
    free_descriptors: Vec<HostBuffer>,
    /// Of the last batch.
    crops: Vec<KernelSetCrop>,
}

impl CropSetStage {
    /// # Errors
    /// The ring cannot be pinned; the device has not enough memory; the driver cannot load the
    /// kernel.
    pub(crate) fn new(
        context: &Arc<CudaContext>,
        ring: Arc<Ring>,
        (shape, rule): (CropSetShape, HullRule),
        forms: &[KernelSetForm],
    ) -> Result<Self> {
        let sizes = forms.iter().map(|form| (form.height, form.width));
        let is_rules = sizes.eq(rule.crops.iter().map(|crop| (crop.height, crop.width)));
        if !is_rules || shape != shape_of(&rule, &shape) || shape.rows == 0 {
            return Err(Error::device(
                "the sizes of crops do not match the memory that was planned for them",
            ));
        }
        let lane = StageQueue::new(context, ring, shape.outputs, shape.output_bytes)?;
        let forms_on_device = DeviceBuffer::new(context, shape.form_bytes(), "forms of crops")?;
        let mut written = HostBuffer::new(context, shape.form_bytes(), "forms of crops")?;
        let bytes = bytemuck::cast_slice(forms);
        written.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        // SAFETY: both live until the wait below, or, after an error, until the stream is drained,
        // and nothing else uses them.
        let put = unsafe {
            lane.stream
                .upload(&forms_on_device, written.as_ptr(), bytes.len())
        };
        let copied = put.and_then(|()| lane.stream.record()?.wait());
        if let Err(why) = copied {
            lane.stream.drain();
            return Err(why);
        }
        let free = (0..SET_TURNS)
            .map(|_| HostBuffer::new(context, shape.descriptor_bytes(), "descriptors of crops"));
        Ok(Self {
            free_descriptors: free.collect::<Result<_>>()?,
            kernel: LoadedKernel::load(context, PTX, SET_KERNEL)?,
            crop_bytes: forms.iter().map(KernelSetForm::crop_bytes).collect(),
            forms: forms_on_device,
            source: DeviceBuffer::new(context, shape.source_bytes(), "copied rows")?,
            descriptors: DeviceBuffer::new(context, shape.descriptor_bytes(), "descriptors")?,
            scratch: DeviceBuffer::new(context, shape.scratch_bytes(), "passes over crops")?,
            crops: Vec::new(),
            lane,
            shape,
            rule,
        })
    }

    /// Puts a batch of `rows` rows on the device: copies its rows and descriptors, and launches the
    /// kernel. `masked`: whether a row holds no sample.
    ///
    /// # Errors
    /// `SlotsHeld` if the caller holds every batch of the stage. The slot is then free again and
    /// its rows are lost, so check [`Self::has_room`] first. The number of a malformed row, and
    /// why, before any work. A device error, which every later call returns, too.
    pub(crate) fn submit(
        &mut self,
        slot: impl Into<Arc<HeldSlot>>,
        rows: usize,
        masked: impl Fn(usize) -> bool,
    ) -> Result<std::result::Result<DeviceRows, MalformedRow>> {
        let slot = slot.into();
        self.drop_read_slots()?;
        let (_, room) = self.lane.ring.on_device(&slot)?;
        let pitch = self.shape.row_bytes;
        if rows == 0 || rows > self.shape.rows || rows * pitch > room {
            return Err(Error::device(format!(
                "{rows} rows of {pitch} bytes do not fit a slot of {room} bytes, or a batch of {}",
                self.shape.rows
            )));
        }
        let used = match self.describe(&slot, rows, masked) {
            Ok(used) => used,
            Err(malformed) => return Ok(Err(malformed)),
        };
        let bytes = rows * self.crop_bytes.iter().sum::<usize>();
        let output = self.lane.output(bytes)?;
        while self.free_descriptors.is_empty() {
            if !self.wait_one()? {
                return Err(Error::device("the descriptors of a batch are missing"));
            }
        }
        let mut written = self
            .free_descriptors
            .pop()
            .ok_or_else(|| Error::device("the descriptors of a batch are missing"))?;
        let described = bytemuck::cast_slice(&self.crops);
        written.bytes_mut()[..described.len()].copy_from_slice(described);
        let (described, count) = (described.len(), self.crops.len() as u32);
        let width = used.next_multiple_of(COPY_STEP).min(pitch);
        let blocks = self.shape.blocks(rows) as u32;
        let inputs = BatchInputs {
            slot,
            descriptors: Some(written),
        };
        let Self {
            lane,
            kernel,
            shape,
            forms,
            source,
            descriptors,
            scratch,
            ..
        } = self;
        let submitted = lane.submit(inputs, output, bytes, |lane, inputs, out| {
            let from = inputs.slot.bytes().as_ptr();
            let copy = EventSpan::record_around(&lane.stream, || {
                if let Some(written) = &inputs.descriptors {
                    // SAFETY: `written` is kept by `StageQueue::submit`, unwritten, until the event
                    // after this; `descriptors` was read by kernels that are before this in the
                    // stream.
                    unsafe {
                        lane.stream
                            .upload(descriptors, written.as_ptr(), described)?
                    };
                }
                let lines = CopyRect {
                    first: 0,
                    width,
                    count: rows,
                };
                // SAFETY: `rows` rows are inside of the slot by the check in `submit`; it is pinned
                // (`on_device`) and kept by `StageQueue::submit`, unwritten, until the event after
                // this; kernels that read `source` are before this in the stream.
                unsafe {
                    lane.stream
                        .upload_rows((source, 0), pitch, from, pitch, lines)
                }
            })?;
            let mut places = LaunchArguments {
                source: source.address(),
                crops: descriptors.address(),
                count,
                forms: forms.address(),
                scratch: scratch.address(),
                between: shape.between as u64,
                made: shape.made as u64,
                out: out.address(),
            };
            let kernel = EventSpan::record_around(&lane.stream, || {
                let grid = LaunchGrid {
                    blocks: (blocks, 1, 1),
                    threads: (SET_THREADS, 1),
                    shared: 0,
                };
                // SAFETY: the arguments are those that the kernel declares, in order and size
                // (`device::crop_set_launch` has its structs). Each descriptor was made from a
                // checked header, or is masked: it names bytes of its row, of which the first
                // `width` are in `source`, and its own part of `out`, which is large enough.
                // `scratch` has room for each block. Work on all of these is in this stream.
                unsafe { kernel.launch(&lane.stream, grid, &mut places.pointers()) }
            })?;
            Ok(BatchWork {
                copies: vec![copy],
                kernels: vec![kernel],
                copied_bytes: (width * rows) as u64,
                in_place_bytes: 0,
            })
        })?;
        Ok(Ok(submitted))
    }

    /// Reads the headers of all rows. Returns the most bytes that a row uses.
    fn describe(
        &mut self,
        slot: &HeldSlot,
        rows: usize,
        masked: impl Fn(usize) -> bool,
    ) -> std::result::Result<usize, MalformedRow> {
        let Self {
            rule,
            crop_bytes,
            crops,
            ..
        } = self;
        crops.clear();
        let mut headers = vec![0; rule.count() * HULL_HEADER];
        let mut used = rule.pixels_at();
        for row in 0..rows {
            let malformed = |why| MalformedRow {
                row: row as u32,
                why,
            };
            let begin = row * rule.row_bytes();
            if !masked(row) && !slot.copy(begin, &mut headers) {
                return Err(malformed("it is outside of its slot".into()));
            }
            let mut section = 0;
            for (crop, bytes) in crop_bytes.iter().enumerate() {
                let out = (section + row * bytes) as u64;
                section += rows * bytes;
                if masked(row) {
                    crops.push(KernelSetCrop::masked(crop, out));
                    continue;
                }
                let read = KernelSetCrop::read(&headers, rule, crop, (begin, out));
                let (kernel, end) = read.map_err(malformed)?;
                used = used.max(end);
                crops.push(kernel);
            }
        }
        // Crops of one size are neighbours, so that blocks have about the same work.
        crops.sort_by_key(|crop| crop.form());
        Ok(used)
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

/// A row whose headers are malformed.
#[derive(Debug)]
pub(crate) struct MalformedRow {
    pub(crate) row: u32,
    pub(crate) why: String,
}

/// The shape that follows from the rule.
fn shape_of(rule: &HullRule, shape: &CropSetShape) -> CropSetShape {
    CropSetShape::new(rule, shape.rows, (shape.outputs, shape.output_bytes))
}

/// The arguments of a launch.
struct LaunchArguments {
    source: CUdeviceptr,
    crops: CUdeviceptr,
    count: u32,
    forms: CUdeviceptr,
    scratch: CUdeviceptr,
    between: u64,
    made: u64,
    out: CUdeviceptr,
}

impl LaunchArguments {
    fn pointers(&mut self) -> [*mut c_void; 8] {
        fn at<T>(value: &mut T) -> *mut c_void {
            ptr::from_mut(value).cast()
        }
        [
            at(&mut self.source),
            at(&mut self.crops),
            at(&mut self.count),
            at(&mut self.forms),
            at(&mut self.scratch),
            at(&mut self.between),
            at(&mut self.made),
            at(&mut self.out),
        ]
    }
}
