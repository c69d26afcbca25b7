//! The row that a worker makes of a file: a crop, or a finished row.
//!
//! For tests. Runs a worker's code without its process.

use crate::decode_plan::crop_row::{CropHeader, RowContents};
use crate::device::jpeg_part::PartLimits;
use crate::jobs::sample::{RowRequest, SampleDecoder};
use crate::order::PositionRandom;
use crate::picture::PictureLimits;
use crate::pool::worker::meter::StageMeter;
use crate::recipe::{CropRowBytes, RowExtent, SampleProgram};

/// The seed and epoch of all draws.
pub(crate) fn random(position: u64) -> PositionRandom {
    PositionRandom::new(7, 1, position)
}

/// Height and width of a row: the batch's, or that of every row.
pub(crate) fn extent(program: &SampleProgram, size: Option<(u32, u32)>) -> (u32, u32) {
    match (size, program.extent) {
        (Some(size), _) => size,
        (None, RowExtent::Fixed { height, width }) => (height, width),
        (None, RowExtent::Own | RowExtent::Patches(_)) => panic!("rows of own sizes"),
    }
}

/// A row of `bytes` bytes as a worker fills it.
pub(crate) fn filled(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    size: Option<(u32, u32)>,
    bytes: usize,
) -> Result<Vec<u8>, String> {
    let mut decoder = SampleDecoder::new(program, &PictureLimits::default()).unwrap();
    let mut row = vec![0xa5; bytes];
    let request = RowRequest {
        random: &random(position),
        size,
        part: None,
        boxes: None,
        check_size: &|_| Ok(()),
    };
    decoder
        .make_row(file, &request, &mut row, &mut StageMeter::default())
        .map(|()| row)
        .map_err(|f| f.reason)
}

/// The row that a worker hands over for a file, with its checked header and its sizes.
pub(crate) fn handed(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    size: Option<(u32, u32)>,
) -> Result<(Vec<u8>, CropHeader, CropRowBytes), String> {
    let extent = extent(program, size);
    let room = program.crops.unwrap().row_bytes(extent);
    let row = filled(program, file, position, size, room.row_bytes())?;
    let header = CropHeader::read(&row, room, extent, RowContents::Pixels).unwrap();
    Ok((row, header, room))
}

/// Room for every picture of a test.
pub(crate) const PARTS: PartLimits = PartLimits {
    pictures: 64,
    rows: 16 << 20,
    pixels: 16 << 20,
};

/// The same where a device decodes in such parts; none when it does not decode the crop.
pub(crate) fn handed_coded(
    program: &SampleProgram,
    file: &[u8],
    position: u64,
    parts: &PartLimits,
    limits: &PictureLimits,
) -> Result<Option<(Vec<u8>, CropHeader, CropRowBytes)>, String> {
    let extent = extent(program, None);
    let room = program.crops.unwrap().row_bytes(extent);
    let mut decoder = SampleDecoder::new(program, limits).unwrap();
    let mut row = vec![0xa5; room.row_bytes()];
    let request = RowRequest {
        random: &random(position),
        size: None,
        part: None,
        boxes: None,
        check_size: &|_| Ok(()),
    };
    decoder
        .fill_or_copy_coded(file, &request, parts, &mut row, &mut StageMeter::default())
        .map_err(|f| f.reason)?;
    let header = CropHeader::read(&row, room, extent, RowContents::Coded).unwrap();
    Ok((header.coded != 0).then_some((row, header, room)))
}
