//! The batch of one step: arrays in a slot of the ring, or on a device. It owns that memory until it
//! is dropped.
//!
//! In the consumer. Copies nothing, but where a caller keeps many batches. Never in here: which
//! arrays there are.

use std::fmt::Debug;
use std::ops::Range;

use nix::unistd::{Pid, getpid};

use crate::device::DeviceRows;
use crate::error::{Error, Result};
use crate::pool::buffers::BufferPool;
use crate::pool::filled_batch::RowMemory;

/// The arrays of a batch: of rays, or of a view.
pub trait SceneArrays: Debug + Copy + Send + Sync + 'static {
    /// One of the arrays.
    type Field: Copy;

    /// As errors call the batch.
    const NAME: &'static str;

    /// Whether there is such an array.
    fn has(&self, field: Self::Field) -> bool;

    /// The bytes of an array; empty if it is absent.
    fn range(&self, field: Self::Field) -> Range<usize>;
}

/// What a run over a scene gives for one step.
///
/// Arrays lie where a worker, or a device, wrote them. That memory is free for later steps when
/// the batch is dropped. Dropping it in any thread is fine; in a forked copy of the process it
/// cannot be read.
#[derive(Debug)]
pub struct SceneBatch<A> {
    memory: Memory,
    /// How many of its bytes are used: the first ones.
    bytes: usize,
    owner: Pid,
    step: u64,
    pub(crate) arrays: A,
}

#[derive(Debug)]
enum Memory {
    Host(RowMemory),
    Device(DeviceRows),
}

impl<A: SceneArrays> SceneBatch<A> {
    /// In a slot, or in memory of this process: the first `bytes` of `rows`.
    pub(crate) fn host((rows, bytes): (RowMemory, usize), arrays: A, step: u64) -> Self {
        Self {
            memory: Memory::Host(rows),
            bytes,
            owner: getpid(),
            step,
            arrays,
        }
    }

    pub(crate) fn device(rows: DeviceRows, arrays: A, step: u64) -> Self {
        Self {
            bytes: rows.len(),
            memory: Memory::Device(rows),
            owner: getpid(),
            step,
            arrays,
        }
    }

    /// The step that it is of.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Whether there is such an array.
    #[must_use]
    pub fn has(&self, field: A::Field) -> bool {
        self.arrays.has(field)
    }

    /// The bytes of an array; empty if it is absent.
    ///
    /// # Errors
    /// A forked copy of the process; a batch on a device.
    pub fn bytes(&self, field: A::Field) -> Result<&[u8]> {
        self.within(self.arrays.range(field))
    }

    /// Bytes from [`SceneBatch::address`] to those of an array.
    #[must_use]
    pub fn offset(&self, field: A::Field) -> usize {
        self.arrays.range(field).start
    }

    /// The address of the batch's memory, to hand it to another library: that of an array is
    /// [`SceneBatch::offset`] behind it. Valid, writable and untouched by anybody else until the
    /// batch is dropped.
    ///
    /// # Errors
    /// A forked copy of the process; a batch on a device.
    pub fn address(&mut self) -> Result<*mut u8> {
        self.check_process()?;
        let Memory::Host(rows) = &mut self.memory else {
            return Err(Self::on_a_device());
        };
        let memory = rows.bytes_mut();
        match memory.len() >= self.bytes {
            true => Ok(memory.as_mut_ptr()),
            false => Err(Self::outside()),
        }
    }

    /// Whether it lies in a slot of the ring, which workers wait for.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        matches!(self.memory, Memory::Host(RowMemory::Slot(_)))
    }

    /// The same batch in memory of its own; its slot is free again. On a device it stays.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn detach(self) -> Result<Self> {
        self.check_process()?;
        match self.memory {
            Memory::Host(RowMemory::Slot(_)) => self.to_host(),
            Memory::Host(RowMemory::Own(_)) | Memory::Device(_) => Ok(self),
        }
    }

    /// The batch in memory of a device, where it was made on one
    /// ([`SceneBuilder::device`](crate::scene::SceneBuilder::device)): an array begins
    /// [`SceneBatch::offset`] behind the address.
    #[must_use]
    pub fn on_device(&self) -> Option<&DeviceRows> {
        match &self.memory {
            Memory::Device(rows) => Some(rows),
            Memory::Host(_) => None,
        }
    }

    /// A copy in memory of the host, of a batch on a device too. Waits for that.
    ///
    /// # Errors
    /// A device error; a forked copy of the process.
    pub fn to_host(&self) -> Result<Self> {
        self.check_process()?;
        let copied;
        let bytes = match &self.memory {
            Memory::Device(rows) => {
                copied = rows.to_host()?;
                &copied[..]
            }
            Memory::Host(_) => self.within(0..self.bytes)?,
        };
        let mut buffer = BufferPool::default().take(bytes.len());
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Self {
            memory: Memory::Host(RowMemory::Own(buffer)),
            ..*self
        })
    }

    fn within(&self, range: Range<usize>) -> Result<&[u8]> {
        self.check_process()?;
        match &self.memory {
            Memory::Host(rows) => rows.bytes().get(range).ok_or_else(Self::outside),
            Memory::Device(_) => Err(Self::on_a_device()),
        }
    }

    fn check_process(&self) -> Result<()> {
        match getpid() == self.owner {
            true => Ok(()),
            false => Err(Error::worker(format!(
                "{} cannot be read in a forked copy of the process that made it",
                A::NAME
            ))),
        }
    }

    fn on_a_device() -> Error {
        Error::config(format!(
            "{} is in the memory of a device: use on_device, or to_host for a copy",
            A::NAME
        ))
    }

    #[cold]
    fn outside() -> Error {
        Error::protocol(format!("{} lies outside of its slot", A::NAME))
    }
}
