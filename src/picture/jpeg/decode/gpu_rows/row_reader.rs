//! Reads and checks a picture's row, in the consumer.

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
    /// How the window is resized; `None` = not at all.
    pub(crate) resize: Option<KernelResize>,
    /// Range of the coded data in the row, padded to a multiple of 16, with the tables of the
    /// resize after them.
    pub(crate) data: Range<usize>,
}

impl CodedPicture {
    /// Like [`CodedPicture::copied_as`], for a row that no process writes meanwhile.
    pub(crate) fn read_as(row: &[u8], size: (u32, u32)) -> Result<Self, DecodeRefusal> {
        Self::copied_as(size, row.len(), copy_of(row))
    }

    /// Like [`CodedPicture::copied`], for a row whose pixels have `size` (width, height). Tables
    /// after the coded data resize a window of another size.
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

    /// Bytes of the coded data, padded to a multiple of 16. The tables of the resize follow.
    pub(crate) fn coded_bytes(&self) -> usize {
        self.data.len() - self.resize.map_or(0, |resize| resize.table_bytes())
    }

    /// Like [`CodedPicture::copied`], for a row that no process writes meanwhile.
    pub(crate) fn read(row: &[u8]) -> Result<Self, DecodeRefusal> {
        Self::copied(row.len(), copy_of(row))
    }

    /// Reads the start of a row of `len` bytes. `copy` copies its bytes from an offset, and returns
    /// false if there are too few. Each byte is copied once, and the copy is checked: another
    /// process may write the row meanwhile.
    ///
    /// # Errors
    /// `Damaged` for a row that `write_row` does not write, and `Unsupported` for tables too large
    /// for the kernels.
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

/// A function that copies bytes of a row from an offset.
fn copy_of(row: &[u8]) -> impl Fn(usize, &mut [u8]) -> bool {
    |from, to| {
        let bytes = row.get(from..from + to.len());
        bytes.map(|bytes| to.copy_from_slice(bytes)).is_some()
    }
}
