//! The orientation of a WebP, found without its decoder, which would allocate
//! as many bytes as a chunk says that it has.
//!
//! Pure. Reads chunk headers, and of the EXIF chunk its beginning.

use std::io::{Read, Seek, SeekFrom};

use super::orientation::Orientation;
use super::reader::Reader;

/// RIFF, length, WEBP.
const HEAD: u64 = 12;

/// A broken EXIF block never costs a picture: anything unexpected is upright.
pub(super) fn orientation(file: &mut Reader<'_>) -> Orientation {
    exif(file)
        .and_then(|exif| Orientation::from_exif(exif.strip_prefix(b"Exif\0\0").unwrap_or(&exif)))
        .unwrap_or_default()
}

fn exif(file: &mut Reader<'_>) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(HEAD)).ok()?;
    loop {
        let mut head = [0; 8];
        file.read_exact(&mut head).ok()?;
        let [kind @ .., l0, l1, l2, l3] = head;
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        if &kind == b"EXIF" {
            let mut exif = Vec::new();
            let most = u64::from(len).min(Orientation::EXIF_HEAD as u64);
            file.take(most).read_to_end(&mut exif).ok()?;
            return Some(exif);
        }
        // Chunks begin at even places.
        file.seek_relative(i64::from(len) + i64::from(len % 2))
            .ok()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::reader::Window;

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
        orientation(&mut Reader::of(bytes, &Window::of(u64::MAX))) as u8
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
    fn what_is_broken_is_upright_and_takes_no_memory() {
        assert_eq!(tag(b""), 1);
        assert_eq!(tag(&file(&[])), 1);
        assert_eq!(tag(&file(&[(b"VP8 ", u32::MAX, &[0; 9])])), 1);
        assert_eq!(tag(&file(&[(b"EXIF", u32::MAX, &EXIF[..9])])), 1);
        let long = file(&[(b"EXIF", u32::MAX, EXIF)]);
        assert!(
            exif(&mut Reader::of(&long, &Window::of(u64::MAX)))
                .unwrap()
                .capacity()
                < 1 << 10
        );
    }
}
