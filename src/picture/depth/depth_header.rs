//! Reads the header of a depth image: format, size, and the memory for reading it.
//!
//! Used in workers, and in the consumer, which plans memory with it.

use std::io::{Read, SeekFrom};

use ::tiff::decoder::{Decoder, Limits as TiffLimits};

use crate::error::{FaultKind, SampleFault};
use crate::picture::file_format::FileFormat;
use crate::picture::limits::PictureLimits;
use crate::picture::npy::{self, NpyDepth};
use crate::picture::openexr;
use crate::picture::reader::unreadable;
use crate::picture::reader::{PictureFile, PictureReader, ReadBudget};
use crate::sys::panics::catch_panic;

/// The formats of depth images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DepthFormat {
    Npy,
    Png,
    Tiff,
    OpenExr,
}

/// Format, size and memory of a depth image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DepthHeader {
    pub(super) kind: DepthFormat,
    /// Width and height.
    pub(super) size: (u32, u32),
    /// Maximum bytes that reading takes: the numbers of the file, the returned numbers, and rows.
    pub(super) bytes: u64,
}

/// Bytes that reading a depth image takes; 0 for a rejected one, which takes none.
pub(crate) fn needed_bytes(file: &mut dyn PictureFile, limits: &PictureLimits) -> u64 {
    // A decoder's panic must not end the process that plans.
    match catch_panic(|| DepthHeader::read(file, limits)) {
        Some(Ok(facts)) if limits.check_pixels("depth", facts.size).is_ok() => {
            Some(facts.bytes).filter(|bytes| *bytes <= limits.max_scratch)
        }
        _ => None,
    }
    .unwrap_or(0)
}

/// Width and height, and the maximum bytes that reading takes.
///
/// # Errors
/// A header that is broken or not of a depth image.
pub(crate) fn size_and_bytes(
    file: &mut dyn PictureFile,
    limits: &PictureLimits,
) -> Result<((u32, u32), u64), SampleFault> {
    let read = || DepthHeader::read(file, limits);
    let header = catch_panic(read).unwrap_or_else(|| Err(corrupt("has a broken header")))?;
    Ok((header.size, header.bytes))
}

impl DepthHeader {
    pub(super) fn read(
        file: &mut dyn PictureFile,
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        let mut head = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        file.take(npy::HEAD)
            .read_to_end(&mut head)
            .map_err(unreadable)?;
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        match head.as_slice() {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => {
                let numbers = NpyDepth::read(&head)?;
                Ok(Self::of(DepthFormat::Npy, numbers.size, 0, 0))
            }
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', rest @ ..] => Self::of_png(rest),
            [b'I', b'I', b'*' | b'+', 0, ..] | [b'M', b'M', 0, b'*' | b'+', ..] => {
                Self::of_tiff(file, limits)
            }
            [0x76, 0x2f, 0x31, 0x01, ..] => Self::of_openexr(file, limits),
            _ => Err(FaultKind::Unsupported.fault(
                "the depth is not a PNG, TIFF, OpenEXR or NumPy array (.npy): write it as one of \
                 them",
            )),
        }
    }

    /// For a file with `pixel` bytes per pixel, and `beside` other bytes.
    fn of(kind: DepthFormat, size: (u32, u32), pixel: u64, beside: u64) -> Self {
        let pixels = u64::from(size.0) * u64::from(size.1);
        let kept = size_of::<f32>() as u64;
        Self {
            kind,
            size,
            bytes: pixels.saturating_mul(pixel + kept).saturating_add(beside),
        }
    }

    fn of_png(rest: &[u8]) -> Result<Self, SampleFault> {
        let header = rest
            .get(8..18)
            .ok_or_else(|| corrupt("ends in its header"))?;
        let number = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let size = (number(0), number(4));
        if size.0 == 0 || size.1 == 0 || size.0.max(size.1) > i32::MAX as u32 {
            return Err(corrupt("has an invalid size for a PNG"));
        }
        let (bits, color) = (header[8], header[9]);
        let channels = match (bits, color) {
            (8 | 16, 0) => 1,
            (_, 0) | (_, 4) => 2,
            _ => 4,
        };
        let pixel = channels * if bits == 16 { 2 } else { 1 };
        // Rows that are not filtered yet, and the window of the decoder.
        let rows = u64::from(size.0) * pixel * 9 + (512 << 10);
        Ok(Self::of(DepthFormat::Png, size, pixel, rows))
    }

    fn of_tiff(file: &mut dyn PictureFile, limits: &PictureLimits) -> Result<Self, SampleFault> {
        let window = ReadBudget::for_header(FileFormat::Tiff);
        let decoder = Decoder::new(PictureReader::of_file(file, &window));
        let found =
            decoder.and_then(|decoder| decoder.with_limits(tiff_limits(limits)).dimensions());
        let size = window.check(FileFormat::Tiff, found.map_err(tiff_fault))?;
        // Doubles at most, and a copy while a strip is unpacked.
        Ok(Self::of(DepthFormat::Tiff, size, 16, 1 << 20))
    }

    fn of_openexr(file: &mut dyn PictureFile, limits: &PictureLimits) -> Result<Self, SampleFault> {
        let window = ReadBudget::for_header(FileFormat::OpenExr);
        let mut file = PictureReader::of_file(file, &window);
        let found = openexr::check_layers(&mut file, limits);
        let (size, pixel) = window.check(FileFormat::OpenExr, found)?;
        // All channels, and blocks that are unpacked.
        Ok(Self::of(DepthFormat::OpenExr, size, 2 * pixel, 1 << 20))
    }
}

pub(super) fn tiff_limits(limits: &PictureLimits) -> TiffLimits {
    let mut bounds = TiffLimits::default();
    let most = usize::try_from(limits.max_scratch).unwrap_or(usize::MAX);
    bounds.decoding_buffer_size = most;
    bounds.intermediate_buffer_size = most;
    bounds
}

pub(super) fn tiff_fault(e: ::tiff::TiffError) -> SampleFault {
    use ::tiff::TiffError;
    let kind = match &e {
        TiffError::UnsupportedError(_) => FaultKind::Unsupported,
        TiffError::LimitsExceeded => FaultKind::TooLarge,
        TiffError::IoError(_) => FaultKind::Truncated,
        _ => FaultKind::Corrupt,
    };
    SampleFault::new(kind, format!("the depth is not a readable TIFF: {e}"))
}

pub(super) fn corrupt(what: &str) -> SampleFault {
    FaultKind::Corrupt.fault(format!("the depth {what}"))
}

#[cfg(feature = "codecs")]
pub(super) fn in_colour() -> SampleFault {
    FaultKind::Unsupported
        .fault("the depth is in colours instead of distances: write it with one channel")
}
