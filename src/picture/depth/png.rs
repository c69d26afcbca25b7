//! Depths as PNG: grey of 1 to 16 bits, and grey stored as colours.

use std::io::Cursor;

use png::{BitDepth, ColorType, Transformations};

use super::depth_header::in_colour;
use crate::error::SampleFault;
use crate::picture::limits::PictureLimits;
use crate::picture::png::fault;

pub(super) fn read(
    bytes: &[u8],
    limits: &PictureLimits,
    levels: &mut Vec<f32>,
) -> Result<(), SampleFault> {
    let scratch = png::Limits {
        bytes: usize::try_from(limits.max_scratch).unwrap_or(usize::MAX),
    };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), scratch);
    let whole_grey = matches!(bytes.get(24..26), Some([8 | 16, 0]));
    decoder.set_transformations(match whole_grey {
        true => Transformations::IDENTITY,
        false => Transformations::EXPAND,
    });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(named)?;
    let (color, depth) = reader.output_color_type();
    let size = reader.output_buffer_size();
    let mut frame = vec![0; size.ok_or_else(in_colour)?];
    reader.next_frame(&mut frame).map_err(named)?;
    reader.finish().map_err(named)?;
    let channels = color.samples();
    let colors = match color {
        ColorType::Grayscale | ColorType::GrayscaleAlpha => 1,
        ColorType::Rgb | ColorType::Rgba | ColorType::Indexed => 3,
    };
    let bytes = if depth == BitDepth::Sixteen { 2 } else { 1 };
    for pixel in frame.chunks_exact(channels * bytes) {
        let (level, rest) = pixel.split_at(bytes);
        if rest[..(colors - 1) * bytes]
            .chunks_exact(bytes)
            .any(|other| other != level)
        {
            return Err(in_colour());
        }
        levels.push(match *level {
            [high, low] => f32::from(u16::from_be_bytes([high, low])),
            [level, ..] => f32::from(level),
            [] => 0.0,
        });
    }
    Ok(())
}

fn named(e: png::DecodingError) -> SampleFault {
    let fault = fault(e);
    let reason = format!("the depth is not a readable PNG: {}", fault.reason);
    SampleFault::new(fault.kind, reason)
}
