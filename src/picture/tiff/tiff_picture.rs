//! The header of a picture: its kind of pixels, and the places of its strips and tiles.
//!
//! Pure. Nothing is decoded here; `decode` decodes by these facts.

use super::compression::TiffCompression;
use super::directory::{ByteOrder, TiffDirectory, tag};
use super::fault::{corrupt, unsupported};
use super::pixel_kind::{PixelKind, SampleFormat, TiffColors};
use super::ycbcr::YCbCr;
use crate::error::SampleFault;
use crate::picture::limits::PictureLimits;
use crate::picture::orientation::ExifOrientation;
use crate::picture::reader::PictureReader;
use crate::picture::rgb8::{AlphaKind, PixelForm};
use crate::picture::xmp;

/// A picture whose header has been read.
pub(in crate::picture) struct TiffPicture {
    pub(super) size: (u32, u32),
    orientation: ExifOrientation,
    pub(super) kind: PixelKind,
    pub(super) order: ByteOrder,
    pub(super) compression: TiffCompression,
    /// The bits of each byte are in reverse order.
    pub(super) reversed: bool,
    pub(super) predictor: u64,
    pub(super) chunks: TiffChunks,
    /// Red, green and blue of each index.
    pub(super) palette: Vec<[u8; 3]>,
    pub(super) jpeg_tables: Vec<u8>,
    pub(super) fax_options: u64,
    pub(super) ycbcr: YCbCr,
}

/// Strips or tiles.
pub(super) struct TiffChunks {
    /// Width and height of each; a last strip may be lower.
    pub(super) size: (u32, u32),
    pub(super) are_tiles: bool,
    /// How many are side by side, and one below the other.
    pub(super) across: u64,
    pub(super) down: u64,
    /// Each sample has chunks of its own.
    pub(super) planar: bool,
    pub(super) offsets: Vec<u64>,
    /// Bytes of each in the file.
    pub(super) lengths: Vec<u64>,
}

impl TiffPicture {
    pub(in crate::picture) fn read(
        file: &mut PictureReader<'_>,
        len: u64,
        limits: &PictureLimits,
    ) -> Result<Self, SampleFault> {
        let directory = TiffDirectory::read(file)?;
        let mut number = |tag, default| {
            let number = directory.number(file, tag)?;
            Ok::<u64, SampleFault>(number.unwrap_or(default))
        };
        let side = |v: u64| u32::try_from(v).unwrap_or(u32::MAX);
        let size = (side(number(tag::WIDTH, 0)?), side(number(tag::HEIGHT, 0)?));
        if size.0 == 0 || size.1 == 0 {
            return Err(corrupt(format!("{} x {} pixels", size.0, size.1)));
        }
        limits.check_pixels("TIFF", size)?;
        let compression = TiffCompression::of(number(tag::COMPRESSION, 1)?)?;
        // Pillow treats a missing one as 0.
        let colours = TiffColors::of(number(tag::PHOTOMETRIC, 0)?)?;
        let reversed = number(tag::FILL_ORDER, 1)? == 2;
        let planar = number(tag::PLANAR, 1)? == 2;
        // Other compressions have no differences, whatever the tag states.
        let predictor = match compression {
            TiffCompression::Lzw | TiffCompression::Deflate | TiffCompression::Zstd => {
                number(tag::PREDICTOR, 1)?
            }
            _ => 1,
        };
        let fax_options = number(tag::FAX_OPTIONS, 0)?;
        let samples = match compression {
            TiffCompression::Jpeg => u64::from(colours.samples()),
            _ => 1,
        };
        let samples = number(tag::SAMPLES, samples)?;
        let kind = read_kind(&directory, file, colours, samples)?;
        if predictor != 1 {
            check_predictor(predictor, kind)?;
        }
        let palette = match colours {
            TiffColors::Palette => read_palette(&directory, file, kind.bits)?,
            _ => Vec::new(),
        };
        let chunks = read_chunks(&directory, file, (size, kind), planar)?;
        // A tile may be larger than its picture.
        limits.check_pixels("TIFF tile", chunks.size)?;
        check_samples(compression, kind, &chunks)?;
        let tables = directory.bytes(file, tag::JPEG_TABLES, 1 << 16);
        let is_packed = compression != TiffCompression::None;
        let mut picture = Self {
            size,
            orientation: read_orientation(&directory, file),
            kind,
            order: directory.order,
            compression,
            reversed,
            predictor,
            chunks,
            palette,
            jpeg_tables: tables.unwrap_or_default(),
            fax_options,
            ycbcr: YCbCr::read(&directory, file)?,
        };
        picture.settle_ycbcr(is_packed)?;
        picture.settle_lengths(len);
        Ok(picture)
    }

    /// An uncompressed picture that does not state its subsampling may have full chroma.
    fn settle_ycbcr(&mut self, is_packed: bool) -> Result<(), SampleFault> {
        let is_jpeg = self.compression == TiffCompression::Jpeg;
        if self.kind.colours != TiffColors::YCbCr || is_jpeg {
            self.ycbcr.subsampling = (1, 1);
            return Ok(());
        }
        if self.chunks.planar && self.ycbcr.subsampling != (1, 1) {
            return Err(unsupported("planes of subsampled chroma"));
        }
        let full = 3 * u64::from(self.size.0) * u64::from(self.size.1);
        if !self.ycbcr.is_said && !is_packed && sum(&self.chunks.lengths) == full {
            self.ycbcr.subsampling = (1, 1);
        }
        let is_subsampled = self.ycbcr.subsampling != (1, 1);
        if is_subsampled && (self.kind.samples != 3 || self.predictor != 1) {
            return Err(unsupported(
                "subsampled chroma and extra samples or a predictor",
            ));
        }
        Ok(())
    }

    /// Sets lengths that the file does not state: to the end of the chunk, or of the file.
    fn settle_lengths(&mut self, len: u64) {
        if self.chunks.lengths.len() >= self.chunks.offsets.len() {
            return;
        }
        let most = match self.compression {
            TiffCompression::None => self.chunk_bytes(self.chunks.size.1),
            _ => u64::MAX,
        };
        let lengths = self
            .chunks
            .offsets
            .iter()
            .map(|&at| len.saturating_sub(at).min(most));
        self.chunks.lengths = lengths.collect();
    }

    pub(in crate::picture) fn size(&self) -> (u32, u32) {
        self.size
    }

    pub(in crate::picture) fn orientation(&self) -> ExifOrientation {
        self.orientation
    }

    pub(in crate::picture) fn form(&self) -> PixelForm {
        self.kind.form()
    }

    pub(in crate::picture) fn alpha_kind(&self) -> AlphaKind {
        self.kind.alpha_kind
    }

    /// Samples of a pixel in a chunk.
    pub(super) fn chunk_samples(&self) -> u16 {
        match self.chunks.planar {
            true => 1,
            false => self.kind.samples,
        }
    }

    /// Bytes of a row of a chunk, or of a row of blocks of subsampled chroma.
    pub(super) fn row_bytes(&self) -> u64 {
        let width = u64::from(self.chunks.size.0);
        match self.ycbcr.subsampling {
            (1, 1) => self.kind.row_bytes(width, self.chunk_samples()),
            (h, v) => width.div_ceil(h.into()) * (u64::from(h) * u64::from(v) + 2),
        }
    }

    /// Bytes of a chunk with `rows` rows.
    pub(super) fn chunk_bytes(&self, rows: u32) -> u64 {
        let rows = u64::from(rows).div_ceil(self.ycbcr.subsampling.1.into());
        self.row_bytes().saturating_mul(rows)
    }

    /// Maximum bytes for decoding, besides the frame.
    pub(in crate::picture) fn scratch_bytes(&self) -> u64 {
        let chunk = self.chunk_bytes(self.chunks.size.1);
        let file = self.chunks.lengths.iter().max().copied().unwrap_or(0);
        let pixels = u64::from(self.chunks.size.0) * u64::from(self.chunks.size.1);
        let beside = self.compression.extra_bytes(chunk, pixels);
        // A copy of the file's bytes if their bits are reversed or they are joined.
        let copied = match self.reversed || self.compression == TiffCompression::Jpeg {
            true => file.saturating_add(self.jpeg_tables.len() as u64 + 64),
            false => 0,
        };
        let unpacked = match self.compression {
            TiffCompression::None if self.predictor == 1 => 0,
            _ => chunk,
        };
        let offsets = 16 * self.chunks.offsets.len() as u64;
        let rows = 2 * self.row_bytes();
        [unpacked, copied, beside, offsets, rows]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// The sum of the lengths of strips or tiles.
fn sum(lengths: &[u64]) -> u64 {
    lengths.iter().fold(0, |sum, len| sum.saturating_add(*len))
}

fn read_kind(
    directory: &TiffDirectory,
    file: &mut PictureReader<'_>,
    colours: TiffColors,
    samples: u64,
) -> Result<PixelKind, SampleFault> {
    let bits = directory
        .numbers(file, tag::BITS)?
        .unwrap_or_else(|| vec![1]);
    let bits = &bits[..bits
        .len()
        .min(usize::try_from(samples).unwrap_or(usize::MAX))];
    let Some((&first, rest)) = bits.split_first() else {
        return Err(corrupt("samples of 0 bits"));
    };
    if rest.iter().any(|&bits| bits != first) {
        return Err(unsupported(format!("samples of different bits, {bits:?},")));
    }
    let formats = directory
        .numbers(file, tag::SAMPLE_FORMAT)?
        .unwrap_or_default();
    let number = match formats.first() {
        None | Some(1 | 4) => SampleFormat::Unsigned,
        Some(2) => SampleFormat::Signed,
        Some(3) => SampleFormat::Float,
        Some(other) => return Err(unsupported(format!("samples of format {other}"))),
    };
    if formats.iter().any(|format| Some(format) != formats.first()) {
        return Err(unsupported(format!(
            "samples of different formats, {formats:?},"
        )));
    }
    let extra = directory.numbers(file, tag::EXTRA_SAMPLES)?;
    PixelKind::of(colours, first, number, samples, extra.as_deref())
}

/// Rejects kinds that a compression of pixels, not of bytes, cannot hold.
fn check_samples(
    compression: TiffCompression,
    kind: PixelKind,
    chunks: &TiffChunks,
) -> Result<(), SampleFault> {
    let samples = if chunks.planar { 1 } else { kind.samples };
    let fits = match compression {
        TiffCompression::Fax(_) => (kind.bits, samples) == (1, 1),
        TiffCompression::WebP => kind.bits == 8 && matches!(samples, 3 | 4),
        TiffCompression::Jpeg => kind.bits == 8,
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => Err(unsupported(format!(
            "{compression:?} of {samples} samples of {} bits",
            kind.bits
        ))),
    }
}

fn check_predictor(predictor: u64, kind: PixelKind) -> Result<(), SampleFault> {
    match (predictor, kind.number) {
        (2, _) if matches!(kind.bits, 8 | 16 | 32 | 64) => Ok(()),
        (3, SampleFormat::Float) => Ok(()),
        _ => Err(unsupported(format!(
            "predictor {predictor} with {} bits",
            kind.bits
        ))),
    }
}

fn read_palette(
    directory: &TiffDirectory,
    file: &mut PictureReader<'_>,
    bits: u16,
) -> Result<Vec<[u8; 3]>, SampleFault> {
    let values = directory.numbers(file, tag::PALETTE)?.unwrap_or_default();
    let colours = 1 << bits;
    if values.len() < 3 * colours {
        return Err(corrupt(format!(
            "a palette of {} values for {bits} bits",
            values.len()
        )));
    }
    let high = |at: usize| (values[at] >> 8) as u8;
    let colour = |i: usize| [high(i), high(colours + i), high(2 * colours + i)];
    Ok((0..colours).map(colour).collect())
}

/// A broken tag is never a fault.
fn read_orientation(directory: &TiffDirectory, file: &mut PictureReader<'_>) -> ExifOrientation {
    if directory.has(tag::ORIENTATION) {
        let value = directory.number(file, tag::ORIENTATION).ok().flatten();
        let value = value.and_then(|value| u32::try_from(value).ok());
        return value
            .and_then(ExifOrientation::from_tag)
            .unwrap_or_default();
    }
    let packet = directory.bytes(file, tag::XMP, xmp::MOST);
    xmp::orientation(&packet.unwrap_or_default())
}

fn read_chunks(
    directory: &TiffDirectory,
    file: &mut PictureReader<'_>,
    (size, kind): ((u32, u32), PixelKind),
    planar: bool,
) -> Result<TiffChunks, SampleFault> {
    let are_tiles = directory.has(tag::TILE_OFFSETS);
    let mut side = |tag| {
        let side = directory.number(file, tag)?.unwrap_or(0);
        Ok::<u32, SampleFault>(u32::try_from(side).unwrap_or(u32::MAX))
    };
    let chunk = match are_tiles {
        true => (side(tag::TILE_WIDTH)?, side(tag::TILE_HEIGHT)?),
        false => match side(tag::ROWS_PER_STRIP)? {
            0 => size,
            rows => (size.0, rows.min(size.1)),
        },
    };
    if chunk.0 == 0 || chunk.1 == 0 {
        return Err(corrupt(format!(
            "tiles of {} x {} pixels",
            chunk.0, chunk.1
        )));
    }
    let (offsets, lengths) = match are_tiles {
        true => (tag::TILE_OFFSETS, tag::TILE_BYTES),
        false => (tag::STRIP_OFFSETS, tag::STRIP_BYTES),
    };
    let chunks = TiffChunks {
        size: chunk,
        are_tiles,
        across: u64::from(size.0.div_ceil(chunk.0)),
        down: u64::from(size.1.div_ceil(chunk.1)),
        planar: planar && kind.samples > 1,
        offsets: directory.numbers(file, offsets)?.unwrap_or_default(),
        lengths: directory.numbers(file, lengths)?.unwrap_or_default(),
    };
    let planes = if chunks.planar { kind.samples } else { 1 };
    let needed = chunks.across * chunks.down * u64::from(planes);
    if (chunks.offsets.len() as u64) < needed {
        return Err(corrupt(format!(
            "{} strips or tiles, and {needed} are needed",
            chunks.offsets.len()
        )));
    }
    Ok(chunks)
}
