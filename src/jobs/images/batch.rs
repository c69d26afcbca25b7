//! A batch: a view of a ring slot or of device memory, which it owns until it is dropped.
//!
//! In the consumer. Copies no pixels, except from a device to the host on request.

use std::path::PathBuf;
use std::sync::Arc;

use nix::unistd::{Pid, getpid};

use crate::data::columns::{BatchColumns, ColumnValues};
use crate::decode_plan::row_descriptor::RowDescriptor;
use crate::device::DeviceRows;
use crate::error::{Error, Result, SampleFault};
pub use crate::jobs::images::captions::BatchCaptions;
use crate::jobs::images::crop_extents::{CropExtents, several_crops};
use crate::jobs::images::objects::BatchObjects;
pub use crate::jobs::images::patch_rows::BatchPatches;
pub use crate::jobs::images::pixel_views::{BatchPixels, DensePixels, PackedPixels, PixelElement};
use crate::jobs::images::pixel_views::{cast, no_pixels, no_tensor, rows_of_patches};
use crate::jobs::images::raster_extent::BatchRaster;
pub use crate::jobs::images::size_condition::SizeCondition;
use crate::jobs::raster_rule::NamedRaster;
use crate::order::{EpochMark, RowStatus};
use crate::pool::buffers::{BufferPool, PooledBuffer};
use crate::pool::filled_batch::RowMemory;
use crate::pool::ring::slots::HeldSlot;
use crate::recipe::{DataType, MemoryLayout};

/// Labels of a batch, one per row.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BatchLabels {
    /// The data set has no labels, and no operation of the recipe draws any.
    None,
    /// A class per row, from the data set or drawn by an operation. -1 for a masked row.
    Classes(Vec<i64>),
    /// `width` numbers per row, row after row. Zeros for a masked row.
    Vectors { width: usize, values: Vec<f32> },
}

/// A sample that could not be used, and what its row contains instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFault {
    pub row: usize,
    /// Id of the sample that was planned for the row.
    pub id: u64,
    /// Its path.
    pub path: PathBuf,
    /// Why it could not be used.
    pub fault: SampleFault,
    /// The sample whose pixels are in the row. None: the row is masked.
    pub substitute: Option<u64>,
}

/// Rows of pixels with their labels, ids and status.
///
/// With most recipes all rows have one size. They follow each other and form one tensor,
/// [`BatchPixels::Dense`]. A recipe without resize and crop, such as
/// [`Recipe::full`](crate::Recipe::full), keeps each image's own size: [`BatchPixels::Packed`].
/// [`Batch::pixels`] returns either, and [`Batch::row`] one row of both.
///
/// If the recipe has [`crops`](crate::Recipe::crops), each crop is a tensor of its own:
/// [`Batch::crop`]. [`Batch::geometry`] returns where it lies in its image.
///
/// A row without pixels is masked: a failed sample under [`OnError::Skip`](crate::OnError::Skip),
/// or the padding of [`EpochTail::Pad`](crate::EpochTail::Pad). Its pixels are zero, and its label
/// is -1 or a vector of zeros. [`Batch::good_rows`] iterates over the others.
///
/// The pixels stay where the workers wrote them. Dropping the batch frees its slot for the next
/// batch. Pixels on a device ([`LoaderBuilder::device`](crate::LoaderBuilder::device)) are read
/// there through [`Batch::on_device`], or after [`Batch::to_host`]. A batch may be dropped in any
/// thread. In a forked copy of the process the pixels cannot be read, and dropping does nothing.
#[derive(Debug)]
pub struct Batch {
    pub(crate) storage: BatchStorage,
    pub(crate) owner: Pid,
    /// The position of the batch.
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
    pub(crate) columns: BatchColumns,
    pub(crate) captions: Option<BatchCaptions>,
    /// The rasters of the rows, masks among them, in the order of `named`.
    pub(crate) rasters: Vec<BatchRaster>,
    /// Their names and rules.
    pub(crate) named: Arc<[NamedRaster]>,
    /// If images have objects.
    pub(crate) objects: Option<BatchObjects>,
    /// If images are cropped to their buckets.
    pub(crate) size_conditions: Option<Vec<SizeCondition>>,
}

/// The sizes of the rows.
#[derive(Debug)]
pub(crate) enum RowsExtent {
    /// All rows have one size, in pixels, and follow each other.
    Equal {
        rows: usize,
        height: usize,
        width: usize,
    },
    /// Each sample has several crops.
    Crops(CropExtents),
    /// Each row has its own size. This is a copy of the table in the slot, since workers could
    /// change what is in shared memory.
    Own {
        table: Vec<RowDescriptor>,
        /// Bytes of table and rows.
        bytes: usize,
    },
    /// Each row has patches.
    Patches(BatchPatches),
    /// The run reads no image.
    NoPixels,
}

/// The memory of the pixels.
#[derive(Debug)]
pub(crate) enum BatchStorage {
    Slot(HeldSlot),
    Own(PooledBuffer),
    Device(DeviceRows),
}

impl BatchStorage {
    /// All bytes, perhaps more than the batch needs. None on a device.
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Slot(slot) => Some(slot.bytes()),
            Self::Own(buffer) => Some(buffer.bytes()),
            Self::Device(_) => None,
        }
    }

    /// Like [`BatchStorage::bytes`], but writable. Empty on a device.
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
    /// The epoch of the batch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.at.epoch
    }

    /// Number of the batch within its epoch, on this rank. If the epoch began with other ranks or
    /// another batch size: the index of this batch, counted in whole batches of the current size.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of samples of the epoch, over all ranks, before the current batch of every rank.
    /// Equals [`State::samples`](crate::State) of a run that stands before this batch.
    #[must_use]
    pub fn samples_before(&self) -> u64 {
        self.at.samples
    }

    /// Number of rows, including masked ones.
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
    /// A batch on a device (use [`Batch::on_device`] or [`Batch::to_host`]); a forked copy of the
    /// process; several crops of each sample (use [`Batch::crop`]); a run
    /// [without images](crate::LoaderBuilder::without_images).
    pub fn pixels(&self) -> Result<BatchPixels<'_>> {
        let bytes = self.host_bytes()?;
        let (dtype, layout) = (self.dtype, self.layout);
        Ok(match &self.extent {
            RowsExtent::Crops(_) => return Err(several_crops()),
            RowsExtent::Patches(_) => return Err(rows_of_patches()),
            RowsExtent::NoPixels => return Err(no_pixels()),
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
    /// There is no such row.
    pub fn row(&self, index: usize) -> Result<BatchRow<'_>> {
        if index < self.len() {
            return Ok(BatchRow { batch: self, index });
        }
        Err(Error::config(format!(
            "row {index} does not exist in a batch of {}",
            self.len()
        )))
    }

    /// All rows, including masked ones.
    pub fn rows(&self) -> impl Iterator<Item = BatchRow<'_>> {
        (0..self.len()).map(|index| BatchRow { batch: self, index })
    }

    /// The rows with pixels of a sample: all except masked ones.
    pub fn good_rows(&self) -> impl Iterator<Item = BatchRow<'_>> {
        self.rows().filter(|row| !row.status().is_masked())
    }

    /// Length of each axis, in the order of [`Batch::layout`]. Also for a batch on a device.
    ///
    /// # Errors
    /// Rows have their own sizes, whether equal or not, or several crops.
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
            RowsExtent::Crops(_) => Err(several_crops()),
            RowsExtent::Patches(_) => Err(rows_of_patches()),
            RowsExtent::NoPixels => Err(no_pixels()),
        }
    }

    /// Whether rows have pixels. False in a run
    /// [without images](crate::LoaderBuilder::without_images).
    #[must_use]
    pub fn has_pixels(&self) -> bool {
        !matches!(self.extent, RowsExtent::NoPixels)
    }

    /// The grids of the images, and the shape of all patches, if the recipe makes
    /// [`Patches`](crate::recipe::Patches). None with other recipes.
    #[must_use]
    pub fn patches(&self) -> Option<&BatchPatches> {
        match &self.extent {
            RowsExtent::Patches(patches) => Some(patches),
            RowsExtent::Equal { .. }
            | RowsExtent::Crops(_)
            | RowsExtent::Own { .. }
            | RowsExtent::NoPixels => None,
        }
    }

    /// The patches of all rows, with the shape of [`BatchPatches::shape`].
    ///
    /// # Errors
    /// The recipe makes no patches; the batch has another type than `T`; a batch on a device (use
    /// [`Batch::on_device`] or [`Batch::to_host`]); a forked copy of the process.
    pub fn patch_values<T: PixelElement>(&self) -> Result<&[T]> {
        let patches = self.patches();
        let patches = patches.ok_or_else(|| {
            Error::config("the recipe of this batch makes no patches: use pixels")
        })?;
        cast(self.dtype, &self.host_bytes()?[..patches.bytes()])
    }

    /// Bytes of all pixels, with the table before them if rows have their own sizes.
    pub(crate) fn used_bytes(&self) -> Result<usize> {
        Ok(match &self.extent {
            RowsExtent::Equal { .. } => match self.rasters_end() {
                Some(end) => end,
                None => self.shape()?.iter().product::<usize>() * self.dtype.size(),
            },
            RowsExtent::Own { bytes, .. } => *bytes,
            RowsExtent::Crops(extents) => extents.bytes,
            RowsExtent::Patches(patches) => patches.bytes(),
            RowsExtent::NoPixels => 0,
        })
    }

    /// The place of each row in [`PackedPixels::bytes`], or in the device's copy. None if all rows
    /// have one size.
    #[must_use]
    pub fn descriptors(&self) -> Option<&[RowDescriptor]> {
        match &self.extent {
            RowsExtent::Equal { .. }
            | RowsExtent::Crops(_)
            | RowsExtent::Patches(_)
            | RowsExtent::NoPixels => None,
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

    /// Index id of each row's sample. For a substituted row, the sample whose pixels are there. 0
    /// for padding.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The status of each row. Padding and failed rows hold zeros.
    #[must_use]
    pub fn status(&self) -> &[RowStatus] {
        &self.status
    }

    /// Rows that repeat a sample of another row, to fill up this rank. These are the rows with
    /// status `Repeated`, and planned repeats that failed or were substituted. An evaluation leaves
    /// them out.
    #[must_use]
    pub fn repeated(&self) -> &[bool] {
        &self.repeated
    }

    /// One label per row, including masked rows.
    #[must_use]
    pub fn labels(&self) -> &BatchLabels {
        &self.labels
    }

    /// The values of column `name`, one for each row, read now from the files of the data set. A
    /// repeated or substituted row has the values of the sample whose pixels it has, and a failed
    /// row those of its sample. Padding has zeros and empty values.
    ///
    /// # Errors
    /// A column that [`LoaderBuilder::columns`](crate::LoaderBuilder::columns) did not name: the
    /// error lists those of the run. A file that changed or cannot be read. A missing whole number.
    pub fn column(&self, name: &str) -> Result<ColumnValues> {
        self.columns.read(name)
    }

    /// The columns of the batch, to read them after the batch is dropped.
    #[must_use]
    pub fn columns(&self) -> &BatchColumns {
        &self.columns
    }

    /// How the image of each row was cropped to its bucket, with the sampler
    /// [`Buckets`](crate::order::Sampler::Buckets) and a recipe with
    /// [`CoverCrop`](crate::recipe::CoverCrop). Zeros for a masked row. None with other samplers and
    /// recipes.
    pub fn size_conditions(&self) -> Option<&[SizeCondition]> {
        self.size_conditions.as_deref()
    }

    /// One caption for each row, made now of the texts of its sample. Masked rows have an empty one.
    ///
    /// # Errors
    /// The loader was built without [`LoaderBuilder::captions`](crate::LoaderBuilder::captions). A
    /// row without a text, unless the rule has [`MissingCaption::Empty`](crate::MissingCaption). A
    /// file that changed or cannot be read.
    pub fn captions(&self) -> Result<Vec<String>> {
        match &self.captions {
            Some(captions) => captions.read(),
            None => Err(Error::option(
                "captions",
                "this run has no captions: name their column with `captions`",
            )),
        }
    }

    /// Makes the captions also after the batch is dropped. None if the loader was built without
    /// captions.
    #[must_use]
    pub fn caption_rows(&self) -> Option<&BatchCaptions> {
        self.captions.as_ref()
    }

    /// The objects of all rows: boxes, labels, keypoints. None if the loader was built without
    /// [`LoaderBuilder::objects`](crate::LoaderBuilder::objects).
    #[must_use]
    pub fn objects(&self) -> Option<&BatchObjects> {
        self.objects.as_ref()
    }

    /// The samples that could not be used, with paths and reasons: for masked rows and for rows
    /// with a substitute.
    #[must_use]
    pub fn faults(&self) -> &[RowFault] {
        &self.faults
    }

    /// All bytes that this process can read, perhaps more than the batch needs.
    pub(crate) fn host_bytes(&self) -> Result<&[u8]> {
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

    /// The rows in device memory, if the loader has a device
    /// ([`LoaderBuilder::device`](crate::LoaderBuilder::device)). Rows of one size are one dense
    /// tensor of [`Batch::shape`]. Others have the layout of [`PackedPixels::bytes`].
    #[must_use]
    pub fn on_device(&self) -> Option<&DeviceRows> {
        match &self.storage {
            BatchStorage::Device(rows) => Some(rows),
            BatchStorage::Slot(_) | BatchStorage::Own(_) => None,
        }
    }

    /// The address of the first byte of [`Batch::pixels`], to hand the memory to another library.
    /// It stays valid and writable until the batch is dropped, and nothing else writes it.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn pixels_mut(&mut self) -> Result<*mut u8> {
        self.host_bytes()?;
        Ok(self.storage.bytes_mut().as_mut_ptr())
    }

    /// Whether the pixels are in a ring slot, which workers wait for.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        matches!(self.storage, BatchStorage::Slot(_))
    }

    /// Copies the batch into its own memory and frees its slot.
    ///
    /// # Errors
    /// As [`Batch::pixels`].
    pub fn detach(mut self) -> Result<Self> {
        if let BatchStorage::Slot(_) = &self.storage {
            let bytes = &self.host_bytes()?[..self.used_bytes()?];
            let mut buffer = BufferPool::default().take(bytes.len());
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            let mut objects = self.objects.take();
            if let Some(objects) = &mut objects {
                objects.hold_masks(self.host_bytes()?);
            }
            self.objects = objects;
            self.storage = BatchStorage::Own(buffer);
        }
        Ok(self)
    }

    /// The batch in host memory. If it is on a device, waits for the device, copies, and frees its
    /// device memory.
    ///
    /// # Errors
    /// A device error.
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
    pub(crate) fn batch(&self) -> &'a Batch {
        self.batch
    }

    /// Number of the row within its batch.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Like [`Batch::ids`].
    #[must_use]
    pub fn id(&self) -> u64 {
        self.batch.ids()[self.index]
    }

    /// Like [`Batch::status`].
    #[must_use]
    pub fn status(&self) -> RowStatus {
        self.batch.status()[self.index]
    }

    /// Like [`Batch::repeated`].
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.batch.repeated()[self.index]
    }

    /// Height and width of the upright image, in pixels. A failed row has the size that its header
    /// had when headers were read. Padding, and an image without a readable header, have 0 x 0. Of
    /// several crops: the size of the first. Of patches: the size of the resized image. 0 x 0 in a run
    /// [without images](crate::LoaderBuilder::without_images).
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        match &self.batch.extent {
            RowsExtent::Equal { height, width, .. } => (*height, *width),
            RowsExtent::Crops(extents) => extents.first_size(),
            RowsExtent::Own { table, .. } => {
                let at = &table[self.index];
                (at.height as usize, at.width as usize)
            }
            RowsExtent::Patches(patches) => patches.size(self.index),
            RowsExtent::NoPixels => (0, 0),
        }
    }

    /// Length of each axis, in the order of [`Batch::layout`] without its sample axis:
    /// channels x height x width or height x width x channels. Of patches: 1 x patches x values.
    /// Always dense.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        if let RowsExtent::Patches(patches) = &self.batch.extent {
            let values = patches.rule().patch_values();
            return [1, patches.patches_in(self.index), values];
        }
        let (height, width) = self.size();
        let channels = self.batch.channels;
        self.batch.layout.row_shape(channels, height, width)
    }

    /// The elements of the row.
    ///
    /// # Errors
    /// As [`Batch::pixels`]; the batch has another type than `T`.
    pub fn as_slice<T: PixelElement>(&self) -> Result<&'a [T]> {
        cast(self.batch.dtype, self.bytes()?)
    }

    /// The bytes of its elements, in the machine's byte order. Aligned for the data type, and to 64
    /// bytes if rows have their own sizes.
    ///
    /// # Errors
    /// As [`Batch::pixels`]. With several crops use [`BatchRow::parts`].
    pub fn bytes(&self) -> Result<&'a [u8]> {
        let all = self.batch.host_bytes()?;
        Ok(match &self.batch.extent {
            RowsExtent::Crops(_) => return Err(several_crops()),
            RowsExtent::Equal { height, width, .. } => {
                let len = self.batch.channels * height * width * self.batch.dtype.size();
                &all[self.index * len..(self.index + 1) * len]
            }
            RowsExtent::Own { table, .. } => {
                let at = &table[self.index];
                let start = at.offset as usize;
                &all[start..start + at.bytes as usize]
            }
            RowsExtent::Patches(patches) => &all[patches.place(self.index)],
            RowsExtent::NoPixels => return Err(no_pixels()),
        })
    }
}
