//! Whether a TGA's colours are premultiplied, which its decoder does not check.
//!
//! Pure. The footer of version 2 has the offset of the extension area. That area's last byte is the
//! type of alpha.

use std::io::{self, Read, Seek, SeekFrom};

use super::file_format::TAIL;
use super::reader::PictureReader;
use super::rgb8::AlphaKind;

/// Offset of the alpha type in the extension area.
const TYPE: u64 = 494;
const PREMULTIPLIED: u8 = 4;

/// A broken extension area is never a fault: any unexpected value means straight.
pub(super) fn alpha_kind(file: &mut PictureReader<'_>) -> AlphaKind {
    match read_type(file) {
        Ok(PREMULTIPLIED) => AlphaKind::Premultiplied,
        _ => AlphaKind::Straight,
    }
}

fn read_type(file: &mut PictureReader<'_>) -> io::Result<u8> {
    file.seek(SeekFrom::End(-(TAIL as i64)))?;
    let mut at = [0; 4];
    file.read_exact(&mut at)?;
    let area = u64::from(u32::from_le_bytes(at));
    if area == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(area + TYPE))?;
    let mut kind = [0];
    file.read_exact(&mut kind)?;
    Ok(kind[0])
}
