//! The iterator over an epoch, and the place where the run stands.
//!
//! In the consumer.

use std::iter::FusedIterator;
use std::time::{Duration, Instant};

use crate::data::index::{Index, ScanReport};
use crate::device::DeviceMemory;
use crate::error::Result;
use crate::jobs::images::batch::Batch;
use crate::jobs::images::engine::ImageEngine;
use crate::jobs::images::replay::Replay;
use crate::jobs::images::run::Run;
use crate::loader::report::LoaderReport;
use crate::plan::{Plan, State};

/// Streams batches of images out of worker processes.
///
/// Dropping it ends coordinator and workers, without waiting for a decode;
/// batches that are still alive stay readable.
#[derive(Debug)]
pub struct Loader {
    engine: ImageEngine,
    run: Run,
    /// The epoch at which the state stands was broken off.
    broken_off: bool,
    /// When the last batch was handed over.
    handed_over: Option<Instant>,
    /// Time between handing a batch over and being asked for the next.
    consumer: Duration,
}

/// The batches of one epoch, from where the loader stands to the epoch's end.
///
/// Dropped early, it cancels what workers have not begun. [`Loader::state`] then
/// stands behind the last batch that was handed over, for a resume; the next
/// [`Loader::epoch`] is the next epoch.
#[derive(Debug)]
#[must_use = "an epoch gives no batch before it is iterated"]
pub struct Epoch<'a> {
    loader: &'a mut Loader,
    epoch: u64,
    /// No further batch: the end, or an error.
    over: bool,
    /// A batch was handed over.
    begun: bool,
}

impl Loader {
    pub(super) fn new(engine: ImageEngine, run: Run) -> Self {
        Self {
            engine,
            run,
            broken_off: false,
            handed_over: None,
            consumer: Duration::ZERO,
        }
    }

    /// The batches of the epoch at which the loader stands.
    pub fn epoch(&mut self) -> Epoch<'_> {
        if std::mem::take(&mut self.broken_off) {
            self.run.state.epoch += 1;
            self.run.state.batch = 0;
        }
        let epoch = self.run.state.epoch;
        Epoch {
            loader: self,
            epoch,
            over: false,
            begun: false,
        }
    }

    /// Goes to the first batch of `epoch`.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.broken_off = false;
        if (self.run.state.epoch, self.run.state.batch) != (epoch, 0) {
            self.engine.cancel();
            self.run.state.epoch = epoch;
            self.run.state.batch = 0;
        }
    }

    /// Where the run stands: after the last batch that was handed over.
    pub fn state(&self) -> State {
        self.run.state.clone()
    }

    pub fn index(&self) -> &Index {
        &self.run.index
    }

    /// What the scan of the data set left out, and why. None for a saved index.
    pub fn scan_report(&self) -> Option<&ScanReport> {
        self.run.scan.as_ref()
    }

    /// Order and batches of every epoch.
    pub fn plan(&self) -> &Plan {
        &self.run.plan
    }

    /// Batches of an epoch, on this rank.
    pub fn batches_per_epoch(&self) -> u64 {
        self.run.plan.batches()
    }

    /// Time that [`LoaderBuilder::build`](crate::LoaderBuilder::build) took.
    pub fn startup(&self) -> Duration {
        self.run.startup
    }

    /// What happened so far.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn report(&self) -> Result<LoaderReport> {
        Ok(LoaderReport {
            mix_s: self.run.mixing.as_secs_f64(),
            consumer_s: self.consumer.as_secs_f64(),
            device: self.engine.device_times(),
            ..LoaderReport::of(self.engine.report()?)
        })
    }

    /// What the run has of its device's memory; none without a device.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        self.engine.device_memory()
    }

    /// Measures the device stage alone: fills as many slots as the ring has, once,
    /// and puts them on the device `rounds` times each. Their batches are not handed
    /// over; the run stands where it stood.
    ///
    /// # Errors
    /// Without a device, or with fewer batches left than one; what [`Epoch::next`] may
    /// meet.
    pub fn replay(&mut self, rounds: u32) -> Result<Replay> {
        self.engine.replay(&mut self.run, rounds)
    }

    fn break_off(&mut self) {
        self.engine.cancel();
        self.broken_off = true;
    }

    fn next_batch(&mut self) -> Result<Batch> {
        if let Some(at) = self.handed_over.take() {
            self.consumer += at.elapsed();
        }
        match self.engine.next(&mut self.run) {
            Ok(batch) => {
                self.run.advance();
                self.handed_over = Some(Instant::now());
                Ok(batch)
            }
            Err(why) => {
                // The state stays before the batch: mend the file and go on.
                if why.is_sample() {
                    self.engine.cancel();
                }
                Err(why)
            }
        }
    }
}

impl Epoch<'_> {
    /// Number of the epoch.
    pub fn number(&self) -> u64 {
        self.epoch
    }

    /// As [`Loader::state`], while the epoch runs.
    pub fn state(&self) -> State {
        self.loader.state()
    }

    /// As [`Loader::index`], while the epoch runs.
    pub fn index(&self) -> &Index {
        self.loader.index()
    }

    /// As [`Loader::report`], while the epoch runs.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn report(&self) -> Result<LoaderReport> {
        self.loader.report()
    }

    /// As [`Loader::device_memory`], while the epoch runs.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        self.loader.device_memory()
    }
}

impl Iterator for Epoch<'_> {
    type Item = Result<Batch>;

    /// The next batch in order. After an error there is no further one (the
    /// next [`Loader::epoch`] goes on where this one stands, or gives the error
    /// of a lost pool again), but for [`SlotsHeld`](crate::Error::SlotsHeld): drop batches and go on.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let result = self.loader.next_batch();
        match &result {
            Ok(_) => {
                self.begun = true;
                self.over = self.loader.run.state.epoch != self.epoch;
            }
            Err(e) => self.over = !e.is_transient(),
        }
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.over {
            return (0, Some(0));
        }
        let state = &self.loader.run.state;
        let left = self.loader.run.plan.batches().saturating_sub(state.batch);
        // An error may end it earlier.
        (0, usize::try_from(left).ok())
    }
}

impl FusedIterator for Epoch<'_> {}

impl Drop for Epoch<'_> {
    fn drop(&mut self) {
        // After an error that ended it, and before its first batch, there is
        // nothing to break off: the next epoch begins where this one stands.
        if !self.over && self.begun {
            self.loader.break_off();
        }
    }
}
