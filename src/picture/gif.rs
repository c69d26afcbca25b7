//! The canvas of a GIF whose first frame exceeds it.
//!
//! Pure. The decoder cuts such a frame. Pillow enlarges the canvas, and so does this module.

use std::io::{self, Read, Seek, SeekFrom};

use super::file_format::FileFormat;
use super::reader::PictureReader;

/// Signature, and the screen: width, height, flags, background, aspect.
const HEADER: usize = 13;
/// The flag of a table of colours, in the screen and in a frame.
const TABLE: u8 = 0x80;

/// The header with a canvas that holds the first frame. `None` if the canvas holds it already, or
/// the file has no frame. The decoder reports missing frames.
pub(super) fn enlarged_header(file: &mut PictureReader<'_>) -> Option<Vec<u8>> {
    let (mut header, ends) = read_first_frame(file).ok()??;
    let mut grows = false;
    for (at, end) in [6, 8].into_iter().zip(ends) {
        let side = u16::from_le_bytes([header[at], header[at + 1]]);
        // The format cannot store a larger canvas: the decoder then shows a part of the frame.
        let end = u16::try_from(end).unwrap_or(u16::MAX);
        if end > side {
            header[at..at + 2].copy_from_slice(&end.to_le_bytes());
            grows = true;
        }
    }
    grows.then(|| header.to_vec())
}

/// The header, and the end of the first frame: column and row.
fn read_first_frame(file: &mut PictureReader<'_>) -> io::Result<Option<([u8; HEADER], [u32; 2])>> {
    file.seek(SeekFrom::Start(0))?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let flags = header[10];
    if flags & TABLE != 0 {
        file.seek_relative(3 << ((flags & 7) + 1))?;
    }
    let mut extensions = 0;
    loop {
        let mut kind = [0];
        file.read_exact(&mut kind)?;
        match kind[0] {
            b'!' => {
                // The kind of the extension, and its blocks up to an empty one.
                file.seek_relative(1)?;
                loop {
                    let mut len = [0];
                    file.read_exact(&mut len)?;
                    if len[0] == 0 {
                        break;
                    }
                    file.seek_relative(len[0].into())?;
                    extensions += u64::from(len[0]);
                    // More than the decoder would read.
                    if extensions > FileFormat::Gif.info().max_header {
                        return Ok(None);
                    }
                }
            }
            b',' => {
                let mut frame = [0; 8];
                file.read_exact(&mut frame)?;
                let [x0, x1, y0, y1, w0, w1, h0, h1] = frame;
                let number = |low, high| u32::from(u16::from_le_bytes([low, high]));
                let ends = [
                    number(x0, x1) + number(w0, w1),
                    number(y0, y1) + number(h0, h1),
                ];
                return Ok(Some((header, ends)));
            }
            _ => return Ok(None),
        }
    }
}
