//! One image: a view of a slot of the ring, which it owns until it is dropped.
//!
//! In the consumer. Copies nothing, but for who wants to keep many of them.

use nix::unistd::{Pid, getpid};

use crate::error::{Error, Result};
use crate::jobs::views::fields::{ViewField, ViewLayout};
use crate::pool::buffers::BufferPool;
use crate::pool::filled::Rows;

/// The image of one step, with its mask and depths.
///
/// Arrays lie where a worker wrote them. The slot is free for later steps when the view is
/// dropped. Dropping it in any thread is fine; in a forked copy of the process it cannot be
/// read.
#[derive(Debug)]
pub struct View {
    pub(crate) rows: Rows,
    pub(crate) layout: ViewLayout,
    pub(crate) image: u64,
    pub(crate) step: u64,
    pub(crate) owner: Pid,
}

impl View {
    /// The step that it is of.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The image's number in the split: its place in
    /// [`Views::images`](crate::views::Views::images).
    #[must_use]
    pub fn index(&self) -> u64 {
        self.image
    }

    /// Pixels.
    #[must_use]
    pub fn height(&self) -> usize {
        self.layout.height
    }

    /// Pixels.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Numbers of a pixel of the image: 3, or 4 with alpha.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.layout.channels
    }

    /// Whether the image is of `f32`.
    #[must_use]
    pub fn is_float(&self) -> bool {
        self.layout.float
    }

    /// Whether there is such an array.
    #[must_use]
    pub fn has(&self, field: ViewField) -> bool {
        self.layout.has(field)
    }

    /// The bytes of an array; none of one that there is none of.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn bytes(&self, field: ViewField) -> Result<&[u8]> {
        self.check_process()?;
        let bytes = self.rows.bytes().get(self.layout.of(field));
        bytes.ok_or_else(outside)
    }

    /// Bytes from [`View::address`] to those of an array.
    #[must_use]
    pub fn offset(&self, field: ViewField) -> usize {
        self.layout.of(field).start
    }

    /// The address of the view's memory, for who hands it to another library: that of an
    /// array is [`View::offset`] behind it. Valid, writable and untouched by anybody else
    /// until the view is dropped.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn address(&mut self) -> Result<*mut u8> {
        self.check_process()?;
        let memory = self.rows.bytes_mut();
        match memory.len() >= self.layout.bytes() {
            true => Ok(memory.as_mut_ptr()),
            false => Err(outside()),
        }
    }

    /// Whether it lies in a slot of the ring, which workers wait for.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        matches!(self.rows, Rows::Slot(_))
    }

    /// The same view in memory of its own; its slot is free again.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn detach(mut self) -> Result<Self> {
        self.check_process()?;
        if let Rows::Slot(slot) = &self.rows {
            let used = slot.bytes().get(..self.layout.bytes());
            let used = used.ok_or_else(outside)?;
            let mut buffer = BufferPool::default().take(used.len());
            buffer.bytes_mut()[..used.len()].copy_from_slice(used);
            self.rows = Rows::Own(buffer);
        }
        Ok(self)
    }

    fn check_process(&self) -> Result<()> {
        match getpid() == self.owner {
            true => Ok(()),
            false => Err(Error::worker(
                "a view cannot be read in a forked copy of the process that made it",
            )),
        }
    }
}

#[cold]
fn outside() -> Error {
    Error::protocol("a view lies outside of its slot")
}
