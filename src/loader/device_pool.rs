//! Workers and a device: batches are put on it ahead of who takes them.
//!
//! In the consumer, inside of `next`, which no thread helps: before a batch is handed
//! over, every batch behind it that workers have finished is put on the device, as
//! far as that has memory. So the device copies and computes while the consumer
//! works with what it was given, and slots are free for workers early.

use std::collections::VecDeque;
use std::time::Duration;

use super::on_device::OnDevice;
use super::pool::{Place, Pool};
use super::report::LoaderReport;
use super::run::Run;
use crate::batch::Batch;
use crate::device::DeviceMemory;
use crate::error::Result;
use crate::ring::slots::HeldSlot;

#[derive(Debug)]
pub(super) struct DevicePool {
    // In this order: what the device reads of the ring is waited for before the pool ends.
    ahead: VecDeque<Result<Batch>>,
    pub(super) on: OnDevice,
    pub(super) pool: Pool,
    /// How long to wait until a batch is dropped.
    hold_timeout: Duration,
}

impl DevicePool {
    pub(super) fn new(on: OnDevice, pool: Pool, hold_timeout: Duration) -> Self {
        Self {
            ahead: VecDeque::new(),
            on,
            pool,
            hold_timeout,
        }
    }

    /// The batch at which the run stands.
    pub(super) fn next(&mut self, run: &mut Run) -> Result<Batch> {
        self.pool.check_owner()?;
        let batch = match self.ahead.pop_front() {
            Some(batch) => batch?,
            None => {
                self.make_room()?;
                let (place, held) = self.take(run)?;
                self.put(run, place, held)?
            }
        };
        self.run_ahead(run);
        Ok(batch)
    }

    /// The batch at which the run stands, as workers finish it. Slots that the device
    /// reads come back meanwhile, for workers to go on with.
    fn take(&mut self, run: &Run) -> Result<(Place, HeldSlot)> {
        let coming = |n| run.coming(n);
        loop {
            if let Some(next) = self.pool.next_finished(&coming)? {
                return Ok(next);
            }
            if !self.on.wait_one()? {
                return self.pool.next(&coming);
            }
        }
    }

    /// Waits until the device has memory for a batch, and workers have a slot.
    pub(super) fn make_room(&mut self) -> Result<()> {
        self.on.make_room(self.hold_timeout)
    }

    /// Puts on the device what workers have finished behind the batch that is about
    /// to be handed over, and gives the slots that were read back to them. An error
    /// is told when its batch is asked for.
    fn run_ahead(&mut self, run: &mut Run) {
        while !matches!(self.ahead.back(), Some(Err(_))) {
            match self.one_ahead(run) {
                Ok(None) => break,
                Ok(Some(batch)) => self.ahead.push_back(Ok(batch)),
                Err(why) => self.ahead.push_back(Err(why)),
            }
        }
    }

    /// The batch behind all that are on the device, if it is finished and has room there.
    fn one_ahead(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        let behind = 1 + self.ahead.len();
        let room = self.on.has_room_now()?;
        let coming = |n| run.coming(n + behind);
        if !room {
            self.pool.refill(&coming);
            return Ok(None);
        }
        match self.pool.next_finished(&coming)? {
            Some((place, held)) => self.put(run, place, held).map(Some),
            None => Ok(None),
        }
    }

    fn put(&mut self, run: &mut Run, place: Place, held: HeldSlot) -> Result<Batch> {
        let batch = run.of_slot(place, held)?;
        // Else the batch is lost, and the next one has been asked for.
        let put = self.on.put(batch, &run.program);
        put.map_err(|why| self.pool.end(why))
    }

    /// Drops what was put ahead, and cancels what workers have not begun.
    pub(super) fn cancel(&mut self) {
        self.ahead.clear();
        self.pool.cancel();
    }

    pub(super) fn report(&self) -> Result<LoaderReport> {
        let mut report = self.pool.report()?;
        report.device = Some(self.on.times());
        Ok(report)
    }

    pub(super) fn memory(&self) -> Result<DeviceMemory> {
        self.on.memory()
    }
}
