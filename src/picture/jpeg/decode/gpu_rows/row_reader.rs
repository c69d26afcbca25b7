//! A picture's row, read and checked by the consumer.

use std::mem::size_of;
use std::ops::Range;

use bytemuck::Zeroable;

use super::super::frame::FrameHeader;
use super::super::geometry::WindowGeometry;
use super::super::request::DecodeRefusal;
use super::kernel_picture::{KernelPicture, KernelSegment};
use super::limits::{MAX_CODED, MAX_SEGMENTS};
use super::resize::KernelResize;
use super::row_header::{ALIGNMENT, CodedRowHeader, fits, segments};

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
    /// As [`CodedPicture::copied_as`], of a row that nobody writes.
    pub(crate) fn read_as(row: &[u8], size: (u32, u32)) -> Result<Self, DecodeRefusal> {
        Self::copied_as(size, row.len(), copy_of(row))
    }

    /// As [`CodedPicture::copied`], of a row that gives pixels of `size` (width, height): the
    /// window, or what tables behind its coded data make of a window of another size.
    pub(crate) fn copied_as(
        size: (u32, u32),
        len: usize,
        copy: impl Fn(usize, &mut [u8]) -> bool,
    ) -> Result<Self, DecodeRefusal> {
        let mut coded = Self::copied(len, &copy)?;
        if coded.picture.size() != size {
            let at = coded.data.end;
            let copy = |to: &mut [u8]| copy(at, to);
            let resize = KernelResize::copied(len - at, copy, &coded.picture, size);
            coded.resize = Some(resize.ok_or(DecodeRefusal::Damaged)?);
            coded.data.end = len;
        }
        Ok(coded)
    }

    /// Bytes of the coded data, up to a multiple of 16: the tables of the resize come then.
    pub(crate) fn coded_bytes(&self) -> usize {
        self.data.len() - self.resize.map_or(0, |resize| resize.table_bytes())
    }

    /// As [`CodedPicture::copied`], of a row that nobody writes.
    pub(crate) fn read(row: &[u8]) -> Result<Self, DecodeRefusal> {
        Self::copied(row.len(), copy_of(row))
    }

    /// Reads the start of a row of so many bytes. `copy` copies its bytes from there on, and is
    /// false where there are not so many. Each byte is copied once, and the copy is checked: others
    /// may write the row meanwhile. `Damaged` is a row that `write_row` does not write, and
    /// `Unsupported` one whose tables are too large for the kernels.
    pub(crate) fn copied(
        len: usize,
        copy: impl Fn(usize, &mut [u8]) -> bool,
    ) -> Result<Self, DecodeRefusal> {
        let mut header = CodedRowHeader::zeroed();
        if !copy(0, bytemuck::bytes_of_mut(&mut header)) {
            return Err(DecodeRefusal::Damaged);
        }
        let specs = header.components().iter();
        let specs = specs.map(|c| [c.h, c.v, c.dc, c.ac].map(usize::from));
        let size = header.size.map(|side| side as usize);
        let frame = FrameHeader::of((size[0], size[1]), header.interval, specs);
        let frame = frame.ok_or(DecodeRefusal::Damaged)?;
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
            return Err(DecodeRefusal::Damaged);
        }
        let data_at = CodedRowHeader::data_at(count);
        let coded = header.coded as usize;
        let data = data_at..data_at + coded.next_multiple_of(ALIGNMENT);
        let mut ends = vec![0u32; count];
        let ends_at = size_of::<CodedRowHeader>();
        if data.end > len || !copy(ends_at, bytemuck::cast_slice_mut(&mut ends)) {
            return Err(DecodeRefusal::Damaged);
        }
        let plan = WindowGeometry::new(&frame, block, window)?;
        let (mut start, mut unit, mut chain) = (0u32, 0u32, 0u32);
        let mut segments = Vec::with_capacity(count);
        for end in ends {
            if end <= start || end > header.coded {
                return Err(DecodeRefusal::Damaged);
            }
            let segment = KernelSegment::new(start, end, unit, chain);
            (unit, chain) = segment.after();
            start = end;
            segments.push(segment);
        }
        if start != header.coded {
            return Err(DecodeRefusal::Damaged);
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

/// Copies bytes of a row from a place on.
fn copy_of(row: &[u8]) -> impl Fn(usize, &mut [u8]) -> bool {
    |from, to| {
        let bytes = row.get(from..from + to.len());
        bytes.map(|bytes| to.copy_from_slice(bytes)).is_some()
    }
}
