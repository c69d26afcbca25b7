//! The memory of a batch that a run over a scene made: a slot of the ring, or a device's, which
//! it owns until it is dropped.
//!
//! In the consumer. Copies nothing, but for who wants to keep many batches. Never in here: what
//! lies in it.

use std::ops::Range;

use nix::unistd::{Pid, getpid};

use crate::device::DeviceRows;
use crate::error::{Error, Result};
use crate::pool::buffers::BufferPool;
use crate::pool::filled::Rows;

/// See the module.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Memory,
    /// The first so many of its bytes are used.
    bytes: usize,
    /// As errors call it.
    what: &'static str,
    owner: Pid,
}

#[derive(Debug)]
enum Memory {
    Host(Rows),
    Device(DeviceRows),
}

impl Held {
    /// Of a slot, or of this process.
    pub(crate) fn host(rows: Rows, bytes: usize, what: &'static str) -> Self {
        Self {
            memory: Memory::Host(rows),
            bytes,
            what,
            owner: getpid(),
        }
    }

    pub(crate) fn device(rows: DeviceRows, what: &'static str) -> Self {
        Self {
            bytes: rows.len(),
            memory: Memory::Device(rows),
            what,
            owner: getpid(),
        }
    }

    /// # Errors
    /// A forked copy of the process; memory of a device; bytes that there are none of.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&[u8]> {
        self.check_process()?;
        match &self.memory {
            Memory::Host(rows) => rows.bytes().get(range).ok_or_else(|| self.outside()),
            Memory::Device(_) => Err(self.on_a_device()),
        }
    }

    /// # Errors
    /// As [`Held::bytes`].
    pub(crate) fn address(&mut self) -> Result<*mut u8> {
        self.check_process()?;
        let Memory::Host(rows) = &mut self.memory else {
            return Err(self.on_a_device());
        };
        let memory = rows.bytes_mut();
        match memory.len() >= self.bytes {
            true => Ok(memory.as_mut_ptr()),
            false => Err(self.outside()),
        }
    }

    /// Whether it is a slot of the ring, which workers wait for.
    pub(crate) fn is_in_slot(&self) -> bool {
        matches!(self.memory, Memory::Host(Rows::Slot(_)))
    }

    /// The same bytes in memory of their own; the slot is free again. On a device they stay.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub(crate) fn detach(self) -> Result<Self> {
        self.check_process()?;
        match self.memory {
            Memory::Host(Rows::Slot(_)) => self.to_host(),
            Memory::Host(Rows::Own(_)) | Memory::Device(_) => Ok(self),
        }
    }

    pub(crate) fn on_device(&self) -> Option<&DeviceRows> {
        match &self.memory {
            Memory::Device(rows) => Some(rows),
            Memory::Host(_) => None,
        }
    }

    /// A copy in memory of the host. Waits for what is made on a device.
    ///
    /// # Errors
    /// A device error; a forked copy of the process.
    pub(crate) fn to_host(&self) -> Result<Self> {
        self.check_process()?;
        let copied;
        let bytes = match &self.memory {
            Memory::Device(rows) => {
                copied = rows.to_host()?;
                &copied[..]
            }
            Memory::Host(_) => self.bytes(0..self.bytes)?,
        };
        let mut buffer = BufferPool::default().take(bytes.len());
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(Self {
            memory: Memory::Host(Rows::Own(buffer)),
            ..*self
        })
    }

    fn check_process(&self) -> Result<()> {
        match getpid() == self.owner {
            true => Ok(()),
            false => Err(Error::worker(format!(
                "{} cannot be read in a forked copy of the process that made it",
                self.what
            ))),
        }
    }

    fn on_a_device(&self) -> Error {
        Error::config(format!(
            "{} is in the memory of a device: use on_device, or to_host for a copy",
            self.what
        ))
    }

    #[cold]
    fn outside(&self) -> Error {
        Error::protocol(format!("{} lies outside of its slot", self.what))
    }
}
