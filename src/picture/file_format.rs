//! Detects the format of a file from its bytes alone, because names can be wrong.
//!
//! Pure. `format_table` has the supported formats. This file knows the first bytes of some other
//! formats, so that a fault can name the format that it found.

use std::fmt;

use serde::Serialize;

use crate::error::{FaultKind, SampleFault, lost_picture};

/// The formats of images that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileFormat {
    Jpeg,
    Png,
    WebP,
    Gif,
    Bmp,
    Tiff,
    Pnm,
    Tga,
    Ico,
    Qoi,
    Dds,
    Hdr,
    OpenExr,
    Farbfeld,
    /// A NumPy array of `u8`.
    Npy,
}

/// Bytes at the start of a file that [`FileFormat::sniff`] needs.
pub(crate) const HEAD: usize = 32;
/// Bytes at the end of a file that it needs.
pub(crate) const TAIL: usize = 26;

impl FileFormat {
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The format of a file with this start (at least [`HEAD`] bytes, or all) and this end
    /// ([`TAIL`] bytes, or all).
    ///
    /// # Errors
    /// The format is not supported. The text names the format if it is known.
    pub(crate) fn sniff(head: &[u8], tail: &[u8]) -> Result<Self, SampleFault> {
        Self::by_mark(head, tail).ok_or_else(|| unserved(head))
    }

    /// [`FileFormat::sniff`] of a whole file.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, SampleFault> {
        if let Some(fault) = lost_picture::fault_of(bytes) {
            return Err(fault);
        }
        Self::sniff(bytes, &bytes[bytes.len().saturating_sub(TAIL)..])
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn unserved(head: &[u8]) -> SampleFault {
    const MAGIC: [(&[u8], &str); 10] = [
        (b"\xff\x0a", "JPEG XL"),
        (b"\0\0\0\x0cJXL ", "JPEG XL"),
        (b"\0\0\0\x0cjP  ", "JPEG 2000"),
        (b"\xff\x4f\xff\x51", "JPEG 2000"),
        (b"%PDF", "PDF"),
        (b"\x1f\x8b", "gzip"),
        (b"PK\x03\x04", "ZIP"),
        (b"8BPS", "Photoshop PSD"),
        (b"<", "HTML, SVG or other XML"),
        (b"\x89HDF", "HDF5"),
    ];
    if head.is_empty() {
        return FaultKind::Truncated.fault("the file is empty");
    }
    let name = if head.get(4..8) == Some(b"ftyp") {
        Some(match head.get(8..12) {
            Some(b"avif" | b"avis") => "AVIF",
            _ => "HEIF or MP4",
        })
    } else if head.len() >= 16 && head[..16].iter().all(|&b| b == 0) {
        Some("zero bytes")
    } else {
        MAGIC
            .iter()
            .find(|(magic, _)| head.starts_with(magic))
            .map(|&(_, name)| name)
    };
    FaultKind::Unsupported.fault(match name {
        Some(name) => format!(
            "the content is {name}, which is not decoded: convert it to \
                                   JPEG or PNG, or leave it out"
        ),
        None => format!(
            "the content is no known image format (it starts with {:02x?}): convert it, or \
                 leave it out",
            &head[..head.len().min(4)]
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides() {
        let of = |bytes: &[u8]| FileFormat::of(bytes).ok();
        assert_eq!(of(b"\xff\xd8\xff\xe0"), Some(FileFormat::Jpeg));
        assert_eq!(of(b"RIFF\x10\0\0\0WEBPVP8L"), Some(FileFormat::WebP));
        assert_eq!(of(b"RIFF\x10\0\0\0WAVEfmt "), None);
        assert_eq!(of(b"P6\n3 2\n255\n"), Some(FileFormat::Pnm));
        assert_eq!(of(b"P9\n3 2\n255\n"), None);
        assert_eq!(of(b"Plain text"), None);
        assert_eq!(of(b"#?RADIANCE\n"), Some(FileFormat::Hdr));
        assert_eq!(of(b"\x93NUMPY\x01"), Some(FileFormat::Npy));
        assert_eq!(of(b"\x93NUMP"), None);
        let mut tga = vec![0, 0, 2];
        tga.extend([0; 40]);
        assert_eq!(of(&tga), None);
        tga.extend(b"TRUEVISION-XFILE.\0");
        assert_eq!(of(&tga), Some(FileFormat::Tga));
    }

    #[test]
    fn what_is_not_served_is_named() {
        for (bytes, kind, text) in [
            (&b""[..], FaultKind::Truncated, "empty"),
            (b"\0\0\0\x20ftypavif....", FaultKind::Unsupported, "AVIF"),
            (b"\xff\x0a..", FaultKind::Unsupported, "JPEG XL"),
            (&[0; 64], FaultKind::Unsupported, "zero bytes"),
            (b"hello", FaultKind::Unsupported, "[68, 65, 6c, 6c]"),
        ] {
            let fault = FileFormat::of(bytes).unwrap_err();
            assert_eq!(fault.kind, kind);
            assert!(fault.reason.contains(text), "{}", fault.reason);
        }
    }
}
