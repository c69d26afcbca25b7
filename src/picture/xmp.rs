//! The orientation in an XMP packet, for images whose EXIF has none.
//!
//! Pure. Like Pillow, it searches for the name, as an attribute or an element, without parsing the
//! XML.

use super::orientation::ExifOrientation;

/// The start of a JPEG segment that holds a packet.
pub(super) const NAMESPACE: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// Maximum bytes of a packet that are read.
pub(super) const MOST: usize = 256 << 10;

const NAME: &[u8] = b"tiff:Orientation";

/// The orientation; upright if the packet has none, or a value other than 1 to 8.
pub(super) fn orientation(packet: &[u8]) -> ExifOrientation {
    let mut rest = packet;
    while let Some(at) = find_name(rest) {
        rest = &rest[at + NAME.len()..];
        let value = rest
            .strip_prefix(b"=\"")
            .or_else(|| rest.strip_prefix(b">"))
            .and_then(<[u8]>::first);
        if let Some(digit @ b'0'..=b'9') = value {
            return ExifOrientation::from_tag(u32::from(digit - b'0')).unwrap_or_default();
        }
    }
    ExifOrientation::Normal
}

/// Searches for the letter `O`, which is rare in packets.
fn find_name(bytes: &[u8]) -> Option<usize> {
    const O: usize = 5;
    let mut from = O;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|&b| b == b'O')?;
        if bytes[at - O..].starts_with(NAME) {
            return Some(at - O);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pattern of Pillow's `Image.getexif`: `tiff:Orientation(="|>)([0-9])`.
    #[test]
    fn both_forms_are_found_and_nothing_else() {
        for (packet, tag) in [
            (&br#"<x tiff:Orientation="6" tiff:Model="O"/>"#[..], 6),
            (b"<tiff:Orientation>3</tiff:Orientation>", 3),
            (b"tiff:Orientation=\"8\"tiff:Orientation=\"3\"", 8),
            (b"O tiff:Orientation='6' <tiff:Orientation>5<", 5),
            (b"<tiff:Orientation>9</tiff:Orientation>", 1),
            (b"<exif:Orientation>6<", 1),
            (b"tiff:Orientation=\"", 1),
            (b"tiff:Orientatio", 1),
            (b"OO", 1),
            (b"", 1),
        ] {
            assert_eq!(orientation(packet) as u8, tag, "{packet:?}");
        }
    }
}
