//! The batch of one step: arrays in a slot of the ring, or on a device. The batch owns that memory
//! until it is dropped.
//!
//! Runs in the consumer. Copies nothing, unless the caller keeps many batches. Not here: which
//! arrays there are.

use std::fmt::Debug;
use std::ops::Range;

use nix::unistd::{Pid, getpid};

use crate::device::DeviceRows;
use crate::error::{Error, Result};
use crate::pool::buffers::BufferPool;
use crate::pool::filled_batch::RowMemory;

/// The arrays of a batch of rays or of a view.
pub trait SceneArrays: Debug + Copy + Send + Sync + 'static {
    /// Identifies one of the arrays.
    type Field: Copy;

    /// Name of the batch in errors.
    const NAME: &'static str;

    /// Whether the array exists.
    fn has(&self, field: Self::Field) -> bool;

    /// Byte range of an array; empty if it is absent.
    fn range(&self, field: Self::Field) -> Range<usize>;
}

/// The result of one step of a run over a scene.
///
/// The arrays are in the memory where a worker or a device wrote them. Dropping the batch frees
/// that memory for later steps. A batch may be dropped in any thread. A forked copy of the process
/// cannot read it.
#[derive(Debug)]
pub struct SceneBatch<A> {
    memory: Memory,
    /// Number of bytes used, from the start.
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

    /// The step of the batch.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Whether the array exists.
    #[must_use]
    pub fn has(&self, field: A::Field) -> bool {
        self.arrays.has(field)
    }

    /// The bytes of an array; empty if it is absent.
    ///
    /// # Errors
    /// A forked copy of the process; a batch on a device.
    pub fn bytes(&self, field: A::Field) -> Result<&[u8]> {
        self.host_bytes(self.arrays.range(field))
    }

    /// Offset of an array from [`SceneBatch::address`], in bytes.
    #[must_use]
    pub fn offset(&self, field: A::Field) -> usize {
        self.arrays.range(field).start
    }

    /// Address of the batch's memory, to share it with another library. An array begins at this
    /// address plus [`SceneBatch::offset`]. The memory is valid and writable until the batch is
    /// dropped, and nothing else changes it.
    ///
    /// # Errors
    /// A forked copy of the process; a batch on a device.
    pub fn address(&mut self) -> Result<*mut u8> {
        self.check_process()?;
        let Memory::Host(rows) = &mut self.memory else {
            return Err(Self::on_device_error());
        };
        let memory = rows.bytes_mut();
        match memory.len() >= self.bytes {
            true => Ok(memory.as_mut_ptr()),
            false => Err(Self::outside_error()),
        }
    }

    /// Whether the batch is in a slot of the ring, which workers need again.
    #[must_use]
    pub fn is_in_slot(&self) -> bool {
        matches!(self.memory, Memory::Host(RowMemory::Slot(_)))
    }

    /// Copies the batch to its own memory and frees its slot. A batch on a device stays there.
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

    /// The device memory of a batch that was made on a device
    /// ([`SceneBuilder::device`](crate::scene::SceneBuilder::device)). An array begins at its
    /// address plus [`SceneBatch::offset`].
    #[must_use]
    pub fn on_device(&self) -> Option<&DeviceRows> {
        match &self.memory {
            Memory::Device(rows) => Some(rows),
            Memory::Host(_) => None,
        }
    }

    /// A copy in host memory. For a batch on a device, waits until the copy is complete.
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
            Memory::Host(_) => self.host_bytes(0..self.bytes)?,
        };
        let mut buffer = BufferPool::default().take(bytes.len());
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Self {
            memory: Memory::Host(RowMemory::Own(buffer)),
            ..*self
        })
    }

    fn host_bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        self.check_process()?;
        match &self.memory {
            Memory::Host(rows) => rows.bytes().get(range).ok_or_else(Self::outside_error),
            Memory::Device(_) => Err(Self::on_device_error()),
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

    fn on_device_error() -> Error {
        Error::config(format!(
            "{} is in device memory: use on_device, or to_host for a copy",
            A::NAME
        ))
    }

    #[cold]
    fn outside_error() -> Error {
        Error::protocol(format!("{} is outside its slot", A::NAME))
    }
}
