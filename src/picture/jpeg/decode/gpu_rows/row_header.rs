//! The layout of a picture's row, and its header.
//!
//! | bytes | content |
//! |---|---|
//! | [`CodedRowHeader`] | size, window, components, tables |
//! | 4 per segment | its end in the coded data, in bytes |
//! | up to a multiple of 16 | zeros |
//! | coded data | without stuffed bytes and markers; zeros up to a multiple of 16 |

use std::mem::size_of;

use bytemuck::{Pod, Zeroable};

use super::super::frame::FrameHeader;
use super::super::request::JpegWindow;
use super::codes::KernelCodes;
use super::limits::MAX_PIXELS;

/// Coded data and the tables of a resize begin and end at multiples of this, in bytes.
pub(super) const ALIGNMENT: usize = 16;

/// A component: its sampling factors, and the numbers of its Huffman tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RowComponent {
    pub(super) h: u8,
    pub(super) v: u8,
    pub(super) dc: u8,
    pub(super) ac: u8,
    /// Quantization factors in natural order.
    pub(super) factors: [i16; 64],
}

/// The start of a row. Missing components are zeros.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct CodedRowHeader {
    /// Width and height of the picture.
    pub(super) size: [u32; 2],
    /// Side of a luma block at the scale, in pixels.
    pub(super) block: u32,
    /// x, y, width and height, at the scale.
    pub(super) window: [u32; 4],
    /// 0 grey, 1 YCbCr, 2 RGB.
    pub(super) colour: u32,
    pub(super) count: u32,
    /// MCUs between restart markers; 0 = no markers.
    pub(super) interval: u32,
    pub(super) segments: u32,
    /// Bytes of coded data.
    pub(super) coded: u32,
    pub(super) components: [RowComponent; 3],
    pub(super) dc: [KernelCodes; 2],
    pub(super) ac: [KernelCodes; 2],
}

impl CodedRowHeader {
    /// Whether any component uses a table.
    pub(super) fn uses(&self, is_dc: bool, number: usize) -> bool {
        let mut components = self.components[..self.count.min(3) as usize].iter();
        components.any(|c| usize::from(if is_dc { c.dc } else { c.ac }) == number)
    }

    pub(super) fn components(&self) -> &[RowComponent] {
        &self.components[..self.count.min(3) as usize]
    }

    pub(super) fn window(&self) -> JpegWindow {
        let [x, y, w, h] = self.window.map(|n| n as usize);
        JpegWindow { x, y, w, h }
    }

    /// Offset of the coded data in the row.
    pub(super) fn data_at(segments: usize) -> usize {
        (size_of::<Self>() + 4 * segments).next_multiple_of(ALIGNMENT)
    }
}

/// The number of segments in a picture, by its header.
pub(super) fn segments(frame: &FrameHeader) -> usize {
    let mcus = mcus(frame);
    match frame.restart_interval as usize {
        0 => 1,
        interval => (mcus.0 * mcus.1).div_ceil(interval),
    }
}

/// MCUs across and down.
pub(super) fn mcus(frame: &FrameHeader) -> (usize, usize) {
    let most = |factor: fn((usize, usize)) -> usize| {
        let factors = frame.components().iter().map(|c| factor((c.h, c.v)));
        8 * factors.max().unwrap_or(1)
    };
    (
        frame.width.div_ceil(most(|(h, _)| h)),
        frame.height.div_ceil(most(|(_, v)| v)),
    )
}

/// Whether the window lies in the picture at its scale, and the picture has at most `MAX_PIXELS`.
pub(super) fn fits(frame: &FrameHeader, block: usize, window: JpegWindow) -> bool {
    let inside = |at: usize, len: usize, side: usize| {
        let size = (side * block).div_ceil(8);
        len > 0 && at < size && len <= size - at
    };
    matches!(block, 1 | 2 | 4 | 8)
        && inside(window.x, window.w, frame.width)
        && inside(window.y, window.h, frame.height)
        && frame.width * frame.height <= MAX_PIXELS
}
