//! Every format except JPEG, as rows of 8-bit RGB, top to bottom.
//!
//! Pure: bytes in, rows or a fault out. PNG is decoded row by row (`png`). Rows of raw pixels
//! (`npy`) are in the file. TIFF has its own decoder (`tiff`). The `image` crate decodes the
//! others, as whole frames. An animation counts as its first image, an icon as its largest. This
//! module does not know the use of the rows.
//!
//! Memory: a frame format holds its frame and the memory of its decoder.
//! [`RasterReader::decode_cost`] returns the total before a pixel is decoded.

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Seek};
use std::ops::Range;

use image::error::ImageError;
use image::{ColorType, ImageDecoder, ImageReader};

use super::background::AlphaPolicy;
use super::buffer::grow;
use super::file_format::FileFormat;
use super::format_table::{FormatDecoder, FrameDecoder};
use super::limits::PictureLimits;
use super::orientation::ExifOrientation;
use super::picture_header::{DecodeCost, PictureHeader};
use super::png::{self, PngReader};
use super::png_repair::{self, MissingRows};
use super::reader::{PictureFile, PictureReader, ReadBudget};
use super::rgb8::{AlphaKind, PixelForm};
use super::tiff::{TiffPicture, frame_bytes};
use super::{dds, gif, ico, npy, openexr, tga, webp};
use crate::error::{FaultKind, SampleFault};

/// Buffers that are kept between samples.
#[derive(Debug, Default)]
pub(crate) struct RasterScratch {
    /// A whole image, in the pixel form of its file.
    frame: Vec<u8>,
    /// One row of it.
    native: Vec<u8>,
    /// The requested columns of the same row, as RGB.
    rgb: Vec<u8>,
}

impl RasterScratch {
    /// Bytes of allocated memory.
    pub(crate) fn bytes(&self) -> usize {
        self.frame.capacity() + self.native.capacity() + self.rgb.capacity()
    }
}

/// An image whose header has been read.
pub(crate) struct RasterReader<'a> {
    size: (u32, u32),
    orientation: ExifOrientation,
    form: PixelForm,
    alpha: AlphaKind,
    rows: RasterRows<'a>,
}

enum RasterRows<'a> {
    Png(Box<PngReader<'a>>),
    /// Not decoded yet.
    Frame(FileFormat, Box<dyn ImageDecoder + 'a>),
    /// Not decoded yet: the header, the file, and the limits.
    Tiff(Box<TiffPicture>, &'a [u8], PictureLimits),
    /// In the scratch buffer.
    Decoded,
    /// In the file.
    Raw(&'a [u8]),
}

/// Reads the header of a file of this format and of `len` bytes. Checks the same limits as
/// [`RasterReader::open`].
pub(super) fn read_header(
    format: FileFormat,
    file: &mut dyn PictureFile,
    len: u64,
    limits: &PictureLimits,
) -> Result<PictureHeader, SampleFault> {
    let header = |stored, orientation, scratch| PictureHeader {
        format,
        stored_size: stored,
        orientation,
        cost: DecodeCost::Rows { scratch },
        pixel_box: None,
    };
    match format.info().decoder {
        FormatDecoder::Jpeg => Err(elsewhere(format)),
        FormatDecoder::Raw => {
            let mut head = Vec::new();
            let read = file.take(format.info().max_header).read_to_end(&mut head);
            read.map_err(|e| fault(format, e.into()))?;
            let raw = open_raw(&head, len, limits)?;
            Ok(raw_header((raw.width, raw.height), raw.channels))
        }
        FormatDecoder::Png => {
            let window = ReadBudget::for_header(format);
            let chunks = open_png(&mut PictureReader::of_file(file, &window), &window, limits)?;
            let scratch = chunks.scratch_bytes();
            Ok(header(chunks.size, chunks.orientation, scratch))
        }
        FormatDecoder::Tiff => {
            let window = ReadBudget::for_header(format);
            let picture = open_tiff(
                &mut PictureReader::of_file(file, &window),
                &window,
                len,
                limits,
            )?;
            let scratch = tiff_scratch(&picture);
            Ok(header(picture.size(), picture.orientation(), scratch))
        }
        FormatDecoder::Frame(_) => {
            let window = ReadBudget::for_header(format);
            let file = PictureReader::of_file(file, &window);
            let opened = open_frame(format, file, &window, len, limits)?;
            let size = opened.decoder.dimensions();
            // An unsupported form of pixels fails later, when it is decoded.
            let scratch = form(format, opened.decoder.color_type())
                .map_or(0, |form| frame_scratch(format, form, size));
            Ok(header(size, opened.orientation, scratch))
        }
    }
}

fn elsewhere(format: FileFormat) -> SampleFault {
    FaultKind::Unsupported.fault(format!("{format} is decoded elsewhere"))
}

/// The chunks of a PNG that fits the limits and whose data suffice for its size.
fn open_png(
    file: &mut PictureReader<'_>,
    window: &ReadBudget,
    limits: &PictureLimits,
) -> Result<png::PngChunks, SampleFault> {
    let chunks = window.check(FileFormat::Png, png::walk(file))?;
    limits.check_pixels(FileFormat::Png.name(), chunks.size)?;
    chunks.check_data()?;
    Ok(chunks)
}

/// The header of raw pixels that fit the limits and the file of `len` bytes.
fn open_raw(head: &[u8], len: u64, limits: &PictureLimits) -> Result<npy::NpyHeader, SampleFault> {
    let header = npy::NpyHeader::read(head, len)?;
    limits.check_pixels(FileFormat::Npy.name(), (header.width, header.height))?;
    Ok(header)
}

/// The header of raw pixels.
fn raw_header(size: (u32, u32), channels: u32) -> PictureHeader {
    PictureHeader {
        format: FileFormat::Npy,
        stored_size: size,
        orientation: ExifOrientation::Normal,
        cost: raw_decoding(channels, size.0),
        pixel_box: None,
    }
}

impl PictureHeader {
    /// The header of raw pixels of this width and height, within the limits.
    pub(crate) fn of_pixels(
        size: (u32, u32),
        channels: u32,
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        limits.check_pixels(FileFormat::Npy.name(), size)?;
        Ok(raw_header(size, channels))
    }
}

fn raw_decoding(channels: u32, width: u32) -> DecodeCost {
    match channels {
        3 => DecodeCost::Raw,
        // The returned row.
        _ => DecodeCost::Rows {
            scratch: 3 * u64::from(width),
        },
    }
}

fn open_tiff(
    file: &mut PictureReader<'_>,
    window: &ReadBudget,
    len: u64,
    limits: &PictureLimits,
) -> Result<TiffPicture, SampleFault> {
    window.check(FileFormat::Tiff, TiffPicture::read(file, len, limits))
}

/// The returned row, the frame, and the other memory of decoding.
fn tiff_scratch(picture: &TiffPicture) -> u64 {
    let frame = frame_bytes(picture.form(), picture.size());
    let row = 3 * u64::from(picture.size().0);
    (row + frame).saturating_add(picture.scratch_bytes())
}

/// A file of any other format, with its header read.
struct OpenedFrame<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    orientation: ExifOrientation,
    alpha: AlphaKind,
}

fn open_frame<'a>(
    format: FileFormat,
    file: PictureReader<'a>,
    window: &ReadBudget,
    len: u64,
    limits: &PictureLimits,
) -> Result<OpenedFrame<'a>, SampleFault> {
    let opened = read_frame_header(format, file, len, limits);
    let opened = window.check(format, opened)?;
    window.remove_limit();
    Ok(opened)
}

fn read_frame_header<'a>(
    format: FileFormat,
    mut file: PictureReader<'a>,
    len: u64,
    limits: &PictureLimits,
) -> Result<OpenedFrame<'a>, SampleFault> {
    let unreadable = |e: std::io::Error| fault(format, e.into());
    let mut head = None;
    let mut alpha = AlphaKind::Straight;
    let mut found = None;
    match format {
        FileFormat::OpenExr => {
            openexr::check_layers(&mut file, limits)?;
            alpha = AlphaKind::Premultiplied;
        }
        FileFormat::Dds => (head, alpha) = dds::read_header(&mut file).map_err(unreadable)?,
        FileFormat::Gif => head = gif::enlarged_header(&mut file),
        FileFormat::Ico => ico::check_profile(&mut file)?,
        FileFormat::Tga => alpha = tga::alpha_kind(&mut file),
        // Its decoder would allocate memory for an EXIF chunk of any length.
        FileFormat::WebP => found = Some(webp::orientation(&mut file)),
        _ => {}
    }
    file.rewind().map_err(unreadable)?;
    if let Some(head) = head {
        file.replace_head(head);
    }
    let mut decoder = decoder(format, file, limits)?;
    let size = decoder.dimensions();
    if size.0 == 0 || size.1 == 0 {
        return Err(FaultKind::Corrupt.fault(format!("{format} of {} x {} pixels", size.0, size.1)));
    }
    limits.check_pixels(format.name(), size)?;
    check_length(format, size, len)?;
    let orientation = found.unwrap_or_else(|| orientation(&mut *decoder));
    Ok(OpenedFrame {
        decoder,
        orientation,
        alpha,
    })
}

/// Checks that a file is long enough for its image.
///
/// # Errors
/// An image with more pixels than a file of `len` bytes can hold. Formats in which a few bytes may
/// mean any number of pixels pass.
fn check_length(
    format: FileFormat,
    (width, height): (u32, u32),
    len: u64,
) -> Result<(), SampleFault> {
    let FormatDecoder::Frame(FrameDecoder {
        max_density: Some((most, bytes)),
        ..
    }) = format.info().decoder
    else {
        return Ok(());
    };
    let pixels = u64::from(width) * u64::from(height);
    let needed = pixels.div_ceil(most) * bytes;
    if needed <= len {
        return Ok(());
    }
    Err(FaultKind::Truncated.fault(format!(
        "{format} of {width} x {height} needs at least {needed} bytes, and the file has \
                 {len}"
    )))
}

impl<'a> RasterReader<'a> {
    /// Reads the header of a file of this format.
    pub(crate) fn open(
        format: FileFormat,
        bytes: &'a [u8],
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        match format.info().decoder {
            FormatDecoder::Jpeg => Err(elsewhere(format)),
            FormatDecoder::Png => {
                let window = ReadBudget::for_header(format);
                let chunks = open_png(&mut PictureReader::of(bytes, &window), &window, limits)?;
                if chunks.needs_repair() {
                    return Self::open_repaired(bytes, MissingRows::Reject, limits);
                }
                let reader = PngReader::open(Cow::Borrowed(bytes), limits)?;
                Ok(Self::of_png(&chunks, reader))
            }
            FormatDecoder::Raw => {
                let raw = open_raw(bytes, bytes.len() as u64, limits)?;
                Ok(Self {
                    size: (raw.width, raw.height),
                    orientation: ExifOrientation::Normal,
                    form: if raw.channels == 3 {
                        PixelForm::Rgb8
                    } else {
                        PixelForm::L8
                    },
                    alpha: AlphaKind::Straight,
                    rows: RasterRows::Raw(&bytes[raw.data()]),
                })
            }
            FormatDecoder::Tiff => {
                let (window, len) = (ReadBudget::for_header(format), bytes.len() as u64);
                let picture =
                    open_tiff(&mut PictureReader::of(bytes, &window), &window, len, limits)?;
                Ok(Self {
                    size: picture.size(),
                    orientation: picture.orientation(),
                    form: picture.form(),
                    alpha: picture.alpha_kind(),
                    rows: RasterRows::Tiff(Box::new(picture), bytes, *limits),
                })
            }
            FormatDecoder::Frame(_) => {
                let window = ReadBudget::for_header(format);
                let file = PictureReader::of(bytes, &window);
                let opened = open_frame(format, file, &window, bytes.len() as u64, limits)?;
                Ok(Self {
                    size: opened.decoder.dimensions(),
                    orientation: opened.orientation,
                    form: form(format, opened.decoder.color_type())?,
                    alpha: opened.alpha,
                    rows: RasterRows::Frame(format, opened.decoder),
                })
            }
        }
    }

    /// Reads the header of a PNG that ends too early. Its missing pixels are black, or transparent.
    pub(crate) fn open_truncated(
        bytes: &'a [u8],
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        Self::open_repaired(bytes, MissingRows::Zeros, limits)
    }

    /// Writes a truncated PNG again, and opens it.
    ///
    /// # Errors
    /// A file without a header, or one that lacks rows, unless they become zeros.
    pub(super) fn open_repaired(
        bytes: &'a [u8],
        missing: MissingRows,
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        let window = ReadBudget::for_header(FileFormat::Png);
        let chunks = png::walk(&mut PictureReader::of(bytes, &window));
        let chunks = window.check(FileFormat::Png, chunks)?;
        limits.check_pixels(FileFormat::Png.name(), chunks.size)?;
        let bytes = png_repair::repair(bytes, missing, limits)?;
        let reader = PngReader::open(Cow::Owned(bytes), limits)?;
        Ok(Self::of_png(&chunks, reader))
    }

    fn of_png(chunks: &png::PngChunks, reader: PngReader<'a>) -> Self {
        Self {
            size: chunks.size,
            orientation: chunks.orientation,
            form: reader.form(),
            alpha: AlphaKind::Straight,
            rows: RasterRows::Png(Box::new(reader)),
        }
    }

    /// Width and height as stored.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    pub(crate) fn orientation(&self) -> ExifOrientation {
        self.orientation
    }

    /// All pixels without gaps, if the file holds them as RGB8 and needs no decoding.
    pub(crate) fn raw_pixels(&self) -> Option<&'a [u8]> {
        match self.rows {
            RasterRows::Raw(pixels) if self.form == PixelForm::Rgb8 => Some(pixels),
            _ => None,
        }
    }

    /// The cost of decoding.
    pub(crate) fn decode_cost(&self) -> DecodeCost {
        match self.rows {
            RasterRows::Raw(_) => raw_decoding(self.form.bytes() as u32, self.size.0),
            RasterRows::Png(_)
            | RasterRows::Frame(..)
            | RasterRows::Tiff(..)
            | RasterRows::Decoded => DecodeCost::Rows {
                scratch: self.scratch_bytes(),
            },
        }
    }

    /// Maximum bytes for decoding, buffers included.
    fn scratch_bytes(&self) -> u64 {
        let (width, height) = (u64::from(self.size.0), u64::from(self.size.1));
        let row = width * self.form.bytes() as u64;
        // The returned row.
        let rgb = 3 * width;
        match &self.rows {
            RasterRows::Png(reader) if reader.is_interlaced() => {
                rgb + row * height + reader.working_bytes()
            }
            RasterRows::Png(reader) => rgb + row + reader.working_bytes(),
            RasterRows::Frame(format, _) => frame_scratch(*format, self.form, self.size),
            RasterRows::Tiff(picture, ..) => tiff_scratch(picture),
            RasterRows::Decoded | RasterRows::Raw(_) => 0,
        }
    }

    /// Decodes formats that are not decoded row by row. Call it once, before the first row, and
    /// after checking [`RasterReader::decode_cost`].
    pub(crate) fn decode_frame(&mut self, scratch: &mut RasterScratch) -> Result<(), SampleFault> {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        let frame = width
            .checked_mul(height)
            .and_then(|n| n.checked_mul(self.form.bytes()))
            .unwrap_or(usize::MAX);
        self.rows = match std::mem::replace(&mut self.rows, RasterRows::Decoded) {
            RasterRows::Png(reader) if !reader.is_interlaced() => {
                grow(&mut scratch.native, width * self.form.bytes())?;
                RasterRows::Png(reader)
            }
            RasterRows::Png(mut reader) => {
                reader.frame(blank(&mut scratch.frame, frame)?)?;
                RasterRows::Decoded
            }
            RasterRows::Frame(format, decoder) => {
                if decoder.total_bytes() != frame as u64 {
                    return Err(FaultKind::Corrupt.fault(format!(
                        "{format}: {} bytes of pixels for {height} x {width}",
                        decoder.total_bytes()
                    )));
                }
                let frame = blank(&mut scratch.frame, frame)?;
                decoder.read_image(frame).map_err(|e| fault(format, e))?;
                RasterRows::Decoded
            }
            RasterRows::Tiff(picture, bytes, limits) => {
                picture.decode(bytes, &limits, blank(&mut scratch.frame, frame)?)?;
                RasterRows::Decoded
            }
            begun @ (RasterRows::Raw(_) | RasterRows::Decoded) => begun,
        };
        Ok(())
    }

    /// Columns `columns` of row `y` as RGB, with alpha handled as requested. Rows must be requested
    /// from the top down, each at most once.
    pub(crate) fn row<'b>(
        &mut self,
        y: usize,
        columns: &Range<usize>,
        transparency: AlphaPolicy,
        scratch: &'b mut RasterScratch,
    ) -> Result<&'b [u8], SampleFault>
    where
        'a: 'b,
    {
        let pixel = self.form.bytes();
        let bytes = self.size.0 as usize * pixel;
        let row = match &mut self.rows {
            RasterRows::Png(reader) => {
                reader.row(y as u32, &mut scratch.native[..bytes])?;
                &scratch.native[..bytes]
            }
            RasterRows::Raw(pixels) => &pixels[y * bytes..(y + 1) * bytes],
            RasterRows::Frame(..) | RasterRows::Tiff(..) | RasterRows::Decoded => {
                &scratch.frame[y * bytes..(y + 1) * bytes]
            }
        };
        let row = &row[columns.start * pixel..columns.end * pixel];
        if self.form == PixelForm::Rgb8 && transparency != AlphaPolicy::AlphaOnly {
            return Ok(row);
        }
        grow(&mut scratch.rgb, 3 * columns.len())?;
        let rgb = &mut scratch.rgb[..3 * columns.len()];
        self.form.to_rgb8(row, self.alpha, transparency, rgb);
        Ok(rgb)
    }

    /// Decodes the remaining rows to find faults: a file is good or bad as a whole.
    pub(crate) fn check_rest(&mut self, scratch: &mut RasterScratch) -> Result<(), SampleFault> {
        let bytes = self.size.0 as usize * self.form.bytes();
        match &mut self.rows {
            RasterRows::Png(reader) => reader.finish(&mut scratch.native[..bytes]),
            RasterRows::Frame(..)
            | RasterRows::Tiff(..)
            | RasterRows::Decoded
            | RasterRows::Raw(_) => Ok(()),
        }
    }
}

/// The returned row, the frame, and the decoder's other memory.
fn frame_scratch(format: FileFormat, form: PixelForm, (width, height): (u32, u32)) -> u64 {
    let (width, height) = (u64::from(width), u64::from(height));
    let pixel = form.bytes() as u64;
    let beside = match format.info().decoder {
        FormatDecoder::Frame(FrameDecoder {
            extra_bytes: (times, bytes),
            ..
        }) => times * pixel + bytes,
        _ => 0,
    };
    3 * width + width * height * (pixel + beside)
}

fn decoder<'a>(
    format: FileFormat,
    file: PictureReader<'a>,
    limits: &PictureLimits,
) -> Result<Box<dyn ImageDecoder + 'a>, SampleFault> {
    let FormatDecoder::Frame(FrameDecoder {
        image_format: known,
        ..
    }) = format.info().decoder
    else {
        return Err(elsewhere(format));
    };
    // `image` sets limits on a decoder that exists already and has read its header. Most decoders
    // then check only width and height. `ReadBudget` bounds the header, and `decode_cost` the
    // decoding. In a worker the kernel bounds both.
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(limits.max_scratch);
    let mut reader = ImageReader::with_format(file, known);
    reader.limits(allowed);
    let decoder = reader.into_decoder().map_err(|e| fault(format, e))?;
    Ok(Box::new(decoder))
}

/// The first `len` bytes of the buffer, all 0. A decoder need not write every pixel: a GIF's index
/// may exceed its palette. Such pixels must not come from the previous image.
fn blank(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8], SampleFault> {
    grow(buffer, len)?;
    let frame = &mut buffer[..len];
    frame.fill(0);
    Ok(frame)
}

/// A broken EXIF block is never a fault.
fn orientation(decoder: &mut dyn ImageDecoder) -> ExifOrientation {
    let tag = decoder.orientation().map_or(1, |o| o.to_exif());
    ExifOrientation::from_tag(tag.into()).unwrap_or_default()
}

fn form(format: FileFormat, color: ColorType) -> Result<PixelForm, SampleFault> {
    Ok(match color {
        ColorType::L8 => PixelForm::L8,
        ColorType::La8 => PixelForm::La8,
        ColorType::Rgb8 => PixelForm::Rgb8,
        ColorType::Rgba8 => PixelForm::Rgba8,
        ColorType::L16 => PixelForm::L16,
        ColorType::La16 => PixelForm::La16,
        ColorType::Rgb16 => PixelForm::Rgb16,
        ColorType::Rgba16 => PixelForm::Rgba16,
        ColorType::Rgb32F => PixelForm::Rgb32F,
        ColorType::Rgba32F => PixelForm::Rgba32F,
        other => {
            return Err(FaultKind::Unsupported.fault(format!("{format} of colour type {other:?}")));
        }
    })
}

fn fault(format: FileFormat, e: ImageError) -> SampleFault {
    let kind = match &e {
        ImageError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => FaultKind::Truncated,
        // The system's own errors. Decoders use the same type for theirs.
        ImageError::IoError(e) if e.raw_os_error().is_some() => FaultKind::Unreadable,
        ImageError::IoError(e) if e.kind() == ErrorKind::OutOfMemory => FaultKind::NoMemory,
        // These decoders get no limit: the error is a failed allocation.
        ImageError::Limits(_) if matches!(format, FileFormat::Bmp | FileFormat::Tga) => {
            FaultKind::NoMemory
        }
        ImageError::Unsupported(_) => FaultKind::Unsupported,
        ImageError::Limits(_) => {
            return FaultKind::TooLarge.fault(format!(
                "{format}: its decoder asks for more memory than max_scratch allows ({e})"
            ));
        }
        _ => FaultKind::Corrupt,
    };
    // A decoder may quote the line that it read.
    let mut text = e.to_string();
    if let Some((end, _)) = text.char_indices().nth(LONGEST_TEXT) {
        text.truncate(end);
        text.push_str(" ...");
    }
    SampleFault::new(kind, format!("{format}: {text}"))
}

/// Maximum characters of a decoder's own text in a fault.
const LONGEST_TEXT: usize = 400;

#[cfg(test)]
mod tests {
    use image::error::{LimitError, LimitErrorKind};

    use super::*;

    #[test]
    fn memory_that_the_system_refuses_is_no_fault_of_the_picture() {
        let limit = || {
            let kind = LimitErrorKind::InsufficientMemory;
            ImageError::Limits(LimitError::from_kind(kind))
        };
        // As `image` converts an error of `Vec`.
        let refused = Vec::<u8>::new().try_reserve(usize::MAX).unwrap_err();
        let refused = std::io::Error::from(refused);
        for (format, e, kind) in [
            (FileFormat::Tga, limit(), FaultKind::NoMemory),
            (FileFormat::Bmp, limit(), FaultKind::NoMemory),
            (FileFormat::Gif, limit(), FaultKind::TooLarge),
            (FileFormat::WebP, limit(), FaultKind::TooLarge),
            (
                FileFormat::Hdr,
                ImageError::IoError(refused),
                FaultKind::NoMemory,
            ),
        ] {
            assert_eq!(fault(format, e).kind, kind, "{format}");
        }
    }
}
