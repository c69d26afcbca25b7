//! [`Loader`], and [`Epoch`], the iterator over its batches.
//!
//! In the consumer.

use std::iter::FusedIterator;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::data::annotations::AnnotationReport;
use crate::data::index::{Index, ScanReport};
use crate::data::objects::ObjectForm;
use crate::device::DeviceMemory;
use crate::error::{Error, Result};
use crate::jobs::images::batch::Batch;
use crate::jobs::images::device_pool::DevicePool;
use crate::jobs::images::replay::DeviceReplay;
use crate::jobs::images::run::ImageRun;
use crate::jobs::stages::StageTimes;
use crate::loader::jpeg_decoding::DecodeChoice;
use crate::loader::report::LoaderReport;
use crate::order::{
    EpochMark, EpochPlan, NO_SAMPLE, Position, Sampler, SamplerTable, State, order_hash,
};
use crate::pool::row_filler::RowFiller;
use crate::remote::fetch::fetcher::Fetcher;

/// Streams batches of images that worker processes fill.
///
/// Dropping it ends coordinator and workers without waiting for a running decode. Batches that are
/// still alive stay readable.
#[derive(Debug)]
pub struct Loader {
    pub(super) maker: BatchMaker,
    pub(super) run: ImageRun,
    /// Downloads shards of a remote data set.
    pub(super) fetcher: Option<Fetcher>,
    pub(super) jpegs: DecodeChoice,
    /// The epoch of the current state was abandoned before its end.
    pub(super) epoch_abandoned: bool,
    /// Epoch and fingerprint of each order of [`Loader::set_order`] that there is room for.
    pub(super) order_hashes: Vec<(u64, String)>,
    /// When the last batch was returned.
    pub(super) handed_over: Option<Instant>,
    /// Time between returning a batch and the call for the next.
    pub(super) consumer: Duration,
}

/// The producer of batches.
#[derive(Debug)]
pub(super) enum BatchMaker {
    Host(RowFiller),
    Device(Box<DevicePool>),
}

/// The batches of one epoch, from the loader's position to the end of the epoch.
///
/// If it is dropped early, work that no worker has started is cancelled. [`Loader::state`] then
/// points after the last batch that was returned, so a resume continues there. The next
/// [`Loader::epoch`] is the next epoch.
#[derive(Debug)]
#[must_use = "an epoch gives no batch before it is iterated"]
pub struct Epoch<'a> {
    loader: &'a mut Loader,
    epoch: u64,
    /// The end of the epoch, or an error: no further batch follows.
    has_ended: bool,
    /// At least one batch was returned.
    has_started: bool,
}

impl Loader {
    /// The batches of the current epoch, from the loader's position on.
    pub fn epoch(&mut self) -> Epoch<'_> {
        let epoch = self.begin_epoch();
        Epoch {
            loader: self,
            epoch,
            has_ended: false,
            has_started: false,
        }
    }

    /// Begins an epoch without borrowing the loader. For a caller that cannot keep an [`Epoch`] and
    /// calls [`Loader::next_batch_within`] for each batch. Returns the epoch's number: the current
    /// one, or the next if the current one was [abandoned](Loader::abandon_epoch). The epoch has
    /// ended when [`Loader::state`] has another number.
    pub fn begin_epoch(&mut self) -> u64 {
        if std::mem::take(&mut self.epoch_abandoned) {
            let next = self.run.state.epoch.saturating_add(1);
            self.run.state.go_to(EpochMark::new(next, 0));
        }
        self.run.state.epoch
    }

    /// Moves to the first batch of `epoch`. With a number above 2^62 the next call for a batch is
    /// an error.
    pub fn set_epoch(&mut self, epoch: u64) {
        self.seek(EpochMark::new(epoch, 0));
    }

    /// In an order: a row without a sample.
    pub const NO_SAMPLE: u64 = NO_SAMPLE;

    /// Fingerprint of an order of ids, as in [`State::sampler_hash`].
    pub fn order_hash(ids: &[u64]) -> String {
        order_hash(ids)
    }

    /// Sets the order of `epoch`, for a loader of [`Sampler::Given`]: the ids of the samples in the
    /// rows of this rank. [`Loader::NO_SAMPLE`] in the last rows of a batch makes that batch
    /// smaller, if [`EpochTail::Short`](crate::EpochTail::Short) ends epochs; otherwise these rows
    /// are padding. Work on batches with a former order is cancelled. Call it before the first batch
    /// of each epoch. There is room for two orders: that of `epoch` replaces those of `epoch - 2`,
    /// `epoch + 2` and so on.
    ///
    /// # Errors
    /// Another sampler; another number of ids than the sampler's; an id that no sample has; a
    /// forked copy of the process that built the loader.
    pub fn set_order(&mut self, epoch: u64, ids: &[u64]) -> Result<()> {
        check_epoch("set_order", epoch)?;
        let plan = self.run.plan.clone();
        let Some(orders) = plan.table().and_then(SamplerTable::given_orders) else {
            return Err(Error::option(
                "sampler",
                format!(
                    "the sampler {} makes the order itself: use Sampler::Given to set it",
                    plan.options().sampler
                ),
            ));
        };
        orders.check_owner()?;
        plan.check_given_order(ids)?;
        self.cancel();
        orders.write(epoch, ids, self.run.index.len())?;
        self.order_hashes
            .retain(|(of, _)| orders.has(*of) && *of != epoch);
        self.order_hashes.push((epoch, order_hash(ids)));
        Ok(())
    }

    /// Continues at the position of `state`, like a loader built with it
    /// ([`LoaderBuilder::resume`](crate::LoaderBuilder::resume)). Ranks and batch size may differ
    /// from the state's: each sample after the position comes once. If those samples fill no batch
    /// and short batches are dropped, the loader continues with the next epoch.
    ///
    /// # Errors
    /// A state of another data set, recipe, order or numeric profile, since the stream would
    /// differ. Another batch size under a sampler that draws whole batches. A position after the
    /// last sample of its epoch, which no loader returns.
    pub fn resume(&mut self, state: &State) -> Result<()> {
        state.check_resumable(&self.with_order_hash(self.run.state.clone(), state.epoch))?;
        self.seek(resume_mark(state, &self.run.plan)?);
        Ok(())
    }

    /// Whether [`Loader::resume`] would accept a state, once the order of its epoch is set. Changes
    /// nothing.
    ///
    /// # Errors
    /// As [`Loader::resume`], except for another order of [`Sampler::Given`].
    pub fn check_resumable(&self, state: &State) -> Result<()> {
        let mut now = self.run.state.clone();
        if matches!(now.plan.sampler, Sampler::Given { .. }) {
            now.sampler_hash.clone_from(&state.sampler_hash);
        }
        state.check_resumable(&now)?;
        resume_mark(state, &self.run.plan).map(drop)
    }

    fn seek(&mut self, at: EpochMark) {
        self.epoch_abandoned = false;
        if self.run.state.mark() != at {
            self.cancel();
            self.run.state.go_to(at);
        }
    }

    /// Cancels all work under way.
    fn cancel(&mut self) {
        match &mut self.maker {
            BatchMaker::Host(filler) => filler.cancel(),
            BatchMaker::Device(device) => device.cancel(),
        }
        if let Some(feed) = &self.run.feed {
            feed.cancel();
            self.run.ready_batches = Some(0);
        }
    }

    /// The position of the run: after the last batch that was returned.
    pub fn state(&self) -> State {
        let state = self.run.state.clone();
        let epoch = state.epoch;
        self.with_order_hash(state, epoch)
    }

    /// `state` with the fingerprint of the order that was given for `epoch`, if there is one.
    fn with_order_hash(&self, mut state: State, epoch: u64) -> State {
        let of_epoch = self.order_hashes.iter().find(|(of, _)| *of == epoch);
        if let Some((_, hash)) = of_epoch.or(self.order_hashes.last()) {
            state.sampler_hash = Some(hash.clone());
        }
        state
    }

    /// Epoch and batch number of the next batch: the position of [`Loader::state`]. The number is
    /// that of [`Batch::number`].
    pub fn position(&self) -> Position {
        let at = self.run.state.mark();
        Position::new(at.epoch, self.run.plan.number_at(at))
    }

    /// Batches that remain in the current epoch, on this rank. An upper bound with `multi_scale`,
    /// and if the epoch began with other ranks or another batch size.
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

    /// What the objects of all images have in common: categories, keypoints. None without objects.
    pub fn object_form(&self) -> Option<&ObjectForm> {
        let objects = self.run.packing.objects();
        objects.map(|objects| objects.table().form())
    }

    /// What the files of annotations had, and what was wrong with them. None without such files.
    pub fn annotation_report(&self) -> Option<&AnnotationReport> {
        self.run.annotations.as_ref()
    }

    /// Which files the scan of the data set left out, and why. None for a saved index.
    pub fn scan_report(&self) -> Option<&ScanReport> {
        self.run.scan.as_ref()
    }

    /// The order and the batches of every epoch.
    pub fn plan(&self) -> &EpochPlan {
        &self.run.plan
    }

    /// Batches per epoch, on this rank.
    pub fn batches_per_epoch(&self) -> u64 {
        self.run.plan.batches()
    }

    /// Time that [`LoaderBuilder::build`](crate::LoaderBuilder::build) took.
    pub fn startup(&self) -> Duration {
        self.run.startup
    }

    /// Counters and times so far.
    ///
    /// # Errors
    /// The coordinator does not answer.
    pub fn report(&self) -> Result<LoaderReport> {
        let (pool, device) = match &self.maker {
            BatchMaker::Host(filler) => (filler.report()?, None),
            BatchMaker::Device(device) => (device.report()?, Some(device.device.times())),
        };
        Ok(LoaderReport {
            times: StageTimes::of(&pool),
            processes: pool.processes,
            resized_by_workers: pool.counted,
            truncated_rows: pool.truncated,
            decoded_images: pool.decoded,
            first_row_ms: pool.first_row_ms,
            consumer_wait_s: pool.consumer_wait_s,
            mix_s: self.run.mixing_time.as_secs_f64(),
            consumer_s: self.consumer.as_secs_f64(),
            device,
            fetch: self.fetcher.as_ref().map(Fetcher::report),
        })
    }

    /// Device memory of the run. None without a device.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        match &self.maker {
            BatchMaker::Host(_) => Ok(None),
            BatchMaker::Device(device) => device.device.memory().map(Some),
        }
    }

    /// Which decoder decodes JPEGs, and why.
    pub fn jpegs(&self) -> &DecodeChoice {
        &self.jpegs
    }

    /// Measures the device stage alone. Fills each slot of the ring once, and delivers each to the
    /// device `rounds` times. The batches are not returned, and the position does not change.
    ///
    /// # Errors
    /// No device; less than one batch left; all errors of [`Epoch::next`].
    pub fn replay(&mut self, rounds: u32) -> Result<DeviceReplay> {
        if self.fetcher.is_some() || self.run.feed.is_some() {
            return Err(Error::config(
                "a replay needs a data set in local files: use a copy on this machine",
            ));
        }
        match &mut self.maker {
            BatchMaker::Device(device) => device.replay(&mut self.run, rounds),
            BatchMaker::Host(_) => Err(Error::config(
                "a replay needs a device: choose one with `device`",
            )),
        }
    }

    /// Number of batches that may exist at one time: ring slots, or batches on the device. A caller
    /// that holds one fewer still receives the next. None if each batch has memory of its own.
    pub fn depth(&self) -> Option<u32> {
        match &self.maker {
            BatchMaker::Host(filler) => filler.depth(),
            BatchMaker::Device(device) => Some(device.device.outputs()),
        }
    }

    /// Cancels the rest of this epoch. The next call of [`Loader::begin_epoch`] begins the next
    /// epoch. [`Loader::state`] stays after the last batch that was returned.
    pub fn abandon_epoch(&mut self) {
        self.cancel();
        self.epoch_abandoned = true;
    }

    /// The next batch in order, of whichever epoch. None if workers have not finished it within
    /// `limit`. Without workers the limit has no effect.
    ///
    /// # Errors
    /// As [`Epoch::next`].
    pub fn next_batch_within(&mut self, limit: Duration) -> Result<Option<Batch>> {
        if let Some(at) = self.handed_over.take() {
            self.consumer += at.elapsed();
        }
        check_epoch("set_epoch", self.run.state.epoch)?;
        self.check_order()?;
        let began = Instant::now();
        if !self.shards_are_there(limit)? || !self.items_are_there(limit)? {
            return Ok(None);
        }
        let limit = limit.saturating_sub(began.elapsed());
        let run = &mut self.run;
        let next = match &mut self.maker {
            BatchMaker::Host(filler) => filler
                .next_within(&|n| run.place_ahead(n), limit)
                .and_then(|filled| filled.map(|filled| run.make_batch(filled)).transpose()),
            BatchMaker::Device(device) => device.next_within(run, limit),
        };
        match &next {
            Ok(None) => {}
            Ok(Some(_)) => {
                run.advance();
                if let Some(feed) = &run.feed {
                    feed.release();
                }
                self.handed_over = Some(Instant::now());
            }
            // The state stays before this batch, so that the caller can repair the file and
            // continue.
            Err(why) if why.is_sample() => self.cancel(),
            Err(_) => {}
        }
        next
    }

    /// Rejects an epoch whose order the caller did not give.
    fn check_order(&self) -> Result<()> {
        let at = self.run.plan.skip_epoch_end(self.run.state.mark());
        if self.run.plan.has_order(at.epoch) {
            return Ok(());
        }
        Err(Error::option(
            "sampler",
            format!(
                "epoch {} has no order: call set_order before its first batch",
                at.epoch
            ),
        ))
    }

    /// Waits up to `limit` for the samples of the next batch to be in memory. Requests those of later
    /// batches.
    fn items_are_there(&mut self, limit: Duration) -> Result<bool> {
        let run = &mut self.run;
        let Some(feed) = &run.feed else {
            return Ok(true);
        };
        let wanted = run.marks_ahead(most_under_way(&self.maker) as usize);
        let there = feed.ready(&wanted, &|at| run.samples_of(at), limit)?;
        run.ready_batches = Some(there.unwrap_or(0));
        Ok(there.is_some())
    }

    /// Waits up to `limit` for the shards of the next batch to be on this machine. They stay until
    /// the batch is returned. So do the shards of later batches that are already here.
    fn shards_are_there(&mut self, limit: Duration) -> Result<bool> {
        let Some(fetcher) = &mut self.fetcher else {
            return Ok(true);
        };
        let most = most_under_way(&self.maker);
        let run = &mut self.run;
        let at = run.state.mark();
        let there = fetcher.ready(&run.index, &run.plan, at, most as usize, limit)?;
        run.ready_batches = Some(there.unwrap_or(0));
        Ok(there.is_some())
    }
}

/// Batches that may be under way at one time, including the next.
fn most_under_way(maker: &BatchMaker) -> u32 {
    match maker {
        BatchMaker::Host(filler) => filler.depth().unwrap_or(1),
        BatchMaker::Device(device) => device.device.outputs() + device.pool.depth(),
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if let Some(feed) = &self.run.feed {
            feed.close();
        }
    }
}

/// The largest epoch number. It leaves room for counting on without overflow.
const LAST_EPOCH: u64 = 1 << 62;

/// Rejects an epoch above [`LAST_EPOCH`].
fn check_epoch(option: &'static str, epoch: u64) -> Result<()> {
    if epoch <= LAST_EPOCH {
        return Ok(());
    }
    Err(Error::option(
        option,
        format!("epoch {epoch} of `{option}` is too large: use at most {LAST_EPOCH}"),
    ))
}

/// Rejects a start after the last batch, or in an epoch above [`LAST_EPOCH`].
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

/// The position where a run continues from a compatible state.
///
/// # Errors
/// A state after the last sample, or in an epoch above [`LAST_EPOCH`].
pub(super) fn resume_mark(state: &State, plan: &EpochPlan) -> Result<EpochMark> {
    check_epoch("resume", state.epoch)?;
    if !plan.is_within(state.samples) {
        return Err(Error::option(
            "resume",
            format!(
                "`resume` is after {} samples of epoch {}, and an epoch has {}: use a state \
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

/// The loader's own methods, while its epoch is borrowed.
impl Deref for Epoch<'_> {
    type Target = Loader;

    fn deref(&self) -> &Loader {
        self.loader
    }
}

impl Iterator for Epoch<'_> {
    type Item = Result<Batch>;

    /// The next batch in order. After an error the epoch ends, except after
    /// [`SlotsHeld`](crate::Error::SlotsHeld): drop batches and call again. The next
    /// [`Loader::epoch`] continues at the same position, or returns the error of a lost pool again.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
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
                self.has_started = true;
                self.has_ended = self.loader.run.state.epoch != self.epoch;
            }
            Err(e) => self.has_ended = !e.is_transient(),
        }
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        if self.has_ended {
            return (0, Some(0));
        }
        // An error may end the epoch earlier.
        (0, usize::try_from(self.loader.batches_left()).ok())
    }
}

impl FusedIterator for Epoch<'_> {}

impl Drop for Epoch<'_> {
    fn drop(&mut self) {
        // Nothing to abandon after an error, or before the first batch: the next epoch begins at
        // the same position.
        if !self.has_ended && self.has_started {
            self.loader.abandon_epoch();
        }
    }
}
