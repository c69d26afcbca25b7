//! Rows of coded JPEGs that a device takes while workers fill the batch, and their results.
//!
//! In the consumer. Pure: no device.

use std::fmt;
use std::ops::Range;

use super::crop_launch::KernelRow;
use crate::error::{Result, SampleFault};
use crate::picture::jpeg::gpu_rows::CodedPicture;

/// A batch whose rows become final one by one. While this value lives, its memory stays at its
/// address, and final rows are not written.
pub(crate) trait CodedBatch: fmt::Debug + Send + Sync {
    /// Number of rows.
    fn rows(&self) -> u32;
    /// The state of a row. A state other than pending never changes.
    fn row_state(&self, row: u32) -> CodedRowState;
    /// Address and number of bytes of all rows.
    fn memory(&self) -> (*const u8, usize);
    /// Decodes the sample of a row again, on the CPU, into `out`, which has a row's size. Offsets
    /// of the result count from the first byte of `out`.
    ///
    /// # Errors
    /// The row was malformed.
    fn decode_again(&self, row: RowAttempt, out: &mut [u8]) -> Result<RedecodedRow>;
}

/// A row, and the attempt whose sample is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowAttempt {
    pub(crate) row: u32,
    pub(crate) attempt: u32,
}

/// The state of a row.
#[derive(Debug)]
pub(crate) enum CodedRowState {
    /// A worker still fills it, or no worker has started.
    Pending,
    /// The row holds no coded JPEG.
    NotCoded,
    Coded(Box<CodedRow>),
}

/// A row that holds a coded JPEG. All its numbers were checked.
#[derive(Debug)]
pub(crate) struct CodedRow {
    pub(crate) row: u32,
    pub(crate) attempt: u32,
    /// Range of its coded data in the bytes of the batch.
    pub(crate) data: Range<usize>,
    pub(crate) picture: CodedPicture,
    /// The kernel's row, still without the address of its pixels.
    pub(crate) kernel: KernelRow,
}

impl CodedRow {
    pub(crate) fn row_attempt(&self) -> RowAttempt {
        RowAttempt {
            row: self.row,
            attempt: self.attempt,
        }
    }
}

/// The CPU's result for a row that a kernel flagged.
#[derive(Debug)]
pub(crate) struct RedecodedRow {
    /// Offsets count from the first byte of the filled memory. None: no sample gave pixels.
    pub(crate) kernel: Option<KernelRow>,
    pub(crate) verdict: Option<CpuVerdict>,
}

/// The CPU's verdict on a row whose own sample failed.
#[derive(Debug)]
pub(crate) struct CpuVerdict {
    pub(crate) row: u32,
    pub(crate) fault: SampleFault,
    /// The attempt that filled the row. None: all failed.
    pub(crate) attempt: Option<u32>,
}

/// The result of a device's decoding for one batch.
#[derive(Debug, Default)]
pub(crate) struct DecodedBatch {
    /// The rows that held coded JPEGs, in order.
    pub(crate) rows: Vec<u32>,
    /// Rows that the CPU decoded again and whose own sample failed.
    pub(crate) verdicts: Vec<CpuVerdict>,
}
