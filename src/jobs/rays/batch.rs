//! A batch of rays: a view of a slot of the ring, which it owns until it is dropped.
//!
//! In the consumer. Copies nothing, but for who wants to keep many batches.

use crate::device::DeviceRows;
use crate::error::{Error, Result};
use crate::jobs::rays::fields::{RayField, RayLayout};
use crate::jobs::scene::held::Held;

/// The rays of one step.
///
/// Arrays have an entry for each ray and lie where a worker wrote them. The slot is free
/// for later steps when the batch is dropped. Dropping it in any thread is fine; in a
/// forked copy of the process it cannot be read.
#[derive(Debug)]
pub struct RayBatch {
    pub(crate) held: Held,
    pub(crate) layout: RayLayout,
    /// Rays that were asked for; the slot may hold more.
    pub(crate) rays: usize,
    pub(crate) step: u64,
}

/// As errors call it.
pub(crate) const A_BATCH: &str = "a batch of rays";

impl RayBatch {
    /// The step that these rays are of.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Rays.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rays
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rays == 0
    }

    /// The numbers of a field of `f32`, ray by ray; empty in a scene without
    /// such a field.
    ///
    /// # Errors
    /// A field of other numbers; a forked copy of the process.
    pub fn floats(&self, field: RayField) -> Result<&[f32]> {
        self.numbers(field)
    }

    /// Image, row and column of each ray.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn indices(&self) -> Result<&[[i64; 3]]> {
        let all: &[i64] = self.numbers(RayField::Indices)?;
        Ok(bytemuck::cast_slice(all))
    }

    /// Of each ray whether its lens says where it goes: 0 or 1.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn valid(&self) -> Result<&[u8]> {
        self.bytes(RayField::Valid)
    }

    /// The bytes of a field, for who hands the memory on.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn bytes(&self, field: RayField) -> Result<&[u8]> {
        let len = match self.layout.has(field) {
            true => self.rays * self.layout.width(field) * field.number_bytes(),
            false => 0,
        };
        let begin = self.offset(field);
        self.held.bytes(begin..begin + len)
    }

    /// Numbers a ray: 1, 3 or 4.
    #[must_use]
    pub fn width(&self, field: RayField) -> usize {
        self.layout.width(field)
    }

    /// Whether the scene has such a field: all but [`RayField::Times`] and
    /// [`RayField::Depths`] always.
    #[must_use]
    pub fn has(&self, field: RayField) -> bool {
        self.layout.has(field)
    }

    /// Bytes from [`RayBatch::address`] to those of a field.
    #[must_use]
    pub fn offset(&self, field: RayField) -> usize {
        self.layout.of(field).start
    }

    /// The address of the batch's memory, for who hands it to another library: that of a
    /// field is [`RayBatch::offset`] behind it. Valid, writable and untouched by anybody else
    /// until the batch is dropped.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn address(&mut self) -> Result<*mut u8> {
        self.held.address()
    }

    /// Whether the rays lie in a slot of the ring, which workers wait for.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        self.held.is_in_slot()
    }

    /// The same batch in memory of its own; its slot is free again.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn detach(self) -> Result<Self> {
        let held = self.held.detach()?;
        Ok(Self { held, ..self })
    }

    /// The rays in memory of a device, where they were made on one
    /// ([`RaysBuilder::device`](crate::rays::RaysBuilder::device)): a field begins
    /// [`RayBatch::offset`] behind the address.
    #[must_use]
    pub fn on_device(&self) -> Option<&DeviceRows> {
        self.held.on_device()
    }

    /// A copy in memory of the host, of rays on a device too. Waits for those.
    ///
    /// # Errors
    /// A device error; a forked copy of the process.
    pub fn to_host(&self) -> Result<Self> {
        let held = self.held.to_host()?;
        Ok(Self { held, ..*self })
    }

    fn numbers<T: bytemuck::Pod>(&self, field: RayField) -> Result<&[T]> {
        if field.number_bytes() != size_of::<T>() {
            return Err(Error::config(format!(
                "{} holds other numbers",
                field.name()
            )));
        }
        bytemuck::try_cast_slice(self.bytes(field)?)
            .map_err(|e| Error::protocol(format!("an array of rays: {e}")))
    }
}
