//! One image, in memory that it owns until it is dropped.
//!
//! In the consumer. Copies nothing, but for who wants to keep many of them.

use crate::device::DeviceRows;
use crate::error::Result;
use crate::jobs::scene::held::Held;
use crate::jobs::views::fields::{ViewField, ViewLayout};

/// The image of one step, with its mask and depths.
///
/// Arrays lie where a worker, or a device, wrote them. That memory is free for later steps when
/// the view is dropped. Dropping it in any thread is fine; in a forked copy of the process it cannot be
/// read.
#[derive(Debug)]
pub struct View {
    pub(crate) held: Held,
    pub(crate) layout: ViewLayout,
    pub(crate) image: u64,
    pub(crate) step: u64,
}

/// As errors call it.
pub(crate) const A_VIEW: &str = "a view";

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
    /// A forked copy of the process; a view on a device.
    pub fn bytes(&self, field: ViewField) -> Result<&[u8]> {
        self.held.bytes(self.layout.of(field))
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
    /// A forked copy of the process; a view on a device.
    pub fn address(&mut self) -> Result<*mut u8> {
        self.held.address()
    }

    /// Whether it lies in a slot of the ring, which workers wait for.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        self.held.is_in_slot()
    }

    /// The same view in memory of its own; its slot is free again.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn detach(self) -> Result<Self> {
        let held = self.held.detach()?;
        Ok(Self { held, ..self })
    }

    /// The view in memory of a device, where it was made on one
    /// ([`ViewsBuilder::device`](crate::views::ViewsBuilder::device)): an array begins
    /// [`View::offset`] behind the address.
    #[must_use]
    pub fn on_device(&self) -> Option<&DeviceRows> {
        self.held.on_device()
    }

    /// A copy in memory of the host, of a view on a device too. Waits for that.
    ///
    /// # Errors
    /// A device error; a forked copy of the process.
    pub fn to_host(&self) -> Result<Self> {
        let held = self.held.to_host()?;
        Ok(Self { held, ..*self })
    }
}
