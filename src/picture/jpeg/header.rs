//! The header of a JPEG: size, sampling, coding process, orientation, and the start of the coded
//! data.
//!
//! It does no I/O of its own: bytes in, numbers or a fault out. Workers use it before each decode,
//! and header scans use it. For bytes in memory it allocates only fault texts. It reads coded data
//! only to search for the end marker, and enforces no limits of a run.

use crate::error::{FaultKind, SampleFault};

use super::super::orientation::ExifOrientation;
use super::super::picture_header::DecodeCost;
use super::super::xmp;
use super::header_bytes::{HeaderBytes, InMemory};

/// The content of the markers before the first scan. Only files that the decoder supports have one:
/// 8 bits, sequential or progressive, 1, 3 or 4 components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegHeader {
    /// As stored, before any orientation.
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 1 (grey), 3 or 4 (CMYK or YCCK).
    pub(crate) components: u8,
    /// Horizontal and vertical factor of each component; 0 for missing ones.
    factors: [(u8, u8); 4],
    pub(crate) progressive: bool,
    pub(crate) arithmetic: bool,
    /// The first scan does not hold all components, or the process is progressive. Then the decoder
    /// keeps the coefficients of the whole frame.
    pub(crate) multi_scan: bool,
    /// The colour transform of an Adobe marker (0, 1 or 2), if there is one.
    pub(crate) adobe_transform: Option<u8>,
    pub(crate) orientation: ExifOrientation,
    /// Offset of the first byte of coded data.
    pub(crate) scan_start: usize,
}

impl JpegHeader {
    /// Horizontal and vertical sampling factor of each component, 1 to 4.
    pub(crate) fn sampling(&self) -> &[(u8, u8)] {
        &self.factors[..usize::from(self.components.min(4))]
    }

    pub(crate) fn max_sampling(&self) -> (u8, u8) {
        self.sampling()
            .iter()
            .fold((1, 1), |(mh, mv), &(h, v)| (mh.max(h), mv.max(v)))
    }

    /// The memory that decoding needs besides the pixels.
    pub(crate) fn decoding(&self) -> DecodeCost {
        DecodeCost::Jpeg {
            coefficients: self.coefficient_bytes(),
            cmyk: self.components == 4,
        }
    }

    /// Whether TurboJPEG has a name for these sampling factors (`getSubsamp` of its 3.1.0). It
    /// decodes parts only of pictures with such factors.
    #[cfg(all(test, feature = "codecs"))]
    pub(crate) fn has_named_sampling(&self) -> bool {
        const NAMED: [(u8, u8); 6] = [(1, 1), (2, 1), (2, 2), (1, 2), (4, 1), (1, 4)];
        let [first, rest @ ..] = self.sampling() else {
            return false;
        };
        if rest.is_empty() {
            return true;
        }
        // Black must have the factors of the first component.
        let others_are = |chroma| {
            let black = |at| self.components == 4 && at == 2;
            let mut rest = rest.iter().enumerate();
            rest.all(|(at, factors)| *factors == if black(at) { *first } else { chroma })
        };
        match *first {
            // 4:2:2 and 4:4:0 in other numbers.
            (2, 2) if others_are((1, 2)) || others_are((2, 1)) => true,
            // 4:4:4 in other numbers.
            (h, v) if h * v <= 3 && others_are(*first) => true,
            named => NAMED.contains(&named) && others_are((1, 1)),
        }
    }

    /// Bytes that the decoder keeps for a file of several scans: two for each coefficient of the
    /// frame, whatever region is decoded.
    pub(crate) fn coefficient_bytes(&self) -> u64 {
        if !self.multi_scan {
            return 0;
        }
        let (max_h, max_v) = self.max_sampling();
        let blocks = |size: u32, factor: u8, max: u8| {
            let (factor, max) = (u64::from(factor), u64::from(max));
            let own = (u64::from(size) * factor).div_ceil(max * 8);
            own.next_multiple_of(factor)
        };
        self.sampling()
            .iter()
            .map(|&(h, v)| blocks(self.width, h, max_h) * blocks(self.height, v, max_v) * 128)
            .sum()
    }
}

const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const TEM: u8 = 0x01;

/// Limits of a header: bytes outside segments, and markers. Real files stay far below. Without
/// limits, a hostile file could force a read of all its bytes.
const MAX_STRAY: u64 = 1 << 20;
const MAX_MARKERS: u32 = 1 << 16;

/// Maximum segments that are read as XMP. Most files have one.
const MAX_PACKETS: u32 = 16;

/// The start of an EXIF segment's content. Other segments share its marker.
const EXIF: &[u8] = b"Exif\0\0";

/// Bytes of Adobe's segment, up to the number of the colour transform.
const ADOBE_BYTES: usize = 12;

/// Reads the markers up to the first scan.
pub(crate) fn read_header(bytes: &[u8]) -> Result<JpegHeader, SampleFault> {
    walk(&mut InMemory::new(bytes))
}

/// Like [`read_header`], for bytes that need not be in memory. Skips segments that do not describe
/// the picture.
pub(crate) fn walk(bytes: &mut impl HeaderBytes) -> Result<JpegHeader, SampleFault> {
    check_signature(bytes)?;
    let mut frame: Option<JpegHeader> = None;
    let mut adobe_transform = None;
    // From the first EXIF block, and from the last XMP packet before an EXIF orientation.
    let (mut exif, mut by_xmp) = (None, ExifOrientation::Normal);
    let (mut stray, mut markers, mut packets) = (0, 0, 0);
    loop {
        let marker = next_marker(bytes, &mut stray)?;
        markers += 1;
        if markers > MAX_MARKERS {
            return Err(corrupt(format!(
                "JPEG header: more than {MAX_MARKERS} markers before the first scan"
            )));
        }
        match marker {
            TEM | 0xD0..=0xD7 => continue,
            SOI => return Err(corrupt("JPEG header: a second start-of-image marker")),
            EOI => return Err(corrupt("JPEG ends before its first scan")),
            0x00..=0xBF | 0xDE | 0xDF | 0xF0..=0xFD => {
                return Err(corrupt(format!(
                    "JPEG header: unknown marker 0x{marker:02x} at byte {}",
                    bytes.position() - 1
                )));
            }
            _ => {}
        }
        let content = content_length(bytes, marker)?;
        // Number of bytes to read of the segment; the rest is skipped.
        let front = match marker {
            0xC4 | 0xCC => 0,
            0xC0..=0xCF | SOS => content,
            0xE1 if exif.flatten().is_none() => EXIF.len(),
            0xEE => ADOBE_BYTES,
            _ => 0,
        };
        let front = front.min(content);
        let rest = content - front;
        let len = bytes.len();
        let segment = bytes.read(front)?.ok_or_else(|| truncated(len))?;
        match marker {
            0xE1 if segment == EXIF && exif.is_none() => {
                // The first EXIF block decides, readable or not.
                let block = bytes.read(rest)?.ok_or_else(|| truncated(len))?;
                exif = Some(ExifOrientation::from_exif(block));
                continue;
            }
            0xE1 if xmp::NAMESPACE.starts_with(segment)
                && front == EXIF.len()
                && packets < MAX_PACKETS =>
            {
                packets += 1;
                let packet = bytes.read(rest)?.ok_or_else(|| truncated(len))?;
                if let Some(packet) = packet.strip_prefix(&xmp::NAMESPACE[EXIF.len()..]) {
                    by_xmp = xmp::orientation(packet);
                }
                continue;
            }
            0xEE if segment.len() == ADOBE_BYTES && segment.starts_with(b"Adobe") => {
                adobe_transform = Some(segment[ADOBE_BYTES - 1]);
            }
            0xC8 => return Err(unsupported("JPEG with reserved frame type 0xc8")),
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xCC) => {
                if frame.is_some() {
                    return Err(corrupt("JPEG header: a second frame header"));
                }
                frame = Some(read_frame(marker, segment)?);
            }
            SOS => {
                let Some(mut header) = frame else {
                    return Err(corrupt("JPEG header: a scan before the frame header"));
                };
                let in_scan = segment.first().copied().unwrap_or(0);
                let expected = usize::from(in_scan) * 2 + 4;
                if in_scan == 0 || in_scan > header.components || segment.len() != expected {
                    return Err(corrupt(format!(
                        "JPEG scan header with {in_scan} components in {} bytes, in a frame of {}",
                        segment.len(),
                        header.components
                    )));
                }
                header.multi_scan = header.progressive || in_scan < header.components;
                header.adobe_transform = adobe_transform;
                header.orientation = exif.flatten().unwrap_or(by_xmp);
                header.scan_start = bytes.position() as usize;
                return Ok(header);
            }
            _ => {}
        }
        if !bytes.skip(rest)? {
            return Err(truncated(len));
        }
    }
}

/// Whether an end-of-image marker follows the start of the coded data. Searches from the end, so
/// that an intact file costs two bytes. Bytes after the marker are ignored. Thumbnails have end
/// markers of their own, but they are before `scan_start`.
///
/// Coded data cannot hold the marker's two bytes, as 0xff is always stuffed. So a file that was cut
/// off has none.
pub(crate) fn has_end(bytes: &[u8], scan_start: usize) -> bool {
    let mut data = bytes.get(scan_start..).unwrap_or_default();
    while let Some(at) = data.iter().rposition(|&b| b == EOI) {
        if at > 0 && data[at - 1] == 0xFF {
            return true;
        }
        data = &data[..at];
    }
    false
}

/// Whether a file has more than `most` scans. Reads the file up to that scan, at memory speed.
/// Reads nothing if the first scan holds the whole picture.
pub(crate) fn has_more_scans(bytes: &[u8], header: &JpegHeader, most: u32) -> bool {
    let mut at = header.scan_start;
    header.multi_scan && (0..most).all(|_| next_scan(bytes, &mut at).is_some())
}

/// The content of the next scan header after the coded data at `at`; `None` if the file ends first.
fn next_scan<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    loop {
        *at += find_ff(bytes.get(*at..)?)? + 1;
        match *bytes.get(*at)? {
            0x00 | 0xFF | TEM | 0xD0..=0xD7 => {}
            EOI => return None,
            marker => {
                *at += 1;
                let content = segment(bytes, at)?;
                if marker == SOS {
                    return Some(content);
                }
            }
        }
    }
}

/// Index of the first 0xff byte. Searches in blocks that the compiler can compare at once.
pub(super) fn find_ff(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let clean = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| block.iter().fold(true, |clean, &b| clean & (b != 0xFF)))
        .count();
    let start = clean * BLOCK;
    let at = bytes[start..].iter().position(|&b| b == 0xFF)?;
    Some(start + at)
}

fn corrupt(reason: impl Into<String>) -> SampleFault {
    FaultKind::Corrupt.fault(reason)
}

fn unsupported(reason: impl Into<String>) -> SampleFault {
    FaultKind::Unsupported.fault(reason)
}

fn truncated(len: u64) -> SampleFault {
    FaultKind::Truncated.fault(format!(
        "JPEG header cut off: the file ends after {len} bytes"
    ))
}

/// The caller has detected the format (`picture::file_format`).
fn check_signature(bytes: &mut impl HeaderBytes) -> Result<(), SampleFault> {
    for expected in [0xFF, SOI] {
        match bytes.next()? {
            Some(byte) if byte == expected => {}
            Some(_) => return Err(corrupt("JPEG without a start-of-image marker")),
            None => return Err(truncated(bytes.len())),
        }
    }
    Ok(())
}

/// Skips stray and fill bytes up to the next marker, and the marker itself.
fn next_marker(bytes: &mut impl HeaderBytes, stray: &mut u64) -> Result<u8, SampleFault> {
    let mut after_ff = false;
    while let Some(byte) = bytes.next()? {
        match byte {
            0xFF => after_ff = true,
            0x00 => after_ff = false,
            marker if after_ff => return Ok(marker),
            _ => {}
        }
        *stray += 1;
        if *stray > MAX_STRAY {
            return Err(corrupt(format!(
                "JPEG header: more than {MAX_STRAY} bytes outside of segments, up to byte {}",
                bytes.position()
            )));
        }
    }
    Err(truncated(bytes.len()))
}

/// Reads the length of a segment, and returns the length of its content.
fn content_length(bytes: &mut impl HeaderBytes, marker: u8) -> Result<usize, SampleFault> {
    let start = bytes.position();
    let (Some(high), Some(low)) = (bytes.next()?, bytes.next()?) else {
        return Err(truncated(bytes.len()));
    };
    let len = u16::from_be_bytes([high, low]);
    usize::from(len).checked_sub(2).ok_or_else(|| {
        corrupt(format!(
            "JPEG header: segment 0x{marker:02x} at byte {start} claims {len} bytes"
        ))
    })
}

/// The content of the segment at `at`, which moves past it; `None` if it is incomplete.
fn segment<'a>(bytes: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let &[high, low] = bytes.get(*at..*at + 2)? else {
        return None;
    };
    let end = *at + usize::from(u16::from_be_bytes([high, low]));
    let content = bytes.get(*at + 2..end)?;
    *at = end;
    Some(content)
}

fn read_frame(marker: u8, segment: &[u8]) -> Result<JpegHeader, SampleFault> {
    match marker {
        0xC3 | 0xCB => return Err(unsupported("lossless JPEG")),
        0xC5..=0xC7 | 0xCD..=0xCF => return Err(unsupported("hierarchical JPEG")),
        _ => {}
    }
    let &[precision, h1, h0, w1, w0, components, ref specs @ ..] = segment else {
        return Err(corrupt(format!(
            "JPEG frame header of {} bytes",
            segment.len()
        )));
    };
    if precision != 8 {
        return Err(unsupported(format!("JPEG with {precision} bits a sample")));
    }
    let width = u32::from(u16::from_be_bytes([w1, w0]));
    let height = u32::from(u16::from_be_bytes([h1, h0]));
    if width == 0 || height == 0 || components == 0 {
        return Err(corrupt(format!(
            "JPEG of {width} x {height} pixels with {components} components"
        )));
    }
    if specs.len() != usize::from(components) * 3 {
        return Err(corrupt(format!(
            "JPEG frame header of {} bytes for {components} components",
            segment.len()
        )));
    }
    if !matches!(components, 1 | 3 | 4) {
        return Err(unsupported(format!("JPEG with {components} components")));
    }
    let mut factors = [(0, 0); 4];
    for (i, spec) in specs.chunks_exact(3).enumerate() {
        let (h, v) = (spec[1] >> 4, spec[1] & 15);
        if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
            return Err(corrupt(format!("JPEG with sampling factors {h} x {v}")));
        }
        factors[i] = (h, v);
    }
    Ok(JpegHeader {
        width,
        height,
        components,
        factors,
        progressive: matches!(marker, 0xC2 | 0xCA),
        arithmetic: marker >= 0xC9,
        multi_scan: false,
        adobe_transform: None,
        orientation: ExifOrientation::Normal,
        scan_start: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
        let len = (content.len() as u16 + 2).to_be_bytes();
        [&[0xFF, marker], &len[..], content].concat()
    }

    fn frame(marker: u8, w: u16, h: u16, factors: &[u8]) -> Vec<u8> {
        let mut content = vec![8];
        content.extend(h.to_be_bytes());
        content.extend(w.to_be_bytes());
        content.push(factors.len() as u8);
        for (i, f) in factors.iter().enumerate() {
            content.extend([i as u8 + 1, *f, 0]);
        }
        segment(marker, &content)
    }

    fn scan(components: u8) -> Vec<u8> {
        let mut content = vec![components];
        for i in 0..components {
            content.extend([i + 1, 0]);
        }
        content.extend([0, 63, 0]);
        segment(SOS, &content)
    }

    /// A file of SOI and these parts.
    fn file(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0xFF, SOI];
        bytes.extend(parts.concat());
        bytes
    }

    fn plain(before: Vec<u8>) -> Vec<u8> {
        file(&[before, frame(0xC0, 640, 480, &[0x22, 0x11, 0x11]), scan(3)])
    }

    fn fault(bytes: &[u8]) -> (FaultKind, String) {
        let fault = read_header(bytes).unwrap_err();
        (fault.kind, fault.reason)
    }

    /// An EXIF segment with another tag before the orientation.
    fn exif(little: bool, kind: u16, count: u32, value: u32) -> Vec<u8> {
        let w2 = |v: u16| {
            if little {
                v.to_le_bytes()
            } else {
                v.to_be_bytes()
            }
        };
        let w4 = |v: u32| {
            if little {
                v.to_le_bytes()
            } else {
                v.to_be_bytes()
            }
        };
        let mut tiff = if little { b"II*\0" } else { b"MM\0*" }.to_vec();
        tiff.extend(w4(8));
        tiff.extend(w2(2));
        for (tag, kind, count) in [(0x0100u16, 3u16, 1u32), (0x0112, kind, count)] {
            tiff.extend(w2(tag));
            tiff.extend(w2(kind));
            tiff.extend(w4(count));
            match kind {
                1 => tiff.extend([value as u8, 0, 0, 0]),
                3 => {
                    tiff.extend(w2(value as u16));
                    tiff.extend([0, 0]);
                }
                _ => tiff.extend(w4(value)),
            }
        }
        tiff.extend(w4(0));
        segment(0xE1, &[b"Exif\0\0", &tiff[..]].concat())
    }

    #[test]
    fn a_plain_header() {
        let bytes = plain(segment(0xE0, b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0"));
        let h = read_header(&bytes).unwrap();
        assert_eq!((h.width, h.height, h.components), (640, 480, 3));
        assert_eq!(h.sampling(), [(2, 2), (1, 1), (1, 1)]);
        assert!(!h.progressive && !h.arithmetic && !h.multi_scan);
        assert_eq!(h.adobe_transform, None);
        assert_eq!(h.orientation, ExifOrientation::Normal);
        assert_eq!(h.scan_start, bytes.len());
        assert_eq!(h.coefficient_bytes(), 0);
    }

    #[test]
    fn coding_processes() {
        for (marker, progressive, arithmetic) in [
            (0xC0, false, false),
            (0xC1, false, false),
            (0xC2, true, false),
            (0xC9, false, true),
            (0xCA, true, true),
        ] {
            let h = read_header(&file(&[frame(marker, 9, 9, &[0x11]), scan(1)])).unwrap();
            assert_eq!((h.progressive, h.arithmetic), (progressive, arithmetic));
            assert_eq!(h.multi_scan, progressive);
        }
        for (marker, word) in [
            (0xC3, "lossless"),
            (0xC5, "hierarchical"),
            (0xC8, "reserved"),
            (0xCB, "lossless"),
            (0xCF, "hierarchical"),
        ] {
            let (kind, reason) = fault(&file(&[frame(marker, 9, 9, &[0x11]), scan(1)]));
            assert_eq!(kind, FaultKind::Unsupported);
            assert!(reason.contains(word), "{reason}");
        }
        let mut twelve = frame(0xC1, 9, 9, &[0x11]);
        twelve[4] = 12;
        let (kind, reason) = fault(&file(&[twelve, scan(1)]));
        assert_eq!(kind, FaultKind::Unsupported);
        assert!(reason.contains("12 bits"), "{reason}");
    }

    #[test]
    fn several_scans_cost_coefficients() {
        let h = read_header(&file(&[frame(0xC0, 17, 17, &[0x22, 0x11, 0x11]), scan(1)])).unwrap();
        assert!(h.multi_scan && !h.progressive);
        // Luma 3 x 3 blocks padded to 4 x 4, chroma 2 x 2 each.
        assert_eq!(h.coefficient_bytes(), (16 + 4 + 4) * 128);
    }

    #[test]
    fn fill_bytes_stray_bytes_and_parameterless_markers() {
        let mut stray = vec![0x00, 0x12, 0xFF, 0x00, 0x34];
        stray.extend([0xFF, 0xFF, 0xFF]);
        stray.extend(segment(0xFE, b"comment"));
        stray.extend([0xFF, 0xD0, 0xFF, TEM, 0xFF, 0xFF]);
        assert_eq!(read_header(&plain(stray)).unwrap().width, 640);
    }

    #[test]
    fn adobe_markers() {
        for transform in [0, 1, 2] {
            let marker = segment(0xEE, &[b"Adobe\0\x64\0\0\0\0", &[transform][..]].concat());
            let h = read_header(&plain(marker)).unwrap();
            assert_eq!(h.adobe_transform, Some(transform));
        }
        let h = read_header(&plain(segment(0xEE, b"Adobe\0\x64"))).unwrap();
        assert_eq!(h.adobe_transform, None);
    }

    #[test]
    fn orientations() {
        for little in [false, true] {
            for value in 1..=8 {
                for kind in [1, 3, 4] {
                    let h = read_header(&plain(exif(little, kind, 1, value))).unwrap();
                    assert_eq!(h.orientation as u32, value);
                }
            }
        }
        // The first EXIF block decides.
        let two = [exif(true, 3, 1, 6), exif(true, 3, 1, 3)].concat();
        let h = read_header(&plain(two)).unwrap();
        assert_eq!(h.orientation, ExifOrientation::Rotate90);
        // Another APP1 segment before it is ignored.
        let xmp = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>");
        let h = read_header(&plain([xmp, exif(false, 3, 1, 8)].concat())).unwrap();
        assert_eq!(h.orientation, ExifOrientation::Rotate270);
    }

    /// As `getexif` of Pillow 13.
    #[test]
    fn xmp_counts_where_exif_has_no_orientation() {
        let packet = |text: &str| segment(0xE1, &[xmp::NAMESPACE, text.as_bytes()].concat());
        let six = packet("<x tiff:Orientation=\"6\"/>");
        let three = packet("<tiff:Orientation>3</tiff:Orientation>");
        // Only another tag.
        let other = {
            let mut block = exif(true, 3, 1, 8);
            let at = block
                .windows(2)
                .rposition(|tag| tag == [0x12, 0x01])
                .unwrap();
            block[at] = 0x10;
            block
        };
        for (segments, tag) in [
            (vec![&six], 6),
            (vec![&six, &three], 3),
            (vec![&exif(true, 3, 1, 8), &six], 8),
            (vec![&six, &exif(true, 3, 1, 8)], 8),
            (vec![&exif(true, 3, 1, 1), &six], 1),
            (vec![&exif(true, 3, 1, 0), &six], 1),
            (vec![&other, &six], 6),
            (vec![&six, &other], 6),
            (
                vec![&segment(
                    0xE1,
                    b"http://ns.adobe.com/xap/1.1/\0tiff:Orientation=\"6\"",
                )],
                1,
            ),
            (vec![&segment(0xE1, b"http:"), &segment(0xE1, b"")], 1),
        ] {
            let segments: Vec<u8> = segments.into_iter().flatten().copied().collect();
            let h = read_header(&plain(segments)).unwrap();
            assert_eq!(h.orientation as u8, tag);
        }
    }

    #[test]
    fn bad_exif_is_no_orientation_and_no_fault() {
        let good = exif(true, 3, 1, 6);
        let mut bad: Vec<Vec<u8>> = vec![
            exif(true, 3, 1, 0),
            exif(true, 3, 1, 9),
            exif(true, 3, 2, 6),
            exif(true, 2, 1, 6),
            exif(false, 4, 1, u32::MAX),
            segment(0xE1, b"Exif\0\0"),
            segment(0xE1, b"Exif\0\0XX*\0\x08\0\0\0"),
        ];
        for offset in [0u32, 4, 1000, u32::MAX, u32::MAX - 1] {
            let mut e = good.clone();
            e[14..18].copy_from_slice(&offset.to_le_bytes());
            bad.push(e);
        }
        for e in bad {
            let h = read_header(&plain(e)).unwrap();
            assert_eq!(h.orientation, ExifOrientation::Normal);
        }
        // Cuts anywhere cause no panic and no error.
        for len in 0..good.len() - 4 {
            let _ = read_header(&plain(segment(0xE1, &good[4..4 + len]))).unwrap();
        }
        // A broken first block still decides.
        let two = [segment(0xE1, b"Exif\0\0"), good].concat();
        let h = read_header(&plain(two)).unwrap();
        assert_eq!(h.orientation, ExifOrientation::Normal);
    }

    #[test]
    fn cut_off_anywhere_is_truncated() {
        let bytes = plain(exif(true, 3, 1, 6));
        for len in 0..bytes.len() {
            assert_eq!(fault(&bytes[..len]).0, FaultKind::Truncated, "{len} bytes");
        }
        assert_eq!(fault(b"no JPEG").0, FaultKind::Corrupt);
    }

    /// A header is the same, however the file is read.
    #[test]
    fn a_header_in_a_file_is_that_in_memory() {
        let profile = [b"ICC_PROFILE\0\x01\x01".as_slice(), &[7; 60_000]].concat();
        let long = [segment(0xE2, &profile).repeat(60), exif(true, 3, 1, 6)].concat();
        let adobe = segment(0xEE, b"Adobe\0\x64\0\0\0\0\x01");
        let bytes = plain([adobe, vec![0, 1, 0xFF, 0xFF], long].concat());
        let read = |bytes: &[u8]| {
            let mut file = std::io::BufReader::with_capacity(512, std::io::Cursor::new(bytes));
            walk(&mut super::super::header_bytes::InFile::new(
                &mut file,
                bytes.len() as u64,
            ))
        };
        let header = read_header(&bytes).unwrap();
        assert_eq!(header.orientation, ExifOrientation::Rotate90);
        assert_eq!(header.scan_start, bytes.len());
        assert_eq!(read(&bytes), Ok(header));
        for len in (0..bytes.len()).step_by(997).chain(0..60) {
            assert_eq!(read(&bytes[..len]), read_header(&bytes[..len]), "{len}");
        }
    }

    #[test]
    fn a_header_without_an_end_is_given_up() {
        let markers = [0xFF, 0xD0].repeat(MAX_MARKERS as usize);
        let segments = segment(0xFE, b"").repeat(MAX_MARKERS as usize);
        for (content, word) in [
            (vec![0; MAX_STRAY as usize + 1], "outside of segments"),
            (vec![0xFF; MAX_STRAY as usize + 1], "outside of segments"),
            (markers, "markers"),
            (segments, "markers"),
        ] {
            let (kind, reason) = fault(&plain(content));
            assert_eq!(kind, FaultKind::Corrupt);
            assert!(reason.contains(word), "{reason}");
        }
        assert!(read_header(&plain(vec![0; MAX_STRAY as usize / 2])).is_ok());
    }

    #[test]
    fn corrupt_headers() {
        let good = || frame(0xC0, 9, 9, &[0x11]);
        let mut short = good();
        short[3] -= 1;
        short.pop();
        for bytes in [
            file(&[frame(0xC0, 0, 9, &[0x11]), scan(1)]),
            // A height of 0, which a DNL marker would define: not supported.
            file(&[frame(0xC0, 9, 0, &[0x11]), scan(1)]),
            file(&[frame(0xC0, 9, 9, &[]), scan(1)]),
            file(&[frame(0xC0, 9, 9, &[0x01]), scan(1)]),
            file(&[frame(0xC0, 9, 9, &[0x15]), scan(1)]),
            file(&[good(), good(), scan(1)]),
            file(&[scan(1)]),
            file(&[good(), scan(2)]),
            file(&[good(), scan(0)]),
            file(&[short, scan(1)]),
            file(&[good(), vec![0xFF, SOI], scan(1)]),
            file(&[good(), vec![0xFF, EOI], scan(1)]),
            file(&[good(), vec![0xFF, 0x42], scan(1)]),
            file(&[vec![0xFF, 0xFE, 0, 1], good(), scan(1)]),
        ] {
            assert_eq!(fault(&bytes).0, FaultKind::Corrupt, "{bytes:02x?}");
        }
        let (kind, reason) = fault(&file(&[frame(0xC0, 9, 9, &[0x11; 2]), scan(2)]));
        assert_eq!(kind, FaultKind::Unsupported);
        assert!(reason.contains("2 components"), "{reason}");
    }

    #[test]
    fn the_end_marker() {
        let end = |data: &[u8]| has_end(data, 2);
        assert!(end(&[0, 0, 1, 2, 0xFF, EOI]));
        assert!(end(&[0, 0, 1, 2, 0xFF, EOI, EOI, 0, EOI]));
        assert!(end(&[0, 0, 0xFF, 0xFF, EOI]));
        assert!(!end(&[0xFF, EOI, EOI, 1, 2, EOI]));
        // Half of the marker is before the scan.
        assert!(!end(&[0, 0xFF, EOI, 1]));
        assert!(!end(&[]));
        assert!(!has_end(&[0xFF, EOI], 7));
    }
}
