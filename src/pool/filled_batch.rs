//! A batch whose rows are final: its bytes, and the rows whose samples failed.
//!
//! Runs in the consumer. The same with workers and without.

use crate::error::SampleFault;
use crate::pool::batch_request::BatchRequest;
use crate::pool::buffers::PooledBuffer;
use crate::pool::ring::consumer_side::SlotDamage;
use crate::pool::ring::slots::HeldSlot;

/// A batch whose rows are final.
#[derive(Debug)]
pub struct FilledBatch {
    pub place: BatchRequest,
    pub rows: RowMemory,
    /// Sorted by row.
    pub bad: Vec<BadRow>,
}

/// Memory of the rows. It is reused after this is dropped.
#[derive(Debug)]
pub enum RowMemory {
    Slot(HeldSlot),
    Own(PooledBuffer),
}

/// A row whose own sample failed.
#[derive(Debug)]
pub struct BadRow {
    pub row: u32,
    /// Why its own sample failed.
    pub fault: SampleFault,
    /// The attempt that filled the row; `None` if all failed.
    pub attempt: Option<u32>,
}

impl RowMemory {
    /// All bytes, which may be more than the rows take. Bytes of failed rows and between rows are
    /// undefined.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Slot(slot) => slot.bytes(),
            Self::Own(buffer) => buffer.bytes(),
        }
    }

    /// Copies bytes from offset `from` on; false if there are too few. A compromised worker may
    /// still write into a slot, so each word is read once.
    pub(crate) fn copy(&self, from: usize, to: &mut [u8]) -> bool {
        match self {
            Self::Slot(slot) => slot.copy(from, to),
            Self::Own(buffer) => {
                let bytes = buffer.bytes().get(from..from.saturating_add(to.len()));
                bytes.map(|bytes| to.copy_from_slice(bytes)).is_some()
            }
        }
    }

    /// Writes bytes from offset `from` on, also into a slot that is watched; false if there are too
    /// few.
    pub(crate) fn write(&mut self, from: usize, bytes: &[u8]) -> bool {
        match self {
            Self::Slot(slot) => slot.write(from, bytes),
            Self::Own(buffer) => {
                let place = from..from.saturating_add(bytes.len());
                let to = buffer.bytes_mut().get_mut(place);
                to.map(|to| to.copy_from_slice(bytes)).is_some()
            }
        }
    }

    /// Like [`RowMemory::bytes`], but mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Slot(slot) => slot.bytes_mut(),
            Self::Own(buffer) => buffer.bytes_mut(),
        }
    }
}

impl FilledBatch {
    /// # Errors
    /// The slot was damaged: its rows are not those of the ticket.
    pub(crate) fn of_slot(
        place: BatchRequest,
        slot: HeldSlot,
        tries: u32,
    ) -> std::result::Result<Self, SlotDamage> {
        if let Some(damage) = slot.damage() {
            return Err(damage);
        }
        slot.retire();
        let mut bad = Vec::new();
        for row in 0..slot.ticket().rows {
            let attempt = slot.final_attempt(row, tries).ok_or(SlotDamage::Row(row))?;
            if attempt != Some(0) {
                bad.push(BadRow {
                    row,
                    fault: slot.fault(row),
                    attempt,
                });
            }
        }
        Ok(Self {
            place,
            bad,
            rows: RowMemory::Slot(slot),
        })
    }
}
