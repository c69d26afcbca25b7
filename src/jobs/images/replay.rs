//! Measures the device stage alone: slots that workers filled once are delivered to the device
//! repeatedly.
//!
//! In the consumer, for measurements. Workers wait meanwhile, since their slots are held.

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

/// The speed of a device that only waits for itself and the bus.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct DeviceReplay {
    /// Filled slots.
    pub slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u64,
    /// Batches delivered to the device.
    pub batches: u64,
    /// Rows of these batches.
    pub rows: u64,
    /// Seconds from the first call to the end of the last batch's work.
    pub seconds: f64,
    /// The device's times in this period.
    pub device: DeviceTimes,
}

impl DeviceReplay {
    /// Bytes that the device read from slots, per second of the whole time.
    pub fn bytes_per_s(&self) -> f64 {
        (self.device.copied_bytes + self.device.in_place_bytes) as f64 / self.seconds
    }
}

/// A batch whose slot is kept.
struct FilledSlot {
    slot: Arc<HeldSlot>,
    contents: SlotContents,
    status: Vec<RowStatus>,
}

impl DevicePool {
    /// See [`crate::loader::Loader::replay`].
    pub(crate) fn replay(&mut self, run: &mut ImageRun, rounds: u32) -> Result<DeviceReplay> {
        // The position does not change: these batches come again after the replay.
        self.pool.check_owner()?;
        if self.device.decodes() {
            return Err(Error::option(
                "decode_on",
                "a replay needs workers that decode all images: use decode_on cpu",
            ));
        }
        self.cancel();
        self.device.wait_all()?;
        let replay = self
            .fill_slots(run)
            .and_then(|filled| self.play(run, &filled, rounds));
        self.cancel();
        replay
    }

    /// One batch per slot, or as many as remain in the run.
    fn fill_slots(&mut self, run: &mut ImageRun) -> Result<Vec<FilledSlot>> {
        let mut filled = Vec::new();
        while filled.len() < self.device.slots() && run.place_ahead(filled.len()).is_some() {
            let at = filled.len();
            let upcoming = |n| run.place_ahead(n + at);
            let Some(next) = self.pool.next_within(&upcoming, Duration::MAX)? else {
                continue;
            };
            let mut batch = run.make_batch(next)?;
            filled.push(FilledSlot {
                contents: SlotContents::of(&mut batch)?,
                slot: Arc::new(slot_of(batch.storage)?),
                status: batch.status,
            });
        }
        if filled.is_empty() {
            return Err(Error::config(
                "a replay needs a batch, and the run has no more batches",
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
                let of = (&one.contents, one.status.as_slice());
                self.device
                    .submit_slot(one.slot.clone(), of, &run.program)?;
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
