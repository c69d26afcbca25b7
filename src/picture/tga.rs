//! Whether a TGA's colours are premultiplied: its decoder does not look.
//!
//! Pure. The footer of version 2 says where the extension area is, whose last byte says
//! what the alpha channel means.

use std::io::{self, Read, Seek, SeekFrom};

use super::file_format::TAIL;
use super::reader::PictureReader;
use super::rgb8::AlphaKind;

/// Where the extension area has the type of alpha.
const TYPE: u64 = 494;
const PREMULTIPLIED: u8 = 4;

/// A broken extension area never costs a picture: anything unexpected is straight.
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
