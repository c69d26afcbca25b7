//! DDS with premultiplied alpha, which the decoder does not know.
//!
//! Pure. DXT2 and DXT4 have the blocks of DXT3 and DXT5, with premultiplied colours. In a Direct3D
//! 10 header, a field states premultiplied alpha.

use std::io::{self, Read, Seek, SeekFrom};

use super::reader::PictureReader;
use super::rgb8::AlphaKind;

/// Offset of the block format in the header.
const FOUR_CC: usize = 84;
/// Bytes of the header.
const HEADER: usize = 128;
/// Offset of the alpha mode in a Direct3D 10 header, and its value for premultiplied.
const ALPHA_MODE: u64 = 144;
const PREMULTIPLIED: u32 = 2;

/// The header in a form that the decoder knows, and the relation of colours to alpha. The header is
/// `None` if the file is too short for one.
pub(super) fn read_header(
    file: &mut PictureReader<'_>,
) -> io::Result<(Option<Vec<u8>>, AlphaKind)> {
    let mut header = Vec::with_capacity(HEADER);
    file.seek(SeekFrom::Start(0))?;
    file.take(HEADER as u64).read_to_end(&mut header)?;
    let Some(kind) = header.get_mut(FOUR_CC..FOUR_CC + 4) else {
        return Ok((None, AlphaKind::Straight));
    };
    let alpha = match &*kind {
        b"DXT2" => {
            kind.copy_from_slice(b"DXT3");
            AlphaKind::Premultiplied
        }
        b"DXT4" => {
            kind.copy_from_slice(b"DXT5");
            AlphaKind::Premultiplied
        }
        b"DX10" if alpha_mode(file).is_ok_and(|mode| mode == PREMULTIPLIED) => {
            AlphaKind::Premultiplied
        }
        _ => AlphaKind::Straight,
    };
    Ok((Some(header), alpha))
}

fn alpha_mode(file: &mut PictureReader<'_>) -> io::Result<u32> {
    let mut mode = [0; 4];
    file.seek(SeekFrom::Start(ALPHA_MODE))?;
    file.read_exact(&mut mode)?;
    Ok(u32::from_le_bytes(mode) & 7)
}
