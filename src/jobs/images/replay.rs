//! The device stage alone: slots that workers filled once are put on the device again
//! and again.
//!
//! In the consumer, for measurements. Workers rest meanwhile: their slots are held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::device::DeviceTimes;
use crate::error::{Error, Result};
use crate::jobs::images::device_batches::{SlotContents, slot_of};
use crate::jobs::images::device_pool::DevicePool;
use crate::jobs::images::run::ImageRun;
use crate::order::RowStatus;
use crate::pool::ring::slots::HeldSlot;

/// What a device does when nothing but itself, and the bus, is in its way.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct DeviceReplay {
    /// Slots that were filled.
    pub slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Batches that were put on the device.
    pub batches: u64,
    /// Rows of these.
    pub rows: u64,
    /// From the first one's call to the end of the last one's work.
    pub seconds: f64,
    /// What the device did meanwhile.
    pub device: DeviceTimes,
}

impl DeviceReplay {
    /// Bytes that the device has read of slots, in a second of the whole time.
    pub fn bytes_per_s(&self) -> f64 {
        (self.device.copied_bytes + self.device.in_place_bytes) as f64 / self.seconds
    }
}

/// A batch whose slot is kept.
struct FilledSlot {
    slot: Arc<HeldSlot>,
    laid: SlotContents,
    status: Vec<RowStatus>,
}

impl DevicePool {
    /// See [`crate::loader::Loader::replay`].
    pub(crate) fn replay(&mut self, run: &mut ImageRun, rounds: u32) -> Result<DeviceReplay> {
        // The run stands where it stood: its batches come again behind the replay.
        self.pool.check_owner()?;
        if self.device.decodes() {
            return Err(Error::option(
                "decode_on",
                "a replay is of pixels that workers decoded: use decode_on cpu",
            ));
        }
        self.cancel();
        self.device.wait_all()?;
        let replay = self
            .fill(run)
            .and_then(|filled| self.play(run, &filled, rounds));
        self.cancel();
        replay
    }

    /// A batch in each slot, or as many as are left of the run.
    fn fill(&mut self, run: &mut ImageRun) -> Result<Vec<FilledSlot>> {
        let mut filled = Vec::new();
        while filled.len() < self.device.slots() && run.place_ahead(filled.len()).is_some() {
            let at = filled.len();
            let coming = |n| run.place_ahead(n + at);
            let Some(next) = self.pool.next_within(&coming, Duration::MAX)? else {
                continue;
            };
            let batch = run.make_batch(next)?;
            filled.push(FilledSlot {
                laid: SlotContents::of(&batch)?,
                slot: Arc::new(slot_of(batch.storage)?),
                status: batch.status,
            });
        }
        if filled.is_empty() {
            return Err(Error::config(
                "a replay needs a batch, and the run has none left",
            ));
        }
        Ok(filled)
    }

    fn play(&mut self, run: &ImageRun, filled: &[FilledSlot], rounds: u32) -> Result<DeviceReplay> {
        let before = self.device.times();
        let began = Instant::now();
        let (mut batches, mut rows) = (0, 0);
        for _ in 0..rounds {
            for one in filled {
                self.make_room()?;
                let of = (&one.laid, one.status.as_slice());
                self.device.put_slot(one.slot.clone(), of, &run.program)?;
                batches += 1;
                rows += one.status.len() as u64;
            }
        }
        self.device.wait_all()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(DeviceReplay {
            slots: filled.len() as u32,
            slot_bytes: self.device.slot_bytes(),
            batches,
            rows,
            seconds,
            device: self.device.times() - before,
        })
    }
}
