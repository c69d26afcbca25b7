//! A batch that workers are filling, for a device that decodes its JPEGs, row by row.
//!
//! In the consumer, in the thread of JPEGs. What workers wrote of a row is checked before a kernel
//! sees it. A row that no worker in its senses writes is none of the device's: who takes the batch
//! finds it too, and ends the run.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cut::crop::{CropHeader, Takes};
use crate::device::coded_rows::{Again, CodedBatch, CodedRow, Look, Verdict};
use crate::error::{Result, SampleFault};
use crate::jobs::images::jpeg_batches::{InRow, destroyed, kernel_row, read_row};
use crate::picture::jpeg::gpu_rows::CodedPicture;
use crate::pool::job::Job;
use crate::pool::place::Place;
use crate::pool::ring::region::told_of;
use crate::pool::ring::slots::WatchedSlot;
use crate::pool::worker::attempts;
use crate::pool::worker::attempts::Attempts;
use crate::pool::worker::meter::Meter;
use crate::recipe::CropRule;

/// The job of the workers once more, in this process, which decodes all that it fills.
pub(crate) struct CpuJob(Mutex<Box<dyn Job>>);

impl CpuJob {
    pub(crate) fn new(job: Box<dyn Job>) -> Self {
        Self(Mutex::new(job))
    }
}

impl fmt::Debug for CpuJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CpuJob")
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BatchRows {
    pub(crate) slot: WatchedSlot,
    pub(crate) place: Place,
    /// Attempts behind a row's first.
    pub(crate) tries: u32,
    pub(crate) rule: CropRule,
    /// Height and width of its rows.
    pub(crate) size: (u32, u32),
    pub(crate) cpu: Arc<CpuJob>,
}

impl BatchRows {
    /// Where a row lies: as [`crate::jobs::images::packing`] places rows of crops.
    fn bytes_of(&self, row: u32) -> Range<usize> {
        let bytes = self.rule.room(self.size).row_bytes();
        row as usize * bytes..(row as usize + 1) * bytes
    }

    fn coded(&self, row: u32, own: &[u8]) -> Option<CodedRow> {
        let begin = self.bytes_of(row).start;
        let read = read_row(own, begin, self.rule, self.size).ok()?;
        let InRow::Coded(coded, kernel) = read else {
            return None;
        };
        let picture = CodedPicture::read(own.get(coded.clone())?).ok()?;
        // Weights are those of the crop that the row's header names.
        if picture.picture.size() != (kernel.width, kernel.height) {
            return None;
        }
        let first = begin + coded.start;
        Some(CodedRow {
            row,
            data: first + picture.data.start..first + picture.data.end,
            picture,
            kernel,
        })
    }
}

impl CodedBatch for BatchRows {
    fn rows(&self) -> u32 {
        self.place.rows
    }

    fn look(&self, row: u32) -> Look {
        if row >= self.place.filled {
            return Look::Other;
        }
        if !self.slot.is_final(row) {
            return Look::NotYet;
        }
        // Failed, or destroyed.
        let Some(Some(_)) = self.slot.end(row, self.tries) else {
            return Look::Other;
        };
        // SAFETY: `is_final` has shown that the row is, and these bytes are its own.
        let own = unsafe { self.slot.row(self.bytes_of(row)) };
        let coded = own.and_then(|own| self.coded(row, own));
        coded.map_or(Look::Other, |coded| Look::Coded(Box::new(coded)))
    }

    fn memory(&self) -> (*const u8, usize) {
        self.slot.memory()
    }

    fn decode_again(&self, row: u32, out: &mut [u8]) -> Result<Again> {
        let first = self.slot.end(row, self.tries).flatten();
        let attempts = Attempts {
            first: first.unwrap_or(0),
            tries: self.tries,
        };
        let mut fault = None;
        let attempt = attempts::fill(
            &mut **self.cpu.0.lock().unwrap_or_else(PoisonError::into_inner),
            &self.place.ticket(1),
            row,
            attempts,
            out,
            &mut Meter::default(),
            |_, why, _| {
                fault.get_or_insert(why);
            },
        );
        let kernel = attempt.map(|_| {
            let room = self.rule.room(self.size);
            let header = CropHeader::read(out, room, self.size, Takes::Pixels);
            let kernel = header.and_then(|header| kernel_row(&header, 0, room, self.rule));
            kernel.map_err(|why| destroyed(row, &why))
        });
        Ok(Again {
            kernel: kernel.transpose()?,
            verdict: fault.map(|fault: SampleFault| Verdict {
                row,
                fault: SampleFault::new(fault.kind, told_of(&fault.reason)),
                attempt,
            }),
        })
    }
}
