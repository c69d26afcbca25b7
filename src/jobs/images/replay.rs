//! The device stage alone: slots that workers filled once are put on the device again
//! and again.
//!
//! In the consumer, for measurements. Workers rest meanwhile: their slots are held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::device::DeviceTimes;
use crate::error::{Error, Result};
use crate::jobs::images::device_pool::DevicePool;
use crate::jobs::images::on_device::{Laid, slot_of};
use crate::jobs::images::run::Run;
use crate::plan::RowStatus;
use crate::pool::ring::slots::HeldSlot;

/// What a device does when nothing but itself, and the bus, is in its way.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Replay {
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

impl Replay {
    /// Bytes that the device has read of slots, in a second of the whole time.
    pub fn bytes_per_s(&self) -> f64 {
        (self.device.copied_bytes + self.device.in_place_bytes) as f64 / self.seconds
    }
}

/// A batch whose slot is kept.
struct Filled {
    slot: Arc<HeldSlot>,
    laid: Laid,
    status: Vec<RowStatus>,
}

impl DevicePool {
    /// See [`crate::loader::Loader::replay`].
    pub(crate) fn replay(&mut self, run: &mut Run, rounds: u32) -> Result<Replay> {
        // The run stands where it stood: its batches come again behind the replay.
        self.pool.check_owner()?;
        if self.on.decodes() {
            return Err(Error::option(
                "decode_on",
                "a replay is of pixels that workers decoded: use decode_on cpu",
            ));
        }
        self.cancel();
        self.on.wait_all()?;
        let replay = self
            .fill(run)
            .and_then(|filled| self.play(run, &filled, rounds));
        self.cancel();
        replay
    }

    /// A batch in each slot, or as many as are left of the run.
    fn fill(&mut self, run: &mut Run) -> Result<Vec<Filled>> {
        let mut filled = Vec::new();
        while filled.len() < self.on.slots() && run.coming(filled.len()).is_some() {
            let at = filled.len();
            let coming = |n| run.coming(n + at);
            let Some(next) = self.pool.next_within(&coming, Duration::MAX)? else {
                continue;
            };
            let batch = run.finished(next)?;
            filled.push(Filled {
                laid: Laid::of(&batch)?,
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

    fn play(&mut self, run: &Run, filled: &[Filled], rounds: u32) -> Result<Replay> {
        let before = self.on.times();
        let began = Instant::now();
        let (mut batches, mut rows) = (0, 0);
        for _ in 0..rounds {
            for one in filled {
                self.make_room()?;
                let of = (&one.laid, one.status.as_slice());
                self.on.put_slot(one.slot.clone(), of, &run.program)?;
                batches += 1;
                rows += one.status.len() as u64;
            }
        }
        self.on.wait_all()?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(Replay {
            slots: filled.len() as u32,
            slot_bytes: self.on.slot_bytes(),
            batches,
            rows,
            seconds,
            device: self.on.times() - before,
        })
    }
}
