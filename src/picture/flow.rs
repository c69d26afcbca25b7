//! Optical flow: how far each pixel moves to the right and down, as stored in the file.
//!
//! Pure. Reads `.flo` of Middlebury, PNG of 16 bits in colours as in KITTI, and arrays of NumPy of
//! shape (H, W, 2). The two numbers of a pixel lie together. Both are NaN where the file says that
//! the flow is not known.

use std::io::Cursor;

use png::{BitDepth, ColorType, Transformations};

use super::depth::npy as numbers;
use super::limits::PictureLimits;
use super::npy::{self, NpyDepth};
use super::png::fault;
use crate::error::{FaultKind, SampleFault};

/// The first bytes of a `.flo` file: the number 202021.25.
const FLO: &[u8] = b"PIEH";
/// Bytes of its header: these, then width and height.
const FLO_HEAD: usize = 12;
/// Numbers above this are not known, as in the programs of Middlebury.
const UNKNOWN: f32 = 1e9;
/// The number that Middlebury's programs write where the flow is not known.
const WRITTEN_UNKNOWN: f32 = 1e10;
/// What KITTI adds to 64 times the flow.
const KITTI_ZERO: f32 = 32768.0;
const KITTI_UNIT: f32 = 64.0;
/// Bytes of the numbers of a pixel.
const PAIR: u64 = 2 * size_of::<f32>() as u64;

/// A format of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowFormat {
    Flo,
    Png,
    Npy,
}

/// Width and height, and the maximum bytes that reading takes.
///
/// # Errors
/// A header that is broken or not of a flow.
pub(crate) fn size_and_bytes(
    bytes: &[u8],
    limits: &PictureLimits,
) -> Result<((u32, u32), u64), SampleFault> {
    let (_, size, scratch) = header(bytes, limits)?;
    Ok((size, scratch))
}

fn header(
    bytes: &[u8],
    limits: &PictureLimits,
) -> Result<(FlowFormat, (u32, u32), u64), SampleFault> {
    let pixels = |size: (u32, u32)| u64::from(size.0).saturating_mul(u64::from(size.1));
    if let Some(rest) = bytes.strip_prefix(FLO) {
        let side = |at: usize| {
            let number = rest
                .get(at..at + 4)
                .map(|side| [0, 1, 2, 3].map(|i| side[i]));
            let number = number.map(i32::from_le_bytes);
            match number.map(u32::try_from) {
                None => Err(FaultKind::Truncated.fault("the flow ends in its header")),
                Some(Ok(side @ 1..)) => Ok(side),
                Some(_) => Err(corrupt("has an invalid size for a .flo file")),
            }
        };
        let size = (side(0)?, side(4)?);
        return Ok((FlowFormat::Flo, size, pixels(size).saturating_mul(PAIR)));
    }
    match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => {
            let head = bytes.get(..npy::HEAD as usize).unwrap_or(bytes);
            let size = NpyDepth::read_of(head, 2)?.size;
            Ok((FlowFormat::Npy, size, pixels(size).saturating_mul(PAIR)))
        }
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => {
            let reader = open_png(bytes, limits)?;
            let info = reader.info();
            let size = info.size();
            // Six bytes of the file, and rows that are not filtered yet.
            let scratch = (pixels(size).saturating_mul(PAIR + 6))
                .saturating_add(u64::from(size.0) * 6 * 9 + (512 << 10));
            Ok((FlowFormat::Png, size, scratch))
        }
        _ => Err(FaultKind::Unsupported.fault(
            "the flow is no .flo file, PNG of 16 bits as in KITTI, or NumPy array (.npy) of shape \
             (H, W, 2): write it as one of them",
        )),
    }
}

/// Reads a flow to `numbers`, row by row, two numbers for each pixel. Returns height and width.
///
/// # Errors
/// A file that is broken or no flow; too many pixels or bytes.
pub(crate) fn read(
    bytes: &[u8],
    limits: &PictureLimits,
    flow: &mut Vec<f32>,
) -> Result<(u32, u32), SampleFault> {
    let (format, size, scratch) = header(bytes, limits)?;
    limits.check_pixels("a flow", size)?;
    limits.check_scratch("a flow", scratch)?;
    let count = 2 * size.0 as usize * size.1 as usize;
    if format == FlowFormat::Flo && (bytes.len() as u64) < FLO_HEAD as u64 + scratch {
        return Err(FaultKind::Truncated.fault("the flow ends before its last pixel"));
    }
    flow.clear();
    flow.try_reserve_exact(count)
        .map_err(|_| FaultKind::NoMemory.fault(format!("no memory for {count} numbers")))?;
    match format {
        FlowFormat::Flo => {
            let stored = bytes.get(FLO_HEAD..).unwrap_or_default().as_chunks().0;
            flow.extend(stored.iter().take(count).copied().map(f32::from_le_bytes));
        }
        FlowFormat::Npy => numbers::read_of(bytes, 2, flow).map_err(|fault| {
            SampleFault::new(fault.kind, fault.reason.replace("the depth", "the flow"))
        })?,
        FlowFormat::Png => read_png(bytes, limits, flow)?,
    }
    if flow.len() != count {
        return Err(FaultKind::Truncated.fault("the flow ends before its last pixel"));
    }
    for pixel in flow.as_chunks_mut::<2>().0 {
        if pixel.iter().any(|n| n.is_nan() || n.abs() > UNKNOWN) {
            *pixel = [f32::NAN; 2];
        }
    }
    Ok((size.1, size.0))
}

/// A `.flo` file of a flow of this height and width: one plane after the other. NaN is not known.
pub(crate) fn write(planes: &[f32], (height, width): (u32, u32)) -> Vec<u8> {
    let (across, down) = planes.split_at(planes.len() / 2);
    let mut file = Vec::with_capacity(FLO_HEAD + size_of_val(planes));
    file.extend(FLO);
    file.extend(width.to_le_bytes());
    file.extend(height.to_le_bytes());
    let known = |n: f32| if n.is_nan() { WRITTEN_UNKNOWN } else { n };
    let pixels = across.iter().zip(down).flat_map(|(x, y)| [*x, *y]);
    file.extend(pixels.flat_map(|n| known(n).to_le_bytes()));
    file
}

fn open_png<'a>(
    bytes: &'a [u8],
    limits: &PictureLimits,
) -> Result<png::Reader<Cursor<&'a [u8]>>, SampleFault> {
    let scratch = png::Limits {
        bytes: usize::try_from(limits.max_scratch).unwrap_or(usize::MAX),
    };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), scratch);
    decoder.set_transformations(Transformations::IDENTITY);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let reader = decoder.read_info().map_err(named)?;
    match reader.output_color_type() {
        (ColorType::Rgb, BitDepth::Sixteen) => Ok(reader),
        (color, depth) => Err(FaultKind::Unsupported.fault(format!(
            "the flow is a PNG of colour type {} with {} bits: KITTI's have three channels of 16 \
             bits",
            color as u8, depth as u8
        ))),
    }
}

/// Red is 64 u + 32768, green is 64 v + 32768, and blue is 0 where the flow is not known.
fn read_png(bytes: &[u8], limits: &PictureLimits, flow: &mut Vec<f32>) -> Result<(), SampleFault> {
    let mut reader = open_png(bytes, limits)?;
    let too_large = || FaultKind::TooLarge.fault("the flow has rows that no memory holds");
    let room = reader.output_buffer_size().ok_or_else(too_large)?;
    let mut frame = Vec::new();
    frame
        .try_reserve_exact(room)
        .map_err(|_| FaultKind::NoMemory.fault(format!("no memory for {room} bytes")))?;
    frame.resize(room, 0);
    reader.next_frame(&mut frame).map_err(named)?;
    for pixel in frame.as_chunks::<6>().0 {
        let level = |at: usize| f32::from(u16::from_be_bytes([pixel[at], pixel[at + 1]]));
        let component = |at: usize| (level(at) - KITTI_ZERO) / KITTI_UNIT;
        flow.extend(match level(4) == 0.0 {
            true => [f32::NAN; 2],
            false => [component(0), component(2)],
        });
    }
    reader.finish().map_err(named)
}

fn named(e: png::DecodingError) -> SampleFault {
    let fault = fault(e);
    let reason = format!("the flow is not a readable PNG: {}", fault.reason);
    SampleFault::new(fault.kind, reason)
}

fn corrupt(what: &str) -> SampleFault {
    FaultKind::Corrupt.fault(format!("the flow {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> PictureLimits {
        PictureLimits::default()
    }

    fn flo(width: i32, height: i32, numbers: &[f32]) -> Vec<u8> {
        let mut file = FLO.to_vec();
        file.extend(width.to_le_bytes());
        file.extend(height.to_le_bytes());
        file.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        file
    }

    pub(crate) fn kitti(width: u32, height: u32, pixels: &[[u16; 3]]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Sixteen);
        let mut writer = encoder.write_header().unwrap();
        let bytes = pixels.iter().flatten().flat_map(|n| n.to_be_bytes());
        writer.write_image_data(&bytes.collect::<Vec<_>>()).unwrap();
        writer.finish().unwrap();
        file
    }

    #[test]
    fn each_format_has_its_numbers() {
        let mut flow = Vec::new();
        let file = flo(2, 1, &[1.5, -2.0, 2e9, 0.0]);
        assert_eq!(read(&file, &limits(), &mut flow).unwrap(), (1, 2));
        assert_eq!(flow[..2], [1.5, -2.0]);
        assert!(flow[2].is_nan() && flow[3].is_nan());
        let file = kitti(2, 1, &[[32768 + 96, 32768 - 128, 1], [40000, 40000, 0]]);
        assert_eq!(read(&file, &limits(), &mut flow).unwrap(), (1, 2));
        assert_eq!(flow[..2], [1.5, -2.0]);
        assert!(flow[2].is_nan() && flow[3].is_nan());
    }

    #[test]
    fn broken_files_are_faults_in_bounded_memory() {
        let mut flow = Vec::new();
        let mut refused = |file: &[u8]| {
            let fault = read(file, &limits(), &mut flow).unwrap_err();
            assert!(flow.capacity() < 1 << 20, "{}", flow.capacity());
            fault.reason
        };
        let large = flo(1_000_000_000, 1_000_000_000, &[0.0; 8]);
        assert!(
            refused(&large).contains("over max_pixels"),
            "{}",
            refused(&large)
        );
        let none = flo(0, 4, &[]);
        assert!(refused(&none).contains("invalid size"));
        let negative = flo(-3, 4, &[]);
        assert!(refused(&negative).contains("invalid size"));
        assert!(refused(&flo(2, 2, &[0.0; 7])).contains("ends before its last pixel"));
        let whole = kitti(3, 2, &[[32768, 32768, 1]; 6]);
        for len in 0..whole.len() {
            refused(&whole[..len]);
        }
        let whole = flo(3, 2, &[0.0; 12]);
        for len in 0..whole.len() {
            refused(&whole[..len]);
        }
        assert!(refused(b"\xff\xd8\xff\xe0").contains("is no .flo file"));
    }
}
