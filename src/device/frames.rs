//! What engines are given and what they make: files of batches; and frames, where they put whole
//! pictures, in memory of fixed size on a device, which the kernel of crops reads.
//!
//! In the consumer. Pure: no device.

use std::fmt;
use std::ops::Range;

use super::launch::KernelRow;
use crate::error::Error;

/// Width and height of frames are rounded up to this, pixels.
const STEP: u32 = 64;
/// Bytes in front of a frame's pixels: the kernel reads whole vectors, up to 15 bytes
/// before the first.
const FRONT: usize = 64;
/// What frames begin at a multiple of.
const ALIGNMENT: usize = 256;
/// Bytes of a pixel.
const RGB: usize = 3;

/// A whole picture: tight pixels of RGB in lines that begin `pitch` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// Where the first pixel is, bytes behind the memory's beginning.
    pub(crate) at: usize,
    pub(crate) pitch: usize,
}

impl Frame {
    /// Bytes of memory that a picture of this width and height takes. Behind its last line
    /// there is one more: where a crop ends in that line, the kernel's bounds let it read as
    /// far as that.
    pub(crate) fn bytes((width, height): (u32, u32)) -> usize {
        let lines = height.next_multiple_of(STEP) as usize + 1;
        (FRONT + Self::pitch(width) * lines).next_multiple_of(ALIGNMENT)
    }

    fn pitch(width: u32) -> usize {
        RGB * width.next_multiple_of(STEP) as usize
    }

    /// The frame of a picture of this width, of which the room begins at `at`.
    pub(crate) fn new(at: usize, width: u32) -> Self {
        Self {
            at: at + FRONT,
            pitch: Self::pitch(width),
        }
    }

    /// Pixels from the beginning of one line to that of the next.
    pub(crate) fn stride(self) -> u32 {
        (self.pitch / RGB) as u32
    }

    /// Where this pixel is, bytes behind the memory's beginning.
    pub(crate) fn pixel(self, left: u32, top: u32) -> usize {
        self.at + top as usize * self.pitch + RGB * left as usize
    }
}

/// A batch whose rows come one by one: what of them is for engines. Where it lies stays, and of
/// rows that have come nothing is written, as long as this lives.
pub(crate) trait Files: fmt::Debug + Send + Sync {
    /// How many rows it has.
    fn rows(&self) -> u32;
    /// What a row is, once it has come. It stays that.
    fn look(&self, row: u32) -> Look;
    /// The plain form of a picture that `look` has shown.
    fn file(&self, picture: &Picture) -> &[u8];
    /// Where all rows lie: the address, and how many bytes.
    fn memory(&self) -> (*const u8, usize);
}

/// What is seen of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Look {
    /// Somebody is at it, or nobody yet.
    NotYet,
    /// None that engines make.
    NoPicture,
    Picture(Picture),
}

/// A picture of a batch, for engines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Picture {
    /// Which row it makes.
    pub(crate) row: u32,
    /// Where its plain form begins in the batch's bytes, and how long it is.
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// Width and height.
    pub(crate) size: (u32, u32),
    /// Left and top of the crop.
    pub(crate) corner: [u32; 2],
    /// The row, but for the frame.
    pub(crate) kernel: KernelRow,
}

impl Picture {
    pub(crate) fn bytes(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.len)
    }
}

/// Which rows no engine makes, and why.
pub(crate) type Culprits = Vec<(u32, Error)>;

/// What engines have done of a batch.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// The rows that were pictures, in their order.
    pub(crate) rows: Vec<u32>,
    /// Those of them that no engine decodes, in their order.
    pub(crate) culprits: Culprits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_room_for_what_the_kernel_may_read() {
        for size in [(64, 64), (500, 375), (65, 1), (1024, 1023)] {
            let bytes = Frame::bytes(size);
            let frame = Frame::new(512, size.0);
            assert_eq!((frame.at, bytes % ALIGNMENT), (512 + FRONT, 0));
            assert!(frame.stride() >= size.0 && frame.pitch == 3 * frame.stride() as usize);
            // The crop of the last pixel, whose width the kernel takes for a whole line, in
            // whole vectors.
            let end = frame.pixel(size.0 - 1, size.1 - 1) + frame.pitch;
            assert!(end.next_multiple_of(16) <= 512 + bytes, "{size:?}");
        }
    }
}
