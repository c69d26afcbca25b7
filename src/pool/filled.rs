//! A batch whose rows are final: where their bytes lie, and which gave none.
//!
//! In the consumer. The same whether workers or this process filled the rows.

use crate::error::SampleFault;
use crate::pool::buffers::PooledBuffer;
use crate::pool::place::Place;
use crate::pool::ring::slots::HeldSlot;

/// The rows of one place.
#[derive(Debug)]
pub struct Filled {
    pub place: Place,
    pub rows: Rows,
    /// In the order of their rows.
    pub bad: Vec<BadRow>,
}

/// Where rows lie. The memory is free for others once this is dropped.
#[derive(Debug)]
pub enum Rows {
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

impl Rows {
    /// All of it, which may be more than the rows take. Bytes of failed rows, and
    /// outside of rows, are whatever was there.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Slot(held) => held.bytes(),
            Self::Own(buffer) => buffer.bytes(),
        }
    }

    /// As [`Rows::bytes`], to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Slot(held) => held.bytes_mut(),
            Self::Own(buffer) => buffer.bytes_mut(),
        }
    }
}

impl Filled {
    /// Attempts come out of shared memory: none beyond the last is believed.
    pub(crate) fn of_slot(place: Place, held: HeldSlot, tries: u32) -> Self {
        let rows = 0..held.ticket().rows;
        let bad = rows.filter_map(|row| {
            let attempt = (!held.failed(row)).then(|| held.attempt(row).min(tries));
            (attempt != Some(0)).then(|| BadRow {
                row,
                fault: held.fault(row),
                attempt,
            })
        });
        Self {
            place,
            bad: bad.collect(),
            rows: Rows::Slot(held),
        }
    }
}
