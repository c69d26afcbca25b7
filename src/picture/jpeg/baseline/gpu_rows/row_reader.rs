//! A picture's row, read and checked by the consumer.

use std::mem::size_of;
use std::ops::Range;

use super::super::frame::Frame;
use super::super::geometry::Plan;
use super::super::job::Refusal;
use super::kernel_picture::{KernelPicture, KernelSegment};
use super::limits::{MAX_CODED, MAX_SEGMENTS};
use super::resize::KernelResize;
use super::row_header::{ALIGNMENT, Header, fits, segments};

/// A row that the consumer has read and checked.
#[derive(Debug)]
pub(crate) struct CodedPicture {
    pub(crate) picture: KernelPicture,
    pub(crate) segments: Vec<KernelSegment>,
    /// How the window is resized; none = it is wanted as it is.
    pub(crate) resize: Option<KernelResize>,
    /// Where the coded data stand in the row, up to a multiple of 16, and the tables of the resize
    /// behind them.
    pub(crate) data: Range<usize>,
}

impl CodedPicture {
    /// Reads a row that gives pixels of `size` (width, height): the window, or what tables behind
    /// its coded data make of a window of another size.
    pub(crate) fn read_as(row: &[u8], size: (u32, u32)) -> Result<Self, Refusal> {
        let mut coded = Self::read(row)?;
        if coded.picture.size() != size {
            let tables = &row[coded.data.end..];
            let resize = KernelResize::read(tables, &coded.picture, size);
            coded.resize = Some(resize.ok_or(Refusal::Damaged)?);
            coded.data.end = row.len();
        }
        Ok(coded)
    }

    /// Bytes of the coded data, up to a multiple of 16: the tables of the resize come then.
    pub(crate) fn coded_bytes(&self) -> usize {
        self.data.len() - self.resize.map_or(0, |resize| resize.table_bytes())
    }

    /// Reads the start of a row. `Damaged` is a row that `write_row` does not write, and
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
            resize: None,
            data,
        })
    }
}
