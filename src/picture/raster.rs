//! Every format but JPEG, as rows of 8-bit RGB, top to bottom.
//!
//! Pure: bytes in, rows or a fault out. PNG comes row by row (`png`); of raw
//! pixels (`npy`) rows are where they lie in the file; the others come by the
//! `image` crate, whose decoders give whole frames. Of an animation the
//! first picture counts, of an icon the largest. Nothing here knows what the
//! rows become.
//!
//! Memory: a frame format holds its frame and what its decoder needs beside it;
//! [`Raster::decoding`] says how much before a pixel is decoded.

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Seek};
use std::ops::Range;

use image::error::ImageError;
use image::{ColorType, ImageDecoder, ImageReader};

use super::background::Transparency;
use super::buffer::grow;
use super::facts::{Decoding, PictureHeader};
use super::format::Format;
use super::formats::{Decoder, Frame};
use super::limits::Limits;
use super::orientation::Orientation;
use super::png::{self, PngReader};
use super::png_repair::{self, Missing};
use super::reader::{PictureFile, Reader, Window};
use super::rgb8::{AlphaKind, Form};
use super::tiff::{TiffPicture, frame_bytes};
use super::{dds, gif, ico, npy, openexr, tga, webp};
use crate::error::{FaultKind, SampleFault};

/// Buffers that are kept between samples.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// A whole picture, as its file's pixels are.
    frame: Vec<u8>,
    /// One row of it.
    native: Vec<u8>,
    /// The same row, wanted columns only, as RGB.
    rgb: Vec<u8>,
}

impl Scratch {
    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.frame.capacity() + self.native.capacity() + self.rgb.capacity()
    }
}

/// A picture whose header was read.
pub(crate) struct Raster<'a> {
    size: (u32, u32),
    orientation: Orientation,
    form: Form,
    alpha: AlphaKind,
    rows: Rows<'a>,
}

enum Rows<'a> {
    Png(Box<PngReader<'a>>),
    /// Not decoded yet.
    Frame(Format, Box<dyn ImageDecoder + 'a>),
    /// Not decoded yet: the file, and the limits that it is held to.
    Tiff(Box<TiffPicture>, &'a [u8], Limits),
    /// In the scratch buffer.
    Decoded,
    /// In the file.
    Raw(&'a [u8]),
}

/// The header of a file of this format and `len` bytes, held to the limits as
/// [`Raster::open`] does.
pub(super) fn read_header(
    format: Format,
    file: &mut dyn PictureFile,
    len: u64,
    limits: &Limits,
) -> Result<PictureHeader, SampleFault> {
    let header = |stored, orientation, scratch| PictureHeader {
        format,
        stored,
        orientation,
        decoding: Decoding::Rows { scratch },
        part: None,
    };
    match format.row().decoder {
        Decoder::Jpeg => Err(elsewhere(format)),
        Decoder::Raw => {
            let mut head = Vec::new();
            let read = file.take(format.row().header).read_to_end(&mut head);
            read.map_err(|e| fault(format, e.into()))?;
            let raw = open_raw(&head, len, limits)?;
            Ok(PictureHeader {
                format,
                stored: (raw.width, raw.height),
                orientation: Orientation::Normal,
                decoding: raw_decoding(raw.channels, raw.width),
                part: None,
            })
        }
        Decoder::Png => {
            let window = Window::of_header(format);
            let chunks = open_png(&mut Reader::of_file(file, &window), &window, limits)?;
            let scratch = chunks.scratch_bytes();
            Ok(header(chunks.size, chunks.orientation, scratch))
        }
        Decoder::Tiff => {
            let window = Window::of_header(format);
            let picture = open_tiff(&mut Reader::of_file(file, &window), &window, len, limits)?;
            let scratch = tiff_scratch(&picture);
            Ok(header(picture.size(), picture.orientation(), scratch))
        }
        Decoder::Frame(_) => {
            let window = Window::of_header(format);
            let file = Reader::of_file(file, &window);
            let opened = open_frame(format, file, &window, len, limits)?;
            let size = opened.decoder.dimensions();
            // A form that is not served fails later, when it is decoded.
            let scratch = form(format, opened.decoder.color_type())
                .map_or(0, |form| frame_scratch(format, form, size));
            Ok(header(size, opened.orientation, scratch))
        }
    }
}

fn elsewhere(format: Format) -> SampleFault {
    FaultKind::Unsupported.fault(format!("{format} is decoded elsewhere"))
}

/// The chunks of a PNG that is not too large, for the limits and for its file.
fn open_png(
    file: &mut Reader<'_>,
    window: &Window,
    limits: &Limits,
) -> Result<png::Chunks, SampleFault> {
    let chunks = window.check(Format::Png, png::walk(file))?;
    limits.check_pixels(Format::Png.name(), chunks.size)?;
    chunks.check_data()?;
    Ok(chunks)
}

/// The header of raw pixels that are not too many, for the limits and for the file
/// of `len` bytes.
fn open_raw(head: &[u8], len: u64, limits: &Limits) -> Result<npy::Header, SampleFault> {
    let header = npy::Header::read(head, len)?;
    limits.check_pixels(Format::Npy.name(), (header.width, header.height))?;
    Ok(header)
}

fn raw_decoding(channels: u32, width: u32) -> Decoding {
    match channels {
        3 => Decoding::Raw,
        // The row that is handed out.
        _ => Decoding::Rows {
            scratch: 3 * u64::from(width),
        },
    }
}

fn open_tiff(
    file: &mut Reader<'_>,
    window: &Window,
    len: u64,
    limits: &Limits,
) -> Result<TiffPicture, SampleFault> {
    window.check(Format::Tiff, TiffPicture::read(file, len, limits))
}

/// The row that is handed out, the frame, and what decoding takes beside it.
fn tiff_scratch(picture: &TiffPicture) -> u64 {
    let frame = frame_bytes(picture.form(), picture.size());
    let row = 3 * u64::from(picture.size().0);
    (row + frame).saturating_add(picture.scratch_bytes())
}

/// A file of any other format, its header read.
struct Opened<'a> {
    decoder: Box<dyn ImageDecoder + 'a>,
    orientation: Orientation,
    alpha: AlphaKind,
}

fn open_frame<'a>(
    format: Format,
    file: Reader<'a>,
    window: &Window,
    len: u64,
    limits: &Limits,
) -> Result<Opened<'a>, SampleFault> {
    let opened = read_frame_header(format, file, len, limits);
    let opened = window.check(format, opened)?;
    window.open();
    Ok(opened)
}

fn read_frame_header<'a>(
    format: Format,
    mut file: Reader<'a>,
    len: u64,
    limits: &Limits,
) -> Result<Opened<'a>, SampleFault> {
    let unreadable = |e: std::io::Error| fault(format, e.into());
    let mut head = None;
    let mut alpha = AlphaKind::Straight;
    let mut found = None;
    match format {
        Format::OpenExr => {
            openexr::check_layers(&mut file, limits)?;
            alpha = AlphaKind::Premultiplied;
        }
        Format::Dds => (head, alpha) = dds::read_header(&mut file).map_err(unreadable)?,
        Format::Gif => head = gif::grown_header(&mut file),
        Format::Ico => ico::check_profile(&mut file)?,
        Format::Tga => alpha = tga::alpha_kind(&mut file),
        // Its decoder would allocate for an EXIF chunk of any length.
        Format::WebP => found = Some(webp::orientation(&mut file)),
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
    Ok(Opened {
        decoder,
        orientation,
        alpha,
    })
}

/// # Errors
/// A picture of more pixels than a file of `len` bytes can hold. Formats in which
/// a few bytes may stand for any number of pixels pass.
fn check_length(format: Format, (width, height): (u32, u32), len: u64) -> Result<(), SampleFault> {
    let Decoder::Frame(Frame {
        densest: Some((most, bytes)),
        ..
    }) = format.row().decoder
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

impl<'a> Raster<'a> {
    /// Reads the header of a file of this format.
    pub(crate) fn open(
        format: Format,
        bytes: &'a [u8],
        limits: &Limits,
    ) -> Result<Self, SampleFault> {
        match format.row().decoder {
            Decoder::Jpeg => Err(elsewhere(format)),
            Decoder::Png => {
                let window = Window::of_header(format);
                let chunks = open_png(&mut Reader::of(bytes, &window), &window, limits)?;
                if chunks.is_cut_off() {
                    return Self::open_repaired(bytes, Missing::Refused, limits);
                }
                let reader = PngReader::open(Cow::Borrowed(bytes), limits)?;
                Ok(Self::of_png(&chunks, reader))
            }
            Decoder::Raw => {
                let raw = open_raw(bytes, bytes.len() as u64, limits)?;
                Ok(Self {
                    size: (raw.width, raw.height),
                    orientation: Orientation::Normal,
                    form: if raw.channels == 3 {
                        Form::Rgb8
                    } else {
                        Form::L8
                    },
                    alpha: AlphaKind::Straight,
                    rows: Rows::Raw(&bytes[raw.data()]),
                })
            }
            Decoder::Tiff => {
                let (window, len) = (Window::of_header(format), bytes.len() as u64);
                let picture = open_tiff(&mut Reader::of(bytes, &window), &window, len, limits)?;
                Ok(Self {
                    size: picture.size(),
                    orientation: picture.orientation(),
                    form: picture.form(),
                    alpha: picture.alpha_kind(),
                    rows: Rows::Tiff(Box::new(picture), bytes, *limits),
                })
            }
            Decoder::Frame(_) => {
                let window = Window::of_header(format);
                let file = Reader::of(bytes, &window);
                let opened = open_frame(format, file, &window, bytes.len() as u64, limits)?;
                Ok(Self {
                    size: opened.decoder.dimensions(),
                    orientation: opened.orientation,
                    form: form(format, opened.decoder.color_type())?,
                    alpha: opened.alpha,
                    rows: Rows::Frame(format, opened.decoder),
                })
            }
        }
    }

    /// Reads the header of a PNG that ends too early: what it lacks is black, or transparent.
    pub(crate) fn open_truncated(bytes: &'a [u8], limits: &Limits) -> Result<Self, SampleFault> {
        Self::open_repaired(bytes, Missing::Zeros, limits)
    }

    /// # Errors
    /// A file without a header, and one that lacks rows, unless they are to be zeros.
    pub(super) fn open_repaired(
        bytes: &'a [u8],
        missing: Missing,
        limits: &Limits,
    ) -> Result<Self, SampleFault> {
        let window = Window::of_header(Format::Png);
        let chunks = png::walk(&mut Reader::of(bytes, &window));
        let chunks = window.check(Format::Png, chunks)?;
        limits.check_pixels(Format::Png.name(), chunks.size)?;
        let bytes = png_repair::repair(bytes, missing, limits)?;
        let reader = PngReader::open(Cow::Owned(bytes), limits)?;
        Ok(Self::of_png(&chunks, reader))
    }

    fn of_png(chunks: &png::Chunks, reader: PngReader<'a>) -> Self {
        Self {
            size: chunks.size,
            orientation: chunks.orientation,
            form: reader.form(),
            alpha: AlphaKind::Straight,
            rows: Rows::Png(Box::new(reader)),
        }
    }

    /// Width and height as stored.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.size
    }

    pub(crate) fn orientation(&self) -> Orientation {
        self.orientation
    }

    /// All pixels, tight, where the file holds them as RGB8: nothing is to be decoded.
    pub(crate) fn raw(&self) -> Option<&'a [u8]> {
        match self.rows {
            Rows::Raw(pixels) if self.form == Form::Rgb8 => Some(pixels),
            _ => None,
        }
    }

    /// What decoding it takes.
    pub(crate) fn decoding(&self) -> Decoding {
        match self.rows {
            Rows::Raw(_) => raw_decoding(self.form.bytes() as u32, self.size.0),
            Rows::Png(_) | Rows::Frame(..) | Rows::Tiff(..) | Rows::Decoded => Decoding::Rows {
                scratch: self.scratch_bytes(),
            },
        }
    }

    /// The most that decoding it takes, buffers included, bytes.
    fn scratch_bytes(&self) -> u64 {
        let (width, height) = (u64::from(self.size.0), u64::from(self.size.1));
        let row = width * self.form.bytes() as u64;
        // The row that is handed out.
        let rgb = 3 * width;
        match &self.rows {
            Rows::Png(reader) if reader.is_interlaced() => {
                rgb + row * height + reader.working_bytes()
            }
            Rows::Png(reader) => rgb + row + reader.working_bytes(),
            Rows::Frame(format, _) => frame_scratch(*format, self.form, self.size),
            Rows::Tiff(picture, ..) => tiff_scratch(picture),
            Rows::Decoded | Rows::Raw(_) => 0,
        }
    }

    /// Decodes what cannot be had row by row. Call once, before the first row,
    /// and after [`Raster::decoding`] was found to be allowed.
    pub(crate) fn begin(&mut self, scratch: &mut Scratch) -> Result<(), SampleFault> {
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        let frame = width
            .checked_mul(height)
            .and_then(|n| n.checked_mul(self.form.bytes()))
            .unwrap_or(usize::MAX);
        self.rows = match std::mem::replace(&mut self.rows, Rows::Decoded) {
            Rows::Png(reader) if !reader.is_interlaced() => {
                grow(&mut scratch.native, width * self.form.bytes())?;
                Rows::Png(reader)
            }
            Rows::Png(mut reader) => {
                reader.frame(blank(&mut scratch.frame, frame)?)?;
                Rows::Decoded
            }
            Rows::Frame(format, decoder) => {
                if decoder.total_bytes() != frame as u64 {
                    return Err(FaultKind::Corrupt.fault(format!(
                        "{format}: {} bytes of pixels for {height} x {width}",
                        decoder.total_bytes()
                    )));
                }
                let frame = blank(&mut scratch.frame, frame)?;
                decoder.read_image(frame).map_err(|e| fault(format, e))?;
                Rows::Decoded
            }
            Rows::Tiff(picture, bytes, limits) => {
                picture.decode(bytes, &limits, blank(&mut scratch.frame, frame)?)?;
                Rows::Decoded
            }
            begun @ (Rows::Raw(_) | Rows::Decoded) => begun,
        };
        Ok(())
    }

    /// Columns `columns` of row `y` as RGB, with alpha as it is wanted. Rows are asked for from the
    /// top down, each once at most.
    pub(crate) fn row<'b>(
        &mut self,
        y: usize,
        columns: &Range<usize>,
        transparency: Transparency,
        scratch: &'b mut Scratch,
    ) -> Result<&'b [u8], SampleFault>
    where
        'a: 'b,
    {
        let pixel = self.form.bytes();
        let bytes = self.size.0 as usize * pixel;
        let row = match &mut self.rows {
            Rows::Png(reader) => {
                reader.row(y as u32, &mut scratch.native[..bytes])?;
                &scratch.native[..bytes]
            }
            Rows::Raw(pixels) => &pixels[y * bytes..(y + 1) * bytes],
            Rows::Frame(..) | Rows::Tiff(..) | Rows::Decoded => {
                &scratch.frame[y * bytes..(y + 1) * bytes]
            }
        };
        let row = &row[columns.start * pixel..columns.end * pixel];
        if self.form == Form::Rgb8 && transparency != Transparency::Alone {
            return Ok(row);
        }
        grow(&mut scratch.rgb, 3 * columns.len())?;
        let rgb = &mut scratch.rgb[..3 * columns.len()];
        self.form.to_rgb8(row, self.alpha, transparency, rgb);
        Ok(rgb)
    }

    /// Looks at what was not asked for: a file is good or bad as a whole.
    pub(crate) fn finish(&mut self, scratch: &mut Scratch) -> Result<(), SampleFault> {
        let bytes = self.size.0 as usize * self.form.bytes();
        match &mut self.rows {
            Rows::Png(reader) => reader.finish(&mut scratch.native[..bytes]),
            Rows::Frame(..) | Rows::Tiff(..) | Rows::Decoded | Rows::Raw(_) => Ok(()),
        }
    }
}

/// The row that is handed out, the frame, and what lies beside it.
fn frame_scratch(format: Format, form: Form, (width, height): (u32, u32)) -> u64 {
    let (width, height) = (u64::from(width), u64::from(height));
    let pixel = form.bytes() as u64;
    let beside = match format.row().decoder {
        Decoder::Frame(Frame {
            beside: (times, bytes),
            ..
        }) => times * pixel + bytes,
        _ => 0,
    };
    3 * width + width * height * (pixel + beside)
}

fn decoder<'a>(
    format: Format,
    file: Reader<'a>,
    limits: &Limits,
) -> Result<Box<dyn ImageDecoder + 'a>, SampleFault> {
    let Decoder::Frame(Frame { known, .. }) = format.row().decoder else {
        return Err(elsewhere(format));
    };
    // `image` gives limits to a decoder that was made already, header and all, and
    // most decoders look only at width and height then: what a header asks for
    // by itself, and what decoding takes, is bounded by `begin` and, in a worker,
    // by the kernel.
    let mut allowed = image::Limits::no_limits();
    allowed.max_alloc = Some(limits.max_scratch);
    let mut reader = ImageReader::with_format(file, known);
    reader.limits(allowed);
    let decoder = reader.into_decoder().map_err(|e| fault(format, e))?;
    Ok(Box::new(decoder))
}

/// The first `len` bytes of the buffer, all 0. A decoder need not write every
/// pixel (a GIF's index may lie past its palette): what it leaves out must not
/// be of the picture before.
fn blank(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8], SampleFault> {
    grow(buffer, len)?;
    let frame = &mut buffer[..len];
    frame.fill(0);
    Ok(frame)
}

/// A broken EXIF block never costs a picture.
fn orientation(decoder: &mut dyn ImageDecoder) -> Orientation {
    let tag = decoder.orientation().map_or(1, |o| o.to_exif());
    Orientation::from_tag(tag.into()).unwrap_or_default()
}

fn form(format: Format, color: ColorType) -> Result<Form, SampleFault> {
    Ok(match color {
        ColorType::L8 => Form::L8,
        ColorType::La8 => Form::La8,
        ColorType::Rgb8 => Form::Rgb8,
        ColorType::Rgba8 => Form::Rgba8,
        ColorType::L16 => Form::L16,
        ColorType::La16 => Form::La16,
        ColorType::Rgb16 => Form::Rgb16,
        ColorType::Rgba16 => Form::Rgba16,
        ColorType::Rgb32F => Form::Rgb32F,
        ColorType::Rgba32F => Form::Rgba32F,
        other => {
            return Err(FaultKind::Unsupported.fault(format!("{format} of colour type {other:?}")));
        }
    })
}

fn fault(format: Format, e: ImageError) -> SampleFault {
    let kind = match &e {
        ImageError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => FaultKind::Truncated,
        // The system's own errors; decoders put theirs into the same type.
        ImageError::IoError(e) if e.raw_os_error().is_some() => FaultKind::Unreadable,
        ImageError::IoError(e) if e.kind() == ErrorKind::OutOfMemory => FaultKind::NoMemory,
        // These ask for no limit: the error is of a failed allocation there.
        ImageError::Limits(_) if matches!(format, Format::Bmp | Format::Tga) => FaultKind::NoMemory,
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

/// The most of a decoder's own words that a fault has, characters.
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
        // As `image` makes an error of one of `Vec`'s.
        let refused = Vec::<u8>::new().try_reserve(usize::MAX).unwrap_err();
        let refused = std::io::Error::from(refused);
        for (format, e, kind) in [
            (Format::Tga, limit(), FaultKind::NoMemory),
            (Format::Bmp, limit(), FaultKind::NoMemory),
            (Format::Gif, limit(), FaultKind::TooLarge),
            (Format::WebP, limit(), FaultKind::TooLarge),
            (
                Format::Hdr,
                ImageError::IoError(refused),
                FaultKind::NoMemory,
            ),
        ] {
            assert_eq!(fault(format, e).kind, kind, "{format}");
        }
    }
}
