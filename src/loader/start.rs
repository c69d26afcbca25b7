//! Starts a run.
//!
//! In the consumer. The order matters: first the coordinator, before any thread or data exists.
//! Then the index (and the sizes of images, if rows have their own sizes), the ring, the workers.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::data::columns::column_set::OpenColumns;
use crate::data::index::Index;
use crate::device::{DecodeOn, Device};
use crate::error::{self, Error, Result};
use crate::jobs::images::batch_mixing::BatchMixing;
use crate::jobs::images::coded_batch::CpuJob;
use crate::jobs::images::device_batches;
use crate::jobs::images::device_batches::{DeviceBatches, DeviceSpec};
use crate::jobs::images::device_pool::DevicePool;
use crate::jobs::images::packing::{PackedBatch, SlotPacking};
use crate::jobs::images::run::{ImageRun, batch_place};
use crate::jobs::images::spec::{ImageJobData, ImageSpec};
use crate::jobs::kinds::KINDS;
use crate::jobs::picture_window::PictureWindow;
use crate::loader::builder::LoaderBuilder;
use crate::loader::coded_room::coded_room;
use crate::loader::image_loader::{BatchMaker, Loader, check_start, resume_mark};
use crate::loader::jpeg_decoding;
use crate::loader::prepared_run::{HostLimit, MemoryDecision, PreparedRun, RunRequest};
use crate::loader::raster_source::OpenedRaster;
use crate::loader::source::Source;
use crate::memory_plan::MemoryLimit;
use crate::order::{EpochMark, Position, Sampler, SamplerTable, State};
use crate::pool::ring::RingShape;
use crate::pool::row_filler::RowFiller;
use crate::recipe::NumericProfile;
use crate::remote::fetch::fetcher::Fetcher;
use crate::sys::cpu::CpuLevel;

impl Loader {
    /// Begins the options of a loader over `source`.
    pub fn builder(source: impl Into<Source>) -> LoaderBuilder {
        LoaderBuilder::new(source.into())
    }
}

impl LoaderBuilder {
    /// Starts coordinator and workers, reads the names of the samples, and returns the loader.
    ///
    /// # Errors
    /// Options that cannot work; a data set that cannot be read; a helper that is missing or has
    /// another version; a system call that fails.
    pub fn build(mut self) -> Result<Loader> {
        let began = Instant::now();
        self = self.with_rules()?;
        let columns = self.run_columns()?;
        let program = self.program()?;
        // Workers check this again. Here the caller sees the error.
        CpuLevel::detect()?;
        let workers = self.worker_options.count()?;
        device_batches::check_workers(self.device, workers)?;
        let uploads = self.uploads(&program)?;
        let (requested, wish) = (self.depth, self.decode_wish());
        if let Some(uploads) = &uploads {
            uploads.check(requested)?;
        }
        let hold_timeout = self.worker_options.hold_timeout;
        let helper = self.worker_options.helper.clone();
        let launched = self.worker_options.launch(KINDS)?;
        let host = self
            .memory_limit
            .and_then(|requested| MemoryLimit::lowest_of(Some(requested)))
            .map_or(HostLimit::None, HostLimit::LowersDepth);
        let request = RunRequest {
            helper: helper.as_deref(),
            program: &program,
            plan: &self.plan,
            sample_weights: self.sample_weights.as_deref(),
            limits: self.limits,
            feed: self.feed.as_ref(),
            on_error: self.on_error,
            masks: self.masks.as_ref(),
            rasters: &self.rasters,
            objects: self.objects.as_ref(),
            columns: &columns,
            plans_memory: self.memory_limit.is_some(),
            coded_room: coded_room(uploads.as_ref(), requested, self.memory_limit),
        };
        let prepared = PreparedRun::new(self.source, &request)?;
        let program = prepared.program.clone();
        let needed = self.decode_on == DecodeOn::Gpu;
        let uploads = prepared.uploads(uploads, requested, needed)?;
        let parts = uploads.as_ref().and_then(|uploads| uploads.jpegs);
        let decodes = parts.is_some();
        let outlook = jpeg_decoding::decode_choice(wish, &program, prepared.has_jpegs, decodes);
        let MemoryDecision {
            memory,
            upload,
            lowered,
            refusal,
            finished,
            window,
        } = prepared.plan_memory(&request, workers, host, requested, uploads.as_ref())?;
        if let Some(refusal) = refusal {
            return Err(refusal);
        }
        if let Some(lowered) = lowered {
            tracing::warn!("{lowered}");
        }
        let depth = memory.depth;
        let sections = prepared.raster_sections();
        let PreparedRun {
            index,
            rasters,
            objects,
            scan,
            mut fetcher,
            plan,
            packing,
            sizes,
            tries,
            columns,
            ..
        } = prepared;
        let (program, packing) = finished.unwrap_or((program, packing));
        check_start(self.start, &plan)?;
        let EpochMark { epoch, samples } = plan.mark(self.start.epoch, self.start.batch);
        let (masks_hash, rasters_hash) = OpenedRaster::fingerprints(&rasters);
        let mut state = State {
            version: State::VERSION,
            epoch,
            samples,
            plan: plan.options().clone(),
            sampler_hash: plan.table().and_then(SamplerTable::hash),
            index_hash: format!(
                "{:032x}",
                match plan.options().sampler {
                    Sampler::ShardShuffle { .. } => index.hash_of_division(),
                    _ => index.hash(),
                }
            ),
            recipe_hash: format!("{:016x}", self.recipe.hash()),
            masks: masks_hash,
            rasters: rasters_hash,
            objects: (objects.as_ref()).map(|of| of.rule.fingerprint(of.table.hash())),
            profile: NumericProfile::of(&program),
            max_pixels: self.limits.max_pixels,
            max_scratch: self.limits.max_scratch,
        };
        if let Some(from) = self.resume {
            if from.samples > 0 && matches!(plan.options().sampler, Sampler::Given { .. }) {
                return Err(Error::option(
                    "resume",
                    format!(
                        "the state is within epoch {}, whose order the caller gives: build the \
                         loader without it, then call Loader::set_order and Loader::resume",
                        from.epoch
                    ),
                ));
            }
            from.check_resumable(&state)?;
            if self.start != Position::default() {
                return Err(Error::option(
                    "start",
                    "`start` and `resume` both set where the run begins: give one of them",
                ));
            }
            state.go_to(resume_mark(&from, &plan)?);
        }
        if fetcher.is_some() && !plan.has_order(state.epoch) {
            return Err(Error::option(
                "sampler",
                "an order of the caller needs a data set on this machine: use another sampler, or \
                 a copy of the data set",
            ));
        }
        if let Some(fetcher) = &mut fetcher {
            fetcher.set_order(&index, &plan, state.mark(), self.epochs)?;
        }
        let places = depth.saturating_add(device_batches::outputs(depth)).max(2);
        let handed = self.feed.as_ref();
        let handed = handed.map(|feed| feed.start(&index, places, plan.most_rows()));
        let (handed_shape, handed_fd) = handed.transpose()?.unzip();
        let handed_fd = handed_fd.as_ref().map(AsFd::as_fd);
        let kept_pictures = window.map(PictureWindow::create).transpose()?;
        let work = DeviceSpec {
            program: &program,
            plan: &plan,
            upload: upload
                .as_ref()
                .map(|choice| choice.upload)
                .unwrap_or_default(),
            outputs: device_batches::outputs(depth) as usize,
            jpegs: parts,
            rasters: &sections,
            mask_bytes: packing.mask_bytes(),
        };
        let spec = ImageSpec {
            program: program.clone(),
            plan: plan.options().clone(),
            limits: self.limits,
            tries,
            jpegs: work.jpeg_limits(),
            rasters: rasters.iter().map(|raster| raster.named.clone()).collect(),
            objects: objects.as_ref().map(|of| of.rule.clone()),
            handed: handed_shape,
            window,
            evicts_shards: fetcher.as_ref().is_some_and(Fetcher::evicts),
        };
        let by_cpu = ImageSpec {
            jpegs: None,
            ..spec.clone()
        };
        let data = ImageJobData {
            index: &index,
            rasters: rasters.iter().map(|raster| &raster.files).collect(),
            objects: objects.as_ref().map(|of| &*of.table),
            sizes: sizes.as_ref(),
            table: plan.table(),
            handed: handed_fd,
            window: kept_pictures.as_ref(),
        };
        // The device opens while the workers start, which takes about as long. After all checks
        // that reject a run, because an opening device cannot be interrupted.
        let jpegs = match (self.device, parts) {
            (Device::Cpu, _) | (_, None) => None,
            (Device::Cuda(ordinal), Some(_)) => {
                let thread = device_batches::start_jpegs(ordinal)?;
                let order = by_cpu.order(&data)?;
                Some((thread, Arc::new(CpuJob::new(order.build_here(KINDS)?))))
            }
        };
        let shape = RingShape {
            slots: depth,
            rows: plan.most_rows(),
            slot_bytes: packing.slot_bytes(),
            lanes: workers.max(1),
        };
        if workers > 0
            && let Some(what) = what_is_uneven(shape, &packing, &index)
        {
            tracing::warn!("{what}");
        }
        let filler = launched.start(
            &spec.order(&data)?,
            shape,
            // The shards of a remote data set are not here yet, nor is an order of the caller, nor
            // are the samples of a feed.
            (fetcher.is_none() && self.feed.is_none() && plan.has_order(state.epoch))
                .then(|| batch_place(&plan, state.mark())),
            |needed, free| {
                format!(
                    "the ring needs {} and {} are available: lower `batch_size` or `depth`, or \
                     use a smaller `dtype`{}",
                    error::size_rounded_up(needed),
                    error::size_rounded_down(free),
                    what_is_large(shape, &packing, &index)
                )
            },
        )?;
        let maker = match (self.device, filler, upload) {
            (Device::Cuda(ordinal), RowFiller::Workers(pool), Some(_)) => {
                let on = DeviceBatches::open(ordinal, pool.ring(), &work, jpegs)?;
                BatchMaker::Device(Box::new(DevicePool::new(on, *pool, hold_timeout)))
            }
            (_, filler, _) => BatchMaker::Host(filler),
        };
        let index = Arc::new(index);
        Ok(Loader {
            maker,
            run: ImageRun {
                columns: OpenColumns::new(columns.readers, columns.named, index.clone()),
                captions: columns.captions,
                index,
                scan,
                plan,
                program,
                packing,
                image_sizes: sizes,
                rasters: spec.rasters.into(),
                annotations: objects.and_then(|of| of.report),
                packed: PackedBatch::default(),
                state,
                epochs: self.epochs,
                ready_batches: (fetcher.is_some() || self.feed.is_some()).then_some(0),
                feed: self.feed,
                on_error: self.on_error,
                tries,
                startup: began.elapsed(),
                mixing: self.recipe.mixing.as_ref().map(BatchMixing::new),
                mixing_time: Duration::ZERO,
            },
            fetcher,
            jpegs: outlook,
            epoch_abandoned: false,
            order_hashes: Vec::new(),
            handed_over: None,
            consumer: Duration::ZERO,
        })
    }
}

/// The warning needs at least this many extra bytes.
const MUCH: u64 = 16 << 20;

/// Number of images that a message names.
const NAMED: usize = 3;

/// Names the largest images, if rows have their own sizes.
fn what_is_large(shape: RingShape, packing: &SlotPacking, index: &Index) -> String {
    let Some(named) = largest(packing, index) else {
        return String::new();
    };
    format!(
        ", or leave out the largest images, or {}. Each of {} slots \
         takes {}, so that any {} rows fit. Largest: {named}",
        packing.smaller_rows(),
        shape.slots,
        error::size(shape.slot_bytes),
        shape.rows,
    )
}

/// A warning, if a few images determine most of every slot's size.
fn what_is_uneven(shape: RingShape, packing: &SlotPacking, index: &Index) -> Option<String> {
    let without = packing.slot_bytes_without(NAMED)?;
    let more = shape.slot_bytes.saturating_sub(without);
    if shape.slot_bytes / 2 <= without || more.saturating_mul(u64::from(shape.slots)) < MUCH {
        return None;
    }
    Some(format!(
        "a few images make the ring large: each of {} slots takes {}, and {} without the \
         {NAMED} largest. Leave them out, or {}: {}",
        shape.slots,
        error::size(shape.slot_bytes),
        error::size(without),
        packing.smaller_rows(),
        largest(packing, index)?
    ))
}

/// Paths and sizes of the largest images. None if all rows are equal.
fn largest(packing: &SlotPacking, index: &Index) -> Option<String> {
    let named: Vec<String> = packing
        .largest(NAMED)
        .into_iter()
        .filter_map(|(bytes, id)| {
            let (height, width) = packing.scanned_size(id)?;
            let path = index.path(id);
            let path = path.display();
            let takes = error::size(bytes);
            Some(format!("{path} ({width} x {height}) takes {takes}"))
        })
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}
