//! Rows of coded JPEGs, as a device takes them while workers fill their batch, and what becomes of
//! them.
//!
//! In the consumer. Pure: no device.

use std::fmt;
use std::ops::Range;

use super::crop_launch::KernelRow;
use crate::error::{Result, SampleFault};
use crate::picture::jpeg::gpu_rows::CodedPicture;

/// A batch whose rows come one by one. Where it lies stays, and of rows that have come nothing is
/// written, as long as this lives.
pub(crate) trait CodedBatch: fmt::Debug + Send + Sync {
    /// How many rows it has.
    fn rows(&self) -> u32;
    /// What a row is, once it has come. It stays that.
    fn row_state(&self, row: u32) -> CodedRowState;
    /// Where all rows lie: the address, and how many bytes.
    fn memory(&self) -> (*const u8, usize);
    /// Decodes the sample of a row again, by the CPU, to memory of a row's size. The first byte of
    /// that is where the row's places count from.
    ///
    /// # Errors
    /// What was written is no row.
    fn decode_again(&self, row: RowAttempt, out: &mut [u8]) -> Result<RedecodedRow>;
}

/// A row, and the attempt whose sample stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowAttempt {
    pub(crate) row: u32,
    pub(crate) attempt: u32,
}

/// What is seen of a row.
#[derive(Debug)]
pub(crate) enum CodedRowState {
    /// Somebody is at it, or nobody yet.
    Pending,
    /// No coded picture.
    NotCoded,
    Coded(Box<CodedRow>),
}

/// A row that holds a coded picture. Every number of it was checked.
#[derive(Debug)]
pub(crate) struct CodedRow {
    pub(crate) row: u32,
    pub(crate) attempt: u32,
    /// Where its coded data lie in the batch's bytes.
    pub(crate) data: Range<usize>,
    pub(crate) picture: CodedPicture,
    /// The row, but for where its pixels are.
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

/// What the CPU made of a row that a kernel flagged.
#[derive(Debug)]
pub(crate) struct RedecodedRow {
    /// Places are bytes behind the first of the memory that was filled; none = no sample gave
    /// pixels.
    pub(crate) kernel: Option<KernelRow>,
    pub(crate) verdict: Option<CpuVerdict>,
}

/// The CPU's verdict on a row, where its sample gave nothing.
#[derive(Debug)]
pub(crate) struct CpuVerdict {
    pub(crate) row: u32,
    pub(crate) fault: SampleFault,
    /// The attempt that filled the row; none = it failed.
    pub(crate) attempt: Option<u32>,
}

/// What a device has made of a batch.
#[derive(Debug, Default)]
pub(crate) struct DecodedBatch {
    /// The rows that were coded pictures, in their order.
    pub(crate) rows: Vec<u32>,
    /// Of those that the CPU decoded again and that are not what they seemed.
    pub(crate) verdicts: Vec<CpuVerdict>,
}
