//! Shared memory in which workers keep the pictures of samples for rows of several samples.
//!
//! Used in workers, and in the consumer with zero workers or for images that a device flags. The
//! samples that the rows of a window join come from the same window of the epoch's order. So one
//! worker decodes a picture, and others mostly copy it. It is a cache and nothing more: a picture
//! that is not there, or that another process is using, is decoded. Nobody waits, and no row depends
//! on it.
//!
//! A process uses a slot only while the slot's first word holds the number of its lane. If a worker
//! dies meanwhile, the next worker of its lane empties the slot.
//!
//! ```text
//! per slot: owner, or 0 | sample + 1, or 0 | size of image | truncated    u64s
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
const TRUNCATED: usize = 3;
const WORDS: usize = 8;

/// Most bytes of all slots. A part of a window helps, too.
const MOST_BYTES: u64 = 1 << 30;

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
    /// For a program whose first joint has a window. `places`: those of an epoch. None if it has none,
    /// or numbers are drawn before it: then the pictures of a sample differ.
    pub(crate) fn of(program: &SampleProgram, needs: StageNeeds, places: u64) -> Option<Self> {
        let stages = program.joined_stages();
        let first = stages.first().filter(|stage| !stage.program.draws())?;
        first.joint.window?;
        let window = stages.iter().filter_map(|stage| stage.joint.window).max()?;
        let (height, width) = first.most;
        let shape = Self {
            slots: u64::from(window).min(places.max(1)),
            pixels: 3 * u64::from(height) * u64::from(width),
            labels: match needs.classes {
                true => label_bytes(first.most),
                false => 0,
            },
        };
        shape.within(MOST_BYTES)
    }

    /// The same with as many slots as fit into these bytes. None if none fits.
    pub(crate) fn within(self, bytes: u64) -> Option<Self> {
        if self.bytes() <= bytes {
            return Some(self);
        }
        // The words of all slots end with a page.
        let of_slot = self.slot_bytes()?.checked_add(8 * WORDS as u64)?;
        let slots = bytes.saturating_sub(PAGE) / of_slot.max(1);
        let slots = slots.min(self.slots);
        (slots > 0).then_some(Self { slots, ..self })
    }

    /// Bytes of a slot's pixels and labels, in whole words. None if they exceed all memory.
    fn slot_bytes(self) -> Option<u64> {
        let bytes = self.pixels.checked_add(self.labels)?;
        bytes.checked_next_multiple_of(8)
    }

    /// Bytes before those of the first slot, and of a slot and all memory. None if they exceed all
    /// memory.
    fn layout(self) -> Option<WindowLayout> {
        let head = self.slots.checked_mul(8 * WORDS as u64)?;
        let head = head.checked_next_multiple_of(PAGE)?;
        let slot = self.slot_bytes()?;
        let all = self.slots.checked_mul(slot)?.checked_add(head)?;
        Some(WindowLayout {
            head: usize::try_from(head).ok()?,
            slot: usize::try_from(slot).ok()?,
            all: usize::try_from(all).ok()?,
        })
    }

    fn fits(self, pixels: &[u8], labels: &[u8]) -> bool {
        pixels.len() as u64 <= self.pixels && labels.len() as u64 <= self.labels
    }

    /// Bytes of the memory.
    pub(crate) fn bytes(self) -> u64 {
        self.layout().map_or(u64::MAX, |layout| layout.all as u64)
    }

    /// The layout of memory that can be mapped.
    fn checked(self) -> Result<WindowLayout> {
        let layout = self.layout().filter(|_| self.slots > 0);
        layout.ok_or_else(|| Error::protocol("the pictures of joined samples have no valid sizes"))
    }
}

/// Where the parts of the memory are, in bytes.
#[derive(Debug, Clone, Copy)]
struct WindowLayout {
    /// Before the first slot's pixels.
    head: usize,
    slot: usize,
    all: usize,
}

/// What is known of a picture that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptPicture {
    /// Height and width of the whole upright image.
    pub(crate) image: HeightWidth,
    /// Whether its file is truncated.
    pub(crate) truncated: bool,
}

/// The mapped memory.
#[derive(Debug)]
pub(crate) struct PictureWindow {
    memory: SharedMemory,
    shape: WindowShape,
    layout: WindowLayout,
    owner: u64,
}

impl PictureWindow {
    /// Memory without pictures. All of it is allocated.
    ///
    /// # Errors
    /// It needs more memory than is available.
    pub(crate) fn create(shape: WindowShape) -> Result<Self> {
        let layout = shape.checked()?;
        match memory::available_bytes() {
            Some(free) if shape.bytes() > free => {
                return Err(Error::option(
                    "recipe",
                    format!(
                        "the {} pictures of `partner_window` need {} and {} are available: use a \
                         `memory_limit`, which keeps fewer pictures",
                        shape.slots,
                        size_rounded_up(shape.bytes()),
                        size_rounded_down(free)
                    ),
                ));
            }
            _ => {}
        }
        let memory = SharedMemory::create("featherload-window", layout.all)?;
        memory.allocate(0..layout.all, "the pictures of `partner_window`")?;
        Ok(Self {
            memory,
            shape,
            layout,
            owner: CONSUMER,
        })
    }

    /// Maps the memory of another process, with all its pages. So the sum of PSS over processes does
    /// not grow while slots are filled.
    ///
    /// # Errors
    /// The memory has another size.
    pub(crate) fn from_fd(fd: OwnedFd, shape: WindowShape) -> Result<Self> {
        let layout = shape.checked()?;
        let memory = SharedMemory::open(fd, layout.all)?;
        // Kernels before 5.14 do not support this. Then pages are mapped one by one.
        let _ = memory.populate(0, layout.all);
        Ok(Self {
            memory,
            shape,
            layout,
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
        let WindowLayout { head, slot, .. } = self.window.layout;
        head + self.slot * slot
    }

    /// What is known of the picture of a sample. None if the slot holds another one.
    pub(crate) fn picture_of(&self, id: u64) -> Option<KeptPicture> {
        let is_there = self.word(SAMPLE).load(Relaxed) == id.wrapping_add(1);
        is_there.then(|| KeptPicture {
            image: size_of_word(self.word(IMAGE).load(Relaxed)),
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
