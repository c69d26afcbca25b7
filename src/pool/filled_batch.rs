//! A batch whose rows are final: where their bytes lie, and which gave none.
//!
//! In the consumer. The same whether workers or this process filled the rows.

use crate::error::SampleFault;
use crate::pool::batch_request::BatchRequest;
use crate::pool::buffers::PooledBuffer;
use crate::pool::ring::consumer_side::SlotDamage;
use crate::pool::ring::slots::HeldSlot;

/// The rows of one place.
#[derive(Debug)]
pub struct FilledBatch {
    pub place: BatchRequest,
    pub rows: RowMemory,
    /// In the order of their rows.
    pub bad: Vec<BadRow>,
}

/// Where rows lie. The memory is free for others once this is dropped.
#[derive(Debug)]
pub enum RowMemory {
    Slot(HeldSlot),
    Own(PooledBuffer),
}

/// A row whose own sample gave nothing.
#[derive(Debug)]
pub struct BadRow {
    pub row: u32,
    /// Why its own sample gave nothing.
    pub fault: SampleFault,
    /// The attempt that filled the row; none = it failed.
    pub attempt: Option<u32>,
}

impl RowMemory {
    /// All of it, which may be more than the rows take. Bytes of failed rows, and
    /// outside of rows, are whatever was there.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Slot(held) => held.bytes(),
            Self::Own(buffer) => buffer.bytes(),
        }
    }

    /// Copies their bytes from byte `from` on; false when there are not so many. Of those in a slot
    /// each word is read once: a worker that was taken over may write them.
    pub(crate) fn copy(&self, from: usize, to: &mut [u8]) -> bool {
        match self {
            Self::Slot(held) => held.copy(from, to),
            Self::Own(buffer) => {
                let bytes = buffer.bytes().get(from..from.saturating_add(to.len()));
                bytes.map(|bytes| to.copy_from_slice(bytes)).is_some()
            }
        }
    }

    /// As [`RowMemory::bytes`], to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Slot(held) => held.bytes_mut(),
            Self::Own(buffer) => buffer.bytes_mut(),
        }
    }
}

impl FilledBatch {
    /// # Errors
    /// What was destroyed of the slot: its rows are not those of the ticket.
    pub(crate) fn of_slot(
        place: BatchRequest,
        held: HeldSlot,
        tries: u32,
    ) -> std::result::Result<Self, SlotDamage> {
        if let Some(damage) = held.damage() {
            return Err(damage);
        }
        held.retire();
        let mut bad = Vec::new();
        for row in 0..held.ticket().rows {
            let attempt = held.final_attempt(row, tries).ok_or(SlotDamage::Row(row))?;
            if attempt != Some(0) {
                bad.push(BadRow {
                    row,
                    fault: held.fault(row),
                    attempt,
                });
            }
        }
        Ok(Self {
            place,
            bad,
            rows: RowMemory::Slot(held),
        })
    }
}
