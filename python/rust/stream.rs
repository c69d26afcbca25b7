//! A loader in Python.

use std::path::PathBuf;

use featherload::index::Label;
use featherload::order::EpochMark;
use featherload::{Loader, Result, State};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::batch::{BatchForm, RawBatch};
use crate::feed::RawFeed;
use crate::items::RawItems;
use crate::json::json;
use crate::objects::RawObjects;
use crate::options::{self, ListedRaster, LoaderKeywords};
use crate::stream_state::{StreamState, StreamTexts, parse_state};
use crate::wait::{LOOK, in_thread, look};

const TEXTS: StreamTexts = StreamTexts {
    copied: "a loader cannot be used in a forked copy of the process that made it: make one \
             there, or start that process by spawn",
    closed: "the loader was closed: make a new one",
};

const ON_ERROR: &str = "give on_error='skip' to mask such samples, or on_error='substitute' to take \
                        the next ones instead";
/// If a method gives the bytes of samples. It cannot be asked for others.
const ON_ERROR_OF_METHODS: &str = "give on_error='skip' to mask such samples";

/// The batches of one loader, in order.
#[pyclass(frozen, weakref, module = "featherload._featherload")]
pub struct Stream {
    state: StreamState<Loader, RawBatch>,
    /// The operations on each image, as JSON.
    #[pyo3(get)]
    recipe: String,
    /// Notes about what the config left out.
    #[pyo3(get)]
    told: Vec<String>,
    form: BatchForm,
    /// The fix that the error of a failed sample names.
    advice: &'static str,
}

#[pymethods]
impl Stream {
    /// Builds the loader that `options` describe. Ctrl-C ends the wait; the building thread then
    /// ends by itself.
    /// `items` are the samples, if the options name no source. `has_one_channel`: images are grey,
    /// and have one channel. `feed`: gives the bytes of `items` while the run goes on. `rasters`,
    /// `objects`: those that Python lists.
    #[new]
    #[pyo3(signature = (options, items=None, *, has_one_channel=false, feed=None, rasters=vec![], objects=None))]
    fn new(
        py: Python<'_>,
        options: &str,
        items: Option<&RawItems>,
        has_one_channel: bool,
        feed: Option<&RawFeed>,
        rasters: Vec<ListedRaster<'_>>,
        objects: Option<&RawObjects>,
    ) -> PyResult<Self> {
        let options: LoaderKeywords = options::parse(py, options)?;
        let options = options.with_rasters(rasters)?.with_objects(objects)?;
        let form = BatchForm {
            // A column of a file has one float a sample, or vectors of several.
            has_float_labels: items.is_none_or(RawItems::has_float_labels),
            has_one_channel,
        };
        let items = items.map(RawItems::index).transpose()?;
        let feed = feed.map(|feed| feed.feed().clone());
        let advice = match feed {
            Some(_) => ON_ERROR_OF_METHODS,
            None => ON_ERROR,
        };
        let (loader, recipe, told) = in_thread(py, move || {
            let wanted = options.wanted(items)?;
            let builder = match &feed {
                Some(feed) => wanted.builder.feed(feed),
                None => wanted.builder,
            };
            Ok((builder.build()?, json(&wanted.recipe)?, wanted.told))
        })?;
        let depth = loader.depth();
        Ok(Self {
            state: StreamState::new(loader, depth, TEXTS),
            recipe,
            told,
            form,
            advice,
        })
    }

    /// The number of the epoch whose batches `next` returns.
    fn begin_epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| {
            self.step_back(loader)?;
            Ok(loader.begin_epoch())
        })
    }

    /// The next batch of epoch `epoch`. None at its end, and if `is_left` returns true during a
    /// wait: then another thread wants to end the epoch. A batch is returned again until
    /// [`Stream::taken`] confirms that Python delivered it.
    #[pyo3(signature = (epoch, is_left=None))]
    fn next(
        &self,
        py: Python<'_>,
        epoch: u64,
        is_left: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<RawBatch>> {
        loop {
            let next = self.with(py, |loader| {
                if let Some(batch) = self.state.untaken() {
                    return Ok(Some(Some(batch)));
                }
                if loader.position().epoch != epoch {
                    return Ok(Some(None));
                }
                let next = loader.next_batch_within(LOOK);
                let Some(batch) = next.map_err(|e| e.advise_on_sample(self.advice))? else {
                    return Ok(None);
                };
                let (held, last) = self.state.counted();
                let ends_epoch = loader.position().epoch != epoch;
                let batch = RawBatch::new(
                    batch,
                    loader.shared_index(),
                    self.form,
                    held,
                    last,
                    ends_epoch,
                )?;
                self.state.not_taken(batch.clone());
                Ok(Some(Some(batch)))
            })?;
            if let Some(end_or_batch) = next {
                return Ok(end_or_batch);
            }
            look(py)?;
            if let Some(is_left) = is_left
                && is_left.call0()?.is_truthy()?
            {
                return Ok(None);
            }
        }
    }

    /// Confirms that the batch of `next` was delivered.
    fn taken(&self) {
        drop(self.state.taken());
    }

    /// Takes the confirmation back: the batch is returned again.
    fn not_taken(&self, batch: &RawBatch) {
        self.state.not_taken(batch.clone());
    }

    fn break_off(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |loader| {
            self.step_back(loader)?;
            loader.abandon_epoch();
            Ok(())
        })
    }

    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |loader| {
            self.taken();
            loader.set_epoch(epoch);
            Ok(())
        })
    }

    /// Sets the order of an epoch: the ids of the samples in the rows of this rank, as little-endian
    /// u64.
    fn set_order(&self, py: Python<'_>, epoch: u64, ids: &[u8]) -> PyResult<()> {
        let ids = words(ids);
        self.with(py, |loader| loader.set_order(epoch, &ids))
    }

    /// Fingerprint of an order, as in a state.
    #[staticmethod]
    fn order_hash(ids: &[u8]) -> String {
        Loader::order_hash(&words(ids))
    }

    /// Raises the error that `resume` would raise, but for another order. Changes nothing.
    fn check_resumable(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.with(py, |loader| {
            loader.check_resumable(&parse_state::<State>(state)?)
        })
    }

    /// The position of the run, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loader| json(&self.at(loader)))
    }

    /// Epoch of the next batch.
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| Ok(self.at(loader).epoch))
    }

    /// Continues at a state of [`Stream::state`].
    fn resume(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        self.with(py, |loader| {
            loader.resume(&parse_state::<State>(state)?)?;
            self.taken();
            Ok(())
        })
    }

    /// The report of the run so far, as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loader| json(&loader.report()?))
    }

    /// The device memory of the run, as JSON. `null` without a device.
    fn device_memory(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loader| json(&loader.device_memory()?))
    }

    /// Files that the scan of the data set left out, as JSON. `null` for a saved index.
    fn scan_report(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loader| json(&loader.scan_report()))
    }

    /// Number of batches of an epoch on this rank.
    fn batches(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| Ok(loader.batches_per_epoch()))
    }

    fn samples(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| Ok(loader.index().len()))
    }

    fn classes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |loader| {
            let classes = loader.index().classes();
            let names = classes
                .iter()
                .map(|name| name.to_string_lossy().into_owned());
            Ok(names.collect())
        })
    }

    /// What the objects of all images have in common, as JSON. `null` without objects.
    fn object_form(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |loader| json(&loader.object_form()))
    }

    /// Number of rows of an epoch on this rank, before a batch is dropped.
    fn rows(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |loader| Ok(loader.plan().filled_rows_per_rank()))
    }

    /// Whether batches are those of buckets: short ones may come anywhere.
    fn has_buckets(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |loader| Ok(loader.plan().has_buckets()))
    }

    /// Samples over all ranks of the batch after `before` samples of an epoch.
    fn samples_of_all_ranks(&self, py: Python<'_>, epoch: u64, before: u64) -> PyResult<u64> {
        let at = EpochMark::new(epoch, before);
        self.with(py, |loader| Ok(loader.plan().samples_at(at)))
    }

    /// Samples of this rank's rows `first` to `end` (excluded) of an epoch.
    fn samples_of_rows(
        &self,
        py: Python<'_>,
        epoch: u64,
        first: u64,
        end: u64,
    ) -> PyResult<Vec<u64>> {
        self.with(py, |loader| {
            let plan = loader.plan();
            let rows = first..end.min(plan.rows_per_rank());
            Ok(rows.map(|n| plan.sample_at(epoch, n)).collect())
        })
    }

    /// Samples of a batch of an epoch, without its padding.
    fn samples_of_batch(&self, py: Python<'_>, epoch: u64, number: u64) -> PyResult<Vec<u64>> {
        self.with(py, |loader| {
            let plan = loader.plan();
            let at = plan.mark(epoch, number);
            let rows = 0..plan.filled_rows_at(at);
            Ok(rows.map(|row| plan.row_at(at, row).id).collect())
        })
    }

    /// Path and label of a sample: a class, a vector, or None.
    fn sample(
        &self,
        py: Python<'_>,
        id: u64,
    ) -> PyResult<(PathBuf, Option<i64>, Option<Vec<f32>>)> {
        let of_it = self.with(py, |loader| {
            let index = loader.index();
            if id >= index.len() {
                return Ok(None);
            }
            let (class, vector) = match index.label(id) {
                Label::None => (None, None),
                Label::Class(class) => (Some(class), None),
                Label::Vector(numbers) => (None, Some(numbers.iter().collect())),
            };
            Ok(Some((index.path(id), class, vector)))
        })?;
        of_it.ok_or_else(|| PyIndexError::new_err(format!("there is no sample {id}")))
    }

    /// The key of each sample, 16 bytes each: see `Index::sample_key`.
    fn sample_keys<'py>(&self, py: Python<'py>, is_listed: bool) -> PyResult<Bound<'py, PyBytes>> {
        let keys = self.with(py, |loader| {
            let index = loader.index();
            let key = |id| index.sample_key(id, is_listed).to_le_bytes();
            Ok((0..index.len()).flat_map(key).collect::<Vec<u8>>())
        })?;
        Ok(PyBytes::new(py, &keys))
    }

    /// Samples of an epoch, over all ranks, before the first batch of this rank with a sample that
    /// is not among the `done` ones: a byte for each sample, 0 or not. None if there is no such
    /// batch.
    fn samples_before_first(
        &self,
        py: Python<'_>,
        epoch: u64,
        done: &[u8],
    ) -> PyResult<Option<u64>> {
        self.with(py, |loader| {
            let plan = loader.plan();
            let is_done = |id: u64| done.get(id as usize).is_none_or(|done| *done != 0);
            let mut marks = (0..plan.batches()).map(|number| plan.mark(epoch, number));
            let first = marks.find(|at| {
                let mut rows = 0..plan.filled_rows_at(*at);
                rows.any(|row| !is_done(plan.row_at(*at, row).id))
            });
            Ok(first.map(|at| at.samples))
        })
    }

    /// Samples of an epoch, over all ranks, before its last batch.
    fn samples_before_last(&self, py: Python<'_>, epoch: u64) -> PyResult<u64> {
        self.with(py, |loader| {
            let plan = loader.plan();
            Ok(plan.mark(epoch, plan.batches().saturating_sub(1)).samples)
        })
    }

    /// Number of batches whose memory Python holds, and the largest number that it may hold. None
    /// if each batch has memory of its own.
    fn held(&self) -> (u32, Option<u32>) {
        self.state.held()
    }

    /// Ends the workers. Batches stay readable.
    fn close(&self, py: Python<'_>) {
        self.state.close(py);
    }
}

impl Stream {
    /// The position of the run. An undelivered batch counts as next.
    fn at(&self, loader: &Loader) -> State {
        let mut state = loader.state();
        if let Some(batch) = self.state.untaken() {
            (state.epoch, state.samples) = batch.place();
        }
        state
    }

    /// Moves the loader back before an undelivered batch.
    fn step_back(&self, loader: &mut Loader) -> Result<()> {
        let Some(batch) = self.state.taken() else {
            return Ok(());
        };
        let (epoch, samples) = batch.place();
        loader.resume(&State {
            epoch,
            samples,
            ..loader.state()
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Loader) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.state.with(py, f)
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}
