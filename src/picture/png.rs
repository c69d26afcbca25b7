//! PNG, row by row.
//!
//! Pure. A picture that is not interlaced is never held as a whole: the
//! decoder's window, two rows, and the row that was asked for. An interlaced one
//! has its pixels all over the file and is decoded as a frame.
//!
//! A file is good or bad as a whole, whatever part of it is wanted: the chunks
//! must reach their end mark, and rows below the last one wanted are decoded
//! all the same.

use std::io::{BufRead, Cursor, ErrorKind, Seek};

use png::{BitDepth, ColorType, DecodingError, Transformations};

use super::limits::Limits;
use super::orientation::Orientation;
use super::reader::Reader;
use super::rgb8::Form;
use crate::error::{FaultKind, SampleFault};

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// An opened PNG.
pub(super) struct PngReader<'a> {
    reader: png::Reader<Cursor<&'a [u8]>>,
    form: Form,
    /// Rows handed out.
    next: u32,
}

impl<'a> PngReader<'a> {
    /// Reads all that stands before the pixels.
    pub(super) fn open(bytes: &'a [u8], limits: &Limits) -> Result<Self, SampleFault> {
        let limits = png::Limits {
            bytes: usize::try_from(limits.max_scratch).unwrap_or(usize::MAX),
        };
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
        decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        let reader = decoder.read_info().map_err(fault)?;
        let form = match reader.output_color_type() {
            (ColorType::Grayscale, BitDepth::Eight) => Form::L8,
            (ColorType::GrayscaleAlpha, BitDepth::Eight) => Form::La8,
            (ColorType::Rgb, BitDepth::Eight) => Form::Rgb8,
            (ColorType::Rgba, BitDepth::Eight) => Form::Rgba8,
            (color, depth) => {
                return Err(SampleFault::new(
                    FaultKind::Unsupported,
                    format!("PNG decoded to {color:?} of {depth:?} bits"),
                ));
            }
        };
        Ok(Self {
            reader,
            form,
            next: 0,
        })
    }

    pub(super) fn form(&self) -> Form {
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
        info.raw_row_length() as u64 * rows + (512 << 10)
    }

    /// Fills `row` with row `y`, which must not lie above the last one.
    pub(super) fn row(&mut self, y: u32, row: &mut [u8]) -> Result<(), SampleFault> {
        loop {
            if self.reader.read_row(row).map_err(fault)?.is_none() {
                return Err(SampleFault::new(
                    FaultKind::Corrupt,
                    format!("PNG ends at row {}", self.next),
                ));
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
pub(super) struct Chunks {
    /// Width and height.
    pub(super) size: (u32, u32),
    pub(super) orientation: Orientation,
    /// Bytes of the pixels before compression, at least.
    raw: u64,
    /// Bytes of the pixels in the file.
    compressed: u64,
    interlaced: bool,
}

impl Chunks {
    /// What decoding takes at most: [`PngReader::working_bytes`] and rows, or the
    /// frame, in the largest form that pixels are handed out in.
    pub(super) fn scratch_bytes(&self) -> u64 {
        let (width, height) = (u64::from(self.size.0), u64::from(self.size.1));
        let raw_row = self.raw / height.max(1) + 1;
        let working = raw_row * (height.min(8) + 1) + (512 << 10);
        let rows = if self.interlaced { height } else { 1 };
        working + 3 * width + 4 * width * rows
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
        Err(SampleFault::new(
            FaultKind::Truncated,
            format!(
                "PNG of {width} x {height} = {raw} bytes in {compressed} bytes of data, which \
                 hold {} at most",
                compressed.saturating_mul(Self::MOST)
            ),
        ))
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

/// Steps over all chunks up to the end mark, without decoding. An EXIF chunk
/// counts wherever it stands: tools write it behind the pixels too.
pub(super) fn walk(file: &mut Reader<'_>) -> Result<Chunks, SampleFault> {
    let mut head = [0; 8];
    let read = |file: &mut dyn BufRead, to: &mut [u8]| file.read_exact(to).map_err(cut_off);
    read(file, &mut head)?;
    if head != *SIGNATURE {
        return Err(corrupt("PNG without its signature"));
    }
    let mut size = None;
    let mut orientation = None;
    let (mut raw, mut compressed) = (0, 0u64);
    let mut interlaced = false;
    loop {
        read(file, &mut head)?;
        let [l0, l1, l2, l3, kind @ ..] = head;
        let len = u32::from_be_bytes([l0, l1, l2, l3]);
        if len > i32::MAX as u32 {
            return Err(corrupt(format!("PNG chunk of {len} bytes")));
        }
        let mut rest = i64::from(len) + 4;
        match &kind {
            b"IHDR" if size.is_none() && len == 13 => {
                let mut fields = [0; 13];
                read(file, &mut fields)?;
                rest -= 13;
                let [w0, w1, w2, w3, h0, h1, h2, h3, depth, color, _, _, lacing] = fields;
                interlaced = lacing != 0;
                let w = u32::from_be_bytes([w0, w1, w2, w3]);
                let h = u32::from_be_bytes([h0, h1, h2, h3]);
                if w == 0 || h == 0 {
                    return Err(corrupt(format!("PNG of {h} x {w} pixels")));
                }
                size = Some((w, h));
                raw = raw_bytes((w, h), depth, color);
            }
            _ if size.is_none() => {
                return Err(corrupt("PNG without its header at the beginning"));
            }
            b"eXIf" if orientation.is_none() => {
                let mut exif = vec![0; (len as usize).min(Orientation::EXIF_HEAD)];
                read(file, &mut exif)?;
                rest -= exif.len() as i64;
                orientation = Some(Orientation::from_exif(&exif).unwrap_or_default());
            }
            b"IDAT" => compressed += u64::from(len),
            b"IEND" => {
                let mut crc = [0; 4];
                read(file, &mut crc)?;
                return Ok(Chunks {
                    size: size.unwrap_or_default(),
                    orientation: orientation.unwrap_or_default(),
                    raw,
                    compressed,
                    interlaced,
                });
            }
            _ => {}
        }
        // Beyond the end is no error here: the next read tells.
        file.seek_relative(rest).map_err(cut_off)?;
    }
}

fn corrupt(reason: impl Into<String>) -> SampleFault {
    SampleFault::new(FaultKind::Corrupt, reason)
}

fn cut_off(e: std::io::Error) -> SampleFault {
    if e.kind() == ErrorKind::UnexpectedEof {
        SampleFault::new(FaultKind::Truncated, "PNG ends before its end mark")
    } else {
        SampleFault::new(FaultKind::Unreadable, format!("cannot be read: {e}"))
    }
}

pub(super) fn fault(e: DecodingError) -> SampleFault {
    match e {
        DecodingError::IoError(e) => cut_off(e),
        DecodingError::LimitsExceeded => SampleFault::new(
            FaultKind::TooLarge,
            "PNG: its decoder asks for more memory than max_scratch allows",
        ),
        e => corrupt(format!("PNG: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::reader::Window;

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

    fn walked(bytes: &[u8]) -> Result<Chunks, FaultKind> {
        walk(&mut Reader::of(bytes, &Window::of(u64::MAX))).map_err(|fault| fault.kind)
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
    fn a_file_without_its_end_mark_is_truncated() {
        let whole = file(&[header(7, 5), chunk(b"IDAT", &[1; 100]), chunk(b"IEND", b"")]);
        assert!(walked(&whole).is_ok());
        for len in 0..whole.len() {
            assert_eq!(walked(&whole[..len]), Err(FaultKind::Truncated), "{len}");
        }
        // What follows the end does not matter.
        assert!(walked(&[&whole[..], b"more"].concat()).is_ok());
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
        let limits = Limits::default();
        let short = parts(300);
        let raster = super::super::raster::Raster::open(super::super::Format::Png, &short, &limits);
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
        let limits = Limits::default();
        let fault = super::super::raster::Raster::open(super::super::Format::Png, &sizes, &limits);
        assert_eq!(fault.err().unwrap().kind, FaultKind::TooLarge);
    }
}
