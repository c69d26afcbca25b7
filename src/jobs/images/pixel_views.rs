//! Views of a batch's pixels: one tensor, or a table with rows. And their element types.
//!
//! In the consumer. Borrows, and copies no pixels. Never in here: what a row is for.

use half::{bf16, f16};

use crate::decode_plan::row_descriptor::RowDescriptor;
use crate::error::{Error, Result};
use crate::recipe::{DataType, MemoryLayout};

/// A Rust type for a batch's elements: `u8`, [`struct@f16`], [`bf16`] or `f32`.
pub trait PixelElement: sealed::Sealed + bytemuck::AnyBitPattern {
    /// The recipe's name of the type.
    const DTYPE: DataType;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for f32 {}
}

impl PixelElement for u8 {
    const DTYPE: DataType = DataType::U8;
}

impl PixelElement for f16 {
    const DTYPE: DataType = DataType::F16;
}

impl PixelElement for bf16 {
    const DTYPE: DataType = DataType::Bf16;
}

impl PixelElement for f32 {
    const DTYPE: DataType = DataType::F32;
}

/// The elements in `bytes`, which have type `dtype`.
pub(crate) fn cast<T: PixelElement>(dtype: DataType, bytes: &[u8]) -> Result<&[T]> {
    if T::DTYPE != dtype {
        return Err(Error::config(format!(
            "the batch holds {dtype}, not {} (see Recipe::with_dtype)",
            T::DTYPE
        )));
    }
    bytemuck::try_cast_slice(bytes)
        .map_err(|e| Error::protocol(format!("the slot is not aligned for {dtype}: {e}")))
}

/// The error if one tensor was requested and rows have their own sizes.
pub(crate) fn no_tensor() -> Error {
    Error::config(
        "rows of this batch have their own sizes, so they are not one tensor: use Batch::row or \
         Pixels::packed, or add a resize or a crop to the recipe",
    )
}

/// The error if pixels were requested and rows are patches.
pub(crate) fn rows_of_patches() -> Error {
    Error::config(
        "rows of this batch are patches: use Batch::patches and Batch::patch_values, or Batch::row",
    )
}

/// The error if pixels were requested and the run reads no image.
pub(crate) fn no_pixels() -> Error {
    Error::option(
        "images",
        "this run reads no images, so its rows have no pixels: make it without --no-images, \
         images=False or without_images",
    )
}

/// The pixels of a batch, where the workers wrote them.
///
/// [`BatchPixels::as_slice`] is enough if all rows have one size. Code for any recipe matches:
///
/// ```
/// # fn show(batch: &featherload::Batch) -> featherload::Result<()> {
/// use featherload::batch::BatchPixels;
/// use featherload::f16;
///
/// match batch.pixels()? {
///     BatchPixels::Dense(tensor) => {
///         let values = tensor.as_slice::<f16>()?;
///         println!("{:?}: {} values", tensor.shape(), values.len());
///     }
///     BatchPixels::Packed(rows) => {
///         println!("{} rows in {} bytes", rows.descriptors().len(), rows.bytes().len());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub enum BatchPixels<'a> {
    /// Rows of one size, as one tensor. The usual case.
    Dense(DensePixels<'a>),
    /// A table, and rows with their own sizes: recipes without resize and crop.
    Packed(PackedPixels<'a>),
}

impl<'a> BatchPixels<'a> {
    /// All elements of the tensor.
    ///
    /// # Errors
    /// The batch has another type than `T`, or rows have their own sizes.
    pub fn as_slice<T: PixelElement>(self) -> Result<&'a [T]> {
        self.dense()?.as_slice()
    }

    /// All bytes of either: [`DensePixels::bytes`] or [`PackedPixels::bytes`].
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Dense(pixels) => pixels.bytes(),
            Self::Packed(pixels) => pixels.bytes(),
        }
    }

    /// The tensor.
    ///
    /// # Errors
    /// Rows have their own sizes, whether equal or not.
    pub fn dense(self) -> Result<DensePixels<'a>> {
        match self {
            Self::Dense(pixels) => Ok(pixels),
            Self::Packed(_) => Err(no_tensor()),
        }
    }

    /// The table and the rows.
    ///
    /// # Errors
    /// All rows have one size.
    pub fn packed(self) -> Result<PackedPixels<'a>> {
        match self {
            Self::Packed(pixels) => Ok(pixels),
            Self::Dense(_) => Err(Error::config(
                "rows of this batch have one size: use BatchPixels::dense",
            )),
        }
    }
}

/// One dense tensor: rows follow each other.
#[derive(Debug, Clone, Copy)]
pub struct DensePixels<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) shape: [usize; 4],
    pub(crate) dtype: DataType,
    pub(crate) layout: MemoryLayout,
}

impl<'a> DensePixels<'a> {
    /// Length of each axis, in the order of [`DensePixels::layout`].
    #[must_use]
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Distance between neighbours along each axis, in elements. Always dense.
    #[must_use]
    pub fn strides(&self) -> [usize; 4] {
        let s = self.shape;
        [s[1] * s[2] * s[3], s[2] * s[3], s[3], 1]
    }

    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    #[must_use]
    pub fn layout(&self) -> MemoryLayout {
        self.layout
    }

    /// All elements.
    ///
    /// # Errors
    /// The batch has another type than `T`.
    pub fn as_slice<T: PixelElement>(&self) -> Result<&'a [T]> {
        cast(self.dtype, self.bytes)
    }

    /// The bytes of all elements, in the machine's byte order. Aligned for the data type.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Rows with their own sizes in one piece, so that one copy moves all of them.
/// [`BatchRow::as_slice`](crate::batch::BatchRow::as_slice) returns the elements of one row.
#[derive(Debug, Clone, Copy)]
pub struct PackedPixels<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) table: &'a [RowDescriptor],
    pub(crate) dtype: DataType,
    pub(crate) layout: MemoryLayout,
}

impl<'a> PackedPixels<'a> {
    /// The place of each row in [`PackedPixels::bytes`].
    #[must_use]
    pub fn descriptors(&self) -> &'a [RowDescriptor] {
        self.table
    }

    /// A [`RowDescriptor`] for each row of a full batch, then the rows, each at the offset in its
    /// descriptor. Bytes between rows are undefined.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[must_use]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    #[must_use]
    pub fn layout(&self) -> MemoryLayout {
        self.layout
    }
}
