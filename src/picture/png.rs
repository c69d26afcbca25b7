//! PNG, row by row.
//!
//! Pure. An image that is not interlaced is never completely in memory: only the decoder's window,
//! two rows, and the requested row. The pixels of an interlaced image are all over the file, so it
//! is decoded as a frame.
//!
//! A file is good or bad as a whole, whatever part of it is requested. So rows below the last
//! requested one are decoded, too. A file without its end mark is first written again
//! (`png_repair`). It is good if it has all its rows.

use std::borrow::Cow;
use std::io::{self, BufRead, Cursor, ErrorKind, Read, Seek, SeekFrom};

use png::{BitDepth, ColorType, DecodingError, Transformations};

use super::limits::PictureLimits;
use super::orientation::ExifOrientation;
use super::png_repair::{self, SIGNATURE};
use super::png_text::{self, PngText};
use super::reader::PictureReader;
use super::rgb8::PixelForm;
use super::xmp;
use crate::error::{FaultKind, SampleFault};

/// An open PNG.
pub(super) struct PngReader<'a> {
    reader: png::Reader<Cursor<Cow<'a, [u8]>>>,
    form: PixelForm,
    /// Number of rows returned so far.
    next: u32,
    /// Bytes of a file that was written again.
    repaired: u64,
}

impl<'a> PngReader<'a> {
    /// Reads everything before the pixels. Owned bytes are a file that was written again, without
    /// checksums.
    pub(super) fn open(bytes: Cow<'a, [u8]>, limits: &PictureLimits) -> Result<Self, SampleFault> {
        let repaired = match &bytes {
            Cow::Borrowed(_) => 0,
            Cow::Owned(bytes) => bytes.capacity() as u64,
        };
        let limits = png::Limits {
            bytes: usize::try_from(limits.max_scratch).unwrap_or(usize::MAX),
        };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        decoder.ignore_checksums(repaired > 0);
        let reader = decoder.read_info().map_err(fault)?;
        let form = match reader.output_color_type() {
            (ColorType::Grayscale, BitDepth::Eight) => PixelForm::L8,
            (ColorType::GrayscaleAlpha, BitDepth::Eight) => PixelForm::La8,
            (ColorType::Rgb, BitDepth::Eight) => PixelForm::Rgb8,
            (ColorType::Rgba, BitDepth::Eight) => PixelForm::Rgba8,
            (color, depth) => {
                return Err(FaultKind::Unsupported.fault(format!(
                    "PNG decoded to colour type {} of {} bits",
                    color as u8, depth as u8
                )));
            }
        };
        Ok(Self {
            reader,
            form,
            next: 0,
            repaired,
        })
    }

    pub(super) fn form(&self) -> PixelForm {
        self.form
    }

    pub(super) fn is_interlaced(&self) -> bool {
        self.reader.info().interlaced
    }

    /// Maximum bytes that the decoder uses: its window, and rows that are unpacked but not filtered
    /// yet. They are moved together after every fourth.
    pub(super) fn working_bytes(&self) -> u64 {
        let info = self.reader.info();
        let rows = u64::from(info.height.min(8)) + 1;
        info.raw_row_length() as u64 * rows + (512 << 10) + self.repaired
    }

    /// Fills `row` with row `y`, which must not be above the previous one.
    pub(super) fn row(&mut self, y: u32, row: &mut [u8]) -> Result<(), SampleFault> {
        loop {
            if self.reader.read_row(row).map_err(fault)?.is_none() {
                return Err(FaultKind::Corrupt.fault(format!("PNG ends at row {}", self.next)));
            }
            self.next += 1;
            if self.next > y {
                return Ok(());
            }
        }
    }

    /// Decodes the remaining rows, only to find faults.
    pub(super) fn finish(&mut self, row: &mut [u8]) -> Result<(), SampleFault> {
        while self.reader.read_row(row).map_err(fault)?.is_some() {}
        Ok(())
    }

    /// Fills `frame` with all rows of an interlaced image.
    pub(super) fn frame(&mut self, frame: &mut [u8]) -> Result<(), SampleFault> {
        self.reader.next_frame(frame).map_err(fault)?;
        Ok(())
    }
}

/// The facts that a walk over the chunks finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PngChunks {
    /// Width and height.
    pub(super) size: (u32, u32),
    pub(super) orientation: ExifOrientation,
    /// Minimum bytes of the pixels before compression.
    raw: u64,
    /// Bytes of the pixels in the file.
    compressed: u64,
    interlaced: bool,
    /// Whether the file has its end mark.
    ended: bool,
}

impl PngChunks {
    /// Whether the file must be written again before it is decoded.
    pub(super) fn needs_repair(&self) -> bool {
        !self.ended
    }

    /// Maximum bytes for decoding: [`PngReader::working_bytes`] and rows, or the frame, in the
    /// largest form of pixels.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let (width, height) = (u64::from(self.size.0), u64::from(self.size.1));
        let raw_row = self.raw / height.max(1) + 1;
        let working = raw_row * (height.min(8) + 1) + (512 << 10);
        let rows = if self.interlaced { height } else { 1 };
        let repaired = match self.ended {
            true => 0,
            false => png_repair::most_bytes(self.size, self.raw),
        };
        working + 3 * width + 4 * width * rows + repaired
    }

    /// Maximum output bytes of deflate per input byte: 258 bytes from 2 bits.
    const MOST: u64 = 1032;

    /// Checks that the data can hold the image.
    ///
    /// # Errors
    /// An image with more bytes than its file's data can hold at the best compression.
    pub(super) fn check_data(&self) -> Result<(), SampleFault> {
        if self.raw <= self.compressed.saturating_mul(Self::MOST) {
            return Ok(());
        }
        let (
            (width, height),
            Self {
                raw, compressed, ..
            },
        ) = (self.size, *self);
        Err(FaultKind::Truncated.fault(format!(
            "PNG of {width} x {height} = {raw} bytes in {compressed} bytes of data, which \
                 hold {} at most",
            compressed.saturating_mul(Self::MOST)
        )))
    }
}

/// Bytes of all rows, each after its filter byte. An interlaced image has more and shorter rows,
/// and takes no fewer bytes.
fn raw_bytes((width, height): (u32, u32), depth: u8, color: u8) -> u64 {
    let channels = match color {
        2 => 3,
        4 => 2,
        6 => 4,
        // Grey or a palette; the decoder rejects other types.
        _ => 1,
    };
    let row = (u64::from(width) * channels * u64::from(depth)).div_ceil(8) + 1;
    row.saturating_mul(u64::from(height))
}

/// Reads all chunks up to the end mark. A file may also end without one within or after its pixels.
/// Decodes nothing. EXIF and XMP count at any place, because some tools write them after the
/// pixels.
pub(super) fn walk(file: &mut PictureReader<'_>) -> Result<PngChunks, SampleFault> {
    let mut head = [0; 8];
    let read = |file: &mut dyn BufRead, to: &mut [u8]| file.read_exact(to).map_err(cut_off);
    read(file, &mut head)?;
    if head != *SIGNATURE {
        return Err(corrupt("PNG without its signature"));
    }
    read(file, &mut head)?;
    let mut chunks = match head {
        [0, 0, 0, 13, b'I', b'H', b'D', b'R'] => {
            let mut fields = [0; 17];
            read(file, &mut fields)?;
            read_header(fields)?
        }
        _ => return Err(corrupt("PNG without its header at the beginning")),
    };
    let mut ways = PngOrientations::default();
    // The end of the last chunk's content, and whether that chunk has pixels.
    let (mut end, mut is_of_pixels) = (0, false);
    while !chunks.ended {
        match file.read_exact(&mut head).map_err(cut_off) {
            Ok(()) => {}
            Err(fault) if fault.kind == FaultKind::Truncated && chunks.compressed > 0 => {
                if is_of_pixels {
                    chunks.compressed = chunks.compressed.saturating_sub(beyond(file, end)?);
                }
                break;
            }
            Err(fault) => return Err(fault),
        }
        let [l0, l1, l2, l3, kind @ ..] = head;
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        if len > i32::MAX as u32 {
            return Err(corrupt(format!("PNG chunk of {len} bytes")));
        }
        match &kind {
            b"IDAT" => chunks.compressed += u64::from(len),
            b"IEND" => chunks.ended = true,
            _ => {}
        }
        is_of_pixels = kind == *b"IDAT";
        if is_of_pixels {
            end = file.stream_position().map_err(cut_off)? + u64::from(len);
        }
        let looked_at = ways.look(file, kind, len).map_err(cut_off)?;
        // A position past the end is not an error here: the next read reports it.
        file.seek_relative(i64::from(len) + 4 - looked_at as i64)
            .map_err(cut_off)?;
    }
    chunks.orientation = ways.orientation();
    Ok(chunks)
}

/// Reads the fields of the header. The decoder checks its checksum.
fn read_header(fields: [u8; 17]) -> Result<PngChunks, SampleFault> {
    let [
        w0,
        w1,
        w2,
        w3,
        h0,
        h1,
        h2,
        h3,
        depth,
        color,
        _,
        _,
        lacing,
        ..,
    ] = fields;
    let w = u32::from_be_bytes([w0, w1, w2, w3]);
    let h = u32::from_be_bytes([h0, h1, h2, h3]);
    if w == 0 || h == 0 {
        return Err(corrupt(format!("PNG of {h} x {w} pixels")));
    }
    Ok(PngChunks {
        size: (w, h),
        orientation: ExifOrientation::Normal,
        raw: raw_bytes((w, h), depth, color),
        compressed: 0,
        interlaced: lacing != 0,
        ended: false,
    })
}

/// How many bytes `end` is past the end of the file.
fn beyond(file: &mut PictureReader<'_>, end: u64) -> Result<u64, SampleFault> {
    let len = file.seek(SeekFrom::End(0)).map_err(cut_off)?;
    Ok(end.saturating_sub(len))
}

/// Orientations from chunks. The first chunk of each kind counts.
#[derive(Default)]
struct PngOrientations {
    exif: Option<Option<ExifOrientation>>,
    exif_text: Option<Option<ExifOrientation>>,
    xmp: Option<ExifOrientation>,
}

impl PngOrientations {
    /// Reads the orientation of a chunk. Returns the number of bytes read.
    fn look(&mut self, file: &mut PictureReader<'_>, kind: [u8; 4], len: u32) -> io::Result<usize> {
        let mut content = Vec::new();
        // Reads until `content` has `most` bytes.
        let read = |file: &mut PictureReader<'_>, content: &mut Vec<u8>, most: usize| {
            let at = content.len();
            content.resize((len as usize).min(most).max(at), 0);
            file.read_exact(&mut content[at..])
        };
        match &kind {
            b"eXIf" if self.exif.is_none() => {
                read(file, &mut content, ExifOrientation::EXIF_HEAD)?;
                self.exif = Some(ExifOrientation::from_exif(&content));
            }
            b"tEXt" | b"zTXt" | b"iTXt" => {
                read(file, &mut content, png_text::HEAD)?;
                match PngText::of(kind, &content) {
                    Some(text @ PngText::Exif) if self.exif_text.is_none() => {
                        read(file, &mut content, xmp::MOST)?;
                        self.exif_text = Some(text.orientation(kind, &content));
                    }
                    Some(text @ PngText::Xmp) if self.xmp.is_none() => {
                        read(file, &mut content, xmp::MOST)?;
                        self.xmp = text.orientation(kind, &content);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(content.len())
    }

    /// In Pillow's order of priority.
    fn orientation(&self) -> ExifOrientation {
        let exif = self.exif.or(self.exif_text).flatten();
        exif.or(self.xmp).unwrap_or_default()
    }
}

fn corrupt(reason: impl Into<String>) -> SampleFault {
    FaultKind::Corrupt.fault(reason)
}

fn cut_off(e: std::io::Error) -> SampleFault {
    if e.kind() == ErrorKind::UnexpectedEof {
        FaultKind::Truncated.fault("PNG ends before its end mark")
    } else {
        FaultKind::Unreadable.fault(format!("cannot be read: {e}"))
    }
}

pub(super) fn fault(e: DecodingError) -> SampleFault {
    match e {
        DecodingError::IoError(e) => cut_off(e),
        DecodingError::LimitsExceeded => FaultKind::TooLarge
            .fault("PNG: its decoder asks for more memory than max_scratch allows"),
        e => corrupt(format!("PNG: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::reader::ReadBudget;

    fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let mut bytes = (content.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(kind);
        bytes.extend_from_slice(content);
        // The walk does not read checksums; the decoder does.
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    fn header(w: u32, h: u32) -> Vec<u8> {
        let mut content = w.to_be_bytes().to_vec();
        content.extend(h.to_be_bytes());
        content.extend([8, 2, 0, 0, 0]);
        chunk(b"IHDR", &content)
    }

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        [&SIGNATURE[..], &chunks.concat()].concat()
    }

    fn exif(tag: u8) -> Vec<u8> {
        let tiff = [
            b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".as_slice(),
            &[tag, 0, 0, 0, 0, 0, 0],
        ];
        chunk(b"eXIf", &tiff.concat())
    }

    /// As `getexif` of Pillow 13.
    #[test]
    fn texts_count_where_exif_has_no_orientation() {
        let xmp = |tag| {
            let text = format!("XML:com.adobe.xmp\0\0\0\0\0<x tiff:Orientation=\"{tag}\"/>");
            chunk(b"iTXt", text.as_bytes())
        };
        let raw = |tag| {
            let digits = format!("4d4d002a00000008000101120003000000010{tag:03x}00000000000000");
            let text = format!("Raw profile type exif\0\nexif\n  28\n{digits}\n");
            chunk(b"tEXt", text.as_bytes())
        };
        let none = chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\0");
        let (head, data, end) = (header(7, 5), chunk(b"IDAT", &[1; 100]), chunk(b"IEND", b""));
        for (texts, tag) in [
            (vec![xmp(6)], 6),
            (vec![xmp(3), xmp(6)], 3),
            (vec![raw(8)], 8),
            (vec![xmp(6), raw(8)], 8),
            (vec![xmp(6), exif(3), raw(8)], 3),
            (vec![none, raw(8), xmp(6)], 6),
            (vec![xmp(6), exif(9)], 1),
        ] {
            let texts = texts.concat();
            let before = file(&[head.clone(), texts.clone(), data.clone(), end.clone()]);
            let behind = file(&[head.clone(), data.clone(), texts, end.clone()]);
            for bytes in [before, behind] {
                assert_eq!(walked(&bytes).unwrap().orientation as u8, tag);
            }
        }
    }

    fn walked(bytes: &[u8]) -> Result<PngChunks, FaultKind> {
        walk(&mut PictureReader::of(bytes, &ReadBudget::of(u64::MAX))).map_err(|fault| fault.kind)
    }

    #[test]
    fn an_orientation_counts_before_and_behind_the_pixels() {
        let (head, data, end) = (header(7, 5), chunk(b"IDAT", &[1; 100]), chunk(b"IEND", b""));
        let parts = |tag, behind| {
            let mut parts = vec![head.clone(), data.clone(), end.clone()];
            parts.insert(if behind { 2 } else { 1 }, exif(tag));
            file(&parts)
        };
        for (tag, behind) in [(6, false), (6, true), (3, true)] {
            let chunks = walked(&parts(tag, behind)).unwrap();
            assert_eq!(chunks.size, (7, 5));
            assert_eq!(chunks.orientation as u8, tag);
        }
        assert_eq!(walked(&parts(9, false)).unwrap().orientation as u8, 1);
    }

    #[test]
    fn a_file_may_end_within_or_behind_its_pixels() {
        let whole = file(&[header(7, 5), chunk(b"IDAT", &[1; 100]), chunk(b"IEND", b"")]);
        assert!(!walked(&whole).unwrap().needs_repair());
        // Bytes after the end are ignored.
        assert!(
            !walked(&[&whole[..], b"more"].concat())
                .unwrap()
                .needs_repair()
        );
        let pixels = SIGNATURE.len() + header(7, 5).len() + 8;
        for len in 0..pixels {
            assert_eq!(walked(&whole[..len]), Err(FaultKind::Truncated), "{len}");
        }
        for len in pixels..whole.len() - 4 {
            let chunks = walked(&whole[..len]).unwrap();
            assert!(chunks.needs_repair(), "{len}");
            assert_eq!(chunks.compressed, (len - pixels).min(100) as u64, "{len}");
        }
    }

    #[test]
    fn a_size_that_the_data_cannot_hold_is_refused() {
        let parts = |data: usize| {
            let head = header(1032, 100);
            file(&[head, chunk(b"IDAT", &vec![1; data]), chunk(b"IEND", b"")])
        };
        // 3097 bytes per row.
        assert!(walked(&parts(301)).unwrap().check_data().is_ok());
        let fault = walked(&parts(300)).unwrap().check_data().unwrap_err();
        assert_eq!(fault.kind, FaultKind::Truncated);
        assert!(
            fault.reason.contains("1032 x 100 = 309700 bytes in 300"),
            "{fault}"
        );
        let limits = PictureLimits::default();
        let short = parts(300);
        let raster = super::super::raster::RasterReader::open(
            super::super::FileFormat::Png,
            &short,
            &limits,
        );
        assert_eq!(raster.err().unwrap(), fault);
    }

    /// The best compression of one colour is accepted.
    #[test]
    fn pictures_of_one_colour_are_not_refused() {
        use png::Compression;
        for (color, depth) in [
            (ColorType::Grayscale, BitDepth::One),
            (ColorType::Grayscale, BitDepth::Sixteen),
            (ColorType::Indexed, BitDepth::Two),
            (ColorType::Rgb, BitDepth::Eight),
            (ColorType::Rgba, BitDepth::Sixteen),
        ] {
            let (w, h) = (4001, 1999);
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, w, h);
            encoder.set_color(color);
            encoder.set_depth(depth);
            encoder.set_palette(vec![0; 12]);
            encoder.set_compression(Compression::High);
            let mut writer = encoder.write_header().unwrap();
            let row = (w as usize * color.samples() * depth as usize).div_ceil(8);
            writer.write_image_data(&vec![0; row * h as usize]).unwrap();
            writer.finish().unwrap();
            let chunks = walked(&bytes).unwrap();
            assert_eq!(chunks.raw, (row as u64 + 1) * u64::from(h));
            assert!(chunks.check_data().is_ok(), "{chunks:?}");
        }
    }

    #[test]
    fn hostile_chunks_are_refused() {
        let end = || chunk(b"IEND", b"");
        let mut huge = header(7, 5);
        huge.extend([0xff, 0xff, 0xff, 0xff, b'I', b'D', b'A', b'T']);
        for bytes in [
            file(&[header(0, 5), end()]),
            file(&[header(5, 0), end()]),
            file(&[end()]),
            file(&[chunk(b"IHDR", &[0; 5]), end()]),
            file(&[huge]),
        ] {
            assert_eq!(walked(&bytes), Err(FaultKind::Corrupt));
        }
        let sizes = file(&[header(60_000, 60_000), end()]);
        assert_eq!(walked(&sizes).unwrap().size, (60_000, 60_000));
        let limits = PictureLimits::default();
        let fault = super::super::raster::RasterReader::open(
            super::super::FileFormat::Png,
            &sizes,
            &limits,
        );
        assert_eq!(fault.err().unwrap().kind, FaultKind::TooLarge);
    }
}
