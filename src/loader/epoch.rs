//! The iterator over an epoch, and the place where the run stands.
//!
//! In the consumer.

use std::iter::FusedIterator;
use std::time::{Duration, Instant};

use nix::unistd::getpid;

use super::builder::{LoaderBuilder, OnError};
use super::mixed::MixedBatches;
use super::on_device::OnDevice;
use super::pool::{Place, Pool};
use super::report::LoaderReport;
use super::source::Source;
use crate::batch::{Batch, Labels, RowFault, RowsExtent, Storage};
use crate::device::DeviceMemory;
use crate::error::{Error, Result, SampleFault};
use crate::index::{Index, Label, ScanReport};
use crate::packing::{PackedBatch, Packing, RowDescriptor};
use crate::plan::{Plan, RowPlan, RowStatus, State};
use crate::recipe::{RowExtent, SampleProgram};
use crate::ring::slots::HeldSlot;

/// What makes the rows.
#[derive(Debug)]
pub(super) enum Engine {
    Pool(Box<Pool>),
    #[cfg(feature = "codecs")]
    InProcess(Box<super::in_process::InProcess>),
}

/// What the run is, apart from who makes the rows.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) index: Index,
    pub(super) scan: Option<ScanReport>,
    pub(super) plan: Plan,
    pub(super) program: SampleProgram,
    pub(super) packing: Packing,
    pub(super) packed: PackedBatch,
    pub(super) state: State,
    pub(super) epochs: Option<u64>,
    pub(super) on_error: OnError,
    /// Samples that are tried in the place of one that gives no pixels.
    pub(super) tries: u32,
    pub(super) startup: Duration,
    /// What is done to whole batches.
    pub(super) mixed: Option<MixedBatches>,
    /// Time that it took so far.
    pub(super) mixing: Duration,
}

/// A row whose own sample gave no pixels.
#[derive(Debug)]
pub(super) struct BadRow {
    pub(super) row: u32,
    /// Why its own sample gave none.
    pub(super) fault: SampleFault,
    /// The attempt that did; none = the row is masked.
    pub(super) attempt: Option<u32>,
}

/// Streams batches of images out of worker processes.
///
/// Dropping it ends coordinator and workers, without waiting for a decode;
/// batches that are still alive stay readable.
#[derive(Debug)]
pub struct Loader {
    // First: what the device reads of the ring is waited for.
    on_device: Option<(OnDevice, Duration)>,
    engine: Engine,
    run: Run,
    /// The epoch at which the state stands was broken off.
    broken_off: bool,
}

/// The batches of one epoch, from where the loader stands to the epoch's end.
///
/// Dropped early, it cancels what workers have not begun. [`Loader::state`] then
/// stands behind the last batch that was handed over, for a resume; the next
/// [`Loader::epoch`] is the next epoch.
#[derive(Debug)]
pub struct Epoch<'a> {
    loader: &'a mut Loader,
    epoch: u64,
    /// No further batch: the end, or an error.
    over: bool,
    /// A batch was handed over.
    begun: bool,
}

impl Loader {
    /// Starts the description of a loader over `source`.
    pub fn builder(source: impl Into<Source>) -> LoaderBuilder {
        LoaderBuilder::new(source.into())
    }

    /// With a device, how long it waits for a batch to be dropped.
    pub(super) fn new(engine: Engine, on_device: Option<(OnDevice, Duration)>, run: Run) -> Self {
        Self {
            on_device,
            engine,
            run,
            broken_off: false,
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
            self.cancel();
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

    /// Time that [`LoaderBuilder::build`] took.
    pub fn startup(&self) -> Duration {
        self.run.startup
    }

    /// What happened so far.
    ///
    /// # Errors
    /// When the coordinator does not answer.
    pub fn report(&self) -> Result<LoaderReport> {
        let mut report = match &self.engine {
            Engine::Pool(pool) => pool.report()?,
            #[cfg(feature = "codecs")]
            Engine::InProcess(p) => p.report(),
        };
        report.mix_s = self.run.mixing.as_secs_f64();
        Ok(report)
    }

    /// What the run has of its device's memory; none without a device.
    ///
    /// # Errors
    /// When the device does not answer.
    pub fn device_memory(&self) -> Result<Option<DeviceMemory>> {
        self.on_device
            .as_ref()
            .map(|(on, _)| on.memory())
            .transpose()
    }

    fn break_off(&mut self) {
        self.cancel();
        self.broken_off = true;
    }

    fn cancel(&mut self) {
        match &mut self.engine {
            Engine::Pool(pool) => pool.cancel(),
            #[cfg(feature = "codecs")]
            Engine::InProcess(_) => {}
        }
    }

    fn next_batch(&mut self) -> Result<Batch> {
        if let Some((on, limit)) = &mut self.on_device {
            on.make_room(*limit)?;
        }
        let (place, storage, bad) = match &mut self.engine {
            Engine::Pool(pool) => {
                let run = &self.run;
                let (place, held) = pool.next(&|n| run.coming(n))?;
                let bad = run.bad_rows(&held);
                (place, Storage::Slot(held), bad)
            }
            #[cfg(feature = "codecs")]
            Engine::InProcess(p) => {
                let place = Place::of(&self.run.plan, self.run.state.epoch, self.run.state.batch);
                let (buffer, bad) = p.fill(&place);
                (place, Storage::Own(buffer), bad)
            }
        };
        let mut batch = self.run.batch(place, storage, bad);
        if self.run.on_error == OnError::Stop
            && let Some(first) = batch.faults.first()
        {
            let error = Error::Sample {
                id: first.id,
                path: first.path.clone(),
                fault: first.fault.clone(),
            };
            // The state stays before the batch: mend the file and go on.
            self.cancel();
            return Err(error);
        }
        self.run.mix(&mut batch)?;
        if let Some((on, _)) = &mut self.on_device {
            batch = match on.put(batch, &self.run.program) {
                Ok(batch) => batch,
                // The batch is lost, and the next one has been asked for.
                Err(why) => {
                    return Err(match &mut self.engine {
                        Engine::Pool(pool) => pool.end(why),
                        #[cfg(feature = "codecs")]
                        Engine::InProcess(_) => why,
                    });
                }
            };
        }
        self.run.advance();
        Ok(batch)
    }
}

impl Run {
    /// The place `n` batches behind the state, as far as the run is known: to
    /// the end of this epoch, or of the last when their number was given.
    fn coming(&self, n: usize) -> Option<Place> {
        let batches = self.plan.batches();
        let ahead = self.state.batch + n as u64;
        let epoch = self.state.epoch + ahead / batches;
        let known = epoch == self.state.epoch || self.epochs.is_some_and(|last| epoch < last);
        known.then(|| Place::of(&self.plan, epoch, ahead % batches))
    }

    fn advance(&mut self) {
        self.state.batch += 1;
        if self.state.batch >= self.plan.batches() {
            self.state.batch = 0;
            self.state.epoch += 1;
        }
    }

    /// Rows of a slot whose own sample gave no pixels. Attempts come out of
    /// shared memory: none beyond the last is believed.
    fn bad_rows(&self, held: &HeldSlot) -> Vec<BadRow> {
        let rows = 0..held.ticket().rows;
        rows.filter_map(|row| {
            let attempt = (!held.failed(row)).then(|| held.attempt(row).min(self.tries));
            (attempt != Some(0)).then(|| BadRow {
                row,
                fault: held.fault(row),
                attempt,
            })
        })
        .collect()
    }

    /// Puts what stands in each row in its place, masks the rows that hold no
    /// sample and describes the others.
    fn batch(&mut self, place: Place, mut storage: Storage, bad: Vec<BadRow>) -> Batch {
        let mut rows: Vec<_> = (0..place.rows)
            .map(|row| self.plan.row(place.epoch, place.batch, row))
            .collect();
        // Before bad rows are settled: that changes their status.
        let repeated = rows
            .iter()
            .map(|r| r.status == RowStatus::Repeated)
            .collect();
        let faults = bad
            .into_iter()
            .map(|bad| self.settle(&place, bad, &mut rows))
            .collect();
        let extent = self.lay_out(&place, &rows, &mut storage);
        Batch {
            storage,
            owner: getpid(),
            epoch: place.epoch,
            number: place.batch,
            extent,
            dtype: self.program.emission.dtype,
            layout: self.program.emission.layout,
            channels: self.program.emission.channels(),
            labels: self.labels(place.epoch, &rows),
            ids: rows.iter().map(|r| r.id).collect(),
            status: rows.iter().map(|r| r.status).collect(),
            repeated,
            faults,
        }
    }

    /// Mixes the rows of a batch, where the recipe says so.
    fn mix(&mut self, batch: &mut Batch) -> Result<()> {
        let Some(mixed) = &mut self.mixed else {
            return Ok(());
        };
        let began = Instant::now();
        mixed.mix(batch, &self.plan)?;
        self.mixing += began.elapsed();
        Ok(())
    }

    /// Zeroes masked rows and, where rows have their own sizes, writes the table
    /// in front of them.
    fn lay_out(&mut self, place: &Place, rows: &[RowPlan], storage: &mut Storage) -> RowsExtent {
        let packed = &mut self.packed;
        let at = (place.epoch, place.batch);
        let bytes = storage.bytes_mut();
        // A device makes rows of zeros itself.
        let rows_to_clear = match self.program.crops {
            Some(_) => &[],
            None => rows,
        };
        for (row, _) in (0..)
            .zip(rows_to_clear)
            .filter(|(_, r)| r.status.is_masked())
        {
            bytes[self.packing.place(packed, at, row)].fill(0);
        }
        match self.program.extent {
            RowExtent::Fixed { height, width } => {
                let size = self.plan.size(place.epoch, place.batch);
                let (height, width) = size.unwrap_or((height, width));
                RowsExtent::Equal {
                    rows: rows.len(),
                    height: height as usize,
                    width: width as usize,
                }
            }
            RowExtent::Own => {
                let described = self.packing.descriptors(packed, at, rows);
                let table = described.unwrap_or_default();
                let unused = self.plan.most_rows() as usize - table.len();
                let (head, rest) = bytes.split_at_mut(table.len() * RowDescriptor::BYTES);
                head.copy_from_slice(bytemuck::cast_slice(&table));
                rest[..unused * RowDescriptor::BYTES].fill(0);
                RowsExtent::Own {
                    table,
                    bytes: self.packing.batch_bytes(packed, at, place.rows),
                }
            }
        }
    }

    /// Puts what stands in a bad row in the place of what was planned.
    fn settle(&self, place: &Place, bad: BadRow, rows: &mut [RowPlan]) -> RowFault {
        let BadRow {
            row,
            mut fault,
            attempt,
        } = bad;
        let now = &mut rows[row as usize];
        let id = now.id;
        match attempt {
            Some(attempt) => *now = self.plan.attempt(place.epoch, place.batch, row, attempt),
            None => {
                now.status = RowStatus::Failed;
                let tried = (1..=self.tries)
                    .map(|attempt| self.plan.attempt(place.epoch, place.batch, row, attempt))
                    .filter(|stands| stands.status == RowStatus::Substituted)
                    .count();
                if tried > 0 {
                    let text = format!("; samples behind it that failed too: {tried}");
                    fault.reason.push_str(&text);
                }
            }
        }
        RowFault {
            row: row as usize,
            id,
            path: self.index.path(id),
            fault,
            substitute: attempt.map(|_| now.id),
        }
    }

    /// The labels of what stands in the rows: the data set's, or those that an
    /// operation drew for their positions.
    fn labels(&self, epoch: u64, rows: &[RowPlan]) -> Labels {
        let is_padding = |r: &RowPlan| r.status == RowStatus::Padding;
        if self.program.labelled_by().is_some() {
            let drawn = rows.iter().map(|r| {
                let label = self.program.label(&self.plan.random(epoch, r.position));
                label.filter(|_| !is_padding(r)).unwrap_or(-1)
            });
            return Labels::Classes(drawn.collect());
        }
        let width = self.index.label_width();
        match self.index.label(0) {
            Label::None => Labels::None,
            Label::Class(_) => Labels::Classes(
                rows.iter()
                    .map(|r| match self.index.label(r.id) {
                        Label::Class(class) if !is_padding(r) => class,
                        _ => -1,
                    })
                    .collect(),
            ),
            Label::Vector(_) => {
                let mut values = Vec::with_capacity(rows.len() * width);
                for r in rows {
                    match self.index.label(r.id) {
                        Label::Vector(v) if !is_padding(r) => values.extend(v.iter()),
                        _ => values.resize(values.len() + width, 0.0),
                    }
                }
                Labels::Vectors { width, values }
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
}

impl Iterator for Epoch<'_> {
    type Item = Result<Batch>;

    /// The next batch in order. After an error there is no further one (the
    /// next [`Loader::epoch`] goes on where this one stands, or gives the error
    /// of a lost pool again), but for [`Error::SlotsHeld`]: drop batches and go on.
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
