//! A batch: a view of a slot of the ring, or of memory of a device, which it owns until
//! it is dropped.
//!
//! In the consumer. Copies no pixels, but to give the host what lies on a device.

use std::path::PathBuf;

use nix::unistd::{Pid, getpid};

use crate::decode_plan::row_descriptor::RowDescriptor;
use crate::device::DeviceRows;
use crate::error::{Error, Result, SampleFault};
pub use crate::jobs::images::pixel_views::{BatchPixels, DensePixels, PackedPixels, PixelElement};
use crate::jobs::images::pixel_views::{cast, no_tensor};
use crate::order::{EpochMark, RowStatus};
use crate::pool::buffers::{BufferPool, PooledBuffer};
use crate::pool::filled_batch::RowMemory;
use crate::pool::ring::slots::HeldSlot;
use crate::recipe::{DataType, MemoryLayout};

/// Labels of a batch, one for each row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BatchLabels {
    /// The data set has none, and no operation of the recipe gives any.
    None,
    /// A class each, the data set's or what an operation drew; -1 for a masked row.
    Classes(Vec<i64>),
    /// `width` numbers each, row after row; zero for a masked row.
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
/// tensor, [`Pixels::Dense`]. A recipe without resize and crop, such as
/// [`Recipe::full`](crate::Recipe::full), leaves each row its picture's own size:
/// [`Pixels::PickleBytes`]. [`Batch::pixels`] gives either, [`Batch::row`] one row of both.
///
/// A row without pixels is masked: a sample that failed under
/// [`OnError::Skip`](crate::OnError::Skip), and the padding of
/// [`Tail::Pad`](crate::Tail::Pad). Its pixels are zero and its label is -1, or a
/// vector of zeros. [`Batch::good_rows`] walks the others.
///
/// The pixels stay where the workers wrote them; the slot is free for the next
/// batch when this one is dropped. Those of a batch on a device
/// ([`LoaderBuilder::device`](crate::LoaderBuilder::device)) are read there, by
/// [`Batch::on_device`], or behind [`Batch::to_host`]. Dropping it in any thread is fine. In a
/// forked copy of the process the pixels cannot be read, and dropping does nothing.
#[derive(Debug)]
pub struct Batch {
    pub(crate) storage: BatchStorage,
    pub(crate) owner: Pid,
    /// Where it begins.
    pub(crate) at: EpochMark,
    pub(crate) number: u64,
    pub(crate) extent: RowsExtent,
    pub(crate) dtype: DataType,
    pub(crate) layout: MemoryLayout,
    pub(crate) channels: usize,
    pub(crate) ids: Vec<u64>,
    pub(crate) status: Vec<RowStatus>,
    pub(crate) repeated: Vec<bool>,
    pub(crate) labels: BatchLabels,
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
pub(crate) enum BatchStorage {
    Slot(HeldSlot),
    Own(PooledBuffer),
    Device(DeviceRows),
}

impl BatchStorage {
    /// All of it, which may be more than the batch takes; none on a device.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Slot(slot) => Some(slot.bytes()),
            Self::Own(buffer) => Some(buffer.bytes()),
            Self::Device(_) => None,
        }
    }

    /// As [`BatchStorage::bytes`], to be written; empty on a device.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Slot(slot) => slot.bytes_mut(),
            Self::Own(buffer) => buffer.bytes_mut(),
            Self::Device(_) => &mut [],
        }
    }
}

impl From<RowMemory> for BatchStorage {
    fn from(rows: RowMemory) -> Self {
        match rows {
            RowMemory::Slot(slot) => Self::Slot(slot),
            RowMemory::Own(buffer) => Self::Own(buffer),
        }
    }
}

impl Batch {
    /// Epoch that the batch belongs to.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.at.epoch
    }

    /// Number of the batch within its epoch, on this rank. Where the epoch began with other
    /// ranks or another batch size: the number of whole batches of now in front of it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Samples of its epoch, of all ranks, that are in front of the batches that the ranks have
    /// now: [`State::samples`](crate::State) of a run that stands before it.
    #[must_use]
    pub fn samples_before(&self) -> u64 {
        self.at.samples
    }

    /// Rows, masked ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.status.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pixels of all rows: one tensor, or a table with rows of their own sizes.
    ///
    /// # Errors
    /// On a device ([`Batch::on_device`] has those, [`Batch::to_host`] a copy), and in
    /// a forked copy of the process that made the loader.
    pub fn pixels(&self) -> Result<BatchPixels<'_>> {
        let bytes = self.host_bytes()?;
        let (dtype, layout) = (self.dtype, self.layout);
        Ok(match &self.extent {
            RowsExtent::Equal { .. } => {
                let shape = self.shape()?;
                let used = shape.iter().product::<usize>() * dtype.size();
                BatchPixels::Dense(DensePixels {
                    bytes: &bytes[..used],
                    shape,
                    dtype,
                    layout,
                })
            }
            RowsExtent::Own { table, bytes: used } => BatchPixels::Packed(PackedPixels {
                bytes: &bytes[..*used],
                table,
                dtype,
                layout,
            }),
        })
    }

    /// One row.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn row(&self, index: usize) -> Result<BatchRow<'_>> {
        if index < self.len() {
            return Ok(BatchRow { batch: self, index });
        }
        Err(Error::config(format!(
            "row {index} does not exist in a batch of {}",
            self.len()
        )))
    }

    /// Every row, masked ones included.
    pub fn rows(&self) -> impl Iterator<Item = BatchRow<'_>> {
        (0..self.len()).map(|index| BatchRow { batch: self, index })
    }

    /// The rows that hold pixels of a sample: all but masked ones.
    pub fn good_rows(&self) -> impl Iterator<Item = BatchRow<'_>> {
        self.rows().filter(|row| !row.status().is_masked())
    }

    /// Length of each axis, in the order of [`Batch::layout`]: for a batch on a device
    /// too.
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
            RowsExtent::Own { .. } => Err(no_tensor()),
        }
    }

    /// Where each row lies in [`PackedPixels::bytes`], or in a device's copy of them;
    /// none when all rows have one size.
    #[must_use]
    pub fn descriptors(&self) -> Option<&[RowDescriptor]> {
        match &self.extent {
            RowsExtent::Equal { .. } => None,
            RowsExtent::Own { table, .. } => Some(table),
        }
    }

    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    #[must_use]
    pub fn layout(&self) -> MemoryLayout {
        self.layout
    }

    /// Samples of the rows, as numbers of the index; 0 for padding. Of a
    /// substituted row the sample whose pixels stand there.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// What each row is. Rows that are padding or failed hold zeros.
    #[must_use]
    pub fn status(&self) -> &[RowStatus] {
        &self.status
    }

    /// Which rows are repeats that fill this rank up: those of status `DuplicateImages`,
    /// and those whose sample gave no pixels, so that they failed or another
    /// sample stands there. The samples that they are for have rows elsewhere, so
    /// an evaluation leaves them out.
    #[must_use]
    pub fn repeated(&self) -> &[bool] {
        &self.repeated
    }

    /// One label for each row, masked ones included.
    #[must_use]
    pub fn labels(&self) -> &BatchLabels {
        &self.labels
    }

    /// The samples that gave no pixels, with paths and reasons: of rows that
    /// are masked, and of rows that another sample fills.
    #[must_use]
    pub fn faults(&self) -> &[RowFault] {
        &self.faults
    }

    /// All bytes that this process can read, which may be more than the batch takes.
    fn host_bytes(&self) -> Result<&[u8]> {
        if getpid() != self.owner {
            return Err(Error::worker(
                "a batch cannot be read in a forked copy of the process that made it: its slot \
                 may be in use again",
            ));
        }
        self.storage.bytes().ok_or_else(|| {
            Error::config(
                "the batch is in the memory of a device: use on_device, or to_host for a copy",
            )
        })
    }

    /// The rows in memory of the device, where the loader has one
    /// ([`LoaderBuilder::device`](crate::LoaderBuilder::device)): rows of one size as one
    /// dense tensor of [`Batch::shape`], others as [`PackedPixels::bytes`] has them.
    #[must_use]
    pub fn on_device(&self) -> Option<&DeviceRows> {
        match &self.storage {
            BatchStorage::Device(rows) => Some(rows),
            BatchStorage::Slot(_) | BatchStorage::Own(_) => None,
        }
    }

    /// The address of the first byte of [`Batch::pixels`], for who hands the memory to
    /// another library: valid, writable and untouched by anybody else until the batch is
    /// dropped.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn pixels_mut(&mut self) -> Result<*mut u8> {
        self.host_bytes()?;
        Ok(self.storage.bytes_mut().as_mut_ptr())
    }

    /// Whether the pixels lie in a slot of the ring, which workers wait for.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        matches!(self.storage, BatchStorage::Slot(_))
    }

    /// The same batch in memory of its own; its slot is free again.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn detach(mut self) -> Result<Self> {
        if let BatchStorage::Slot(_) = &self.storage {
            let bytes = self.pixels()?.bytes();
            let mut buffer = BufferPool::default().take(bytes.len());
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            self.storage = BatchStorage::Own(buffer);
        }
        Ok(self)
    }

    /// The same batch in memory of the host. Waits for the device, where it is on one,
    /// and gives its memory there back.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn to_host(mut self) -> Result<Self> {
        if let BatchStorage::Device(rows) = &self.storage {
            let bytes = rows.to_host()?;
            let mut buffer = BufferPool::default().take(bytes.len());
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
            self.storage = BatchStorage::Own(buffer);
        }
        Ok(self)
    }
}

/// One row of a batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchRow<'a> {
    batch: &'a Batch,
    /// Below the number of rows.
    index: usize,
}

impl<'a> BatchRow<'a> {
    /// Number of the row within its batch.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// As [`Batch::ids`].
    #[must_use]
    pub fn id(&self) -> u64 {
        self.batch.ids()[self.index]
    }

    /// As [`Batch::status`].
    #[must_use]
    pub fn status(&self) -> RowStatus {
        self.batch.status()[self.index]
    }

    /// As [`Batch::repeated`].
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.batch.repeated()[self.index]
    }

    /// Height and width, pixels: of the picture as it is to be looked at. A row that
    /// failed has the size that its picture had when headers were read; padding, and a
    /// picture without a readable header, have 0 x 0.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        match &self.batch.extent {
            RowsExtent::Equal { height, width, .. } => (*height, *width),
            RowsExtent::Own { table, .. } => {
                let at = &table[self.index];
                (at.height as usize, at.width as usize)
            }
        }
    }

    /// Length of each axis, in the order of [`Batch::layout`] without its sample axis:
    /// channels x height x width or height x width x channels. Always dense.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        let (height, width) = self.size();
        let channels = self.batch.channels;
        self.batch.layout.row_shape(channels, height, width)
    }

    /// The elements of the row.
    ///
    /// # Errors
    /// As [`Batch::pixels`], and when the batch holds another type than `T`.
    pub fn as_slice<T: PixelElement>(&self) -> Result<&'a [T]> {
        cast(self.batch.dtype, self.bytes()?)
    }

    /// The bytes of its elements, in the machine's byte order; aligned for the dtype,
    /// and to 64 bytes where rows have sizes of their own.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn bytes(&self) -> Result<&'a [u8]> {
        let all = self.batch.host_bytes()?;
        Ok(match &self.batch.extent {
            RowsExtent::Equal { height, width, .. } => {
                let len = self.batch.channels * height * width * self.batch.dtype.size();
                &all[self.index * len..(self.index + 1) * len]
            }
            RowsExtent::Own { table, .. } => {
                let at = &table[self.index];
                let start = at.offset as usize;
                &all[start..start + at.bytes as usize]
            }
        })
    }
}
