//! Writes a picture's row, in a worker.

use std::mem::size_of;

use bytemuck::Zeroable;

use super::super::frame::{FrameHeader, JpegColors};
use super::super::kernels::{PlainDecodeKernels, with_kernels};
use super::super::request::{DecodeRefusal, DecodeRequest};
#[cfg(target_arch = "x86_64")]
use super::super::wide;
use super::super::{SimdForm, huffman::HuffmanSpec};
use super::codes::KernelCodes;
use super::limits::{MAX_CODED, MAX_SEGMENTS};
use super::row_header::{ALIGNMENT, CodedRowHeader, RowComponent, fits, segments};
use super::unstuff::unstuff;

/// Writes a row. Returns the bytes of `out` that it uses.
///
/// `out` must have room for the header, the ends of segments, and 16 bytes more than the file has
/// after its header. Then it is never too small.
pub(crate) fn write_row(
    job: &DecodeRequest<'_>,
    form: SimdForm,
    out: &mut [u8],
) -> Result<usize, DecodeRefusal> {
    let mut frame = FrameHeader::default();
    frame.read(job.bytes)?;
    let found = (frame.width, frame.height, frame.components().len());
    let expected = (job.size.0, job.size.1, job.components);
    let segments = segments(&frame);
    if found != expected || !fits(&frame, job.block, job.window) || segments > MAX_SEGMENTS {
        return Err(DecodeRefusal::Unsupported);
    }
    let mut header = CodedRowHeader {
        size: [frame.width as u32, frame.height as u32],
        block: job.block as u32,
        window: [job.window.x, job.window.y, job.window.w, job.window.h].map(|n| n as u32),
        colour: match frame.colour {
            JpegColors::Grey => 0,
            JpegColors::YCbCr => 1,
            JpegColors::Rgb => 2,
            JpegColors::Cmyk | JpegColors::Ycck => return Err(DecodeRefusal::Unsupported),
        },
        count: frame.components().len() as u32,
        interval: frame.restart_interval,
        segments: segments as u32,
        coded: 0,
        components: Zeroable::zeroed(),
        dc: [&frame.dc[0], &frame.dc[1]].map(KernelCodes::from),
        ac: [&frame.ac[0], &frame.ac[1]].map(KernelCodes::from),
    };
    for (to, component) in header.components.iter_mut().zip(frame.components()) {
        *to = RowComponent {
            h: component.h as u8,
            v: component.v as u8,
            dc: component.dc as u8,
            ac: component.ac as u8,
            factors: frame.quantization[component.quantization & 3],
        };
    }
    for number in 0..2 {
        let is_code = |is_dc: bool, spec: &HuffmanSpec| match is_dc {
            _ if !header.uses(is_dc, number) => true,
            true => spec.is_dc(),
            false => spec.is_ac(),
        };
        if !is_code(true, &frame.dc[number]) || !is_code(false, &frame.ac[number]) {
            return Err(DecodeRefusal::Unsupported);
        }
    }
    let coded = job.bytes.get(frame.scan..).unwrap_or_default();
    let data_at = CodedRowHeader::data_at(segments);
    let (front, data) = out
        .split_at_mut_checked(data_at)
        .ok_or(DecodeRefusal::NoMemory)?;
    let mut ends = vec![0; segments];
    let unstuffed = with_kernels!(form, kernels => unstuff(kernels, coded, data, &mut ends));
    let unstuffed = unstuffed.ok_or(DecodeRefusal::Damaged)?;
    // The consumer relies on segments that are not empty.
    if unstuffed > MAX_CODED || ends.first() == Some(&0) || ends.windows(2).any(|e| e[0] >= e[1]) {
        return Err(DecodeRefusal::Damaged);
    }
    let end = unstuffed.next_multiple_of(ALIGNMENT);
    data.get_mut(unstuffed..end)
        .ok_or(DecodeRefusal::NoMemory)?
        .fill(0);
    header.coded = unstuffed as u32;
    let (head, rest) = front.split_at_mut(size_of::<CodedRowHeader>());
    head.copy_from_slice(bytemuck::bytes_of(&header));
    let (table, rest) = rest.split_at_mut(4 * segments);
    table.copy_from_slice(bytemuck::cast_slice(&ends));
    rest.fill(0);
    Ok(data_at + end)
}
