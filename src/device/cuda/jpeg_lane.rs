//! One lane of JPEG decoding: from coded rows of slots to rows of batches on the device.
//!
//! In the consumer, in the JPEG thread. A lane allocates its device memory once. It decodes a part
//! of one batch or of several, and the crops kernel makes the rows, all in one stream. While one
//! part is under way, the next is filled and queued.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bounds::check_frame;
use super::context::CudaContext;
use super::crop_kernel::LaunchAddresses;
use super::crop_stage::BatchTarget;
use super::gpu_jpeg_decoder::{DecodedPicture, GpuJpegDecoder, JpegKernels};
use super::memory::{CopyRect, DeviceBuffer, HostBuffer};
use crate::device::coded_rows::{CodedBatch, CodedRow, RowAttempt};
use crate::device::crop_launch::{CropPass, ELSEWHERE, KernelEmission, KernelRow, MASKED};
use crate::device::stage_shapes::{JpegShape, RowPlaces};
use crate::error::{Error, Result};

/// Bytes of a pixel.
const RGB: usize = 3;
/// Coded data begin at a multiple of this.
const ALIGNMENT: usize = 16;

/// A batch whose coded rows a device decodes. No other code may write those rows, or their rows in
/// the target.
#[derive(Debug)]
pub(super) struct JpegBatch {
    pub(super) rows: Arc<dyn CodedBatch>,
    pub(super) places: RowPlaces,
    pub(super) emission: KernelEmission,
    pub(super) target: BatchTarget,
    /// Bytes of a row of the target.
    pub(super) row_bytes: usize,
}

/// The rows of one batch that are in one part, in order. With the error word of each after the part
/// is done.
#[derive(Debug)]
pub(super) struct JpegBatchPart {
    pub(super) batch: Arc<JpegBatch>,
    pub(super) rows: Vec<RowAttempt>,
    pub(super) errors: Vec<u32>,
}

impl JpegBatchPart {
    /// The rows of the batch that a launch covers: from the first to the last.
    fn covered_rows(&self) -> (usize, usize) {
        let first = self.rows.first().map_or(0, |of| of.row as usize);
        let last = self.rows.last().map_or(first, |of| of.row as usize);
        (first, last + 1 - first)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct JpegRowLane {
    shape: JpegShape,
    // Drained before the memory that it reads is freed.
    decoder: GpuJpegDecoder,
    tables: DeviceBuffer,
    descriptors: DeviceBuffer,
    /// Descriptors for the device, used alternately.
    written: [HostBuffer; 2],
    turn: usize,
    /// Submitted parts, the oldest first.
    under_way: VecDeque<Vec<JpegBatchPart>>,
}

/// Memory of a lane that a part uses.
#[derive(Debug, Default)]
struct PartFill {
    rows: usize,
    tables: usize,
    /// Bytes of coded data.
    coded: usize,
}

impl JpegRowLane {
    /// Allocates all the memory of the lane.
    ///
    /// # Errors
    /// The device has not enough memory.
    pub(super) fn new(
        context: &Arc<CudaContext>,
        kernels: &Arc<JpegKernels>,
        shape: JpegShape,
    ) -> Result<Self> {
        let descriptors = shape.lane_rows() * size_of::<KernelRow>();
        let written = || HostBuffer::new(context, descriptors, "descriptors of JPEGs");
        Ok(Self {
            shape,
            decoder: GpuJpegDecoder::new(kernels, shape.limits)?,
            tables: DeviceBuffer::new(context, shape.table_bytes(), "tables of JPEGs")?,
            descriptors: DeviceBuffer::new(context, descriptors, "descriptors of JPEGs")?,
            written: [written()?, written()?],
            turn: 0,
            under_way: VecDeque::new(),
        })
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// The oldest submitted part, if the device has made its rows.
    pub(super) fn poll(&mut self) -> Result<Option<Vec<JpegBatchPart>>> {
        match self.decoder.is_oldest_decoded()? {
            true => self.wait(),
            false => Ok(None),
        }
    }

    /// Like [`JpegRowLane::poll`], but waits. None if no part is under way.
    pub(super) fn wait(&mut self) -> Result<Option<Vec<JpegBatchPart>>> {
        let Some(errors) = self.decoder.wait()? else {
            return Ok(None);
        };
        let Some(mut parts) = self.under_way.pop_front() else {
            return Ok(None);
        };
        let mut errors = errors.into_iter();
        for part in &mut parts {
            part.errors = errors.by_ref().take(part.rows.len()).collect();
        }
        Ok(Some(parts))
    }

    /// Submits as many waiting rows as fit a part: the first rows of each batch, in the order of
    /// the batches. Returns how many of each. Fewer than two parts must be under way.
    ///
    /// # Errors
    /// The device fails; a row that names bytes of other rows; a row that fits no part.
    pub(super) fn submit(
        &mut self,
        waiting: &[(&Arc<JpegBatch>, &[CodedRow])],
    ) -> Result<Vec<usize>> {
        let (mut taken, mut counts) = (PartFill::default(), Vec::new());
        let mut parts = Vec::new();
        for (job, rows) in waiting {
            let count = self.add_rows(&mut taken, job, rows)?;
            counts.push(count);
            if count > 0 {
                parts.push(JpegBatchPart {
                    batch: (*job).clone(),
                    rows: rows[..count].iter().map(CodedRow::row_attempt).collect(),
                    errors: Vec::new(),
                });
            }
            if count < rows.len() {
                break;
            }
        }
        if parts.is_empty() {
            return Err(Error::device(
                "a coded JPEG is larger than the device memory of a part",
            ));
        }
        let rows = waiting.iter().zip(&counts).flat_map(|((_, r), n)| &r[..*n]);
        let rows: Vec<&CodedRow> = rows.collect();
        // Kept until the stream is drained, if this fails.
        let put = self.launch_rows(&parts, &rows);
        if put.is_err() {
            // Some of the work may be under way.
            self.decoder.stream().drain();
        }
        self.under_way.push_back(parts);
        put.map(|()| counts)
    }

    /// Adds the first rows of a batch to the part, as many as fit. Returns how many.
    ///
    /// # Errors
    /// A batch outside of pinned memory.
    fn add_rows(
        &mut self,
        taken: &mut PartFill,
        job: &JpegBatch,
        rows: &[CodedRow],
    ) -> Result<usize> {
        let (memory, bytes) = job.rows.memory();
        let memory = job.target.pinned.address_of(memory, bytes)?;
        let Some(begin) = rows.first().map(|row| row.row) else {
            return Ok(0);
        };
        let (mut count, mut covered_rows) = (0, 0);
        for row in rows {
            let covers = (row.row + 1 - begin) as usize;
            let fits = taken.rows + covers <= self.shape.lane_rows()
                && taken.tables + covers * job.places.tables <= self.shape.table_bytes()
                && row.data.end <= bytes
                && (self.decoder).add(&row.picture, memory + row.data.start as u64, taken.coded);
            if !fits {
                break;
            }
            let len = row.data.end - row.data.start;
            taken.coded = (taken.coded + len).next_multiple_of(ALIGNMENT);
            covered_rows = covers;
            count += 1;
        }
        taken.rows += covered_rows;
        taken.tables += covered_rows * job.places.tables;
        Ok(count)
    }

    fn launch_rows(&mut self, parts: &[JpegBatchPart], rows: &[&CodedRow]) -> Result<()> {
        // SAFETY: `add_rows` has checked that each row's data are in the batch's memory, which is
        // pinned (`address_of`) and kept by its batch: until `wait` returns the part, or until
        // `submit` has drained the stream.
        let pictures = unsafe { self.decoder.decode()? };
        self.launch(parts, rows, &pictures)?;
        self.decoder.end_part()
    }

    /// Makes the rows of all decoded images of the part.
    fn launch(
        &mut self,
        parts: &[JpegBatchPart],
        rows: &[&CodedRow],
        pictures: &[DecodedPicture],
    ) -> Result<()> {
        let (_, memory) = self.decoder.pixels();
        let mut descriptors = Vec::new();
        let mut tables = 0;
        let mut decoded = rows.iter().zip(pictures);
        for part in parts {
            let job = &part.batch;
            let (first, count) = part.covered_rows();
            let begin = descriptors.len();
            descriptors.resize(begin + count, other_row());
            for (coded, picture) in decoded.by_ref().take(part.rows.len()) {
                let row = coded.row as usize;
                let stride = (picture.pitch / RGB) as u32;
                let made = coded.kernel.of_lines(picture.at as u64, stride);
                check_frame(&made, row, &job.emission, job.places, memory)?;
                let within = made.tables - (row * job.places.capacity) as u64;
                descriptors[begin + row - first] = KernelRow {
                    tables: (tables + (row - first) * job.places.tables) as u64 + within,
                    ..made
                };
            }
            tables += count * job.places.tables;
        }
        let bytes: &[u8] = bytemuck::cast_slice(&descriptors);
        self.turn ^= 1;
        let written = &mut self.written[self.turn];
        let room = written.bytes_mut().get_mut(..bytes.len());
        let room = room.ok_or_else(|| {
            Error::device(format!(
                "{} rows are too many for a part of JPEGs",
                descriptors.len()
            ))
        })?;
        room.copy_from_slice(bytes);
        // SAFETY: `written` is the lane's, and is written again for the part after the next, once
        // this one was waited for (`GpuJpegDecoder::add` refuses a third); `descriptors` is used in
        // this stream alone.
        unsafe {
            let (stream, from) = (self.decoder.stream(), self.written[self.turn].as_ptr());
            stream.upload(&self.descriptors, from, bytes.len())?;
        }
        let (mut begin, mut at) = (0, 0);
        for part in parts {
            let (first, count) = part.covered_rows();
            let here = &descriptors[begin..begin + count];
            self.launch_part(&part.batch, (first, begin, at), here)?;
            begin += count;
            at += count * part.batch.places.tables;
        }
        Ok(())
    }

    /// Makes rows of one batch, from its row `first` on. Their descriptors begin with number
    /// `begin`, and their tables go to byte `at`.
    fn launch_part(
        &self,
        job: &JpegBatch,
        (first, begin, at): (usize, usize, usize),
        rows: &[KernelRow],
    ) -> Result<()> {
        let places = job.places;
        let stream = self.decoder.stream();
        let (slot, slot_bytes) = job.rows.memory();
        let end = (first + rows.len()) * places.capacity;
        let out = job
            .target
            .output
            .buffer()
            .ok_or_else(|| Error::device("the memory of a batch is missing"))?;
        let out_end = (first + rows.len()) * job.row_bytes;
        if end > slot_bytes || out_end > out.len() {
            return Err(Error::device(format!(
                "row {} is not in the batch",
                first + rows.len()
            )));
        }
        let lines = CopyRect {
            first,
            width: places.tables,
            count: rows.len(),
        };
        let to = (&self.tables, at);
        // SAFETY: the rows lie in the slot by the check, which the job keeps pinned and holds
        // until the event behind this; coded ones are not written (`CodedBatch`), and of
        // others, which may be, the copy is not read; the tables are the lane's.
        unsafe {
            stream.upload_rows(to, places.tables, slot, places.capacity, lines)?;
        }
        for event in job.target.output.pending_events() {
            stream.wait_for(event)?;
        }
        let at = LaunchAddresses {
            tables: self.tables.address(),
            pixels: self.decoder.pixels().0,
            rows: self.descriptors.address() + (begin * size_of::<KernelRow>()) as u64,
            out: out.address() + (first * job.row_bytes) as u64,
        };
        let takes_mean =
            |row: &KernelRow| row.flags & (MASKED | ELSEWHERE) == 0 && row.takes_mean();
        let passes: &[CropPass] = match rows.iter().any(takes_mean) {
            true => &[CropPass::Sums, CropPass::Rows],
            false => &[CropPass::Rows],
        };
        for pass in passes {
            // SAFETY: `check_frame` has seen that tables lie in the row's part, and pixels in the
            // memory of decoded pictures, which is the lane's (a table that was changed behind the
            // checks leads to other pixels of it, no further); the output is held by the job, large
            // enough by the check, its other rows are left alone, and who had that memory
            // before is waited for (`pending_events`); a second pass comes behind the first.
            unsafe {
                let (kernel, count) = (&job.target.kernel, rows.len() as u32);
                kernel.launch(stream, at, count, job.emission, *pass)?;
            }
        }
        Ok(())
    }
}

/// A row that this launch does not write.
fn other_row() -> KernelRow {
    KernelRow {
        flags: ELSEWHERE,
        ..KernelRow::default()
    }
}
