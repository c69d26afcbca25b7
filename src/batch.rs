//! A batch: a view of a slot of the ring, or of memory of a device, which it owns until
//! it is dropped.
//!
//! In the consumer. Copies no pixels, but to give the host what lies on a device.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use half::{bf16, f16};
use nix::unistd::{Pid, getpid};

use crate::device::DeviceRows;
use crate::error::{Error, Result, SampleFault};
use crate::packing::RowDescriptor;
use crate::plan::RowStatus;
use crate::recipe::{Dtype, MemoryLayout};
use crate::ring::slots::HeldSlot;

/// Labels of a batch, one for each row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Labels {
    /// The data set has none, and no operation of the recipe gives any.
    None,
    /// A class each, the data set's or what an operation drew; -1 for a padded row.
    Classes(Vec<i64>),
    /// `width` numbers each, row after row; zero for a padded row, and where the
    /// recipe mixes batches (`Recipe::mixing`) for a failed one.
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
/// Most recipes end in one size. Their rows lie one behind the other and are one
/// tensor: [`Batch::shape`], [`Batch::as_f32`]. A recipe without resize and crop,
/// such as [`Recipe::full`](crate::Recipe::full), leaves each row its picture's
/// own size: [`Batch::row_shape`], [`Batch::row_as_u8`], or [`Batch::packed`] for
/// all at once.
///
/// The pixels stay where the workers wrote them; the slot is free for the next
/// batch when this one is dropped. Those of a batch on a device
/// ([`LoaderBuilder::device`](crate::LoaderBuilder::device)) are read there, by
/// [`Batch::on_device`], or behind [`Batch::to_host`]. Dropping it in any thread is fine. In a
/// forked copy of the process the pixels cannot be read, and dropping does nothing.
#[derive(Debug)]
pub struct Batch {
    pub(crate) storage: Storage,
    pub(crate) owner: Pid,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    pub(crate) extent: RowsExtent,
    pub(crate) dtype: Dtype,
    pub(crate) layout: MemoryLayout,
    pub(crate) channels: usize,
    pub(crate) ids: Vec<u64>,
    pub(crate) status: Vec<RowStatus>,
    pub(crate) repeated: Vec<bool>,
    pub(crate) labels: Labels,
    pub(crate) faults: Vec<RowFault>,
}

/// How large the rows are.
#[derive(Debug)]
pub(crate) enum RowsExtent {
    /// All of one size, pixels, one behind the other.
    Equal {
        rows: usize,
        height: usize,
        width: usize,
    },
    /// Each of its own size, behind the table that is repeated here: what lies
    /// in shared memory, workers could have changed.
    Own {
        table: Vec<RowDescriptor>,
        /// Bytes of table and rows.
        bytes: usize,
    },
}

/// Where the pixels are.
#[derive(Debug)]
pub(crate) enum Storage {
    Slot(HeldSlot),
    Own(PooledBuffer),
    Device(DeviceRows),
}

impl Storage {
    /// All of it, which may be more than the batch takes; none on a device.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Slot(slot) => Some(slot.bytes()),
            Self::Own(buffer) => Some(bytemuck::cast_slice(&buffer.words)),
            Self::Device(_) => None,
        }
    }

    /// As [`Storage::bytes`], to be written; empty on a device.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Slot(slot) => slot.bytes_mut(),
            Self::Own(buffer) => buffer.bytes_mut(),
            Self::Device(_) => &mut [],
        }
    }
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
        self.status.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of each axis, in the order of [`Batch::layout`].
    ///
    /// # Errors
    /// When rows have sizes of their own, equal or not.
    pub fn shape(&self) -> Result<[usize; 4]> {
        match self.extent {
            RowsExtent::Equal {
                rows,
                height,
                width,
            } => {
                let [a, b, c] = self.layout.row_shape(self.channels, height, width);
                Ok([rows, a, b, c])
            }
            RowsExtent::Own { .. } => Err(Error::config(
                "rows of this batch have sizes of their own, so they are no one tensor: take \
                 row_shape and row_bytes, or give the recipe a resize or a crop",
            )),
        }
    }

    /// Distance between neighbours along each axis, in elements: always dense.
    ///
    /// # Errors
    /// As [`Batch::shape`].
    pub fn strides(&self) -> Result<[usize; 4]> {
        let s = self.shape()?;
        Ok([s[1] * s[2] * s[3], s[2] * s[3], s[3], 1])
    }

    /// Height and width of a row, pixels: of the picture as it is to be looked
    /// at. A row that failed has the size that its picture had when headers were
    /// read; padding, and a picture without a readable header, have 0 x 0.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn row_size(&self, row: usize) -> Result<(usize, usize)> {
        self.check_row(row)?;
        Ok(match &self.extent {
            RowsExtent::Equal { height, width, .. } => (*height, *width),
            RowsExtent::Own { table, .. } => {
                (table[row].height as usize, table[row].width as usize)
            }
        })
    }

    /// Length of each axis of a row, in the order of [`Batch::layout`] without
    /// its sample axis: channels x height x width or height x width x channels. Always dense.
    ///
    /// # Errors
    /// As [`Batch::row_size`].
    pub fn row_shape(&self, row: usize) -> Result<[usize; 3]> {
        let (height, width) = self.row_size(row)?;
        Ok(self.layout.row_shape(self.channels, height, width))
    }

    /// Where each row lies in [`Batch::packed`]; none when all rows have one size.
    pub fn descriptors(&self) -> Option<&[RowDescriptor]> {
        match &self.extent {
            RowsExtent::Equal { .. } => None,
            RowsExtent::Own { table, .. } => Some(table),
        }
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

    /// Which rows are repeats that fill this rank up: those of status `Repeated`,
    /// and those whose sample gave no pixels, so that they failed or another
    /// sample stands there. The samples that they are for have rows elsewhere, so
    /// an evaluation leaves them out.
    pub fn repeated(&self) -> &[bool] {
        &self.repeated
    }

    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The samples that gave no pixels, with paths and reasons: of rows that
    /// are masked, and of rows that another sample fills.
    pub fn faults(&self) -> &[RowFault] {
        &self.faults
    }

    /// The elements' bytes of all rows, in the machine's byte order; aligned for
    /// the dtype.
    ///
    /// # Errors
    /// In a forked copy of the process that made the loader, on a device, and when
    /// rows have sizes of their own ([`Batch::packed`] has those).
    pub fn bytes(&self) -> Result<&[u8]> {
        let used = self.shape()?.iter().product::<usize>() * self.dtype.size();
        Ok(&self.storage()?[..used])
    }

    /// Rows of their own sizes in one piece: a [`RowDescriptor`] for each row of
    /// a full batch, then the rows, each at the offset that its descriptor says.
    /// What lies between rows means nothing.
    ///
    /// # Errors
    /// In a forked copy of the process that made the loader, on a device, and when all
    /// rows have one size ([`Batch::bytes`] has those).
    pub fn packed(&self) -> Result<&[u8]> {
        match &self.extent {
            RowsExtent::Own { bytes, .. } => Ok(&self.storage()?[..*bytes]),
            RowsExtent::Equal { .. } => Err(Error::config(
                "rows of this batch have one size and no table in front of them: take bytes",
            )),
        }
    }

    fn storage(&self) -> Result<&[u8]> {
        if getpid() != self.owner {
            return Err(Error::worker(
                "a batch cannot be read in a forked copy of the process that made it: its slot \
                 may be in use again",
            ));
        }
        self.storage.bytes().ok_or_else(|| {
            Error::config(
                "the batch is in memory of a device: take on_device, or to_host for a copy",
            )
        })
    }

    /// The rows in memory of the device, where the loader has one
    /// ([`LoaderBuilder::device`](crate::LoaderBuilder::device)): rows of one size as one
    /// dense tensor of [`Batch::shape`], others as [`Batch::packed`] has them.
    pub fn on_device(&self) -> Option<&DeviceRows> {
        match &self.storage {
            Storage::Device(rows) => Some(rows),
            Storage::Slot(_) | Storage::Own(_) => None,
        }
    }

    /// The same batch in memory of the host. Waits for the device, where it is on one,
    /// and gives its memory there back.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn to_host(mut self) -> Result<Self> {
        if let Storage::Device(rows) = &self.storage {
            let bytes = rows.to_host()?;
            let mut buffer = BufferPool::default().take(bytes.len());
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
            self.storage = Storage::Own(buffer);
        }
        Ok(self)
    }

    fn check_row(&self, row: usize) -> Result<()> {
        if row < self.len() {
            return Ok(());
        }
        Err(Error::config(format!(
            "row {row} does not exist in a batch of {}",
            self.len()
        )))
    }

    /// The elements' bytes of one row, in the machine's byte order; aligned for
    /// the dtype, and to 64 bytes within [`Batch::packed`].
    ///
    /// # Errors
    /// In a forked copy of the process that made the loader, on a device, and when there
    /// is no such row.
    pub fn row_bytes(&self, row: usize) -> Result<&[u8]> {
        self.check_row(row)?;
        let all = self.storage()?;
        Ok(match &self.extent {
            RowsExtent::Equal { height, width, .. } => {
                let len = self.channels * height * width * self.dtype.size();
                &all[row * len..(row + 1) * len]
            }
            RowsExtent::Own { table, .. } => {
                let start = table[row].offset as usize;
                &all[start..start + table[row].bytes as usize]
            }
        })
    }

    /// The elements of an f32 batch.
    ///
    /// # Errors
    /// As [`Batch::bytes`], and when the batch has another dtype.
    pub fn as_f32(&self) -> Result<&[f32]> {
        self.cast(Dtype::F32, || self.bytes())
    }

    /// The elements of an f16 batch; errors as [`Batch::as_f32`].
    pub fn as_f16(&self) -> Result<&[f16]> {
        self.cast(Dtype::F16, || self.bytes())
    }

    /// The elements of a bf16 batch; errors as [`Batch::as_f32`].
    pub fn as_bf16(&self) -> Result<&[bf16]> {
        self.cast(Dtype::Bf16, || self.bytes())
    }

    /// The elements of a u8 batch; errors as [`Batch::as_f32`].
    pub fn as_u8(&self) -> Result<&[u8]> {
        self.cast(Dtype::U8, || self.bytes())
    }

    /// The elements of one row of an f32 batch.
    ///
    /// # Errors
    /// As [`Batch::row_bytes`], and when the batch has another dtype.
    pub fn row_as_f32(&self, row: usize) -> Result<&[f32]> {
        self.cast(Dtype::F32, || self.row_bytes(row))
    }

    /// The elements of one row of an f16 batch; errors as [`Batch::row_as_f32`].
    pub fn row_as_f16(&self, row: usize) -> Result<&[f16]> {
        self.cast(Dtype::F16, || self.row_bytes(row))
    }

    /// The elements of one row of a bf16 batch; errors as [`Batch::row_as_f32`].
    pub fn row_as_bf16(&self, row: usize) -> Result<&[bf16]> {
        self.cast(Dtype::Bf16, || self.row_bytes(row))
    }

    /// The elements of one row of a u8 batch; errors as [`Batch::row_as_f32`].
    pub fn row_as_u8(&self, row: usize) -> Result<&[u8]> {
        self.cast(Dtype::U8, || self.row_bytes(row))
    }

    fn cast<'a, T: bytemuck::AnyBitPattern>(
        &self,
        dtype: Dtype,
        bytes: impl FnOnce() -> Result<&'a [u8]>,
    ) -> Result<&'a [T]> {
        if self.dtype != dtype {
            return Err(Error::config(format!(
                "the batch holds {}, not {dtype} (see Recipe::with_dtype)",
                self.dtype
            )));
        }
        bytemuck::try_cast_slice(bytes()?)
            .map_err(|e| Error::protocol(format!("the slot is not aligned for {dtype}: {e}")))
    }
}
