//! A batch: a view of a slot of the ring, which it owns until it is dropped.
//!
//! In the consumer. Copies no pixels.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use half::f16;
use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result, SampleFault};
use crate::plan::RowStatus;
use crate::recipe::{Dtype, MemoryLayout};
use crate::ring::slots::HeldSlot;

/// Labels of a batch, one for each row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Labels {
    /// The data set has none.
    None,
    /// A class each; -1 for a padded row.
    Classes(Vec<i64>),
    /// `width` numbers each, row after row; zero for a padded row.
    Vectors { width: usize, values: Vec<f32> },
}

/// A sample that gave no pixels, and what stands in its row instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    pub row: usize,
    /// The sample that the row was for.
    pub id: u64,
    /// Its path.
    pub path: PathBuf,
    /// Why it gave no pixels.
    pub fault: SampleFault,
    /// The sample whose pixels stand in the row; none = the row is masked.
    pub substitute: Option<u64>,
}

/// Rows of pixels with their labels, ids and status.
///
/// The pixels stay where the workers wrote them; the slot is free for the next
/// batch when this one is dropped. Dropping it in any thread is fine. In a
/// forked copy of the process the pixels cannot be read, and dropping does nothing.
#[derive(Debug)]
pub struct Batch {
    pub(crate) storage: Storage,
    pub(crate) owner: Pid,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    pub(crate) shape: [usize; 4],
    pub(crate) dtype: Dtype,
    pub(crate) layout: MemoryLayout,
    pub(crate) ids: Vec<u64>,
    pub(crate) status: Vec<RowStatus>,
    pub(crate) labels: Labels,
    pub(crate) faults: Vec<RowFault>,
}

/// Where the pixels are.
#[derive(Debug)]
pub(crate) enum Storage {
    Slot(HeldSlot),
    Own(PooledBuffer),
}

/// Buffers of the in-process loader, reused from batch to batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct BufferPool(Arc<Mutex<Vec<Vec<u64>>>>);

/// A buffer that goes back to its pool. Words, so that every dtype is aligned.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    words: Vec<u64>,
    pool: BufferPool,
}

impl BufferPool {
    pub(crate) fn take(&self, bytes: usize) -> PooledBuffer {
        let mut words = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default();
        words.resize(bytes.div_ceil(8), 0);
        PooledBuffer {
            words,
            pool: self.clone(),
        }
    }
}

impl PooledBuffer {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.pool
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(words);
    }
}

impl Batch {
    /// Epoch that the batch belongs to.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Number of the batch within its epoch, on this rank.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Rows, padding included.
    pub fn len(&self) -> usize {
        self.shape[0]
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of each axis, in the order of [`Batch::layout`].
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Distance between neighbours along each axis, in elements: always dense.
    pub fn strides(&self) -> [usize; 4] {
        let s = self.shape;
        [s[1] * s[2] * s[3], s[2] * s[3], s[3], 1]
    }

    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    pub fn layout(&self) -> MemoryLayout {
        self.layout
    }

    /// Samples of the rows, as numbers of the index; 0 for padding. Of a
    /// substituted row the sample whose pixels stand there.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// What each row is. Rows that are padding or failed hold zeros.
    pub fn status(&self) -> &[RowStatus] {
        &self.status
    }

    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The samples that gave no pixels, with paths and reasons: of rows that
    /// are masked, and of rows that another sample fills.
    pub fn faults(&self) -> &[RowFault] {
        &self.faults
    }

    /// The elements' bytes, in the machine's byte order; aligned for the dtype.
    ///
    /// # Errors
    /// In a forked copy of the process that made the loader.
    pub fn bytes(&self) -> Result<&[u8]> {
        if getpid() != self.owner {
            return Err(Error::worker(
                "a batch cannot be read in a forked copy of the process that made it: its slot \
                 may be in use again",
            ));
        }
        let bytes = match &self.storage {
            Storage::Slot(slot) => slot.bytes(),
            Storage::Own(buffer) => bytemuck::cast_slice(&buffer.words),
        };
        let used = self.shape.iter().product::<usize>() * self.dtype.size();
        Ok(&bytes[..used])
    }

    /// The bytes of one row.
    ///
    /// # Errors
    /// As [`Batch::bytes`], and when there is no such row.
    pub fn row_bytes(&self, row: usize) -> Result<&[u8]> {
        let all = self.bytes()?;
        let len = all.len().checked_div(self.len()).unwrap_or(0);
        if row >= self.len() {
            return Err(Error::config(format!(
                "row {row} does not exist in a batch of {}",
                self.len()
            )));
        }
        Ok(&all[row * len..(row + 1) * len])
    }

    /// The elements of an f32 batch.
    ///
    /// # Errors
    /// As [`Batch::bytes`], and when the batch has another dtype.
    pub fn as_f32(&self) -> Result<&[f32]> {
        self.elements(Dtype::F32)
    }

    /// The elements of an f16 batch; errors as [`Batch::as_f32`].
    pub fn as_f16(&self) -> Result<&[f16]> {
        self.elements(Dtype::F16)
    }

    /// The elements of a u8 batch; errors as [`Batch::as_f32`].
    pub fn as_u8(&self) -> Result<&[u8]> {
        self.elements(Dtype::U8)
    }

    fn elements<T: bytemuck::AnyBitPattern>(&self, dtype: Dtype) -> Result<&[T]> {
        if self.dtype != dtype {
            return Err(Error::config(format!(
                "the batch holds {}, not {dtype} (see Recipe::with_dtype)",
                self.dtype
            )));
        }
        bytemuck::try_cast_slice(self.bytes()?)
            .map_err(|e| Error::protocol(format!("the slot is not aligned for {dtype}: {e}")))
    }
}
