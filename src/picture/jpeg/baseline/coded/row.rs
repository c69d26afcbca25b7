//! A picture's row: written by a worker, read by the consumer.
//!
//! | bytes | what |
//! |---|---|
//! | [`Header`] | size, window, components, tables |
//! | 4 a segment | where it ends in the coded data, bytes |
//! | up to a multiple of 16 | zeros |
//! | coded data | without stuffed bytes and markers; zeros up to a multiple of 16 |

use std::mem::size_of;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::super::frame::{Colour, Frame};
use super::super::geometry::Plan;
use super::super::job::{Job, Refusal, Window};
use super::super::kernels::Plain;
use super::super::{Form, huffman::Spec};
use super::codes::Codes;
use super::kernel_picture::{KernelPicture, KernelSegment};
use super::unstuff::unstuff;
use super::{MAX_CODED, MAX_PIXELS, MAX_SEGMENTS};

/// What coded data begin at a multiple of, and end at.
const ALIGNMENT: usize = 16;

/// A component: its sampling factors, and which Huffman tables it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RowComponent {
    pub(super) h: u8,
    pub(super) v: u8,
    pub(super) dc: u8,
    pub(super) ac: u8,
    /// In natural order.
    pub(super) factors: [i16; 64],
}

/// The start of a row. Of fewer components than three, zeros stand in their place.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Header {
    /// Width and height of the picture.
    size: [u32; 2],
    /// Side of a block of luma at the scale.
    block: u32,
    /// x, y, width and height, at the scale.
    window: [u32; 4],
    /// 0 grey, 1 YCbCr, 2 RGB.
    pub(super) colour: u32,
    count: u32,
    /// MCUs between restart markers; 0 for none.
    interval: u32,
    segments: u32,
    /// Bytes of coded data.
    coded: u32,
    pub(super) components: [RowComponent; 3],
    pub(super) dc: [Codes; 2],
    pub(super) ac: [Codes; 2],
}

impl Header {
    /// Whether a table is used by some component.
    pub(super) fn uses(&self, is_dc: bool, number: usize) -> bool {
        let mut components = self.components[..self.count.min(3) as usize].iter();
        components.any(|c| usize::from(if is_dc { c.dc } else { c.ac }) == number)
    }

    fn components(&self) -> &[RowComponent] {
        &self.components[..self.count.min(3) as usize]
    }

    fn window(&self) -> Window {
        let [x, y, w, h] = self.window.map(|n| n as usize);
        Window { x, y, w, h }
    }

    /// Where coded data begin.
    fn data_at(segments: usize) -> usize {
        (size_of::<Self>() + 4 * segments).next_multiple_of(ALIGNMENT)
    }
}

/// Segments of a picture, as its header states them.
fn segments(frame: &Frame) -> usize {
    let mcus = mcus(frame);
    match frame.restart_interval as usize {
        0 => 1,
        interval => (mcus.0 * mcus.1).div_ceil(interval),
    }
}

/// MCUs across and down.
pub(super) fn mcus(frame: &Frame) -> (usize, usize) {
    let most = |factor: fn((usize, usize)) -> usize| {
        let factors = frame.components().iter().map(|c| factor((c.h, c.v)));
        8 * factors.max().unwrap_or(1)
    };
    (
        frame.width.div_ceil(most(|(h, _)| h)),
        frame.height.div_ceil(most(|(_, v)| v)),
    )
}

/// Whether the window lies in the picture at its scale.
fn fits(frame: &Frame, block: usize, window: Window) -> bool {
    let inside = |at: usize, len: usize, side: usize| {
        let size = (side * block).div_ceil(8);
        len > 0 && at < size && len <= size - at
    };
    matches!(block, 1 | 2 | 4 | 8)
        && inside(window.x, window.w, frame.width)
        && inside(window.y, window.h, frame.height)
        && frame.width * frame.height <= MAX_PIXELS
}

/// Writes a row. How many bytes of `out` it takes.
///
/// `out` holds the header, the ends of segments, and as many bytes as the file has after its
/// header, with 16 to spare: then it never lacks room.
pub(crate) fn write_row(job: &Job<'_>, form: Form, out: &mut [u8]) -> Result<usize, Refusal> {
    let mut frame = Frame::default();
    frame.read(job.bytes)?;
    let found = (frame.width, frame.height, frame.components().len());
    let expected = (job.size.0, job.size.1, job.components);
    let segments = segments(&frame);
    if found != expected || !fits(&frame, job.block, job.window) || segments > MAX_SEGMENTS {
        return Err(Refusal::Unsupported);
    }
    let mut header = Header {
        size: [frame.width as u32, frame.height as u32],
        block: job.block as u32,
        window: [job.window.x, job.window.y, job.window.w, job.window.h].map(|n| n as u32),
        colour: match frame.colour {
            Colour::Grey => 0,
            Colour::YCbCr => 1,
            Colour::Rgb => 2,
            Colour::Cmyk | Colour::Ycck => return Err(Refusal::Unsupported),
        },
        count: frame.components().len() as u32,
        interval: frame.restart_interval,
        segments: segments as u32,
        coded: 0,
        components: Zeroable::zeroed(),
        dc: [&frame.dc[0], &frame.dc[1]].map(Codes::from),
        ac: [&frame.ac[0], &frame.ac[1]].map(Codes::from),
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
        let is_code = |is_dc: bool, spec: &Spec| match is_dc {
            _ if !header.uses(is_dc, number) => true,
            true => spec.is_dc(),
            false => spec.is_ac(),
        };
        if !is_code(true, &frame.dc[number]) || !is_code(false, &frame.ac[number]) {
            return Err(Refusal::Unsupported);
        }
    }
    let coded = job.bytes.get(frame.scan..).unwrap_or_default();
    let data_at = Header::data_at(segments);
    let (front, data) = out.split_at_mut_checked(data_at).ok_or(Refusal::NoMemory)?;
    let mut ends = vec![0; segments];
    let unstuffed = match form {
        Form::Plain => unstuff(Plain, coded, data, &mut ends),
        #[cfg(target_arch = "x86_64")]
        Form::Avx2 => match super::super::avx2::Avx2::detect() {
            Some(wide) => unstuff(wide, coded, data, &mut ends),
            None => None,
        },
    };
    let unstuffed = unstuffed.ok_or(Refusal::Damaged)?;
    // Each segment holds data; the consumer relies on it.
    if unstuffed > MAX_CODED || ends.first() == Some(&0) || ends.windows(2).any(|e| e[0] >= e[1]) {
        return Err(Refusal::Damaged);
    }
    let end = unstuffed.next_multiple_of(ALIGNMENT);
    data.get_mut(unstuffed..end)
        .ok_or(Refusal::NoMemory)?
        .fill(0);
    header.coded = unstuffed as u32;
    let (head, rest) = front.split_at_mut(size_of::<Header>());
    head.copy_from_slice(bytemuck::bytes_of(&header));
    let (table, rest) = rest.split_at_mut(4 * segments);
    table.copy_from_slice(bytemuck::cast_slice(&ends));
    rest.fill(0);
    Ok(data_at + end)
}

/// A row that the consumer has read and checked.
#[derive(Debug)]
pub(crate) struct CodedPicture {
    pub(crate) picture: KernelPicture,
    pub(crate) segments: Vec<KernelSegment>,
    /// Where the coded data stand in the row, up to a multiple of 16.
    pub(crate) data: Range<usize>,
}

impl CodedPicture {
    /// Reads the start of a row. `Damaged` is a row that [`write_row`] does not write, and
    /// `Unsupported` one whose tables are too large for the kernels.
    pub(crate) fn read(row: &[u8]) -> Result<Self, Refusal> {
        let head = row.get(..size_of::<Header>()).ok_or(Refusal::Damaged)?;
        let header: Header = bytemuck::pod_read_unaligned(head);
        let specs = header.components().iter();
        let specs = specs.map(|c| [c.h, c.v, c.dc, c.ac].map(usize::from));
        let size = header.size.map(|side| side as usize);
        let frame = Frame::of((size[0], size[1]), header.interval, specs);
        let frame = frame.ok_or(Refusal::Damaged)?;
        let (block, window) = (header.block as usize, header.window());
        let is_colour = match header.colour {
            0 => header.count == 1,
            1 | 2 => header.count == 3,
            _ => false,
        };
        let count = segments(&frame);
        if !is_colour
            || !fits(&frame, block, window)
            || header.segments as usize != count
            || count > MAX_SEGMENTS
            || header.coded as usize > MAX_CODED
        {
            return Err(Refusal::Damaged);
        }
        let data_at = Header::data_at(count);
        let coded = header.coded as usize;
        let data = data_at..data_at + coded.next_multiple_of(ALIGNMENT);
        let ends = row.get(size_of::<Header>()..size_of::<Header>() + 4 * count);
        let (Some(ends), true) = (ends, data.end <= row.len()) else {
            return Err(Refusal::Damaged);
        };
        let plan = Plan::new(&frame, block, window)?;
        let (mut start, mut unit, mut chain) = (0u32, 0u32, 0u32);
        let mut segments = Vec::with_capacity(count);
        for end in ends.chunks_exact(4) {
            let end = bytemuck::pod_read_unaligned::<u32>(end);
            if end <= start || end > header.coded {
                return Err(Refusal::Damaged);
            }
            let segment = KernelSegment::new(start, end, unit, chain);
            (unit, chain) = segment.after();
            start = end;
            segments.push(segment);
        }
        if start != header.coded {
            return Err(Refusal::Damaged);
        }
        let picture = KernelPicture::new(&header, &frame, &plan, window, (unit, chain))?;
        Ok(Self {
            picture: picture.with_coded(coded, count),
            segments,
            data,
        })
    }
}
