//! What a worker makes of a file: the row of a crop, or a finished row.
//!
//! For tests; a worker's code, without its process.

use crate::cut::crop::{CropHeader, Takes};
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::picture::Limits;
use crate::plan::PositionRandom;
use crate::pool::worker::meter::Meter;
use crate::recipe::{CropRoom, RowExtent, SampleProgram};

/// The seed and epoch of all draws.
pub(crate) fn random(position: u64) -> PositionRandom {
    PositionRandom::new(7, 1, position)
}

/// Height and width of a row: the batch's, or that of every row.
pub(crate) fn extent(program: &SampleProgram, size: Option<(u32, u32)>) -> (u32, u32) {
    match (size, program.extent) {
        (Some(size), _) => size,
        (None, RowExtent::Fixed { height, width }) => (height, width),
        (None, RowExtent::Own) => panic!("rows of own sizes"),
    }
}

/// The bytes that a worker writes, of so many that the row has.
pub(crate) fn filled(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    size: Option<(u32, u32)>,
    bytes: usize,
) -> Result<Vec<u8>, String> {
    let mut decoder = SampleDecoder::new(program, &Limits::default()).unwrap();
    let mut row = vec![0xa5; bytes];
    let request = RowRequest {
        random: &random(position),
        size,
        part: None,
        admit: &|_| Ok(()),
    };
    decoder
        .fill(file, &request, &mut row, &mut Meter::default())
        .map(|()| row)
        .map_err(|f| f.reason)
}

/// What a worker hands over of a file, and what it says.
pub(crate) fn handed(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    size: Option<(u32, u32)>,
) -> Result<(Vec<u8>, CropHeader, CropRoom), String> {
    let extent = extent(program, size);
    let room = program.crops.unwrap().room(extent);
    let row = filled(program, file, position, size, room.row_bytes())?;
    let header = CropHeader::read(&row, room, extent, Takes::Pixels).unwrap();
    Ok((row, header, room))
}

/// The same where engines decode pictures up to `most` wide and high; none when the file is
/// not for them.
pub(crate) fn handed_file(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    most: (u32, u32),
    limits: &Limits,
) -> Result<Option<(Vec<u8>, CropHeader, CropRoom)>, String> {
    let extent = extent(program, None);
    let room = program.crops.unwrap().room(extent);
    let mut decoder = SampleDecoder::new(program, limits).unwrap();
    let mut row = vec![0xa5; room.row_bytes()];
    let request = RowRequest {
        random: &random(position),
        size: None,
        part: None,
        admit: &|_| Ok(()),
    };
    let is_theirs = decoder
        .hand_over_file(file, &request, most, &mut row, &mut Meter::default())
        .map_err(|f| f.reason)?;
    Ok(is_theirs.then(|| {
        let header = CropHeader::read(&row, room, extent, Takes::Files).unwrap();
        (row, header, room)
    }))
}
