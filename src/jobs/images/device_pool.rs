//! Workers and a device: batches are put on it ahead of who takes them.
//!
//! In the consumer, inside of `next`, which no thread helps: before a batch is handed
//! over, every batch behind it that workers have finished is put on the device, as
//! far as that has memory. So the device copies and computes while the consumer
//! works with what it was given, and slots are free for workers early.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::jobs::images::batch::Batch;
use crate::jobs::images::on_device::OnDevice;
use crate::jobs::images::run::Run;
use crate::pool::consumer::Pool;
use crate::pool::filled::Filled;

#[derive(Debug)]
pub(crate) struct DevicePool {
    // In this order: what the device reads of the ring is waited for before the pool ends.
    ahead: VecDeque<Result<Batch>>,
    pub(crate) on: OnDevice,
    pub(crate) pool: Pool,
    /// How long to wait until a batch is dropped.
    hold_timeout: Duration,
}

impl DevicePool {
    pub(crate) fn new(on: OnDevice, pool: Pool, hold_timeout: Duration) -> Self {
        Self {
            ahead: VecDeque::new(),
            on,
            pool,
            hold_timeout,
        }
    }

    /// The batch at which the run stands; none when it is not there within `limit`.
    pub(crate) fn next_within(&mut self, run: &mut Run, limit: Duration) -> Result<Option<Batch>> {
        self.pool.check_owner()?;
        let batch = match self.ahead.pop_front() {
            Some(batch) => batch?,
            None => {
                let began = Instant::now();
                if !self.on.make_room(self.hold_timeout, limit)? {
                    return Ok(None);
                }
                let left = limit.saturating_sub(began.elapsed());
                let Some(filled) = self.take(run, left)? else {
                    return Ok(None);
                };
                self.put(run, filled)?
            }
        };
        self.run_ahead(run);
        Ok(Some(batch))
    }

    /// The batch at which the run stands, as workers finish it. Slots that the device
    /// reads come back meanwhile, for workers to go on with.
    fn take(&mut self, run: &Run, limit: Duration) -> Result<Option<Filled>> {
        let coming = |n| run.coming(n);
        loop {
            if let Some(next) = self.pool.next_finished(&coming)? {
                return Ok(Some(next));
            }
            if !self.on.wait_one()? {
                return self.pool.next_within(&coming, limit);
            }
        }
    }

    /// Waits until the device has memory for a batch, and workers have a slot.
    pub(crate) fn make_room(&mut self) -> Result<()> {
        while !self.on.make_room(self.hold_timeout, Duration::MAX)? {}
        Ok(())
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
            Some(filled) => self.put(run, filled).map(Some),
            None => Ok(None),
        }
    }

    fn put(&mut self, run: &mut Run, filled: Filled) -> Result<Batch> {
        let batch = run.finished(filled)?;
        // Else the batch is lost, and the next one has been asked for.
        let put = self.on.put(batch, &run.program);
        put.map_err(|why| self.pool.end(why))
    }

    /// Drops what was put ahead, and cancels what workers have not begun.
    pub(crate) fn cancel(&mut self) {
        self.ahead.clear();
        self.pool.cancel();
    }
}
