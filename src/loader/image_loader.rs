//! [`Loader`]: what a trainer holds; [`Epoch`]: the iterator over its batches.
//!
//! In the consumer.

use std::iter::FusedIterator;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::data::index::{Index, ScanReport};
use crate::device::DeviceMemory;
use crate::error::{Error, Result};
use crate::jobs::images::batch::Batch;
use crate::jobs::images::device_pool::DevicePool;
use crate::jobs::images::replay::DeviceReplay;
use crate::jobs::images::run::ImageRun;
use crate::jobs::stages::StageTimes;
use crate::loader::jpeg_decoding::DecodeChoice;
use crate::loader::report::LoaderReport;
use crate::order::{EpochMark, EpochPlan, Position, State};
use crate::pool::row_filler::RowFiller;
use crate::remote::fetch::fetcher::Fetcher;

/// Streams batches of images out of worker processes.
///
/// Dropping it ends coordinator and workers, without waiting for a decode;
/// batches that are still alive stay readable.
#[derive(Debug)]
pub struct Loader {
    pub(super) maker: BatchMaker,
    pub(super) run: ImageRun,
    /// What gets the shards, where they lie elsewhere.
    pub(super) fetcher: Option<Fetcher>,
    pub(super) jpegs: DecodeChoice,
    /// The epoch at which the state stands was broken off.
    pub(super) epoch_abandoned: bool,
    /// When the last batch was handed over.
    pub(super) handed_over: Option<Instant>,
    /// Time between handing a batch over and being asked for the next.
    pub(super) consumer: Duration,
}

/// Makes the batches.
#[derive(Debug)]
pub(super) enum BatchMaker {
    Host(RowFiller),
    Device(Box<DevicePool>),
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
    /// The batches of the epoch at which the loader stands.
    pub fn epoch(&mut self) -> Epoch<'_> {
        let epoch = self.begin_epoch();
        Epoch {
            loader: self,
            epoch,
            over: false,
            begun: false,
        }
    }

    /// Begins an epoch for who cannot hold an [`Epoch`], and asks for each batch by
    /// [`Loader::next_batch_within`]: the one at which the loader stands, or the next
    /// where that was [broken off](Loader::break_off). Gives its number; the epoch is over
    /// when [`Loader::state`] has another.
    pub fn begin_epoch(&mut self) -> u64 {
        if std::mem::take(&mut self.epoch_abandoned) {
            let next = self.run.state.epoch.saturating_add(1);
            self.run.state.go_to(EpochMark::new(next, 0));
        }
        self.run.state.epoch
    }

    /// Goes to the first batch of `epoch`. One above 2^62 gives no batch: the next call for
    /// one is an error.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.seek(EpochMark::new(epoch, 0));
    }

    /// Goes on where `state` stands, as a loader does that was built with it
    /// ([`LoaderBuilder::resume`](crate::LoaderBuilder::resume)). Ranks and batch size may be
    /// others than the state's: the samples behind it come once each. Where they fill no batch
    /// of this loader and short ones are dropped, it goes on with the next epoch.
    ///
    /// # Errors
    /// A state of another data set, recipe, order or numeric profile: the stream would
    /// be another. Another batch size under a sampler that draws whole batches. One behind the
    /// last sample of its epoch, which no loader gives.
    pub fn resume(&mut self, state: &State) -> Result<()> {
        state.check_resumable(&self.run.state)?;
        self.seek(resume_mark(state, &self.run.plan)?);
        Ok(())
    }

    fn seek(&mut self, at: EpochMark) {
        self.epoch_abandoned = false;
        if self.run.state.mark() != at {
            self.cancel();
            self.run.state.go_to(at);
        }
    }

    /// Nothing that is under way will be asked for.
    fn cancel(&mut self) {
        match &mut self.maker {
            BatchMaker::Host(engine) => engine.cancel(),
            BatchMaker::Device(device) => device.cancel(),
        }
    }

    /// Where the run stands: after the last batch that was handed over.
    pub fn state(&self) -> State {
        self.run.state.clone()
    }

    /// Epoch and batch that come next, where [`Loader::state`] stands. The batch's number is
    /// that of [`Batch::number`].
    pub fn position(&self) -> Position {
        let at = self.run.state.mark();
        Position::new(at.epoch, self.run.plan.number_at(at))
    }

    /// Batches that are left of the epoch at which the loader stands, on this rank. With
    /// `multi_scale`, and where the epoch began with other ranks or another batch size, at most
    /// so many.
    pub fn batches_left(&self) -> u64 {
        self.run.plan.batches_left(self.run.state.mark())
    }

    pub fn index(&self) -> &Index {
        &self.run.index
    }

    /// The same index, for a caller that keeps it after the loader is dropped.
    pub fn shared_index(&self) -> Arc<Index> {
        self.run.index.clone()
    }

    /// What the scan of the data set left out, and why. None for a saved index.
    pub fn scan_report(&self) -> Option<&ScanReport> {
        self.run.scan.as_ref()
    }

    /// Order and batches of every epoch.
    pub fn plan(&self) -> &EpochPlan {
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
        let (pool, device) = match &self.maker {
            BatchMaker::Host(engine) => (engine.report()?, None),
            BatchMaker::Device(device) => (device.report()?, Some(device.device.times())),
        };
        Ok(LoaderReport {
            times: StageTimes::of(&pool),
            processes: pool.processes,
            resized_by_workers: pool.counted,
            truncated_rows: pool.truncated,
            first_row_ms: pool.first_row_ms,
            consumer_wait_s: pool.consumer_wait_s,
            mix_s: self.run.mixing_time.as_secs_f64(),
            consumer_s: self.consumer.as_secs_f64(),
            device,
            fetch: self.fetcher.as_ref().map(Fetcher::report),
        })
    }

    /// What the run has of its device's memory; none without a device.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        match &self.maker {
            BatchMaker::Host(_) => Ok(None),
            BatchMaker::Device(device) => device.device.memory().map(Some),
        }
    }

    /// Who decodes JPEGs, and why.
    pub fn jpegs(&self) -> &DecodeChoice {
        &self.jpegs
    }

    /// Measures the device stage alone: fills as many slots as the ring has, once,
    /// and puts them on the device `rounds` times each. Their batches are not handed
    /// over; the run stands where it stood.
    ///
    /// # Errors
    /// Without a device, or with fewer batches left than one; what [`Epoch::next`] may
    /// meet.
    pub fn replay(&mut self, rounds: u32) -> Result<DeviceReplay> {
        if self.fetcher.is_some() {
            return Err(Error::config(
                "a replay needs batches that are there: use a copy of the data set on this machine",
            ));
        }
        match &mut self.maker {
            BatchMaker::Device(device) => device.replay(&mut self.run, rounds),
            BatchMaker::Host(_) => Err(Error::config(
                "a replay needs a device: choose one with `device`",
            )),
        }
    }

    /// Batches that a caller may hold while the next one still comes, and one: slots of
    /// the ring, or batches on the device. None where each batch has memory of its own.
    pub fn depth(&self) -> Option<u32> {
        match &self.maker {
            BatchMaker::Host(engine) => engine.depth(),
            BatchMaker::Device(device) => Some(device.device.outputs()),
        }
    }

    /// Cancels what workers have not begun of this epoch; the next one to
    /// [begin](Loader::begin_epoch) is the next. [`Loader::state`] stays behind the last
    /// batch that was handed over.
    pub fn abandon_epoch(&mut self) {
        self.cancel();
        self.epoch_abandoned = true;
    }

    /// The next batch in order, whichever epoch it is of; none when workers have not
    /// finished it within `limit`. In this process a batch takes the time that it takes.
    ///
    /// # Errors
    /// As [`Epoch::next`].
    pub fn next_batch_within(&mut self, limit: Duration) -> Result<Option<Batch>> {
        if let Some(at) = self.handed_over.take() {
            self.consumer += at.elapsed();
        }
        check_epoch("set_epoch", self.run.state.epoch)?;
        let began = Instant::now();
        if !self.shards_are_there(limit)? {
            return Ok(None);
        }
        let limit = limit.saturating_sub(began.elapsed());
        let run = &mut self.run;
        let next = match &mut self.maker {
            BatchMaker::Host(engine) => engine
                .next_within(&|n| run.place_ahead(n), limit)
                .and_then(|filled| filled.map(|filled| run.make_batch(filled)).transpose()),
            BatchMaker::Device(device) => device.next_within(run, limit),
        };
        match &next {
            Ok(None) => {}
            Ok(Some(_)) => {
                run.advance();
                self.handed_over = Some(Instant::now());
            }
            // The state stays before the batch: mend the file and go on.
            Err(why) if why.is_sample() => self.cancel(),
            Err(_) => {}
        }
        next
    }

    /// Whether the shards of the next batch are on this machine, within `limit`. They stay until
    /// the batch is handed over, and so do those of batches behind it that are there.
    fn shards_are_there(&mut self, limit: Duration) -> Result<bool> {
        let Some(fetcher) = &mut self.fetcher else {
            return Ok(true);
        };
        // Batches that may be under way at a time, the one that is asked for among them.
        let most = match &self.maker {
            BatchMaker::Host(engine) => engine.depth().unwrap_or(1),
            BatchMaker::Device(device) => device.device.outputs() + device.pool.depth(),
        };
        let run = &mut self.run;
        let at = run.state.mark();
        let there = fetcher.ready(&run.index, &run.plan, at, most as usize, limit)?;
        run.ready_batches = Some(there.unwrap_or(0));
        Ok(there.is_some())
    }
}

/// Epochs that a run may have. So nothing that counts on from one meets the last number.
const LAST_EPOCH: u64 = 1 << 62;

/// Refuses an epoch that no run meets.
fn check_epoch(option: &'static str, epoch: u64) -> Result<()> {
    if epoch <= LAST_EPOCH {
        return Ok(());
    }
    Err(Error::option(
        option,
        format!("epoch {epoch} of `{option}` is too far: use at most {LAST_EPOCH}"),
    ))
}

/// Refuses a start behind the last batch, or in an epoch that no run meets.
pub(super) fn check_start(at: Position, plan: &EpochPlan) -> Result<()> {
    check_epoch("start", at.epoch)?;
    if at.batch < plan.batches() || at.batch == 0 {
        return Ok(());
    }
    Err(Error::option(
        "start",
        format!(
            "`start` is batch {} of epoch {}, and an epoch has {} batches: use a lower number",
            at.batch,
            at.epoch,
            plan.batches()
        ),
    ))
}

/// Where a run goes on from a state whose run it may go on with.
///
/// # Errors
/// A state behind the last sample, or in an epoch that no run meets.
pub(super) fn resume_mark(state: &State, plan: &EpochPlan) -> Result<EpochMark> {
    check_epoch("resume", state.epoch)?;
    if !plan.is_within(state.samples) {
        return Err(Error::option(
            "resume",
            format!(
                "`resume` stands behind {} samples of epoch {}, and an epoch has {}: use a state \
                 that a loader gave",
                state.samples,
                state.epoch,
                plan.samples_of_an_epoch()
            ),
        ));
    }
    Ok(plan.skip_epoch_end(state.mark()))
}

impl Epoch<'_> {
    /// Number of the epoch.
    pub fn number(&self) -> u64 {
        self.epoch
    }
}

/// What a loader tells while its epoch runs.
impl Deref for Epoch<'_> {
    type Target = Loader;

    fn deref(&self) -> &Loader {
        self.loader
    }
}

impl Iterator for Epoch<'_> {
    type Item = Result<Batch>;

    /// The next batch in order. After an error there is no further one (the
    /// next [`Loader::epoch`] goes on where this one stands, or gives the error
    /// of a lost pool again), but for [`SlotsHeld`](crate::Error::SlotsHeld): drop batches and go
    /// on.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let result = loop {
            let next = self.loader.next_batch_within(Duration::MAX);
            if let Some(result) = next.transpose() {
                break result;
            }
        };
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
        // An error may end it earlier.
        (0, usize::try_from(self.loader.batches_left()).ok())
    }
}

impl FusedIterator for Epoch<'_> {}

impl Drop for Epoch<'_> {
    fn drop(&mut self) {
        // After an error that ended it, and before its first batch, there is
        // nothing to break off: the next epoch begins where this one stands.
        if !self.over && self.begun {
            self.loader.abandon_epoch();
        }
    }
}
