//! Where the engines put whole pictures: frames in an arena of fixed size on a device,
//! which the kernel of crops reads.
//!
//! In the consumer. Pure: places alone.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

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
/// Most bytes that the hardware backend takes for a pixel of the largest picture, whatever
/// the batch: 28 MiB at 512 x 512, 112 at 1024 x 1024, 392 at 2048 x 2048 on an H200.
const BACKEND: u64 = 112;

/// A whole picture in an arena: tight pixels of RGB in lines that begin `pitch` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// Where the first pixel is, bytes behind the arena's beginning.
    pub(crate) at: usize,
    pub(crate) pitch: usize,
}

impl Frame {
    /// Bytes of an arena that a picture of this width and height takes. Behind its last line
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
    fn new(at: usize, width: u32) -> Self {
        Self {
            at: at + FRONT,
            pitch: Self::pitch(width),
        }
    }

    /// Pixels from the beginning of one line to that of the next.
    pub(crate) fn stride(self) -> u32 {
        (self.pitch / RGB) as u32
    }

    /// Where this pixel is, bytes behind the arena's beginning.
    pub(crate) fn pixel(self, left: u32, top: u32) -> usize {
        self.at + top as usize * self.pitch + RGB * left as usize
    }
}

/// Most bytes of a device that the backend takes for pictures of this width and height.
pub(crate) fn backend_bytes((width, height): (u32, u32)) -> u64 {
    BACKEND * u64::from(width) * u64::from(height)
}

/// Bytes that stay, unwritten, as long as this lives: a slot of the ring.
pub(crate) type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A picture of a batch, for engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Where its plain form begins in the batch's bytes, and how long it is.
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// Width and height.
    pub(crate) size: (u32, u32),
    pub(crate) frame: Frame,
}

impl Picture {
    pub(crate) fn bytes(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.len)
    }
}

/// Which pictures of a batch no engine decodes, and why.
pub(crate) type Culprits = Vec<(usize, Error)>;

/// Engines that are open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineInfo {
    /// Its version, and where it lies.
    pub(crate) library: String,
    pub(crate) engines: u32,
}

/// Which parts of an arena are in use: batches take them and give them back in one order.
#[derive(Debug)]
pub(crate) struct Arena {
    len: usize,
    /// The oldest first. Those of batches without frames are empty.
    taken: VecDeque<Range<usize>>,
}

impl Arena {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            len,
            taken: VecDeque::new(),
        }
    }

    /// Frames for the pictures of a batch; none as long as older batches have too much. A
    /// batch that never fits has no frames even of an arena that is free.
    pub(crate) fn take(&mut self, sizes: &[(u32, u32)]) -> Option<Vec<Frame>> {
        let bytes =
            (sizes.iter()).try_fold(0usize, |sum, size| sum.checked_add(Frame::bytes(*size)))?;
        let mut at = self.room(bytes)?;
        self.taken.push_back(at..at + bytes);
        let frames = sizes.iter().map(|size| {
            let frame = Frame::new(at, size.0);
            at += Frame::bytes(*size);
            frame
        });
        Some(frames.collect())
    }

    /// The oldest batch has been read.
    pub(crate) fn give_back(&mut self) {
        self.taken.pop_front();
    }

    /// The newest batch will not be read.
    pub(crate) fn give_back_newest(&mut self) {
        self.taken.pop_back();
    }

    /// Batches that have frames, or none but their place in the order.
    pub(crate) fn batches(&self) -> usize {
        self.taken.len()
    }

    /// Where so many bytes are free in one piece.
    fn room(&self, bytes: usize) -> Option<usize> {
        // An empty one lies between others, and would hide where the free part begins.
        let mut held = self.taken.iter().filter(|range| !range.is_empty());
        let Some(oldest) = held.next() else {
            return (bytes <= self.len).then_some(0);
        };
        let newest = held.next_back().unwrap_or(oldest);
        let (start, end) = (oldest.start, newest.end);
        // In one piece, or already begun anew in front of the oldest.
        if newest.start >= start {
            match bytes <= self.len - end {
                true => Some(end),
                false => (bytes <= start).then_some(0),
            }
        } else {
            (bytes <= start - end).then_some(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn room_is_used_again_in_order() {
        let size = (64, 64);
        let one = Frame::bytes(size);
        let mut arena = Arena::new(5 * one);
        let starts = |frames: Option<Vec<Frame>>| -> Option<Vec<usize>> {
            let frames = frames?;
            Some(frames.iter().map(|f| (f.at - FRONT) / one).collect())
        };
        assert_eq!(starts(arena.take(&[size; 2])), Some(vec![0, 1]));
        assert_eq!(starts(arena.take(&[size; 2])), Some(vec![2, 3]));
        assert_eq!(arena.take(&[size; 2]), None);
        assert_eq!(starts(arena.take(&[])), Some(vec![]));
        arena.give_back();
        assert_eq!(starts(arena.take(&[size; 2])), Some(vec![0, 1]));
        // Full: nothing in front of the oldest.
        assert_eq!(arena.take(&[size]), None);
        arena.give_back();
        arena.give_back();
        assert_eq!(starts(arena.take(&[size])), Some(vec![2]));
        for _ in 0..2 {
            arena.give_back();
        }
        assert_eq!((arena.take(&[size; 6]), arena.batches()), (None, 0));
        assert_eq!(starts(arena.take(&[size; 3])), Some(vec![0, 1, 2]));
        assert_eq!(starts(arena.take(&[size; 2])), Some(vec![3, 4]));
        arena.give_back_newest();
        assert_eq!(starts(arena.take(&[size; 1])), Some(vec![3]));
        assert_eq!(arena.batches(), 2);
    }

    proptest! {
        #[test]
        fn batches_never_share_a_byte(
            len in 1usize..400,
            steps in prop::collection::vec(prop::option::of(prop::collection::vec(
                (64u32..200, 64u32..200), 0..4)), 0..60),
        ) {
            let len = len << 10;
            let mut arena = Arena::new(len);
            let mut live: VecDeque<Vec<Range<usize>>> = VecDeque::new();
            for step in steps {
                let Some(sizes) = step else {
                    arena.give_back();
                    live.pop_front();
                    continue;
                };
                let Some(frames) = arena.take(&sizes) else {
                    prop_assert!(!live.is_empty() || sizes.iter()
                        .map(|s| Frame::bytes(*s)).sum::<usize>() > len);
                    continue;
                };
                let room = frames.iter().zip(&sizes).map(|(f, s)| {
                    let start = f.at - FRONT;
                    start..start + Frame::bytes(*s)
                });
                let room: Vec<_> = room.collect();
                for mine in &room {
                    prop_assert!(mine.end <= len);
                    let others = live.iter().flatten();
                    for other in others {
                        prop_assert!(mine.end <= other.start || other.end <= mine.start);
                    }
                }
                live.push_back(room);
            }
        }
    }
}
