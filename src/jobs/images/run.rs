//! A run of images without its processes: makes batches from slots.
//!
//! In the consumer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::getpid;

use crate::data::annotations::AnnotationReport;
use crate::data::columns::BatchColumns;
use crate::data::columns::column_set::OpenColumns;
use crate::data::index::{Index, Label, ScanReport};
use crate::data::sample_sizes::SampleSizes;
use crate::decode_plan::row_descriptor::RowDescriptor;
use crate::device::DeviceRows;
use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchLabels, BatchStorage, RowFault, RowsExtent};
use crate::jobs::images::batch_mixing::BatchMixing;
use crate::jobs::images::captions::{BatchCaptions, RunCaptions};
use crate::jobs::images::crop_extents::CropExtents;
use crate::jobs::images::objects::{BatchObjects, RecordPlace};
use crate::jobs::images::on_error::OnError;
use crate::jobs::images::packing::{PackedBatch, SlotPacking};
use crate::jobs::images::raster_extent::BatchRaster;
use crate::jobs::images::size_condition::size_conditions;
use crate::jobs::item_feed::ItemFeed;
use crate::jobs::raster_rule::NamedRaster;
use crate::jobs::raster_section::RasterSection;
use crate::order::{BucketBatches, EpochMark, EpochPlan, RowPlan, RowStatus, State};
use crate::pool::batch_request::BatchRequest;
use crate::pool::filled_batch::{BadRow, FilledBatch};
use crate::recipe::{RowExtent, SampleProgram};

/// A run of images, without its processes.
#[derive(Debug)]
pub(crate) struct ImageRun {
    pub(crate) index: Arc<Index>,
    pub(crate) scan: Option<ScanReport>,
    /// What the files of annotations had.
    pub(crate) annotations: Option<AnnotationReport>,
    /// The columns that batches have.
    pub(crate) columns: Option<Arc<OpenColumns>>,
    pub(crate) captions: Option<RunCaptions>,
    pub(crate) plan: EpochPlan,
    pub(crate) program: SampleProgram,
    pub(crate) packing: SlotPacking,
    /// The sizes of all images, if rows or batches follow from them.
    pub(crate) image_sizes: Option<SampleSizes>,
    pub(crate) rasters: Arc<[NamedRaster]>,
    pub(crate) packed: PackedBatch,
    pub(crate) state: State,
    pub(crate) epochs: Option<u64>,
    /// Gives the samples while the run goes on, with their labels.
    pub(crate) feed: Option<ItemFeed>,
    /// Batches from the current position on whose samples are here. None: all. Only set for a remote
    /// data set and with a feed.
    pub(crate) ready_batches: Option<usize>,
    pub(crate) on_error: OnError,
    /// Substitutes to try for a sample that cannot be used.
    pub(crate) tries: u32,
    pub(crate) startup: Duration,
    /// Mixes whole batches.
    pub(crate) mixing: Option<BatchMixing>,
    /// Time for mixing so far.
    pub(crate) mixing_time: Duration,
}

/// The pool's request for the batch at this position.
pub(crate) fn batch_place(plan: &EpochPlan, at: EpochMark) -> BatchRequest {
    BatchRequest {
        key: at.into(),
        epoch: Some(at.epoch),
        number: plan.number_at(at),
        rows_to_fill: plan.filled_rows_at(at),
        rows: plan.rows_at(at),
    }
}

impl ImageRun {
    /// The request for the batch `n` after the current one, as far as the run is known: to the end
    /// of this epoch, or to the last epoch if their number is known.
    pub(crate) fn place_ahead(&self, n: usize) -> Option<BatchRequest> {
        if self.ready_batches.is_some_and(|batches| n >= batches) {
            return None;
        }
        let now = self.plan.skip_epoch_end(self.state.mark());
        let at = (0..n).fold(now, |at, _| self.plan.next_mark(at));
        let known = at.epoch == now.epoch || self.epochs.is_some_and(|last| at.epoch < last);
        let known = known && self.plan.has_order(at.epoch);
        known.then(|| batch_place(&self.plan, at))
    }

    /// Makes a batch from filled rows.
    ///
    /// # Errors
    /// The first bad sample, under [`OnError::Stop`].
    pub(crate) fn make_batch(&mut self, filled: FilledBatch) -> Result<Batch> {
        let FilledBatch { place, rows, bad } = filled;
        self.make_batch_in(&place, (BatchStorage::from(rows), None), bad)
    }

    /// Like [`ImageRun::make_batch`], for rows that a device has decoded. `objects`: those of
    /// [`ImageRun::complete_targets`].
    pub(crate) fn make_device_batch(
        &mut self,
        place: &BatchRequest,
        (rows, objects): (DeviceRows, Option<BatchObjects>),
        bad: Vec<BadRow>,
    ) -> Result<Batch> {
        self.make_batch_in(place, (BatchStorage::Device(rows), objects), bad)
    }

    fn make_batch_in(
        &mut self,
        place: &BatchRequest,
        rows: (BatchStorage, Option<BatchObjects>),
        bad: Vec<BadRow>,
    ) -> Result<Batch> {
        let mut batch = self.batch(place, rows, bad)?;
        if self.on_error == OnError::Stop
            && let Some(first) = batch.faults.first()
        {
            return Err(Error::Sample {
                id: first.id,
                path: first.path.clone(),
                fault: first.fault.clone(),
            });
        }
        batch.columns.read_temporary();
        self.mix(&mut batch)?;
        Ok(batch)
    }

    /// Completes a batch that workers have filled before a device decodes it: its rows without a
    /// sample get what rasters have there. Returns the objects of all rows. None if images have none.
    ///
    /// # Errors
    /// A record in damaged shared memory; rasters outside of the slot.
    pub(crate) fn complete_targets(
        &mut self,
        filled: &mut FilledBatch,
    ) -> Result<Option<BatchObjects>> {
        let (place, rows) = (filled.place, self.final_rows(&filled.place, &filled.bad));
        let masked = (0..).zip(&rows).filter(|(_, row)| row.status.is_masked());
        let masked: Vec<u32> = masked.map(|(row, _)| row).collect();
        let sections = self.packing.rasters_at(place.key.into());
        self.fill_rasters(&place, &sections, &masked, |at, bytes| {
            match filled.rows.write(at, bytes) {
                true => Ok(()),
                false => Err(Error::protocol(
                    "the rasters of a batch do not fit its slot",
                )),
            }
        })?;
        match self.packing.objects() {
            Some(_) => self.objects(place.key.into(), &rows, filled.rows.bytes()),
            None => Ok(None),
        }
    }

    /// Calls `write` with the rasters of rows that have lost their sample since their batch was
    /// completed, and with their places in a batch whose rows a device has made.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn clear_rasters(
        &self,
        place: &BatchRequest,
        lost: &[u32],
        write: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let at = EpochMark::from(place.key);
        let sections = self.packing.device_rasters_at(&self.program, at);
        self.fill_rasters(place, &sections, lost, write)
    }

    /// Calls `write` with the place and the content of each raster of rows without a sample.
    fn fill_rasters(
        &self,
        place: &BatchRequest,
        sections: &[(RasterSection, usize)],
        masked: &[u32],
        mut write: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if masked.is_empty() {
            return Ok(());
        }
        let size = self.row_size(place);
        for (raster, (section, start)) in self.rasters.iter().zip(sections) {
            let mut bytes = vec![0; section.bytes(size) as usize];
            raster.rule.fill_empty(&mut bytes);
            for row in masked {
                write(start + *row as usize * bytes.len(), &bytes)?;
            }
        }
        Ok(())
    }

    /// The rows of a batch as they are after these bad rows.
    fn final_rows(&self, place: &BatchRequest, bad: &[BadRow]) -> Vec<RowPlan> {
        let at = EpochMark::from(place.key);
        let rows = 0..place.rows;
        let mut rows: Vec<_> = rows.map(|row| self.plan.row_at(at, row)).collect();
        for bad in bad {
            self.apply_bad_row(at, bad, &mut rows);
        }
        rows
    }

    /// The next batches of this epoch, from the current one on: at most `most`.
    pub(crate) fn marks_ahead(&self, most: usize) -> Vec<EpochMark> {
        let first = self.plan.skip_epoch_end(self.state.mark());
        let is_known = |at: &EpochMark| {
            let is_run = self.epochs.is_some_and(|last| at.epoch < last);
            (at.epoch == first.epoch || is_run) && self.plan.has_order(at.epoch)
        };
        let marks = std::iter::successors(Some(first), |at| Some(self.plan.next_mark(*at)));
        marks.take_while(is_known).take(most).collect()
    }

    /// The samples of a batch, without those of padding.
    pub(crate) fn samples_of(&self, at: EpochMark) -> Vec<u64> {
        let rows = 0..self.plan.filled_rows_at(at);
        rows.map(|row| self.plan.row_at(at, row).id).collect()
    }

    /// Height and width of a batch's rows, if they follow from the recipe or the plan.
    pub(crate) fn row_size(&self, place: &BatchRequest) -> (u32, u32) {
        self.row_size_at(place.key.into())
    }

    fn row_size_at(&self, at: EpochMark) -> (u32, u32) {
        let usual = match self.program.extent {
            RowExtent::Fixed { height, width } => (height, width),
            RowExtent::Own | RowExtent::Patches(_) => (0, 0),
        };
        self.plan.size_at(at).unwrap_or(usual)
    }

    /// Moves to the next batch after one was returned.
    pub(crate) fn advance(&mut self) {
        // Cannot overflow: the epoch is limited (see `loader::image_loader`).
        self.state.go_to(self.plan.next_mark(self.state.mark()));
        self.ready_batches = self.ready_batches.map(|batches| batches.saturating_sub(1));
    }

    /// Applies bad rows, masks the rows without a sample, and describes the others.
    fn batch(
        &mut self,
        place: &BatchRequest,
        (mut storage, objects): (BatchStorage, Option<BatchObjects>),
        bad: Vec<BadRow>,
    ) -> Result<Batch> {
        let at = EpochMark::from(place.key);
        let planned = (0..place.rows).map(|row| self.plan.row_at(at, row).status);
        let repeated = planned.map(|status| status == RowStatus::Repeated);
        let repeated = repeated.collect();
        let rows = self.final_rows(place, &bad);
        let faults = bad.into_iter().map(|bad| self.row_fault(at, bad, &rows));
        let faults = faults.collect();
        let extent = self.write_row_layout(at, &rows, &mut storage);
        let objects = match objects {
            Some(objects) => Some(self.without_masked(objects, &rows)),
            None => self.objects(at, &rows, storage.bytes_mut())?,
        };
        let rasters = match self.program.crops {
            Some(_) => self.packing.device_rasters_at(&self.program, at),
            None => self.packing.rasters_at(at),
        };
        let columns = BatchColumns::new(
            self.columns.clone(),
            rows.iter()
                .map(|r| (r.status != RowStatus::Padding).then_some(r.id))
                .collect(),
        );
        let captions = self
            .captions
            .clone()
            .map(|captions| BatchCaptions::new(captions, &self.plan, at, (&rows, columns.clone())));
        Ok(Batch {
            storage,
            owner: getpid(),
            at,
            number: place.number,
            extent,
            rasters: rasters.into_iter().map(BatchRaster::from).collect(),
            named: self.rasters.clone(),
            dtype: self.program.output_format.dtype,
            layout: self.program.output_format.layout,
            channels: self.program.output_format.channels(),
            labels: self.labels(at, &rows),
            ids: rows.iter().map(|r| r.id).collect(),
            status: rows.iter().map(|r| r.status).collect(),
            columns,
            captions,
            repeated,
            faults,
            objects,
            // With buckets, a run has sizes for `cover_crop` alone.
            size_conditions: (self.image_sizes.as_ref())
                .filter(|_| self.plan.buckets().is_some_and(BucketBatches::have_sizes))
                .map(|sizes| size_conditions((&self.plan, &self.program), sizes, at, &rows))
                .transpose()?,
        })
    }

    /// The objects of the rows. None if images have none.
    ///
    /// # Errors
    /// A record in damaged shared memory.
    fn objects(
        &mut self,
        at: EpochMark,
        rows: &[RowPlan],
        bytes: &[u8],
    ) -> Result<Option<BatchObjects>> {
        let (packing, packed) = (&self.packing, &mut self.packed);
        let Some(section) = packing.objects() else {
            return Ok(None);
        };
        let mut objects = BatchObjects::new(section);
        for (number, row) in (0..).zip(rows) {
            let place = RecordPlace {
                bytes,
                range: packing.record_place(packed, at, number).unwrap_or(0..0),
                row: packing.row_size(at, row.id),
            };
            if row.status.is_masked() {
                objects.push_masked(section);
            } else if !objects.push_row(section, row.id, place) {
                return Err(Error::protocol(format!(
                    "the objects of row {number} are damaged: another process wrote into the \
                     shared memory of the run"
                )));
            }
        }
        Ok(Some(objects))
    }

    /// The objects without those of rows that have no sample any more.
    fn without_masked(&self, mut objects: BatchObjects, rows: &[RowPlan]) -> BatchObjects {
        for (number, row) in rows.iter().enumerate() {
            if row.status.is_masked() {
                objects.clear_row(number);
            }
        }
        objects
    }

    /// Mixes the rows of a batch, if the recipe does so.
    fn mix(&mut self, batch: &mut Batch) -> Result<()> {
        let Some(mixed) = &mut self.mixing else {
            return Ok(());
        };
        let began = Instant::now();
        mixed.mix(batch, &self.plan)?;
        self.mixing_time += began.elapsed();
        Ok(())
    }

    /// Zeroes masked rows. If rows have their own sizes, writes the table before them.
    fn write_row_layout(
        &mut self,
        at: EpochMark,
        rows: &[RowPlan],
        storage: &mut BatchStorage,
    ) -> RowsExtent {
        let packed = &mut self.packed;
        let is_decoded = matches!(storage, BatchStorage::Device(_));
        let bytes = storage.bytes_mut();
        // A device zeroes its rows itself, and reads no other parts of several crops. The rasters of
        // rows that it has decoded are complete.
        let on_device = self.program.crops.is_some() || self.program.hulls.is_some();
        let clears = !on_device || (!self.rasters.is_empty() && !is_decoded);
        for (row, _) in (0..)
            .zip(rows)
            .filter(|(_, r)| clears && r.status.is_masked())
        {
            if !on_device {
                bytes[self.packing.place(packed, at, row)].fill(0);
            }
            // The records of objects of these rows are not read.
            for (n, place) in (0..).zip(self.packing.further_places(packed, at, row)) {
                match self.rasters.get(n) {
                    Some(raster) => raster.rule.fill_empty(&mut bytes[place]),
                    None => bytes[place].fill(0),
                }
            }
        }
        if !self.program.has_pixels {
            return RowsExtent::NoPixels;
        }
        if let (Some(sections), Some(rule)) = (self.packing.crop_sections(), &self.program.hulls) {
            let masked: Vec<bool> = rows.iter().map(|row| row.status.is_masked()).collect();
            return RowsExtent::Crops(CropExtents::read_hulls(sections, rule, &masked, bytes));
        }
        if let Some(sections) = self.packing.crop_sections() {
            return RowsExtent::Crops(CropExtents::read(sections, rows.len(), bytes));
        }
        if let Some(patches) = self.packing.patches(packed, at, rows) {
            return RowsExtent::Patches(patches);
        }
        match self.packing.descriptors(packed, at, rows) {
            None => {
                let (height, width) = self.row_size_at(at);
                RowsExtent::Equal {
                    rows: rows.len(),
                    height: height as usize,
                    width: width as usize,
                }
            }
            Some(table) => {
                let unused = self.plan.most_rows() as usize - table.len();
                let (head, rest) = bytes.split_at_mut(table.len() * RowDescriptor::BYTES);
                head.copy_from_slice(bytemuck::cast_slice(&table));
                rest[..unused * RowDescriptor::BYTES].fill(0);
                RowsExtent::Own {
                    table,
                    bytes: self.packing.batch_bytes(packed, at, rows.len() as u32),
                }
            }
        }
    }

    /// Replaces the planned sample of a bad row by what the row contains.
    fn apply_bad_row(&self, at: EpochMark, bad: &BadRow, rows: &mut [RowPlan]) {
        let now = &mut rows[bad.row as usize];
        match bad.attempt {
            Some(attempt) => *now = self.plan.attempt_at(at, bad.row, attempt),
            None => now.status = RowStatus::Failed,
        }
    }

    /// What a bad row contains now, among the final `rows`.
    fn row_fault(&self, at: EpochMark, bad: BadRow, rows: &[RowPlan]) -> RowFault {
        let BadRow {
            row,
            mut fault,
            attempt,
        } = bad;
        if attempt.is_none() {
            let tried = (1..=self.tries)
                .map(|attempt| self.plan.attempt_at(at, row, attempt))
                .filter(|stands| stands.status == RowStatus::Substituted)
                .count();
            if tried > 0 {
                let text = format!("; its {tried} substitutes failed too");
                fault.reason.push_str(&text);
            }
        }
        let id = self.plan.row_at(at, row).id;
        RowFault {
            row: row as usize,
            id,
            path: self.index.path(id),
            fault,
            substitute: attempt.map(|_| rows[row as usize].id),
        }
    }

    /// The labels of the rows: the data set's, or those that an operation drew for their positions.
    /// A masked row has no label of its own.
    fn labels(&self, at: EpochMark, rows: &[RowPlan]) -> BatchLabels {
        let is_masked = |r: &RowPlan| r.status.is_masked();
        if self.program.labelling_op().is_some() {
            let drawn = rows.iter().map(|r| {
                let label = self
                    .program
                    .draw_label(&self.plan.random(at.epoch, r.position));
                label.filter(|_| !is_masked(r)).unwrap_or(-1)
            });
            return BatchLabels::Classes(drawn.collect());
        }
        if let Some(feed) = &self.feed {
            let masked: Vec<bool> = rows.iter().map(is_masked).collect();
            return feed.labels(at, &masked).unwrap_or(BatchLabels::None);
        }
        let width = self.index.label_width();
        match self.index.label(0) {
            Label::None => BatchLabels::None,
            Label::Class(_) => BatchLabels::Classes(
                rows.iter()
                    .map(|r| match self.index.label(r.id) {
                        Label::Class(class) if !is_masked(r) => class,
                        _ => -1,
                    })
                    .collect(),
            ),
            Label::Vector(_) => {
                let mut values = Vec::with_capacity(rows.len() * width);
                for r in rows {
                    match self.index.label(r.id) {
                        Label::Vector(v) if !is_masked(r) => values.extend(v.iter()),
                        _ => values.resize(values.len() + width, 0.0),
                    }
                }
                BatchLabels::Vectors { width, values }
            }
        }
    }
}
