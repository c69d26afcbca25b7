//! Decodes strips and tiles into the frame.
//!
//! Pure: no I/O.

use super::compression::{ChunkShape, TiffCompression, unpack};
use super::directory::ByteOrder;
use super::fault::truncated;
use super::pixel_kind::{PixelKind, TiffColors};
use super::predictor;
use super::tiff_picture::TiffPicture;
use super::ycbcr::YCbCrTables;
use crate::error::SampleFault;
use crate::picture::buffer::grow;
use crate::picture::limits::PictureLimits;
use crate::picture::rgb8::PixelForm;

/// The place of a chunk in the picture.
#[derive(Clone, Copy)]
struct ChunkPlace {
    x: u32,
    y: u32,
    /// Rows and columns of the picture in the chunk.
    rows: u32,
    columns: u32,
    /// Rows stored in the chunk.
    stored_rows: u32,
    /// The chunk's sample, if each sample has chunks of its own.
    plane: Option<u16>,
}

impl TiffPicture {
    /// Fills `frame` with rows of pixels in the picture's form.
    pub(in crate::picture) fn decode(
        &self,
        bytes: &[u8],
        limits: &PictureLimits,
        frame: &mut [u8],
    ) -> Result<(), SampleFault> {
        let chunks = &self.chunks;
        let per_plane = chunks.across * chunks.down;
        let planes = if chunks.planar { self.kind.samples } else { 1 };
        let mut spare = DecodeBuffers::default();
        if self.kind.colours == TiffColors::YCbCr && self.compression != TiffCompression::Jpeg {
            spare.tables = Some(self.ycbcr.tables()?);
        }
        let mut at = 0;
        for plane in 0..planes {
            for number in 0..per_plane {
                let place = self.place(number, chunks.planar.then_some(plane));
                let data = chunk_data(bytes, chunks.offsets[at], chunks.lengths.get(at))?;
                at += 1;
                self.decode_chunk(data, place, limits, &mut spare, frame)?;
            }
        }
        if let Some(tables) = &spare.tables
            && self.ycbcr.subsampling == (1, 1)
        {
            for pixel in frame.as_chunks_mut::<3>().0 {
                let [y, cb, cr] = *pixel;
                *pixel = tables.rgb(y, cb, cr);
            }
        }
        Ok(())
    }

    fn place(&self, number: u64, plane: Option<u16>) -> ChunkPlace {
        let (width, height) = self.chunks.size;
        let x = (number % self.chunks.across) as u32 * width;
        let y = (number / self.chunks.across) as u32 * height;
        let rows = height.min(self.size.1 - y);
        ChunkPlace {
            x,
            y,
            rows,
            columns: width.min(self.size.0 - x),
            stored_rows: if self.chunks.are_tiles { height } else { rows },
            plane,
        }
    }

    fn decode_chunk(
        &self,
        data: &[u8],
        place: ChunkPlace,
        limits: &PictureLimits,
        spare: &mut DecodeBuffers,
        frame: &mut [u8],
    ) -> Result<(), SampleFault> {
        let len = self.chunk_bytes(place.stored_rows) as usize;
        if self.compression == TiffCompression::Jpeg {
            grow(&mut spare.chunk, len)?;
            self.decode_jpeg(data, place, limits, spare)?;
            self.write(None, &spare.chunk[..len], place, frame);
            return Ok(());
        }
        let data = match self.reversed {
            false => data,
            true => {
                spare.file.clear();
                spare.file.extend(data.iter().map(|b| b.reverse_bits()));
                &spare.file
            }
        };
        if self.compression == TiffCompression::None && self.predictor == 1 {
            // Uses the data in place. Rows outside the picture may be missing.
            let needed = self.chunk_bytes(place.rows) as usize;
            let Some(chunk) = data.get(..needed) else {
                return Err(truncated(format!(
                    "a strip or tile has {} bytes, but its rows need {needed}",
                    data.len()
                )));
            };
            self.write(spare.tables.as_ref(), chunk, place, frame);
            return Ok(());
        }
        grow(&mut spare.chunk, len)?;
        let chunk = &mut spare.chunk[..len];
        let kind = ChunkShape {
            width: self.chunks.size.0,
            rows: place.stored_rows,
            samples: self.chunk_samples(),
            fax_options: self.fax_options,
        };
        unpack(self.compression, &kind, data, chunk)?;
        self.undo_differences(chunk, &mut spare.row)?;
        self.write(spare.tables.as_ref(), &spare.chunk[..len], place, frame);
        Ok(())
    }

    fn undo_differences(&self, chunk: &mut [u8], spare: &mut Vec<u8>) -> Result<(), SampleFault> {
        let step = usize::from(self.chunk_samples());
        let row_bytes = self.row_bytes() as usize;
        match self.predictor {
            2 => {
                for row in chunk.chunks_exact_mut(row_bytes) {
                    predictor::sum_up(row, self.kind.bits, step, self.order);
                }
            }
            3 => {
                grow(spare, row_bytes)?;
                for row in chunk.chunks_exact_mut(row_bytes) {
                    predictor::sum_up_floats(row, self.kind.bits, step, spare);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The byte order of samples: that of the file, or that of JPEG and of differences.
    fn sample_order(&self) -> ByteOrder {
        match self.predictor {
            3 => ByteOrder::Big,
            _ => self.order,
        }
    }

    /// Writes the pixels of a chunk to their place.
    fn write(
        &self,
        tables: Option<&YCbCrTables>,
        chunk: &[u8],
        place: ChunkPlace,
        frame: &mut [u8],
    ) {
        if let (Some(tables), true) = (tables, self.ycbcr.subsampling != (1, 1)) {
            return self.write_blocks(tables, chunk, place, frame);
        }
        let pixel = self.form().bytes();
        let row_bytes = self.row_bytes() as usize;
        let width = self.size.0 as usize;
        let order = self.sample_order();
        for (y, row) in chunk
            .chunks_exact(row_bytes)
            .take(place.rows as usize)
            .enumerate()
        {
            let at = ((place.y as usize + y) * width + place.x as usize) * pixel;
            let to = &mut frame[at..at + place.columns as usize * pixel];
            match place.plane {
                Some(plane) => self.write_plane(row, plane, order, to),
                None => self.write_row(row, order, to),
            }
        }
    }

    fn write_row(&self, row: &[u8], order: ByteOrder, to: &mut [u8]) {
        let kind = self.kind;
        let samples = usize::from(kind.samples);
        let pixel = self.form().bytes();
        // The most common forms are copied.
        if kind.bits == 8
            && samples == pixel
            && matches!(kind.colours, TiffColors::Rgb | TiffColors::YCbCr)
            && kind.alpha.is_none_or(|alpha| alpha == 3)
        {
            to.copy_from_slice(&row[..to.len()]);
            return;
        }
        for (x, to) in to.chunks_exact_mut(pixel).enumerate() {
            let sample = |i: u16| kind.level(row, x * samples + usize::from(i), order);
            match kind.colours {
                TiffColors::Grey { zero_is_white } => to[0] = grey(kind, sample(0), zero_is_white),
                TiffColors::Palette => {
                    let index = usize::from(sample(0));
                    let colour = self.palette.get(index).copied().unwrap_or_default();
                    to[..3].copy_from_slice(&colour);
                }
                TiffColors::Rgb | TiffColors::YCbCr => {
                    to[..3].copy_from_slice(&[sample(0), sample(1), sample(2)]);
                }
                TiffColors::Cmyk => {
                    to[..3].copy_from_slice(&rgb_of_cmyk([0, 1, 2, 3].map(sample)));
                }
            }
            if let Some(alpha) = kind.alpha {
                to[pixel - 1] = sample(alpha);
            }
        }
    }

    /// Writes one sample of each pixel. CMYK is converted when black arrives, which is last.
    fn write_plane(&self, row: &[u8], plane: u16, order: ByteOrder, to: &mut [u8]) {
        let kind = self.kind;
        let pixel = self.form().bytes();
        for (x, to) in to.chunks_exact_mut(pixel).enumerate() {
            let level = kind.level(row, x, order);
            match (kind.colours, plane) {
                (_, plane) if kind.alpha == Some(plane) => to[pixel - 1] = level,
                (TiffColors::Grey { zero_is_white }, 0) => to[0] = grey(kind, level, zero_is_white),
                (TiffColors::Palette, 0) => {
                    let colour = self.palette.get(usize::from(level)).copied();
                    to[..3].copy_from_slice(&colour.unwrap_or_default());
                }
                (TiffColors::Rgb | TiffColors::YCbCr | TiffColors::Cmyk, 0..=2) => {
                    to[usize::from(plane)] = level;
                }
                (TiffColors::Cmyk, 3) => {
                    let rgb = rgb_of_cmyk([to[0], to[1], to[2], level]);
                    to[..3].copy_from_slice(&rgb);
                }
                _ => {}
            }
        }
    }

    /// Writes blocks of luma, each with its two values of chroma.
    fn write_blocks(
        &self,
        tables: &YCbCrTables,
        chunk: &[u8],
        place: ChunkPlace,
        frame: &mut [u8],
    ) {
        let (h, v) = self.ycbcr.subsampling;
        let (h, v) = (usize::from(h), usize::from(v));
        let row_bytes = self.row_bytes() as usize;
        for (block_y, row) in chunk.chunks_exact(row_bytes).enumerate() {
            for (block_x, block) in row.chunks_exact(h * v + 2).enumerate() {
                let chroma = (block[h * v], block[h * v + 1]);
                for (i, &luma) in block[..h * v].iter().enumerate() {
                    let (x, y) = (block_x * h + i % h, block_y * v + i / h);
                    if x < place.columns as usize && y < place.rows as usize {
                        self.put(tables, (x, y), place, (luma, chroma), frame);
                    }
                }
            }
        }
    }

    fn put(
        &self,
        tables: &YCbCrTables,
        (x, y): (usize, usize),
        place: ChunkPlace,
        (luma, (cb, cr)): (u8, (u8, u8)),
        frame: &mut [u8],
    ) {
        let row = (place.y as usize + y) * self.size.0 as usize;
        let at = 3 * (row + place.x as usize + x);
        frame[at..at + 3].copy_from_slice(&tables.rgb(luma, cb, cr));
    }

    /// Fills the chunk with the pixels of its JPEG.
    #[cfg(feature = "codecs")]
    fn decode_jpeg(
        &self,
        data: &[u8],
        place: ChunkPlace,
        limits: &PictureLimits,
        spare: &mut DecodeBuffers,
    ) -> Result<(), SampleFault> {
        use super::fault::{corrupt, unsupported};
        use crate::picture::jpeg::{self, DecodeScale, JpegDecoder, PixelRegion};

        let samples = usize::from(self.chunk_samples());
        let file = &mut spare.file;
        file.clear();
        // The transform in Adobe's segment: 0 for no conversion, 1 for YCbCr.
        let transform = u8::from(self.kind.colours == TiffColors::YCbCr && samples == 3);
        file.extend_from_slice(b"\xff\xd8\xff\xee\0\x0eAdobe\0\x64\0\0\0\0");
        file.push(transform);
        let inside = |bytes: &[u8]| -> Vec<u8> {
            let bytes = bytes.strip_prefix(b"\xff\xd8").unwrap_or(bytes);
            bytes.strip_suffix(b"\xff\xd9").unwrap_or(bytes).to_vec()
        };
        file.extend_from_slice(&inside(&self.jpeg_tables));
        file.extend_from_slice(data.strip_prefix(b"\xff\xd8").unwrap_or(data));
        file.extend_from_slice(b"\xff\xd9");
        let header = jpeg::read_header(file)?;
        let size = (header.width, header.height);
        if size.0 != self.chunks.size.0 || size.1 < place.rows {
            return Err(corrupt(format!(
                "JPEG of {} x {} in a strip or tile of {} x {}",
                size.0, size.1, self.chunks.size.0, place.stored_rows
            )));
        }
        if usize::from(header.components) != samples || self.kind.bits != 8 {
            return Err(unsupported(format!(
                "JPEG of {} components inside, and {samples} samples of {} bits",
                header.components, self.kind.bits
            )));
        }
        let rows = place.stored_rows.min(size.1);
        let region = PixelRegion {
            x: 0,
            y: 0,
            w: size.0,
            h: rows,
        };
        let decoder = JpegDecoder::new(limits);
        let scratch = &mut spare.jpeg;
        let decoded = decoder.decode_region(file, &header, DecodeScale::Full, region, scratch)?;
        let width = size.0 as usize;
        let chunk = &mut spare.chunk[..width * samples * place.stored_rows as usize];
        chunk[width * samples * rows as usize..].fill(0);
        let (pixels, step, stride) = match samples {
            4 => (&scratch.cmyk, 4, decoded.w as usize * 4),
            _ => (&scratch.rgb, 3, decoded.stride),
        };
        let lines = pixels.chunks(stride.max(1)).take(rows as usize);
        for (to, line) in chunk.chunks_exact_mut(width * samples).zip(lines) {
            for (to, pixel) in to.chunks_exact_mut(samples).zip(line.chunks_exact(step)) {
                to.copy_from_slice(&pixel[..samples]);
            }
        }
        Ok(())
    }

    #[cfg(not(feature = "codecs"))]
    fn decode_jpeg(
        &self,
        _: &[u8],
        _: ChunkPlace,
        _: &PictureLimits,
        _: &mut DecodeBuffers,
    ) -> Result<(), SampleFault> {
        Err(super::fault::unsupported(
            "JPEG inside, without the feature codecs,",
        ))
    }
}

/// Buffers of one decode.
#[derive(Default)]
struct DecodeBuffers {
    /// An unpacked chunk.
    chunk: Vec<u8>,
    /// Bytes of the file whose bits are reversed, or that are joined.
    file: Vec<u8>,
    row: Vec<u8>,
    /// Conversion tables of luma and chroma, unless JPEG converts them.
    tables: Option<YCbCrTables>,
    #[cfg(feature = "codecs")]
    jpeg: crate::picture::jpeg::JpegScratch,
}

fn chunk_data<'a>(
    bytes: &'a [u8],
    offset: u64,
    len: Option<&u64>,
) -> Result<&'a [u8], SampleFault> {
    let len = len.copied().unwrap_or(0);
    let range = usize::try_from(offset)
        .ok()
        .zip(usize::try_from(offset.saturating_add(len)).ok())
        .and_then(|(from, to)| bytes.get(from..to));
    range.ok_or_else(|| {
        truncated(format!(
            "a strip or tile of {len} bytes at byte {offset}, and the file has {}",
            bytes.len()
        ))
    })
}

fn grey(kind: PixelKind, level: u8, zero_is_white: bool) -> u8 {
    use super::pixel_kind::SampleFormat;
    // Floats are not inverted, as in Pillow.
    match zero_is_white && kind.number == SampleFormat::Unsigned {
        true => 255 - level,
        false => level,
    }
}

/// Each level is (255 - ink)(1 - black / 255), rounded down. The inks are 0 to 255.
fn rgb_of_cmyk([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    let light = 1.0 - f32::from(k) / 255.0;
    [c, m, y].map(|v| ((255.0 - f32::from(v)) * light) as u8)
}

/// Bytes of a frame in this form and size.
pub(in crate::picture) fn frame_bytes(form: PixelForm, (width, height): (u32, u32)) -> u64 {
    u64::from(width) * u64::from(height) * form.bytes() as u64
}
