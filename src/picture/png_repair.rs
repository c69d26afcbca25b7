//! Writes a truncated PNG again, with the rows that it has.
//!
//! Pure. The decoder returns no row of data that end too early. So the data are unpacked here, as
//! far as they reach, and written as a complete file that is not compressed. Missing rows are
//! zeros, as in Pillow.

use flate2::{Decompress, FlushDecompress, Status};

use super::limits::PictureLimits;
use crate::error::{FaultKind, SampleFault};

pub(super) const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// Maximum bytes of a block without compression.
const BLOCK: usize = 0xffff;

/// What happens to missing rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingRows {
    Reject,
    Zeros,
}

/// Maximum memory for writing a file again. `raw` is the bytes of its rows.
pub(super) fn most_bytes((width, height): (u32, u32), raw: u64) -> u64 {
    // The filter bytes of the shorter rows of an interlaced image, in 7 passes.
    let rows = raw.saturating_add(2 * u64::from(height) + 14 + u64::from(width));
    // The rows, and the file: 5 bytes for each block, and header, palette and transparency.
    (2 * rows).saturating_add(rows / BLOCK as u64 * 5 + (64 << 10))
}

/// Writes the complete file.
///
/// # Errors
/// A file without a header or pixels, or one that lacks rows, unless they become zeros.
pub(super) fn repair(
    bytes: &[u8],
    missing: MissingRows,
    limits: &PictureLimits,
) -> Result<Vec<u8>, SampleFault> {
    let parts = PngParts::of(bytes);
    let Some(layout) = parts.header.and_then(RowLayout::of) else {
        return Err(FaultKind::Corrupt.fault("PNG without a valid header"));
    };
    let raw = layout.bytes();
    if raw > i32::MAX as u64 {
        return Err(FaultKind::TooLarge.fault(format!(
            "PNG that is cut off, of {raw} bytes: write it again"
        )));
    }
    limits.check_scratch("PNG that is cut off", most_bytes(layout.size, raw))?;
    let mut rows = vec![0; usize::try_from(raw).unwrap_or(usize::MAX)];
    let unpacked = unpack(&parts.data, &mut rows);
    let (whole, end) = layout.whole_rows(unpacked);
    if end < rows.len() {
        if missing == MissingRows::Reject {
            return Err(FaultKind::Truncated.fault(format!(
                "PNG ends at row {whole} of {}: with `truncated` `keep` the rest is black",
                layout.rows()
            )));
        }
        rows[end..].fill(0);
    }
    Ok(parts.write(&rows))
}

/// The parts of a file that are written again.
#[derive(Default)]
struct PngParts<'a> {
    header: Option<&'a [u8]>,
    /// Palette and transparency.
    colours: Vec<(&'a [u8], &'a [u8])>,
    data: Vec<&'a [u8]>,
}

impl<'a> PngParts<'a> {
    /// Collects the parts up to the end of the pixels. A chunk that is cut off counts as far as it
    /// reaches.
    fn of(bytes: &'a [u8]) -> Self {
        let mut parts = Self::default();
        let mut rest = bytes.get(SIGNATURE.len()..).unwrap_or_default();
        while let Some((head, behind)) = rest.split_first_chunk::<8>() {
            let [l0, l1, l2, l3, ..] = *head;
            let len = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
            let content = &behind[..len.min(behind.len())];
            match &head[4..] {
                b"IHDR" if parts.header.is_none() => parts.header = Some(content),
                kind @ (b"PLTE" | b"tRNS") if parts.data.is_empty() => {
                    parts.colours.push((kind, content));
                }
                b"IDAT" => parts.data.push(content),
                _ if !parts.data.is_empty() => break,
                _ => {}
            }
            rest = behind.get(len.saturating_add(4)..).unwrap_or_default();
        }
        parts
    }

    fn write(&self, rows: &[u8]) -> Vec<u8> {
        let blocks = rows.len().div_ceil(BLOCK);
        let colours: usize = self.colours.iter().map(|(_, c)| c.len() + 12).sum();
        let mut to = Vec::with_capacity(rows.len() + 5 * blocks + colours + 128);
        to.extend_from_slice(SIGNATURE);
        put(&mut to, b"IHDR", self.header.unwrap_or_default());
        for (kind, content) in &self.colours {
            put(&mut to, kind, content);
        }
        // The header of the compressed data, blocks, and a checksum that is not checked.
        let len = 2 + rows.len() + 5 * blocks + 4;
        to.extend((len as u32).to_be_bytes());
        to.extend_from_slice(b"IDAT\x78\x01");
        for (i, block) in rows.chunks(BLOCK).enumerate() {
            let len = block.len() as u16;
            to.push(u8::from(i + 1 == blocks));
            to.extend(len.to_le_bytes());
            to.extend((!len).to_le_bytes());
            to.extend_from_slice(block);
        }
        to.extend([0; 8]);
        put(&mut to, b"IEND", b"");
        to
    }
}

fn put(to: &mut Vec<u8>, kind: &[u8], content: &[u8]) {
    to.extend((content.len() as u32).to_be_bytes());
    to.extend_from_slice(kind);
    to.extend_from_slice(content);
    to.extend([0; 4]);
}

/// Fills `to` as far as the data reach and are valid. Returns the number of bytes.
fn unpack(data: &[&[u8]], to: &mut [u8]) -> usize {
    let mut unpacker = Decompress::new(true);
    for part in data {
        let mut at = 0;
        loop {
            let before = (unpacker.total_in(), unpacker.total_out());
            let done = before.1 as usize;
            let status = unpacker.decompress(&part[at..], &mut to[done..], FlushDecompress::None);
            at += (unpacker.total_in() - before.0) as usize;
            let moved = (unpacker.total_in(), unpacker.total_out()) != before;
            match status {
                Ok(Status::Ok | Status::BufError) if moved => {}
                Ok(Status::Ok | Status::BufError) => break,
                Ok(Status::StreamEnd) | Err(_) => return unpacker.total_out() as usize,
            }
        }
    }
    unpacker.total_out() as usize
}

/// The layout of rows in the data: for each pass the number of rows, and the bytes of each with its
/// filter byte.
struct RowLayout {
    size: (u32, u32),
    passes: Vec<(u64, u64)>,
}

impl RowLayout {
    /// First column and row of each pass of an interlaced image, and the steps.
    const ADAM7: [(u32, u32, u32, u32); 7] = [
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ];

    fn of(header: &[u8]) -> Option<Self> {
        let &[w0, w1, w2, w3, h0, h1, h2, h3, depth, color, _, _, lacing] = header else {
            return None;
        };
        let size = (
            u32::from_be_bytes([w0, w1, w2, w3]),
            u32::from_be_bytes([h0, h1, h2, h3]),
        );
        let channels = match color {
            0 | 3 => 1,
            2 => 3,
            4 => 2,
            6 => 4,
            _ => return None,
        };
        let row = |width: u32| (u64::from(width) * channels * u64::from(depth)).div_ceil(8) + 1;
        let passes = match lacing {
            0 => vec![(u64::from(size.1), row(size.0))],
            _ => Self::ADAM7
                .iter()
                .map(|&(x, y, dx, dy)| {
                    let columns = size.0.saturating_sub(x).div_ceil(dx);
                    let rows = size.1.saturating_sub(y).div_ceil(dy);
                    (u64::from(rows), row(columns), columns)
                })
                .filter(|&(_, _, columns)| columns > 0)
                .map(|(rows, bytes, _)| (rows, bytes))
                .collect(),
        };
        Some(Self { size, passes })
    }

    fn bytes(&self) -> u64 {
        let bytes = self.passes.iter().map(|(rows, bytes)| rows * bytes);
        bytes.fold(0, u64::saturating_add)
    }

    fn rows(&self) -> u64 {
        self.passes.iter().map(|(rows, _)| rows).sum()
    }

    /// The number of complete rows in `bytes` bytes, and the end of the last one.
    fn whole_rows(&self, bytes: usize) -> (u64, usize) {
        let (mut whole, mut end) = (0, 0);
        for &(rows, row) in &self.passes {
            let fit = (bytes as u64).saturating_sub(end) / row;
            whole += fit.min(rows);
            end += fit.min(rows) * row;
            if fit < rows {
                break;
            }
        }
        (whole, end as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::picture::FileFormat;
    use crate::picture::background::{AlphaPolicy, BackgroundColor};
    use crate::picture::png::PngReader;
    use crate::picture::raster::{RasterReader, RasterScratch};

    /// A photo-like image that compresses badly, in two chunks of data.
    fn photo(color: png::ColorType, depth: png::BitDepth, (w, h): (u32, u32)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, w, h);
        encoder.set_color(color);
        encoder.set_depth(depth);
        encoder.set_palette((0..48).map(|v| v * 5 + 3).collect::<Vec<u8>>());
        let mut writer = encoder.write_header().unwrap();
        let row = (w as usize * color.samples() * depth as usize).div_ceil(8);
        let data: Vec<u8> = (0..row * h as usize)
            .map(|i| (i * i * 31 + i / 7) as u8)
            .collect();
        writer.write_image_data(&data).unwrap();
        writer.finish().unwrap();
        bytes
    }

    fn rows(bytes: &[u8], missing: Option<MissingRows>) -> Result<Vec<u8>, SampleFault> {
        let limits = PictureLimits::default();
        let mut picture = match missing {
            Some(missing) => RasterReader::open_repaired(bytes, missing, &limits)?,
            None => RasterReader::open(FileFormat::Png, bytes, &limits)?,
        };
        let mut scratch = RasterScratch::default();
        picture.decode_frame(&mut scratch)?;
        let all: Range<usize> = 0..picture.size().0 as usize;
        let mut out = Vec::new();
        for y in 0..picture.size().1 as usize {
            let on = AlphaPolicy::Composite(BackgroundColor::WHITE);
            out.extend_from_slice(picture.row(y, &all, on, &mut scratch)?);
        }
        picture.check_rest(&mut scratch)?;
        Ok(out)
    }

    const FORMS: [(png::ColorType, png::BitDepth); 6] = [
        (png::ColorType::Grayscale, png::BitDepth::One),
        (png::ColorType::Grayscale, png::BitDepth::Sixteen),
        (png::ColorType::Indexed, png::BitDepth::Four),
        (png::ColorType::Rgb, png::BitDepth::Eight),
        (png::ColorType::GrayscaleAlpha, png::BitDepth::Eight),
        (png::ColorType::Rgba, png::BitDepth::Sixteen),
    ];

    /// Pillow 13 reads a file that lacks up to 20 bytes: its end mark, the checksum of its last
    /// chunk, and that of its compressed data. With one byte less, it reports a truncated file.
    #[test]
    fn a_file_is_whole_when_it_has_all_its_rows() {
        for (color, depth) in FORMS {
            let whole = photo(color, depth, (33, 29));
            let pixels = rows(&whole, None).unwrap();
            for cut in 1..=20 {
                let cut_off = &whole[..whole.len() - cut];
                assert_eq!(rows(cut_off, None).unwrap(), pixels, "{color:?} {cut}");
            }
            let zeros = [&whole[..whole.len() - 12], &[0; 12]].concat();
            assert_eq!(rows(&zeros, None).unwrap(), pixels);
            for cut in [40, 60, whole.len() / 2] {
                let found = rows(&whole[..whole.len() - cut], None).unwrap_err();
                assert_eq!(found.kind, FaultKind::Truncated, "{color:?} {cut}: {found}");
            }
        }
    }

    /// As with Pillow's `LOAD_TRUNCATED_IMAGES`.
    #[test]
    fn rows_that_are_missing_are_zeros() {
        for (color, depth) in FORMS {
            let whole = photo(color, depth, (33, 29));
            let pixels = rows(&whole, None).unwrap();
            let zero = match color {
                png::ColorType::Indexed => [3, 8, 13],
                png::ColorType::GrayscaleAlpha | png::ColorType::Rgba => [255; 3],
                _ => [0; 3],
            };
            let cut_off = &whole[..whole.len() * 2 / 3];
            let kept = rows(cut_off, Some(MissingRows::Zeros)).unwrap();
            let first = |rows: &[u8]| {
                let line = |y: usize| rows[99 * y..99 * (y + 1)].as_chunks::<3>().0.to_vec();
                (0..29)
                    .find(|&y| line(y).iter().all(|p| *p == zero))
                    .unwrap_or(29)
            };
            let begin = first(&kept);
            assert!((5..29).contains(&begin), "{color:?}: {begin}");
            assert_eq!(kept[..99 * begin], pixels[..99 * begin], "{color:?}");
            assert!(
                kept[99 * begin..]
                    .as_chunks::<3>()
                    .0
                    .iter()
                    .all(|p| *p == zero)
            );
        }
    }

    #[test]
    fn no_file_is_too_short_or_too_broken_for_a_fault() {
        let whole = photo(png::ColorType::Rgb, png::BitDepth::Eight, (33, 29));
        for len in 0..whole.len() {
            let _ = repair(&whole[..len], MissingRows::Zeros, &PictureLimits::default()).and_then(
                |bytes| PngReader::open(bytes.into(), &PictureLimits::default()).map(|_| ()),
            );
            let mut broken = whole.clone();
            broken[len] ^= 0x55;
            let _ = rows(&broken, Some(MissingRows::Zeros));
            let _ = rows(&broken, None);
        }
    }
}
