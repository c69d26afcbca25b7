//! Rows that the JPEG kernels flagged: the CPU decodes them again, and the crops kernel makes the
//! row.
//!
//! In the consumer, in the JPEG thread. One row at a time, since few files are damaged.

use std::sync::Arc;

use super::bounds::check_frame;
use super::context::{CudaContext, CudaStream};
use super::crop_kernel::LaunchAddresses;
use super::jpeg_lane::JpegBatch;
use super::memory::{DeviceBuffer, HostBuffer};
use crate::device::coded_rows::{CpuVerdict, RedecodedRow, RowAttempt};
use crate::device::crop_launch::{CropPass, KernelRow, MASKED};
use crate::error::{Error, Result};

/// Memory for one row. The device reads it in place.
#[derive(Debug)]
pub(super) struct RedecodeStage {
    // Drained in `drop`, before the memory that it reads is freed.
    stream: CudaStream,
    row: HostBuffer,
    written: HostBuffer,
    descriptor: DeviceBuffer,
}

impl RedecodeStage {
    /// # Errors
    /// Not enough memory.
    pub(super) fn new(context: &Arc<CudaContext>, row_bytes: usize) -> Result<Self> {
        let len = size_of::<KernelRow>();
        Ok(Self {
            stream: CudaStream::new(context)?,
            row: HostBuffer::new(context, row_bytes, "a row that is decoded again")?,
            written: HostBuffer::new(context, len, "the descriptor of a row")?,
            descriptor: DeviceBuffer::new(context, len, "the descriptor of a row")?,
        })
    }

    /// Makes a row of a batch again, and waits for it. Returns the CPU's verdict if the row's own
    /// sample failed.
    ///
    /// # Errors
    /// The device fails; a malformed row.
    pub(super) fn decode(&mut self, job: &JpegBatch, of: RowAttempt) -> Result<Option<CpuVerdict>> {
        let room = self.row.bytes_mut();
        let room = room.get_mut(..job.places.capacity);
        let room = room.ok_or_else(|| {
            Error::device(format!(
                "a row of {} bytes does not fit the memory for decoding it again",
                job.places.capacity
            ))
        })?;
        let RedecodedRow { kernel, verdict } = job.rows.decode_again(of, room)?;
        let descriptor = match kernel {
            Some(made) => {
                check_frame(&made, 0, &job.emission, job.places, job.places.capacity)?;
                made
            }
            None => KernelRow {
                flags: MASKED,
                ..KernelRow::default()
            },
        };
        let out = job
            .target
            .output
            .buffer()
            .ok_or_else(|| Error::device("the memory of a batch is missing"))?;
        let first = of.row as usize * job.row_bytes;
        if first + job.row_bytes > out.len() {
            return Err(Error::device(format!("row {} is not in its batch", of.row)));
        }
        let bytes = bytemuck::bytes_of(&descriptor);
        self.written.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        let host = self.row.as_ptr() as u64;
        let at = LaunchAddresses {
            tables: host,
            pixels: host,
            rows: self.descriptor.address(),
            out: out.address() + first as u64,
        };
        let passes: &[CropPass] = match kernel.is_some_and(|row| row.takes_mean()) {
            true => &[CropPass::Sums, CropPass::Rows],
            false => &[CropPass::Rows],
        };
        // SAFETY: `row`, `written` and `descriptor` are this stage's, and nobody writes them before
        // the wait below; pinned memory of the host has one address for both (`HostBuffer`); tables
        // and pixels lie in `row` by `check_frame`; the row of the target is this job's, whose lane
        // is over, and lies in its memory by the check.
        unsafe {
            let from = self.written.as_ptr();
            self.stream.upload(&self.descriptor, from, bytes.len())?;
            for pass in passes {
                let kernel = &job.target.kernel;
                kernel.launch(&self.stream, at, 1, job.emission, *pass)?;
            }
        }
        self.stream.record()?.wait()?;
        Ok(verdict)
    }
}

impl Drop for RedecodeStage {
    fn drop(&mut self) {
        self.stream.drain();
    }
}
