//! Shared memory in which workers keep the pictures of samples for rows of several samples.
//!
//! Used in workers, and in the consumer with zero workers or for images that a device flags. The
//! samples that the rows of a window join come from the same window of the epoch's order. So one
//! worker decodes a picture, and others copy it. It is a cache and nothing more: a picture that is
//! not there, or that another process is using, is decoded. Nobody waits, and no row depends on it.
//!
//! A process uses a slot only while the slot's first word holds the number of its lane. If a worker
//! dies meanwhile, the next worker of its lane empties the slot.
//!
//! ```text
//! per slot: owner, or 0 | sample + 1, or 0 | two sizes | truncated    u64s
//! then, from a whole page on, per slot: pixels | labels
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::jobs::stage_needs::{StageNeeds, label_bytes};
use crate::recipe::SampleProgram;
use crate::recipe::size_bounds::HeightWidth;
use crate::sys::memory;
use crate::sys::shared_memory::SharedMemory;

const PAGE: u64 = 4096;

/// Words of a slot.
const OWNER: usize = 0;
const SAMPLE: usize = 1;
const IMAGE: usize = 2;
const SOURCE: usize = 3;
const TRUNCATED: usize = 4;
const WORDS: usize = 8;

/// The owner of slots that the consumer uses. Workers have the numbers of their lanes, plus 1.
const CONSUMER: u64 = u64::MAX;

/// The size of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowShape {
    slots: u64,
    /// Most bytes of the pixels of a picture.
    pixels: u64,
    /// Most bytes of its labels. 0 without masks of classes.
    labels: u64,
}

impl WindowShape {
    /// For a program whose joints have windows. `places`: those of an epoch. None if the program
    /// joins no samples within a window, or draws numbers before its first joint: then the pictures
    /// of a sample differ.
    pub(crate) fn of(program: &SampleProgram, needs: StageNeeds, places: u64) -> Option<Self> {
        let stages = program.joined_stages();
        let first = stages.first().filter(|stage| !stage.program.draws())?;
        let window = stages.iter().filter_map(|stage| stage.joint.window).max()?;
        let (height, width) = first.most;
        Some(Self {
            slots: u64::from(window).min(places.max(1)),
            pixels: 3 * u64::from(height) * u64::from(width),
            labels: match needs.classes {
                true => label_bytes(first.most),
                false => 0,
            },
        })
    }

    /// Bytes of a slot's pixels and labels, in whole words.
    fn slot_bytes(self) -> u64 {
        self.pixels.saturating_add(self.labels).next_multiple_of(8)
    }

    /// Bytes before the first slot's.
    fn head_bytes(self) -> u64 {
        (8 * WORDS as u64 * self.slots).next_multiple_of(PAGE)
    }

    fn fits(self, pixels: &[u8], labels: &[u8]) -> bool {
        pixels.len() as u64 <= self.pixels && labels.len() as u64 <= self.labels
    }

    /// Bytes of the memory.
    pub(crate) fn bytes(self) -> u64 {
        let slots = self.slots.saturating_mul(self.slot_bytes());
        slots.saturating_add(self.head_bytes())
    }

    fn length(self) -> Result<usize> {
        usize::try_from(self.bytes()).map_err(|_| self.is_too_large("this machine can address"))
    }

    fn is_too_large(self, limit: &str) -> Error {
        Error::option(
            "recipe",
            format!(
                "the {} pictures of `partner_window` need {}, more than {limit}: use a smaller \
                 `partner_window`, or smaller pictures before the first joint",
                self.slots,
                size_rounded_up(self.bytes())
            ),
        )
    }
}

/// What is known of a picture that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptPicture {
    /// Height and width of the whole upright image.
    pub(crate) image: HeightWidth,
    /// The same for the sample's box, if it has one.
    pub(crate) source: HeightWidth,
    /// Whether its file is truncated.
    pub(crate) truncated: bool,
}

/// The mapped memory.
#[derive(Debug)]
pub(crate) struct PictureWindow {
    memory: SharedMemory,
    shape: WindowShape,
    owner: u64,
}

impl PictureWindow {
    /// Memory without pictures. All of it is allocated.
    ///
    /// # Errors
    /// It needs more memory than is available.
    pub(crate) fn create(shape: WindowShape) -> Result<Self> {
        let length = shape.length()?;
        match memory::available_bytes() {
            Some(free) if shape.bytes() > free => {
                let free = format!("the {} that are available", size_rounded_down(free));
                return Err(shape.is_too_large(&free));
            }
            _ => {}
        }
        let memory = SharedMemory::create("featherload-window", length)?;
        memory.allocate(0..length, "the pictures of `partner_window`")?;
        Ok(Self {
            memory,
            shape,
            owner: CONSUMER,
        })
    }

    /// Maps the memory of another process, with all its pages. So they are in a process's PSS from the
    /// start, and no figure grows while slots are filled.
    ///
    /// # Errors
    /// The memory has another size.
    pub(crate) fn from_fd(fd: OwnedFd, shape: WindowShape) -> Result<Self> {
        let length = shape.length()?;
        let memory = SharedMemory::open(fd, length)?;
        // Kernels before 5.14 do not support this. Then pages are mapped one by one.
        let _ = memory.populate(0, length);
        Ok(Self {
            memory,
            shape,
            owner: CONSUMER,
        })
    }

    /// Makes this process the worker of a lane, and empties the slots that the worker before it left
    /// in use. A lane has one worker at a time.
    pub(crate) fn enter_worker(&mut self, lane: u32) {
        self.owner = u64::from(lane) + 1;
        for slot in 0..self.shape.slots as usize {
            if self.word(slot, OWNER).load(Acquire) == self.owner {
                self.word(slot, SAMPLE).store(0, Relaxed);
                self.word(slot, OWNER).store(0, Release);
            }
        }
    }

    fn word(&self, slot: usize, word: usize) -> &AtomicU64 {
        self.memory.word(WORDS * slot + word)
    }

    /// The slot of a place. None if another process is using it.
    pub(crate) fn hold(&self, place: u64) -> Option<OwnedSlot<'_>> {
        let slot = (place % self.shape.slots) as usize;
        let owner = self.word(slot, OWNER);
        // SYNC: with the store of the process that used the slot before, when it dropped it.
        let held = owner.compare_exchange(0, self.owner, Acquire, Relaxed);
        // Dropping a slot frees it, so it is made only if it is held.
        held.is_ok().then(|| OwnedSlot { window: self, slot })
    }
}

/// A slot that this process alone uses until it is dropped.
#[derive(Debug)]
pub(crate) struct OwnedSlot<'a> {
    window: &'a PictureWindow,
    slot: usize,
}

impl OwnedSlot<'_> {
    fn word(&self, word: usize) -> &AtomicU64 {
        self.window.word(self.slot, word)
    }

    fn bytes_at(&self) -> usize {
        let shape = self.window.shape;
        (shape.head_bytes() + self.slot as u64 * shape.slot_bytes()) as usize
    }

    /// What is known of the picture of a sample. None if the slot holds another one.
    pub(crate) fn picture_of(&self, id: u64) -> Option<KeptPicture> {
        let is_there = self.word(SAMPLE).load(Relaxed) == id.wrapping_add(1);
        is_there.then(|| KeptPicture {
            image: size_of_word(self.word(IMAGE).load(Relaxed)),
            source: size_of_word(self.word(SOURCE).load(Relaxed)),
            truncated: self.word(TRUNCATED).load(Relaxed) != 0,
        })
    }

    /// Copies pixels and labels out of the slot. False if a slot has not that many.
    pub(crate) fn copy_to(&self, pixels: &mut [u8], labels: &mut [u8]) -> bool {
        let shape = self.window.shape;
        let fits = shape.fits(pixels, labels);
        if fits {
            let at = self.bytes_at();
            self.window.memory.read_bytes(at, pixels);
            let of_labels = at + shape.pixels as usize;
            self.window.memory.read_bytes(of_labels, labels);
        }
        fits
    }

    /// Keeps the picture of a sample instead of what is there.
    pub(crate) fn keep(&self, id: u64, kept: KeptPicture, pixels: &[u8], labels: &[u8]) {
        let shape = self.window.shape;
        // A panic must not leave half a picture.
        self.word(SAMPLE).store(0, Relaxed);
        if !shape.fits(pixels, labels) {
            return;
        }
        self.word(IMAGE).store(word_of_size(kept.image), Relaxed);
        self.word(SOURCE).store(word_of_size(kept.source), Relaxed);
        self.word(TRUNCATED)
            .store(u64::from(kept.truncated), Relaxed);
        let at = self.bytes_at();
        self.window.memory.write_bytes(at, pixels);
        let of_labels = at + shape.pixels as usize;
        self.window.memory.write_bytes(of_labels, labels);
        self.word(SAMPLE).store(id.wrapping_add(1), Relaxed);
    }
}

impl Drop for OwnedSlot<'_> {
    fn drop(&mut self) {
        self.word(OWNER).store(0, Release);
    }
}

impl AsFd for PictureWindow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

fn word_of_size((height, width): HeightWidth) -> u64 {
    u64::from(height) << 32 | u64::from(width)
}

fn size_of_word(word: u64) -> HeightWidth {
    ((word >> 32) as u32, word as u32)
}

#[cfg(test)]
mod tests;
