//! Workers and a device: batches are put on it ahead of who takes them.
//!
//! In the consumer, inside of `next`: before a batch is handed over, every batch behind it that
//! workers have finished is put on the device, as far as that has memory. So the device copies
//! and computes while the consumer works with what it was given, and slots are free for workers
//! early.
//!
//! Where the device decodes, a batch is opened for it while workers fill it, as far as the
//! device has memory for batches: a thread gives it coded rows as they come, whatever the
//! consumer does meanwhile. A batch that workers have filled is closed: its other rows are put
//! on the device. It is done when all coded ones are decoded.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchStorage};
use crate::jobs::images::coded_batch::OpenCodedBatch;
use crate::jobs::images::device_batches::DeviceBatches;
use crate::jobs::images::jpeg_batches::{ClosedBatch, DecodeOutcome};
use crate::jobs::images::run::ImageRun;
use crate::pool::batch_request::BatchRequest;
use crate::pool::consumer::Pool;
use crate::pool::filled_batch::{FilledBatch, RowMemory};
use crate::pool::pool_report::PoolReport;
use crate::pool::ring::slots::WatchedSlot;

/// How long a sleep is, while decoding is waited for, between two looks at the workers.
const LOOK: Duration = Duration::from_micros(200);
/// The same while workers are waited for, between two looks at what can be opened.
const FILLING: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct DevicePool {
    // In this order: what the device reads of the ring is waited for before the pool ends.
    ahead: VecDeque<Result<Batch>>,
    /// Behind those: what workers have filled, and the device decodes.
    decoding: VecDeque<ClosedBatch>,
    /// Behind those: what both are at.
    opened: VecDeque<OpenCodedBatch>,
    pub(crate) device: DeviceBatches,
    pub(crate) pool: Pool,
    /// How long to wait until a batch is dropped.
    hold_timeout: Duration,
}

impl DevicePool {
    pub(crate) fn new(on: DeviceBatches, pool: Pool, hold_timeout: Duration) -> Self {
        Self {
            ahead: VecDeque::new(),
            decoding: VecDeque::new(),
            opened: VecDeque::new(),
            device: on,
            pool,
            hold_timeout,
        }
    }

    pub(crate) fn report(&self) -> Result<PoolReport> {
        let mut report = self.pool.report()?;
        self.device.add_redecoded_to(&mut report);
        Ok(report)
    }

    /// The batch at which the run stands; none when it is not there within `limit`.
    pub(crate) fn next_within(
        &mut self,
        run: &mut ImageRun,
        limit: Duration,
    ) -> Result<Option<Batch>> {
        self.pool.check_owner()?;
        let batch = match self.ahead.pop_front() {
            Some(batch) => batch?,
            None => {
                let taken = match self.device.decodes() {
                    false => self.take_put(run, limit)?,
                    true => self.take_decoded(run, limit)?,
                };
                match taken {
                    Some(batch) => batch,
                    None => return Ok(None),
                }
            }
        };
        self.run_ahead(run);
        Ok(Some(batch))
    }

    /// The batch at which the run stands, put on the device as it is.
    fn take_put(&mut self, run: &mut ImageRun, limit: Duration) -> Result<Option<Batch>> {
        let began = Instant::now();
        if !self.device.make_room(self.hold_timeout, limit)? {
            return Ok(None);
        }
        let left = limit.saturating_sub(began.elapsed());
        let taken = self.take(run, left)?;
        taken.map(|filled| self.put(run, filled)).transpose()
    }

    /// The batch at which the run stands, as workers finish it. Slots that the device
    /// reads come back meanwhile, for workers to go on with.
    fn take(&mut self, run: &ImageRun, limit: Duration) -> Result<Option<FilledBatch>> {
        let coming = |n| run.place_ahead(n);
        loop {
            if let Some(next) = self.pool.next_finished(&coming)? {
                return Ok(Some(next));
            }
            if !self.device.wait_one()? {
                return self.pool.next_within(&coming, limit);
            }
        }
    }

    /// The batch at which the run stands, once its coded rows are decoded.
    fn take_decoded(&mut self, run: &mut ImageRun, limit: Duration) -> Result<Option<Batch>> {
        let began = Instant::now();
        loop {
            self.open_batches(run, 0)?;
            let left = limit.saturating_sub(began.elapsed());
            if let Some(batch) = self.decoded(run, left.min(LOOK))? {
                return Ok(Some(batch));
            }
            if self.decoding.is_empty() {
                if self.opened.is_empty() && !self.device.make_room(self.hold_timeout, left)? {
                    return Ok(None);
                }
                let left = limit.saturating_sub(began.elapsed());
                // Others may be opened meanwhile.
                match self.take(run, left.min(FILLING))? {
                    Some(filled) => self.close(run, filled)?,
                    None if left <= FILLING => return Ok(None),
                    None => {}
                }
                continue;
            }
            if left.is_zero() {
                return Ok(None);
            }
        }
    }

    /// The oldest batch that is being decoded, if it is within `most`.
    fn decoded(&mut self, run: &mut ImageRun, most: Duration) -> Result<Option<Batch>> {
        let Some(first) = self.decoding.pop_front() else {
            return Ok(None);
        };
        match self.device.finish_decode(first, most) {
            Ok(DecodeOutcome::Done(place, bad)) => {
                let rows = self.device.take_rows().map_err(|why| self.pool.end(why))?;
                run.make_batch_in(&place, BatchStorage::Device(rows), bad)
                    .map(Some)
            }
            Ok(DecodeOutcome::Pending(first)) => {
                self.decoding.push_front(first);
                Ok(None)
            }
            Err(why) => Err(self.pool.end(why)),
        }
    }

    /// Opens what workers are at, as far as the device has memory for it, and closes what they
    /// have finished. `behind`: batches between the run's place and those that are being decoded.
    fn open_batches(&mut self, run: &ImageRun, behind: usize) -> Result<()> {
        loop {
            let behind = behind + self.decoding.len();
            let coming = |n| run.place_ahead(n + behind);
            while self.device.has_room_now()?
                && let Some(next) = self.pool.watch(self.opened.len(), &coming)
            {
                self.open(run, next)?;
            }
            if self.opened.is_empty() {
                return Ok(());
            }
            match self.pool.next_finished(&coming)? {
                Some(filled) => self.close(run, filled)?,
                None => return Ok(()),
            }
        }
    }

    fn open(&mut self, run: &ImageRun, next: (BatchRequest, WatchedSlot)) -> Result<()> {
        let size = run.row_size(&next.0);
        let opened = self.device.open_batch(next, size, run.tries, &run.program);
        self.opened
            .push_back(opened.map_err(|why| self.pool.end(why))?);
        Ok(())
    }

    fn close(&mut self, run: &ImageRun, filled: FilledBatch) -> Result<()> {
        // Filled before there was memory for it.
        if self.opened.is_empty()
            && let RowMemory::Slot(slot) = &filled.rows
        {
            self.open(run, (filled.place, slot.watch()))?;
        }
        let size = run.row_size(&filled.place);
        let begun = match self.opened.pop_front() {
            Some(opened) => self.device.close_batch(opened, filled, size, &run.program),
            None => Err(Error::Device {
                what: "a batch to be decoded that lies in no slot of the ring".into(),
            }),
        };
        self.decoding
            .push_back(begun.map_err(|why| self.pool.end(why))?);
        Ok(())
    }

    /// Waits until the device has memory for a batch, and workers have a slot.
    pub(crate) fn make_room(&mut self) -> Result<()> {
        while !self.device.make_room(self.hold_timeout, Duration::MAX)? {}
        Ok(())
    }

    /// Puts on the device what workers have finished behind the batch that is about
    /// to be handed over, and gives the slots that were read back to them. An error
    /// is told when its batch is asked for.
    fn run_ahead(&mut self, run: &mut ImageRun) {
        while !matches!(self.ahead.back(), Some(Err(_))) {
            match self.one_ahead(run) {
                Ok(None) => break,
                Ok(Some(batch)) => self.ahead.push_back(Ok(batch)),
                Err(why) => self.ahead.push_back(Err(why)),
            }
        }
    }

    /// The batch behind all that are on the device, if it is finished and has room there.
    fn one_ahead(&mut self, run: &mut ImageRun) -> Result<Option<Batch>> {
        let behind = 1 + self.ahead.len();
        if self.device.decodes() {
            self.open_batches(run, behind)?;
            let decoded = self.decoded(run, Duration::ZERO)?;
            if decoded.is_none() {
                let behind = behind + self.decoding.len();
                self.pool.refill(&|n| run.place_ahead(n + behind));
            }
            return Ok(decoded);
        }
        let coming = |n| run.place_ahead(n + behind);
        if !self.device.has_room_now()? {
            self.pool.refill(&coming);
            return Ok(None);
        }
        match self.pool.next_finished(&coming)? {
            Some(filled) => self.put(run, filled).map(Some),
            None => Ok(None),
        }
    }

    fn put(&mut self, run: &mut ImageRun, filled: FilledBatch) -> Result<Batch> {
        let batch = run.make_batch(filled)?;
        // Else the batch is lost, and the next one has been asked for.
        let put = self.device.put(batch, &run.program);
        put.map_err(|why| self.pool.end(why))
    }

    /// Drops what was put ahead, and cancels what workers have not begun.
    pub(crate) fn cancel(&mut self) {
        self.ahead.clear();
        self.device
            .cancel(self.opened.drain(..), self.decoding.drain(..).count());
        self.pool.cancel();
    }
}
