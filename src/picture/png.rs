//! PNG, row by row.
//!
//! Pure. A picture that is not interlaced is never held as a whole: the
//! decoder's window, two rows, and the row that was asked for. An interlaced one
//! has its pixels all over the file and is decoded as a frame.
//!
//! A file is good or bad as a whole, whatever part of it is wanted: rows below the
//! last one wanted are decoded all the same. A file whose end mark is missing is written
//! again first (`png_repair`): it is good where it has all its rows.

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

/// An opened PNG.
pub(super) struct PngReader<'a> {
    reader: png::Reader<Cursor<Cow<'a, [u8]>>>,
    form: PixelForm,
    /// Rows handed out.
    next: u32,
    /// Bytes of a file that was written again.
    repaired: u64,
}

impl<'a> PngReader<'a> {
    /// Reads all that stands before the pixels. Bytes that are owned are those of a file that
    /// was written again, without checksums.
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

    /// What the decoder holds at most: rows that are unpacked but not filtered
    /// yet, moved together after every fourth, and its window.
    pub(super) fn working_bytes(&self) -> u64 {
        let info = self.reader.info();
        let rows = u64::from(info.height.min(8)) + 1;
        info.raw_row_length() as u64 * rows + (512 << 10) + self.repaired
    }

    /// Fills `row` with row `y`, which must not lie above the last one.
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

    /// Decodes what is left, for the verdict alone.
    pub(super) fn finish(&mut self, row: &mut [u8]) -> Result<(), SampleFault> {
        while self.reader.read_row(row).map_err(fault)?.is_some() {}
        Ok(())
    }

    /// Fills `frame` with all rows of an interlaced picture.
    pub(super) fn frame(&mut self, frame: &mut [u8]) -> Result<(), SampleFault> {
        self.reader.next_frame(frame).map_err(fault)?;
        Ok(())
    }
}

/// What a walk over the chunks finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PngChunks {
    /// Width and height.
    pub(super) size: (u32, u32),
    pub(super) orientation: ExifOrientation,
    /// Bytes of the pixels before compression, at least.
    raw: u64,
    /// Bytes of the pixels in the file.
    compressed: u64,
    interlaced: bool,
    /// The end mark is there.
    ended: bool,
}

impl PngChunks {
    /// Whether the file is to be written again before it is decoded.
    pub(super) fn needs_repair(&self) -> bool {
        !self.ended
    }

    /// What decoding takes at most: [`PngReader::working_bytes`] and rows, or the
    /// frame, in the largest form that pixels are handed out in.
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

    /// The most that deflate makes of a byte: 258 bytes of 2 bits.
    const MOST: u64 = 1032;

    /// # Errors
    /// A picture that is larger than its file's data can be, however well they
    /// are compressed.
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

/// Bytes of all rows, each behind its filter. Those of an interlaced picture are
/// more and shorter, and take no less.
fn raw_bytes((width, height): (u32, u32), depth: u8, color: u8) -> u64 {
    let channels = match color {
        2 => 3,
        4 => 2,
        6 => 4,
        // Grey or a palette; the decoder refuses what is neither.
        _ => 1,
    };
    let row = (u64::from(width) * channels * u64::from(depth)).div_ceil(8) + 1;
    row.saturating_mul(u64::from(height))
}

/// Steps over all chunks up to the end mark, or to the end of a file that has none behind
/// its pixels. Nothing is decoded. EXIF and XMP count wherever they stand: tools write them
/// behind the pixels too.
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
    // Where the content of the last chunk ends, and whether it is of pixels.
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
        // Beyond the end is no error here: the next read tells.
        file.seek_relative(i64::from(len) + 4 - looked_at as i64)
            .map_err(cut_off)?;
    }
    chunks.orientation = ways.orientation();
    Ok(chunks)
}

/// Fields of the header, and its checksum, which the decoder looks at.
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

/// How many bytes `end` lies beyond the end of the file.
fn beyond(file: &mut PictureReader<'_>, end: u64) -> Result<u64, SampleFault> {
    let len = file.seek(SeekFrom::End(0)).map_err(cut_off)?;
    Ok(end.saturating_sub(len))
}

/// Where chunks say which way up the picture is. The first of a kind counts.
#[derive(Default)]
struct PngOrientations {
    exif: Option<Option<ExifOrientation>>,
    exif_text: Option<Option<ExifOrientation>>,
    xmp: Option<ExifOrientation>,
}

impl PngOrientations {
    /// Looks at a chunk, and says how many bytes of it were read.
    fn look(&mut self, file: &mut PictureReader<'_>, kind: [u8; 4], len: u32) -> io::Result<usize> {
        let mut content = Vec::new();
        // Reads on, until so many bytes of the content are there.
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

    /// In Pillow's order.
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
        // The walk reads no checksum; the decoder does.
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
        // What follows the end does not matter.
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
        // 3097 bytes a row.
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

    /// The best that a compressor does on one colour is not refused.
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
