//! Texts of a PNG that hold its orientation: an XMP packet, and EXIF as ImageMagick writes it.
//!
//! Pure. A broken text is never a fault.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::orientation::ExifOrientation;
use super::xmp;

const XMP: &[u8] = b"XML:com.adobe.xmp\0";
const EXIF: &[u8] = b"Raw profile type exif\0";

/// Bytes of a chunk that decide whether to read the rest.
pub(super) const HEAD: usize = EXIF.len();

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PngText {
    Xmp,
    Exif,
}

impl PngText {
    /// For a chunk of this kind with these first bytes.
    pub(super) fn of(kind: [u8; 4], head: &[u8]) -> Option<Self> {
        match &kind {
            b"tEXt" | b"zTXt" | b"iTXt" if head.starts_with(XMP) => Some(Self::Xmp),
            b"tEXt" | b"zTXt" | b"iTXt" if head.starts_with(EXIF) => Some(Self::Exif),
            _ => None,
        }
    }

    /// The orientation in the content of a chunk of this kind, if it has one.
    pub(super) fn orientation(self, kind: [u8; 4], content: &[u8]) -> Option<ExifOrientation> {
        let (_, text) = cut(content)?;
        let text = match &kind {
            b"zTXt" => unpacked(text.get(1..)?),
            b"iTXt" => {
                let (&[packed, _], text) = text.split_first_chunk()?;
                let (_, text) = cut(text)?;
                let (_, text) = cut(text)?;
                match packed {
                    0 => text.to_vec(),
                    _ => unpacked(text),
                }
            }
            _ => text.to_vec(),
        };
        match self {
            Self::Xmp => Some(xmp::orientation(&text)),
            Self::Exif => {
                // An empty line, the name, the length, and the bytes in hexadecimal.
                let lines = text.split(|&b| b == b'\n').skip(3);
                let digits: Vec<u8> = lines.flatten().copied().collect();
                let bytes: Option<Vec<u8>> = digits.chunks_exact(2).map(byte).collect();
                let bytes = bytes?;
                ExifOrientation::from_exif(bytes.strip_prefix(b"Exif\0\0").unwrap_or(&bytes))
            }
        }
    }
}

/// The bytes before and after the first zero.
fn cut(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|&b| b == 0)?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// Unpacks a text, up to the maximum that is read of a packet. Broken data end it.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut from = ZlibDecoder::new(bytes).take(xmp::MOST as u64);
    let mut part = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut part) {
        text.extend_from_slice(&part[..len]);
    }
    text
}

fn byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn orientation(kind: &[u8; 4], content: &[u8]) -> Option<u8> {
        let text = PngText::of(*kind, content)?;
        text.orientation(*kind, content).map(|o| o as u8)
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut to = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        to.write_all(text).unwrap();
        to.finish().unwrap()
    }

    #[test]
    fn texts_are_read_packed_and_not() {
        let xmp = b"<tiff:Orientation>6</tiff:Orientation>";
        // As ImageMagick writes it: only the tag, 8.
        let exif = b"\nexif\n      32\n457869660000\n4d4d002a00000008000101120003000000010008\n\
                     000000000000";
        let with = |name: &[u8], parts: &[&[u8]]| [name, &parts.concat()].concat();
        for (kind, content, tag) in [
            (b"iTXt", with(XMP, &[b"\0\0\0\0", xmp]), Some(6)),
            (
                b"iTXt",
                with(XMP, &[b"\x01\0en\0x\0", &packed(xmp)]),
                Some(6),
            ),
            (b"zTXt", with(XMP, &[b"\0", &packed(xmp)]), Some(6)),
            (b"tEXt", with(XMP, &[xmp]), Some(6)),
            (b"tEXt", with(EXIF, &[exif]), Some(8)),
            (b"zTXt", with(EXIF, &[b"\0", &packed(exif)]), Some(8)),
            (b"tEXt", with(EXIF, &[b"\nexif\n  2\nzz"]), None),
            (b"zTXt", with(XMP, &[b"\0broken"]), Some(1)),
            (b"iTXt", with(XMP, &[b"\0"]), None),
            (b"tEXt", b"Comment\0tiff:Orientation=\"6\"".to_vec(), None),
            (b"tIME", with(XMP, &[xmp]), None),
        ] {
            assert_eq!(orientation(kind, &content), tag, "{content:?}");
        }
    }
}
