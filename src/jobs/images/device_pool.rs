//! A pool of workers with a device: batches are delivered to the device ahead of the consumer.
//!
//! In the consumer, inside of `next`. Before a batch is returned, later batches that workers have
//! finished are delivered to the device, as far as it has memory. So the device copies and computes
//! while the consumer works, and slots become free early.
//!
//! If the device decodes JPEGs, a batch has three states. Open: workers still fill it, and a thread
//! sends its coded rows to the device as they become final. Closed: all rows are final, and its
//! other rows are delivered. Done: the device has decoded its rows.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::jobs::images::batch::Batch;
use crate::jobs::images::coded_batch::OpenCodedBatch;
use crate::jobs::images::device_batches::DeviceBatches;
use crate::jobs::images::jpeg_batches::{ClosedBatch, DecodeOutcome, DecodedRows};
use crate::jobs::images::run::ImageRun;
use crate::pool::batch_request::BatchRequest;
use crate::pool::consumer::Pool;
use crate::pool::filled_batch::{FilledBatch, RowMemory};
use crate::pool::pool_report::PoolReport;
use crate::pool::ring::slots::WatchedSlot;

/// Time between two checks of the workers while the consumer waits for a decode.
const LOOK: Duration = Duration::from_micros(200);
/// Time between two attempts to open batches while the consumer waits for workers.
const FILLING: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct DevicePool {
    // The order matters: the device must have read the ring before the pool is dropped.
    ahead: VecDeque<Result<Batch>>,
    /// Later batches: filled by workers, being decoded by the device.
    decoding: VecDeque<ClosedBatch>,
    /// Still later batches: being filled and decoded.
    opened: VecDeque<OpenCodedBatch>,
    pub(crate) device: DeviceBatches,
    pub(crate) pool: Pool,
    /// How long to wait for the caller to drop a batch.
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

    /// The next batch. None if it is not ready within `limit`.
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
                    false => self.next_submitted(run, limit)?,
                    true => self.next_decoded(run, limit)?,
                };
                match taken {
                    Some(batch) => batch,
                    None => return Ok(None),
                }
            }
        };
        self.submit_ahead(run);
        Ok(Some(batch))
    }

    /// The next batch, from workers to the device, if the device does not decode.
    fn next_submitted(&mut self, run: &mut ImageRun, limit: Duration) -> Result<Option<Batch>> {
        let began = Instant::now();
        if !self.device.make_room(self.hold_timeout, limit)? {
            return Ok(None);
        }
        let left = limit.saturating_sub(began.elapsed());
        let taken = self.next_filled(run, left)?;
        taken.map(|filled| self.submit(run, filled)).transpose()
    }

    /// The next batch from the workers. Meanwhile frees slots that the device has read, so that
    /// workers can continue.
    fn next_filled(&mut self, run: &ImageRun, limit: Duration) -> Result<Option<FilledBatch>> {
        let upcoming = |n| run.place_ahead(n);
        loop {
            if let Some(next) = self.pool.next_finished(&upcoming)? {
                return Ok(Some(next));
            }
            if !self.device.wait_one()? {
                return self.pool.next_within(&upcoming, limit);
            }
        }
    }

    /// The next batch, after its coded rows are decoded.
    fn next_decoded(&mut self, run: &mut ImageRun, limit: Duration) -> Result<Option<Batch>> {
        let began = Instant::now();
        loop {
            self.open_batches(run, 0)?;
            let left = limit.saturating_sub(began.elapsed());
            if let Some(batch) = self.poll_decoded(run, left.min(LOOK))? {
                return Ok(Some(batch));
            }
            if self.decoding.is_empty() {
                if self.opened.is_empty() && !self.device.make_room(self.hold_timeout, left)? {
                    return Ok(None);
                }
                let left = limit.saturating_sub(began.elapsed());
                // Returns early so that further batches can be opened.
                match self.next_filled(run, left.min(FILLING))? {
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

    /// The oldest batch that is being decoded, if it is done within `most`.
    fn poll_decoded(&mut self, run: &mut ImageRun, most: Duration) -> Result<Option<Batch>> {
        let Some(first) = self.decoding.pop_front() else {
            return Ok(None);
        };
        match self.device.finish_decode(first, most) {
            Ok(DecodeOutcome::Done(decoded)) => {
                let DecodedRows {
                    place,
                    bad,
                    objects,
                    lost,
                } = decoded;
                let cleared =
                    run.clear_rasters(&place, &lost, |at, bytes| self.device.overwrite(at, bytes));
                let rows = cleared.and_then(|()| self.device.take_rows());
                let rows = rows.map_err(|why| self.pool.end(why))?;
                run.make_device_batch(&place, (rows, objects), bad)
                    .map(Some)
            }
            Ok(DecodeOutcome::Pending(first)) => {
                self.decoding.push_front(first);
                Ok(None)
            }
            Err(why) => Err(self.pool.end(why)),
        }
    }

    /// Opens batches that workers fill, as far as the device has memory, and closes those that they
    /// have finished. `batches_before`: number of batches between the run's position and the first
    /// one that is being decoded.
    fn open_batches(&mut self, run: &mut ImageRun, batches_before: usize) -> Result<()> {
        loop {
            let batches_before = batches_before + self.decoding.len();
            let upcoming = |n| run.place_ahead(n + batches_before);
            while self.device.has_room_now()?
                && let Some(next) = self.pool.watch(self.opened.len(), &upcoming)
            {
                self.open(run, next)?;
            }
            if self.opened.is_empty() {
                return Ok(());
            }
            let finished = self.pool.next_finished(&upcoming)?;
            match finished {
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

    fn close(&mut self, run: &mut ImageRun, mut filled: FilledBatch) -> Result<()> {
        // Workers filled it before the device had memory for it.
        if self.opened.is_empty()
            && let RowMemory::Slot(slot) = &filled.rows
        {
            self.open(run, (filled.place, slot.watch()))?;
        }
        let size = run.row_size(&filled.place);
        let objects = run.complete_targets(&mut filled);
        let objects = objects.map_err(|why| self.pool.end(why))?;
        let filled = (filled, objects);
        let closed = match self.opened.pop_front() {
            Some(opened) => (self.device).close_batch(opened, filled, size, &run.program),
            None => Err(Error::Device {
                what: "a batch to decode is not in a slot of the ring".into(),
            }),
        };
        self.decoding
            .push_back(closed.map_err(|why| self.pool.end(why))?);
        Ok(())
    }

    /// Waits until the device has memory for a batch, and workers have a slot.
    pub(crate) fn make_room(&mut self) -> Result<()> {
        while !self.device.make_room(self.hold_timeout, Duration::MAX)? {}
        Ok(())
    }

    /// Delivers later finished batches to the device, and frees the slots that it has read. An
    /// error is returned in place of its batch.
    fn submit_ahead(&mut self, run: &mut ImageRun) {
        while !matches!(self.ahead.back(), Some(Err(_))) {
            match self.submit_next(run) {
                Ok(None) => break,
                Ok(Some(batch)) => self.ahead.push_back(Ok(batch)),
                Err(why) => self.ahead.push_back(Err(why)),
            }
        }
    }

    /// The next batch after those on the device, if workers have finished it and the device has
    /// memory.
    fn submit_next(&mut self, run: &mut ImageRun) -> Result<Option<Batch>> {
        let batches_before = 1 + self.ahead.len();
        if self.device.decodes() {
            self.open_batches(run, batches_before)?;
            let decoded = self.poll_decoded(run, Duration::ZERO)?;
            if decoded.is_none() {
                let batches_before = batches_before + self.decoding.len();
                self.pool.refill(&|n| run.place_ahead(n + batches_before));
            }
            return Ok(decoded);
        }
        let upcoming = |n| run.place_ahead(n + batches_before);
        if !self.device.has_room_now()? {
            self.pool.refill(&upcoming);
            return Ok(None);
        }
        match self.pool.next_finished(&upcoming)? {
            Some(filled) => self.submit(run, filled).map(Some),
            None => Ok(None),
        }
    }

    fn submit(&mut self, run: &mut ImageRun, filled: FilledBatch) -> Result<Batch> {
        let batch = run.make_batch(filled)?;
        // Otherwise the batch would be lost and the next call would return the one after it.
        let put = self.device.submit(batch, &run.program);
        put.map_err(|why| self.pool.end(why))
    }

    /// Drops the batches that are ahead, and cancels work that no worker has started.
    pub(crate) fn cancel(&mut self) {
        self.ahead.clear();
        self.device
            .cancel(self.opened.drain(..), self.decoding.drain(..).count());
        self.pool.cancel();
    }
}
