//! Delivers batches from ring slots to a device.
//!
//! In the consumer. The device is opened after the pool has started, so that workers fill the first
//! slots meanwhile. A slot is free again once the device has read it. Each `next` checks that
//! (`device_pool`), no thread does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::decode_plan::crop_row::RowContents;
use crate::device::crop_launch::{KernelEmission, KernelRow, MASKED};
use crate::device::crop_set_launch::{CropSetShape, KernelSetForm};
use crate::device::cuda::{CropSetStage, CropStage, CudaContext, JpegThread, RowsStage};
use crate::device::jpeg_part::PartLimits;
use crate::device::stage_shapes::{
    CropShape, JpegParts, JpegRoom, JpegShape, RowPlaces, TrailingBytes, rows_bytes,
};
use crate::device::{Device, DeviceMemory, DeviceRows, DeviceTimes, UploadMode};
use crate::error::{Error, Result};
use crate::jobs::images::batch::{Batch, BatchStorage, RowsExtent};
use crate::jobs::images::coded_batch::{BatchOutline, BatchRows, CpuJob, OpenCodedBatch};
use crate::jobs::images::crop_sections::CropSections;
use crate::jobs::images::jpeg_batches::{
    self, ClosedBatch, DecodeOutcome, RowSplit, destroyed_row, header_of, kernel_row, split_rows,
};
use crate::jobs::images::objects::BatchObjects;
use crate::jobs::raster_section::RasterSection;
use crate::order::{EpochPlan, RowStatus};
use crate::pool::batch_request::BatchRequest;
use crate::pool::filled_batch::FilledBatch;
use crate::pool::pool_report::PoolReport;
use crate::pool::ring::Ring;
use crate::pool::ring::slots::{HeldSlot, WatchedSlot};
use crate::recipe::{ColorOrder, CropRule, HullRule, MemoryLayout, RowExtent, SampleProgram};
use crate::sys::clock::RunningClock;

/// Sleep while every batch on the device is held.
const LOOK: Duration = Duration::from_millis(1);
/// A device decodes a batch in a few milliseconds. After this time it counts as hung.
const DECODE_LIMIT: Duration = Duration::from_secs(20);

/// A device, and the stages that make batches on it.
#[derive(Debug)]
pub(crate) struct DeviceBatches {
    // First: the JPEG thread writes into the stage's batches.
    jpegs: Option<Jpegs>,
    context: Arc<CudaContext>,
    stage: DeviceStage,
    /// Batches that may be on the device at one time.
    outputs: usize,
    /// Runs while live batches hold all of them.
    held_since: Option<RunningClock>,
    /// Slots of the ring, and bytes per slot.
    slots: usize,
    slot_bytes: u64,
    planned: u64,
    /// Used device bytes, by any process: right after the context was created, and since then after
    /// all allocations.
    at_context: u64,
    at_start: u64,
}

/// The content of a slot.
#[derive(Debug, Clone)]
pub(crate) struct SlotContents {
    /// Bytes of finished rows.
    used: usize,
    /// Height and width, if all rows have one size.
    size: (u32, u32),
    /// Instance masks, which follow all else on the device.
    masks: Vec<TrailingBytes>,
}

impl SlotContents {
    /// Those of a batch, whose instance masks get their places on the device.
    pub(crate) fn of(batch: &mut Batch) -> Result<Self> {
        let used = batch.used_bytes()?;
        let objects = batch.objects.as_mut();
        Ok(Self {
            used,
            size: match &batch.extent {
                RowsExtent::Equal { height, width, .. } => (*height as u32, *width as u32),
                RowsExtent::Own { .. }
                | RowsExtent::Crops(_)
                | RowsExtent::Patches(_)
                | RowsExtent::NoPixels => (0, 0),
            },
            masks: objects.map_or_else(Vec::new, |objects| objects.place_masks(used)),
        })
    }
}

/// The slot that holds a batch.
///
/// # Errors
/// The batch is not in a slot.
pub(crate) fn slot_of(storage: BatchStorage) -> Result<HeldSlot> {
    match storage {
        BatchStorage::Slot(slot) => Ok(slot),
        BatchStorage::Own(_) | BatchStorage::Device(_) => Err(Error::Device {
            what: "a batch is not in a slot of the ring".into(),
        }),
    }
}

#[derive(Debug)]
enum DeviceStage {
    /// Copies finished rows.
    Rows(RowsStage),
    Crops(Box<CropMaker>),
    /// Several crops of each sample.
    CropSets(Box<CropSetStage>),
}

/// Makes rows with the crops kernel.
#[derive(Debug)]
struct CropMaker {
    stage: CropStage,
    rule: CropRule,
    read: UploadMode,
    /// The rasters that follow the rows. Workers make them.
    rasters: Vec<RasterSection>,
    /// Of the last batch.
    rows: Vec<KernelRow>,
}

/// The settings for opening a device.
pub(crate) struct DeviceSpec<'a> {
    pub(crate) program: &'a SampleProgram,
    pub(crate) plan: &'a EpochPlan,
    pub(crate) upload: UploadMode,
    /// Batches on the device at one time.
    pub(crate) outputs: usize,
    /// The parts in which the device decodes JPEGs. None: workers decode all.
    pub(crate) jpegs: Option<JpegParts>,
    /// The rasters of the images.
    pub(crate) rasters: &'a [RasterSection],
    /// Most bytes of the instance masks of a batch.
    pub(crate) mask_bytes: u64,
}

/// Batches on a device at one time, for a ring with this depth. At least 2: one is made while
/// another is held.
pub(crate) fn outputs(depth: u32) -> u32 {
    depth.max(2)
}

/// The thread that decodes JPEGs on the device, and the CPU job for images that it flags.
#[derive(Debug)]
struct Jpegs {
    thread: JpegThread,
    cpu: Arc<CpuJob>,
    /// The limits of every part.
    parts: PartLimits,
}

/// Rejects a device without workers.
///
/// # Errors
/// 0 workers.
pub(crate) fn check_workers(device: Device, workers: u32) -> Result<()> {
    if device == Device::Cpu {
        return Ok(());
    }
    if workers == 0 {
        return Err(Error::config(format!(
            "{device} reads slots that workers fill, and there are 0 workers: use at least 1"
        )));
    }
    Ok(())
}

impl DeviceSpec<'_> {
    /// Height, width and rows of each kind of batch.
    fn batches(&self) -> Vec<((u32, u32), u32)> {
        let scales: Vec<_> = self.plan.scales().collect();
        match self.program.extent {
            RowExtent::Fixed { height, width } if scales.is_empty() => {
                vec![((height, width), self.plan.most_rows())]
            }
            _ => scales,
        }
    }

    /// The sizes of the crops stage.
    fn shape(&self, rule: CropRule) -> CropShape {
        let batches = self.batches();
        let most = |bytes: &dyn Fn((u32, u32)) -> usize| {
            let of = batches
                .iter()
                .map(|(size, rows)| *rows as usize * bytes(*size));
            of.max().unwrap_or(0)
        };
        let output_bytes = batches.iter().map(|&(size, rows)| {
            RasterSection::end(self.rasters, self.program.row_bytes(size), (size, rows))
        });
        CropShape {
            rows: self.plan.most_rows() as usize,
            source_bytes: most(&|size| places(rule, size).copied(self.upload)),
            outputs: self.outputs,
            output_bytes: (output_bytes.max().unwrap_or(0)).saturating_add(self.mask_bytes)
                as usize,
            dtype: self.program.output_format.dtype,
            copies: self.upload == UploadMode::Copied,
            jpegs: self.jpeg_shape(),
        }
    }

    /// The sizes of the JPEG decoder. None: workers decode all.
    fn jpeg_shape(&self) -> Option<JpegShape> {
        let rule = self.program.crops?;
        let (parts, room) = (self.jpegs?, self.row_room()?);
        let batches = self.batches();
        let most = |bytes: &dyn Fn((u32, u32)) -> usize| {
            let all = batches.iter().map(|(size, _)| bytes(*size));
            all.max().unwrap_or(0)
        };
        Some(JpegShape {
            limits: JpegShape::limits(parts.pictures, room),
            room,
            rows: self.plan.most_rows() as usize,
            row_bytes: most(&|size| places(rule, size).capacity),
            row_tables: most(&|size| places(rule, size).tables),
        })
    }

    /// The room of the largest row.
    fn row_room(&self) -> Option<JpegRoom> {
        let rule = self.program.crops?;
        let rooms = self
            .batches()
            .into_iter()
            .map(|(size, _)| rule.row_bytes(size));
        rooms
            .map(|room| JpegRoom {
                pixels: room.pixels,
                coded: room.coded,
                window: self.jpegs.map_or(0, |parts| parts.window),
            })
            .reduce(|a, b| JpegRoom {
                pixels: a.pixels.max(b.pixels),
                coded: a.coded.max(b.coded),
                ..a
            })
    }

    /// The limits of an image that the device decodes. None: workers decode all.
    pub(crate) fn jpeg_limits(&self) -> Option<PartLimits> {
        self.jpegs.and(self.row_room()).map(JpegShape::of_pictures)
    }

    /// Pinned host bytes for JPEGs or descriptors, in addition to the ring.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        let of_sets = self
            .set_shape()
            .map_or(0, |(shape, _)| shape.pinned_bytes());
        self.jpeg_shape()
            .map_or(of_sets, |jpegs| jpegs.pinned_bytes())
    }

    /// The sizes of the stage for several crops, if a device makes them.
    fn set_shape(&self) -> Option<(CropSetShape, &HullRule)> {
        let rule = self.program.hulls.as_ref()?;
        let sections = CropSections::of(self.program)?;
        let rows = self.plan.most_rows();
        let outputs = (self.outputs, sections.pixel_bytes(rows) as usize);
        Some((CropSetShape::new(rule, rows as usize, outputs), rule))
    }

    /// Most device bytes of the run, without the context. `slot_bytes`: bytes of a ring slot.
    pub(crate) fn device_bytes(&self, slot_bytes: u64) -> u64 {
        if let Some((shape, _)) = self.set_shape() {
            return shape.device_bytes();
        }
        match self.program.crops {
            Some(rule) => self.shape(rule).device_bytes(),
            None => rows_bytes(self.outputs, slot_bytes as usize),
        }
    }
}

/// Starts the JPEG thread, while workers start.
///
/// # Errors
/// The system cannot start a thread.
pub(crate) fn start_jpegs(ordinal: u32) -> Result<JpegThread> {
    JpegThread::start(ordinal, DECODE_LIMIT)
}

/// Where the rasters of a batch are in its slot, and where they go on the device. `in_slot`,
/// `on_device`: bytes of a row. `made`: height and width of the rows, and their number.
fn trailing_bytes(
    rasters: &[RasterSection],
    in_slot: u64,
    on_device: u64,
    made: ((u32, u32), u32),
) -> Option<TrailingBytes> {
    let start = |row| RasterSection::starts(rasters, row, made).first().copied();
    let (from, to) = start(in_slot).zip(start(on_device))?;
    Some(TrailingBytes {
        from,
        to,
        len: RasterSection::end(rasters, in_slot, made) as usize - from,
    })
}

fn places(rule: CropRule, size: (u32, u32)) -> RowPlaces {
    let room = rule.row_bytes(size);
    RowPlaces {
        capacity: room.row_bytes(),
        tables: room.pixels_at(),
        pixels_end: room.pixels_end(),
    }
}

impl DeviceBatches {
    /// Opens the device, pins the ring, and allocates all device memory of the run. `jpegs`: the
    /// JPEG thread, and the CPU job for images that the device flags.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub(crate) fn open(
        ordinal: u32,
        ring: Arc<Ring>,
        work: &DeviceSpec<'_>,
        mut jpegs: Option<(JpegThread, Arc<CpuJob>)>,
    ) -> Result<Self> {
        let context = match &mut jpegs {
            Some((thread, _)) => thread.context()?,
            None => CudaContext::open(ordinal)?,
        };
        let shape = ring.layout().shape();
        let slot_bytes = shape.slot_bytes;
        let stage = match (work.program.crops, work.set_shape()) {
            (_, Some((shape, rule))) => DeviceStage::CropSets(Box::new(CropSetStage::new(
                &context,
                ring,
                (shape, rule.clone()),
                &set_forms(work.program),
            )?)),
            (None, None) => DeviceStage::Rows(RowsStage::new(
                &context,
                ring,
                work.outputs,
                slot_bytes as usize,
            )?),
            (Some(rule), None) => DeviceStage::Crops(Box::new(CropMaker {
                stage: CropStage::new(&context, ring, work.shape(rule))?,
                rule,
                read: work.upload,
                rasters: work.rasters.to_vec(),
                rows: Vec::new(),
            })),
        };
        let mut this = Self {
            jpegs: None,
            stage,
            outputs: work.outputs,
            held_since: None,
            slots: shape.slots as usize,
            slot_bytes,
            planned: work.device_bytes(slot_bytes),
            at_context: context.used_bytes_at_start(),
            at_start: 0,
            context,
        };
        if let (Some((mut thread, cpu)), Some(shape)) = (jpegs, work.jpeg_shape()) {
            // After all allocations that cannot be smaller.
            thread.start_decoder(shape)?;
            let parts = JpegShape::of_pictures(shape.room);
            this.jpegs = Some(Jpegs { thread, cpu, parts });
        }
        this.at_start = this.used_bytes()?;
        Ok(this)
    }

    /// Device bytes used since the context was created.
    fn used_bytes(&self) -> Result<u64> {
        let free = self.context.free_bytes()?;
        Ok(self.context.free_bytes_at_start().saturating_sub(free))
    }

    /// Slots of the ring.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of a slot.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// Adds the CPU's counters for rows that it decoded again.
    pub(crate) fn add_redecoded_to(&self, report: &mut PoolReport) {
        if let Some(jpegs) = &self.jpegs {
            jpegs.cpu.add_to(report);
        }
    }

    /// The device's times.
    pub(crate) fn times(&self) -> DeviceTimes {
        let mut times = match &self.stage {
            DeviceStage::Rows(stage) => stage.times(),
            DeviceStage::Crops(crops) => crops.stage.times(),
            DeviceStage::CropSets(stage) => stage.times(),
        };
        if let Some(jpegs) = &self.jpegs {
            times.jpegs = jpegs.thread.times();
        }
        times
    }

    /// The use of the device's memory.
    ///
    /// # Errors
    /// The device does not answer.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        Ok(DeviceMemory {
            upload: match &self.stage {
                DeviceStage::Rows(_) | DeviceStage::CropSets(_) => UploadMode::Copied,
                DeviceStage::Crops(crops) => crops.read,
            },
            planned_bytes: self.planned,
            at_context_bytes: self.at_context,
            at_start_bytes: self.at_start,
            used_bytes: self.used_bytes()?,
            pinned_bytes: match &self.stage {
                DeviceStage::Rows(stage) => stage.pinned_bytes(),
                DeviceStage::Crops(crops) => crops.stage.pinned_bytes(),
                DeviceStage::CropSets(stage) => stage.pinned_bytes(),
            } as u64,
        })
    }

    /// Waits until a slot is free for workers, and device memory for a batch. Frees slots that the
    /// device has read. False if that takes longer than `most`. `limit` is counted over several
    /// such calls.
    ///
    /// # Errors
    /// `SlotsHeld` if live batches hold all the memory for `limit`; a device error.
    pub(crate) fn make_room(&mut self, limit: Duration, most: Duration) -> Result<bool> {
        self.drop_read_slots()?;
        while self.under_way() >= self.slots {
            self.wait_one()?;
        }
        let began = Instant::now();
        while !self.has_room() {
            let waited = self
                .held_since
                .get_or_insert_with(RunningClock::start)
                .read(LOOK);
            if waited >= limit {
                self.held_since = None;
                return Err(Error::SlotsHeld {
                    what: format!(
                        "all {} batches on the device are held, and none was dropped within \
                         {limit:?}: drop batches earlier, or raise `depth` above {}",
                        self.outputs, self.outputs
                    ),
                });
            }
            if began.elapsed() >= most {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
            self.drop_read_slots()?;
        }
        self.held_since = None;
        Ok(true)
    }

    /// Batches that may be on the device at one time.
    pub(crate) fn outputs(&self) -> u32 {
        self.outputs as u32
    }

    /// Like [`Self::make_room`], but does not wait. True if there is room.
    pub(crate) fn has_room_now(&mut self) -> Result<bool> {
        self.drop_read_slots()?;
        Ok(self.has_room() && self.under_way() < self.slots)
    }

    /// Waits until the device has read every slot under way.
    pub(crate) fn wait_all(&mut self) -> Result<()> {
        while self.wait_one()? {}
        Ok(())
    }

    fn drop_read_slots(&mut self) -> Result<()> {
        match &mut self.stage {
            DeviceStage::Rows(stage) => stage.drop_read_slots()?,
            DeviceStage::Crops(crops) => crops.stage.drop_read_slots()?,
            DeviceStage::CropSets(stage) => stage.drop_read_slots()?,
        }
        Ok(())
    }

    /// Sleeps until the device has read the oldest slot, and frees that slot. False if there is
    /// none.
    pub(crate) fn wait_one(&mut self) -> Result<bool> {
        match &mut self.stage {
            DeviceStage::Rows(stage) => stage.wait_one(),
            DeviceStage::Crops(crops) => crops.stage.wait_one(),
            DeviceStage::CropSets(stage) => stage.wait_one(),
        }
    }

    /// Whether the device decodes JPEGs.
    pub(crate) fn decodes(&self) -> bool {
        self.jpegs.is_some()
    }

    /// See [`jpeg_batches::finish_batch`].
    pub(crate) fn finish_decode(
        &mut self,
        batch: ClosedBatch,
        most: Duration,
    ) -> Result<DecodeOutcome> {
        let (jpegs, _) = self.decoding()?;
        jpeg_batches::finish_batch(&mut jpegs.thread, batch, most)
    }

    fn under_way(&self) -> usize {
        match &self.stage {
            DeviceStage::Rows(stage) => stage.under_way(),
            DeviceStage::Crops(crops) => crops.stage.under_way(),
            DeviceStage::CropSets(stage) => stage.under_way(),
        }
    }

    fn has_room(&self) -> bool {
        match &self.stage {
            DeviceStage::Rows(stage) => stage.has_room(),
            DeviceStage::Crops(crops) => crops.stage.has_room(),
            DeviceStage::CropSets(stage) => stage.has_room(),
        }
    }

    /// Delivers a batch in a slot to the device. The slot is free once the device has read it.
    ///
    /// # Errors
    /// A device error; a malformed row.
    pub(crate) fn submit(&mut self, mut batch: Batch, program: &SampleProgram) -> Result<Batch> {
        let contents = SlotContents::of(&mut batch)?;
        let slot = Arc::new(slot_of(batch.storage)?);
        let rows = self.submit_slot(slot, (&contents, &batch.status), program)?;
        Ok(Batch {
            storage: BatchStorage::Device(rows),
            ..batch
        })
    }

    /// Like [`Self::submit`], for a slot that the caller may keep.
    pub(crate) fn submit_slot(
        &mut self,
        slot: Arc<HeldSlot>,
        (contents, status): (&SlotContents, &[RowStatus]),
        program: &SampleProgram,
    ) -> Result<DeviceRows> {
        match &mut self.stage {
            DeviceStage::Rows(stage) => stage.submit_rows(slot, contents.used, &contents.masks),
            DeviceStage::CropSets(stage) => {
                let masked = |row: usize| status[row].is_masked();
                let submitted = stage.submit(slot, status.len(), masked)?;
                submitted.map_err(|malformed| destroyed_row(malformed.row, &malformed.why))
            }
            DeviceStage::Crops(crops) => {
                let CropMaker {
                    stage,
                    rule,
                    read,
                    rasters,
                    rows,
                } = &mut **crops;
                let at = places(*rule, contents.size);
                let made = (contents.size, status.len() as u32);
                let row_bytes = program.row_bytes(contents.size);
                let rasters = trailing_bytes(rasters, at.capacity as u64, row_bytes, made);
                let trailing = rasters.into_iter().chain(contents.masks.iter().copied());
                let masked = |row: usize| status[row].is_masked();
                describe_rows(&slot, *rule, contents.size, status.len(), masked, rows)?;
                let emission = KernelEmission::new(&program.output_format, contents.size);
                let trailing: Vec<_> = trailing.collect();
                stage.submit(slot, rows, at, &emission, *read, &trailing)
            }
        }
    }

    /// Opens a batch that workers still fill: the device decodes its coded rows as they become
    /// final. `size`: height and width of its rows. `tries`: attempts after a row's first.
    ///
    /// # Errors
    /// A device error; no memory for a batch.
    pub(crate) fn open_batch(
        &mut self,
        (place, slot): (BatchRequest, WatchedSlot),
        size: (u32, u32),
        tries: u32,
        program: &SampleProgram,
    ) -> Result<OpenCodedBatch> {
        let (jpegs, crops) = self.decoding()?;
        let emission = KernelEmission::new(&program.output_format, size);
        let target = (crops.stage).reserve(place.rows as usize, &emission)?;
        let outline = BatchOutline {
            place,
            tries,
            rule: crops.rule,
            size,
            parts: jpegs.parts,
        };
        let rows = Arc::new(BatchRows::new(slot, outline, jpegs.cpu.clone()));
        let row_bytes = program.row_bytes(size) as usize;
        let contents = (places(crops.rule, size), emission, row_bytes);
        jpegs.thread.open(rows.clone(), target.clone(), contents)?;
        Ok(OpenCodedBatch {
            place,
            target,
            rows,
        })
    }

    /// Closes an open batch after workers have filled it: delivers its other rows, its rasters and
    /// its instance masks to the device. `objects`: those of the batch, if it has any.
    ///
    /// # Errors
    /// A device error; a malformed row.
    pub(crate) fn close_batch(
        &mut self,
        opened: OpenCodedBatch,
        (filled, mut objects): (FilledBatch, Option<BatchObjects>),
        size: (u32, u32),
        program: &SampleProgram,
    ) -> Result<ClosedBatch> {
        opened.rows.close();
        let (_, crops) = self.decoding()?;
        let RowSplit { rows, coded } = split_rows(&filled, crops.rule, size)?;
        let FilledBatch {
            place,
            rows: held_since,
            bad,
        } = filled;
        if place != opened.place {
            return Err(Error::Device {
                what: format!(
                    "batch {} arrived while batch {} was expected: this is a defect of featherload, please \
                     report it",
                    place.number, opened.place.number
                ),
            });
        }
        let slot = slot_of(BatchStorage::from(held_since))?;
        let at = places(crops.rule, size);
        let emission = KernelEmission::new(&program.output_format, size);
        let (row_bytes, made) = (program.row_bytes(size), (size, place.rows));
        let rasters = trailing_bytes(&crops.rasters, at.capacity as u64, row_bytes, made);
        let end = RasterSection::end(&crops.rasters, row_bytes, made) as usize;
        let masks = objects.as_mut().map(|objects| objects.place_masks(end));
        let trailing: Vec<_> = rasters
            .into_iter()
            .chain(masks.unwrap_or_default())
            .collect();
        let (stage, read) = (&mut crops.stage, crops.read);
        stage.begin(slot, &rows, at, &emission, read, (opened.target, &trailing))?;
        Ok(ClosedBatch {
            place,
            bad,
            rows: coded,
            objects,
        })
    }

    fn decoding(&mut self) -> Result<(&mut Jpegs, &mut CropMaker)> {
        match (&mut self.jpegs, &mut self.stage) {
            (Some(jpegs), DeviceStage::Crops(crops)) => Ok((jpegs, crops)),
            _ => Err(Error::Device {
                what: "coded rows came, but workers decode all images".into(),
            }),
        }
    }

    /// Writes bytes into the oldest closed batch, after its coded rows are decoded. Waits for the
    /// device.
    ///
    /// # Errors
    /// A device error.
    pub(crate) fn overwrite(&mut self, at: usize, bytes: &[u8]) -> Result<()> {
        let (_, crops) = self.decoding()?;
        crops.stage.overwrite(at, bytes)
    }

    /// The rows of the oldest closed batch, after its coded rows are decoded.
    ///
    /// # Errors
    /// A device error.
    pub(crate) fn take_rows(&mut self) -> Result<DeviceRows> {
        match &mut self.stage {
            DeviceStage::Crops(crops) => crops.stage.finish(),
            DeviceStage::Rows(_) | DeviceStage::CropSets(_) => Err(Error::Device {
                what: "no batch was begun, so none can be finished".into(),
            }),
        }
    }

    /// Forgets batches that are not needed: all open ones, and `closed` closed ones.
    pub(crate) fn cancel(&mut self, opened: impl Iterator<Item = OpenCodedBatch>, closed: usize) {
        if let Some(jpegs) = &mut self.jpegs {
            // After an error the device is not used any more.
            let _ = jpegs.thread.cancel_batches();
        }
        opened.for_each(drop);
        for _ in 0..closed {
            let _ = self.take_rows();
        }
    }
}

/// How levels become elements, for each crop of a sample. The elements are those of the CPU.
fn set_forms(program: &SampleProgram) -> Vec<KernelSetForm> {
    let form = |program: &SampleProgram| {
        let format = &program.output_format;
        let (height, width) = program.extent.of((0, 0));
        KernelSetForm {
            height,
            width,
            channels: format.channels() as u32,
            reversed: u32::from(format.order == ColorOrder::Bgr),
            nhwc: u32::from(format.layout == MemoryLayout::Nhwc),
            bytes: format.dtype.size() as u32,
            elements: format.element_bits(),
        }
    };
    program.crop_programs().iter().map(form).collect()
}

/// The kernel's rows for a slot, with every number checked. `masked`: whether a row holds no
/// sample.
fn describe_rows(
    slot: &HeldSlot,
    rule: CropRule,
    size: (u32, u32),
    count: usize,
    masked: impl Fn(usize) -> bool,
    rows: &mut Vec<KernelRow>,
) -> Result<()> {
    let room = rule.row_bytes(size);
    rows.clear();
    for n in 0..count {
        if masked(n) {
            rows.push(KernelRow {
                flags: MASKED,
                ..KernelRow::default()
            });
            continue;
        }
        let begin = n * room.row_bytes();
        let read = header_of(|to| slot.copy(begin, to), room, size, RowContents::Pixels);
        let row = read.and_then(|header| kernel_row(&header, begin, room, rule));
        rows.push(row.map_err(|why| destroyed_row(n as u32, &why))?);
    }
    Ok(())
}
