//! Depths as TIFF: grey of any integers or floats.

use std::io::Cursor;

use ::tiff::ColorType;
use ::tiff::decoder::{Decoder, DecodingResult};

use super::depth_header::{in_colour, tiff_fault, tiff_limits};
use crate::error::SampleFault;
use crate::picture::limits::PictureLimits;

pub(super) fn read(
    bytes: &[u8],
    limits: &PictureLimits,
    levels: &mut Vec<f32>,
) -> Result<(), SampleFault> {
    let mut decoder = Decoder::new(Cursor::new(bytes))
        .map_err(tiff_fault)?
        .with_limits(tiff_limits(limits));
    if !matches!(decoder.colortype().map_err(tiff_fault)?, ColorType::Gray(_)) {
        return Err(in_colour());
    }
    match decoder.read_image().map_err(tiff_fault)? {
        DecodingResult::U8(all) => levels.extend(all.iter().map(|v| f32::from(*v))),
        DecodingResult::U16(all) => levels.extend(all.iter().map(|v| f32::from(*v))),
        DecodingResult::U32(all) => levels.extend(all.iter().map(|v| *v as f32)),
        DecodingResult::U64(all) => levels.extend(all.iter().map(|v| *v as f32)),
        DecodingResult::F16(all) => levels.extend(all.iter().map(|v| v.to_f32())),
        DecodingResult::F32(all) => levels.extend(&all),
        DecodingResult::F64(all) => levels.extend(all.iter().map(|v| *v as f32)),
        DecodingResult::I8(all) => levels.extend(all.iter().map(|v| f32::from(*v))),
        DecodingResult::I16(all) => levels.extend(all.iter().map(|v| f32::from(*v))),
        DecodingResult::I32(all) => levels.extend(all.iter().map(|v| *v as f32)),
        DecodingResult::I64(all) => levels.extend(all.iter().map(|v| *v as f32)),
    }
    Ok(())
}
