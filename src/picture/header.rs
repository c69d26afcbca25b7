//! The header of any picture: format, size and orientation, without decoding a
//! pixel.
//!
//! Used where a data set is surveyed, in the consumer; reads, never maps. The
//! data path reads the same headers by the same functions, out of its map.

use std::io::{BufRead, ErrorKind, Read, Seek, SeekFrom};

use super::format::{self, Format};
use super::orientation::Orientation;
use super::{jpeg, raster};
use crate::error::{FaultKind, SampleFault};

/// What a file says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureHeader {
    pub(crate) format: Format,
    /// Width and height as stored, pixels.
    pub(crate) stored: (u32, u32),
    pub(crate) orientation: Orientation,
}

impl PictureHeader {
    /// Width and height as the picture is to be looked at.
    pub(crate) fn upright(&self) -> (u32, u32) {
        self.orientation.apply_to_size(self.stored)
    }
}

/// The first piece of a JPEG that is read; doubled until the header is whole.
const JPEG_PIECE: u64 = 16 << 10;

/// Reads the header of a file, and no more of the file than that takes.
pub(crate) fn read_header(file: &mut (impl BufRead + Seek)) -> Result<PictureHeader, SampleFault> {
    let len = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let tail = read_at(
        file,
        len.saturating_sub(format::TAIL as u64),
        format::TAIL as u64,
    )?;
    let head = read_at(file, 0, format::HEAD as u64)?;
    let format = Format::sniff(&head, &tail)?;
    if format == Format::Jpeg {
        return read_jpeg(file, len);
    }
    file.rewind().map_err(unreadable)?;
    let (stored, orientation) = raster::read_header(format, file)?;
    Ok(PictureHeader {
        format,
        stored,
        orientation,
    })
}

/// A header may be long: colour profiles and thumbnails stand in it.
fn read_jpeg(file: &mut (impl BufRead + Seek), len: u64) -> Result<PictureHeader, SampleFault> {
    let mut piece = JPEG_PIECE;
    loop {
        let bytes = read_at(file, 0, piece)?;
        match jpeg::read_header(&bytes) {
            Err(fault) if fault.kind == FaultKind::Truncated && piece < len => piece *= 2,
            Err(fault) => return Err(fault),
            Ok(header) => {
                return Ok(PictureHeader {
                    format: Format::Jpeg,
                    stored: (header.width, header.height),
                    orientation: header.orientation,
                });
            }
        }
    }
}

fn read_at(file: &mut (impl Read + Seek), at: u64, most: u64) -> Result<Vec<u8>, SampleFault> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(e: std::io::Error) -> SampleFault {
    let kind = match e.kind() {
        ErrorKind::UnexpectedEof => FaultKind::Truncated,
        _ => FaultKind::Unreadable,
    };
    SampleFault::new(kind, format!("cannot be read: {e}"))
}
