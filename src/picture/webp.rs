//! Finds the orientation of a WebP without its decoder. The decoder would allocate as many bytes as
//! a chunk claims to have.
//!
//! Pure. Reads chunk headers, and the beginning of EXIF and XMP chunks.

use std::io::{self, Read, Seek, SeekFrom};

use super::orientation::ExifOrientation;
use super::reader::PictureReader;
use super::xmp;

/// RIFF, length, WEBP.
const HEAD: u64 = 12;

/// A broken block is never a fault: any unexpected value means upright. XMP counts if EXIF has no
/// orientation.
pub(super) fn orientation(file: &mut PictureReader<'_>) -> ExifOrientation {
    let mut found = (None, ExifOrientation::Normal);
    // Ends with an error at the end of the file.
    let _ = find(file, &mut found);
    found.0.unwrap_or(found.1)
}

/// The orientations of EXIF and of XMP.
fn find(
    file: &mut PictureReader<'_>,
    found: &mut (Option<ExifOrientation>, ExifOrientation),
) -> io::Result<()> {
    file.seek(SeekFrom::Start(HEAD))?;
    loop {
        let mut head = [0; 8];
        file.read_exact(&mut head)?;
        let [kind @ .., l0, l1, l2, l3] = head;
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        let most = match &kind {
            b"EXIF" => ExifOrientation::EXIF_HEAD,
            b"XMP " => xmp::MOST,
            _ => 0,
        };
        let mut content = Vec::new();
        file.take(u64::from(len).min(most as u64))
            .read_to_end(&mut content)?;
        if &kind == b"EXIF" {
            let exif = content.strip_prefix(b"Exif\0\0").unwrap_or(&content);
            found.0 = ExifOrientation::from_exif(exif);
            if found.0.is_some() {
                return Ok(());
            }
        } else if most > 0 {
            found.1 = xmp::orientation(&content);
        }
        // Chunks begin at even offsets.
        let rest = i64::from(len) + i64::from(len % 2) - content.len() as i64;
        file.seek_relative(rest)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::reader::ReadBudget;

    fn file(chunks: &[(&[u8; 4], u32, &[u8])]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WEBP".to_vec();
        for (kind, len, content) in chunks {
            bytes.extend_from_slice(*kind);
            bytes.extend(len.to_le_bytes());
            bytes.extend_from_slice(content);
        }
        bytes
    }

    const EXIF: &[u8] = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";

    fn tag(bytes: &[u8]) -> u8 {
        orientation(&mut PictureReader::of(bytes, &ReadBudget::of(u64::MAX))) as u8
    }

    #[test]
    fn the_tag_is_found_behind_other_chunks() {
        let old = [b"Exif\0\0", EXIF].concat();
        for exif in [EXIF, &old] {
            let exif = (b"EXIF", exif.len() as u32, exif);
            assert_eq!(tag(&file(&[exif])), 6);
            assert_eq!(tag(&file(&[(b"VP8L", 3, &[0; 4]), exif])), 6);
        }
    }

    #[test]
    fn xmp_counts_where_exif_has_no_orientation() {
        let xmp = br#"<x tiff:Orientation="3"/>"#;
        let xmp = (b"XMP ", xmp.len() as u32, &[&xmp[..], b"\0"].concat()[..]);
        let mut other = EXIF.to_vec();
        other[11] = 0x10;
        let exif = |block| (b"EXIF", EXIF.len() as u32, block);
        assert_eq!(tag(&file(&[xmp])), 3);
        assert_eq!(tag(&file(&[xmp, exif(EXIF)])), 6);
        assert_eq!(tag(&file(&[exif(EXIF), xmp])), 6);
        assert_eq!(tag(&file(&[exif(&other), xmp])), 3);
    }

    #[test]
    fn what_is_broken_is_upright_and_takes_no_memory() {
        assert_eq!(tag(b""), 1);
        assert_eq!(tag(&file(&[])), 1);
        assert_eq!(tag(&file(&[(b"VP8 ", u32::MAX, &[0; 9])])), 1);
        assert_eq!(tag(&file(&[(b"EXIF", u32::MAX, &EXIF[..9])])), 1);
        // The content is as long as the file allows.
        assert_eq!(tag(&file(&[(b"EXIF", u32::MAX, EXIF)])), 6);
    }
}
