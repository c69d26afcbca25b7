//! Everything that follows from options and data before memory is allocated. Used by the start of a
//! run and by its memory plan.
//!
//! In the consumer.

use crate::data::index::{Index, ScanReport};
use std::path::Path;

use crate::data::columns::column_set;
use crate::data::sample_sizes::SampleSizes;
use crate::data::survey;
use crate::error::{Error, Result, size_rounded_down, size_rounded_up};
use crate::jobs::images::batch_mixing;
use crate::jobs::images::object_section::ObjectSection;
use crate::jobs::images::on_error::OnError;
use crate::jobs::images::packing::SlotPacking;
use crate::jobs::images::spec::needs_sizes;
use crate::jobs::item_feed::ItemFeed;
use crate::jobs::object_record;
use crate::jobs::open_shards::MAPPED_SHARDS;
use crate::jobs::picture_window::WindowShape;
use crate::jobs::raster_rule::{MASKS, NamedRaster};
use crate::jobs::raster_section::RasterSection;
use crate::jobs::stage_needs::StageNeeds;
use crate::loader::coded_room::CodedRoom;
use crate::loader::hull_room;
use crate::loader::mask_source::MaskOptions;
use crate::loader::object_source::{ObjectOptions, OpenedObjects};
use crate::loader::raster_source::{OpenedRaster, RasterList, RasterSources, check_moves};
use crate::loader::remote_targets::fetch_members;
use crate::loader::run_columns::{OpenedColumns, RunColumns};
use crate::loader::sampler_table;
use crate::loader::source::{DeadAddresses, Source};
use crate::loader::upload::{UploadChoice, UploadPlanner};
use crate::memory_plan::batch_sizes::BatchSizes;
use crate::memory_plan::run_memory::{
    MemoryInputs, MixingBytes, RingDepth, SEVERAL_SIZES, ScratchSurvey,
};
use crate::memory_plan::{MemoryLimit, RunMemory};
use crate::order::{BucketBatches, EpochPlan, OrderOptions, Sampler, SamplerTable};
use crate::picture::PictureLimits;
use crate::recipe::joints::JointKind;
use crate::recipe::{CutRule, RowExtent, SampleProgram};
use crate::remote::fetch::fetcher::{Fetcher, TarIndexPolicy};
use crate::sys::memory;

/// Index, order and sizes of a run.
#[derive(Debug)]
pub(super) struct PreparedRun {
    pub(super) index: Index,
    /// The rasters of all samples, masks first.
    pub(super) rasters: Vec<OpenedRaster>,
    /// The objects of all samples, and how they move.
    pub(super) objects: Option<OpenedObjects>,
    pub(super) scan: Option<ScanReport>,
    /// Downloads shards of a remote data set.
    pub(super) fetcher: Option<Fetcher>,
    pub(super) plan: EpochPlan,
    pub(super) packing: SlotPacking,
    /// The program for each sample, with rows sized for the data set.
    pub(super) program: SampleProgram,
    /// Window pixels that a part of coded JPEGs must have room for. 0: its rows' room is enough.
    windows: usize,
    /// False if a device should decode and none of the files that were read is a JPEG.
    pub(super) has_jpegs: bool,
    /// The sizes that `packing` uses, for the job.
    pub(super) sizes: Option<SampleSizes>,
    /// Substitutes to try for a sample that cannot be used.
    pub(super) tries: u32,
    /// Memory needs from all headers, if they were read for it.
    pub(super) scratch: Option<ScratchSurvey>,
    /// Memory for mixing.
    mixing: MixingBytes,
    /// Most bytes of samples that a feed has given and that were not returned.
    feed_bytes: u64,
    /// The columns of batches and of captions.
    pub(super) columns: OpenedColumns,
}

/// The inputs of a [`PreparedRun`].
pub(super) struct RunRequest<'a> {
    /// The helper executable, if the user named one.
    pub(super) helper: Option<&'a Path>,
    pub(super) program: &'a SampleProgram,
    pub(super) plan: &'a OrderOptions,
    pub(super) sample_weights: Option<&'a [f64]>,
    pub(super) limits: PictureLimits,
    /// Gives the samples while the run goes on.
    pub(super) feed: Option<&'a ItemFeed>,
    pub(super) on_error: OnError,
    pub(super) masks: Option<&'a MaskOptions>,
    pub(super) rasters: &'a RasterList,
    pub(super) objects: Option<&'a ObjectOptions>,
    pub(super) columns: &'a RunColumns,
    /// Whether to read all headers for their memory needs.
    pub(super) plans_memory: bool,
    /// The rows for coded JPEGs. None unless a device decodes.
    pub(super) coded_room: Option<CodedRoom>,
}

/// The effect of the host's memory limit.
#[derive(Clone, Copy)]
pub(super) enum HostLimit {
    None,
    /// Rejects a run that does not fit.
    Refuses(MemoryLimit),
    /// Reduces the number of slots, unless the user fixed it.
    LowersDepth(MemoryLimit),
}

/// The memory of a run within its limits.
pub(super) struct MemoryDecision {
    pub(super) memory: RunMemory,
    /// How the device reads what workers hand over. None without a device.
    pub(super) upload: Option<UploadChoice>,
    /// The limit that reduced the number of slots, in one line.
    pub(super) lowered: Option<String>,
    /// Why the run cannot start: even the smallest plan exceeds a limit.
    pub(super) refusal: Option<Error>,
    /// Replaces the program and its rows if only finished crops fit the host's limit.
    pub(super) finished: Option<(SampleProgram, SlotPacking)>,
    /// The memory that keeps the pictures of joined samples. None: nothing keeps them.
    pub(super) window: Option<WindowShape>,
}

impl PreparedRun {
    /// Opens the data set. Reads headers if the order, the rows or the memory plan needs them.
    ///
    /// # Errors
    /// A data set that cannot be read; options that do not fit it.
    pub(super) fn new(source: Source, request: &RunRequest<'_>) -> Result<Self> {
        let dead = match request.on_error {
            OnError::Stop => DeadAddresses::Refused,
            OnError::Skip | OnError::Substitute => DeadAddresses::Kept,
        };
        let column_source = request.columns.source(&source)?;
        let rasters = RasterSources::of(request.masks, request.rasters, &source)?;
        let pastes = request.program.pastes_objects();
        let objects = request.objects;
        let objects = objects.map(|objects| objects.with_shapes(pastes));
        let objects = objects.map(|objects| objects.downloaded(request.helper));
        let (objects, _fetched) = objects.transpose()?.unzip();
        let options = objects.as_ref();
        let object_source = options.map(|objects| objects.column_source(&source));
        let object_source = object_source.transpose()?.flatten();
        let described = options.map(|objects| objects.open_with_images(&source));
        let described = described.transpose()?.flatten();
        let (index, scan, fetcher, objects) = match described {
            Some((index, objects)) => (index, None, None, Some(objects)),
            None => {
                let (index, scan, mut fetcher) =
                    source.open_with_fetcher(request.helper, TarIndexPolicy::OfWholeSets, dead)?;
                let of_objects = options.filter(|objects| objects.are_members());
                let option = of_objects.map(|_| "objects").or(rasters.of_members());
                if let (Some(fetcher), Some(option)) = (&mut fetcher, option) {
                    fetch_members(fetcher, &index, option)?;
                }
                let objects = options
                    .map(|options| options.open(&index, object_source))
                    .transpose()?;
                (index, scan, fetcher, objects)
            }
        };
        if fetcher.is_none() {
            index.check_local("this index alone cannot download them")?;
        }
        if fetcher.as_ref().is_some_and(Fetcher::evicts) && request.on_error == OnError::Substitute
        {
            return Err(Error::option(
                "on_error",
                "substitutes may be in any shard, and `fetch_limit` keeps only some of \
                 them: use `on_error` skip, or a `fetch_limit` with room for all",
            ));
        }
        let rasters = rasters.open(&index, fetcher.is_some())?;
        let others = rasters.iter().filter(|raster| raster.named.name != MASKS);
        for (raster, (name, known)) in others.zip(request.rasters.rules()) {
            if known.is_none() {
                check_moves(request.program, name, &raster.named.rule)?;
            }
        }
        let (program, limits) = (request.program, request.limits);
        if request.feed.is_some() {
            check_feed(request)?;
        }
        if let RowExtent::Patches(rule) = &program.extent {
            let masks = objects.as_ref().and_then(|objects| objects.rule.masks);
            check_patches(request, rule, masks.is_some())?;
        }
        if program.is_joined() {
            let objects = objects.as_ref();
            check_joined(request, objects, request.masks.is_some(), fetcher.is_some())?;
        }
        let options = &request.plan.with_shard_samples(index.samples_per_shard());
        options.check(index.len())?;
        match (&program.recipe().mixing, program.labelling_op()) {
            // Labels that an operation draws always fit: the recipe was checked.
            (Some(mixing), None) => batch_mixing::check_labels(mixing, &index)?,
            (_, Some(op)) => sampler_table::check_labelled_by(op, &options.sampler)?,
            (None, None) => {}
        }
        check_sizes(program, options)?;
        if options.size_setter().is_none()
            && let Some(op) = program.size_dependent_op()
        {
            return Err(Error::config(format!(
                "{op} has `sizes`, but without multi_scale all batches have one size: remove \
                 sizes and magnitudes, or set multi_scale"
            )));
        }
        let (table, mut sizes) = sampler_table::prepare(
            (&index, objects.as_ref().map(|objects| &*objects.table)),
            options,
            request.sample_weights,
            &limits,
            (program.orientation, program.extent),
        )?;
        let plan = EpochPlan::with_table(index.len(), options.clone(), table)?;
        if let Some(what) = plan
            .buckets()
            .and_then(|buckets| short_buckets(buckets, &plan))
        {
            tracing::warn!("{what}");
        }
        let mut worst = None;
        if request.plans_memory && request.feed.is_some() {
            // No header is known before the run.
            worst = Some(ScratchSurvey::at_limit(&limits));
        } else if request.plans_memory && !program.has_pixels {
            worst = Some(ScratchSurvey::default());
        } else if request.plans_memory {
            let files = (&index, &rasters[..], objects.as_ref());
            let (most, all) = read_headers(program, files, &plan, &limits)?;
            worst = Some(most);
            sizes = Some(all);
        }
        if !needs_sizes(program, &options.sampler) {
            sizes = None;
        } else if sizes.is_none() {
            sizes = Some(survey::read_sizes(&index, &limits, program.orientation)?);
        }
        let for_job = sizes.as_ref().map(SampleSizes::try_clone).transpose()?;
        let tries = request.on_error.substitute_limit(&plan);
        let mixing = MixingBytes::of(program, plan.scales().map(|(size, _)| size));
        let with_room = request
            .coded_room
            .map(|coded| coded.of(program, &index, &limits, plan.most_rows()));
        let has_jpegs = !matches!(with_room, Some(None));
        let (program, windows) = with_room.flatten().unwrap_or_else(|| (program.clone(), 0));
        let packing = SlotPacking::new(&program, plan.clone(), tries, limits, sizes)?;
        let named: Vec<NamedRaster> = rasters.iter().map(|of| of.named.clone()).collect();
        let packing = packing.with_rasters(&named, &program);
        let section = (objects.as_ref())
            .map(|objects| ObjectSection::new(objects.table.clone(), &objects.rule))
            .map(|section| section.joining(&program));
        let packing = packing.with_objects(section);
        let columns = request.columns.open(column_source, &index)?;
        // What lists and annotations took while they were read is no part of the plan.
        memory::trim_shared_heap();
        Ok(Self {
            columns,
            index,
            rasters,
            objects,
            scan,
            fetcher,
            plan,
            packing,
            program,
            windows,
            has_jpegs,
            sizes: for_job,
            tries,
            scratch: worst,
            mixing,
            feed_bytes: request.feed.map_or(0, ItemFeed::bytes),
        })
    }

    /// What the device needs for the rows of this data set. Without JPEGs it has no JPEG decoder,
    /// unless `needed`.
    ///
    /// # Errors
    /// As [`UploadPlanner::with_program`].
    pub(super) fn uploads<'b>(
        &'b self,
        uploads: Option<UploadPlanner<'_>>,
        depth: RingDepth,
        needed: bool,
    ) -> Result<Option<UploadPlanner<'b>>> {
        let of_data = |mut uploads: UploadPlanner<'_>| {
            uploads.jpegs = uploads.jpegs.filter(|_| self.has_jpegs || needed);
            uploads.rasters = self.raster_sections();
            uploads.mask_bytes = self.packing.mask_bytes();
            // The buckets of the data set are known now.
            let buckets = self.plan.bucket_scales();
            uploads.plan.multi_scale = buckets.or(uploads.plan.multi_scale);
            uploads.target_bytes = self.packing.target_bytes();
            uploads.with_program(&self.program, self.windows, depth, needed)
        };
        uploads.map(of_data).transpose()
    }

    /// The rasters that follow the rows of a batch.
    pub(super) fn raster_sections(&self) -> Vec<RasterSection> {
        let all = self.rasters.iter();
        all.map(|raster| raster.named.rule.section(&self.program))
            .collect()
    }

    /// Chooses the number of slots and how the device reads pixels, within the limits of device and
    /// host. Without headers the memory of samples counts as 0. A run that does not fit is returned
    /// with its error, which names settings that would fit.
    ///
    /// If the host's limit leaves fewer slots because a device makes several crops, workers finish
    /// them instead.
    ///
    /// # Errors
    /// Numbers for which no ring can be made.
    pub(super) fn plan_memory(
        &self,
        request: &RunRequest<'_>,
        workers: u32,
        host: HostLimit,
        requested: RingDepth,
        uploads: Option<&UploadPlanner<'_>>,
    ) -> Result<MemoryDecision> {
        let inputs = (workers, host, requested);
        let decided = self.plan_rows(request, inputs, &self.packing, uploads)?;
        let (HostLimit::LowersDepth(limit), Some(uploads)) = (host, uploads) else {
            return Ok(decided);
        };
        let depth = requested.most_slots();
        let fits = decided.refusal.is_none() && decided.memory.depth == depth;
        if fits || uploads.program.hulls.is_none() {
            return Ok(decided);
        }
        let program = uploads.program.without_hulls();
        let plan = self.plan.clone();
        let packing = SlotPacking::new(&program, plan, self.tries, request.limits, None)?;
        let finished = UploadPlanner {
            program: &program,
            finished_why: Some(hull_room::is_over_limit(limit, depth)),
            ..uploads.clone()
        };
        let other = self.plan_rows(request, inputs, &packing, Some(&finished))?;
        let has_more = decided.refusal.is_some() || other.memory.depth > decided.memory.depth;
        match other.refusal.is_none() && has_more {
            true => Ok(MemoryDecision {
                finished: Some((program, packing)),
                ..other
            }),
            false => Ok(decided),
        }
    }

    /// The same for rows of this packing.
    fn plan_rows(
        &self,
        request: &RunRequest<'_>,
        (workers, host, requested): (u32, HostLimit, RingDepth),
        packing: &SlotPacking,
        uploads: Option<&UploadPlanner<'_>>,
    ) -> Result<MemoryDecision> {
        let mut ingredients = self.ingredients(workers, packing);
        let slot_bytes = ingredients.slot_bytes;
        let mut depth = requested;
        let mut lowered = None;
        if let Some(uploads) = uploads {
            let chosen = match uploads.choose(slot_bytes, depth) {
                Ok(chosen) => chosen,
                Err(refusal) => {
                    return Ok(MemoryDecision {
                        memory: ingredients.with_depth(depth.least_slots())?,
                        upload: None,
                        lowered: None,
                        refusal: Some(refusal),
                        finished: None,
                        window: None,
                    });
                }
            };
            ingredients.device = Some(chosen.bytes);
            depth = depth.capped_at(chosen.depth);
            lowered = uploads
                .limit
                .map(|bytes| is_lowered(requested, depth.most_slots(), "gpu_memory_limit", bytes))
                .unwrap_or_default();
        }
        // With a device, `reorder: fast` may change which rows workers hand over.
        let faster = || match uploads {
            Some(_) => None,
            None => self.scratch_if_faster(request),
        };
        let bytes = match host {
            HostLimit::LowersDepth(limit) => Some(limit.bytes),
            HostLimit::None | HostLimit::Refuses(_) => None,
        };
        let window = ingredients.keep_pictures(self.kept_pictures(), bytes, depth)?;
        let (mut memory, refusal) = match host {
            HostLimit::None => (ingredients.with_depth(depth.most_slots())?, None),
            HostLimit::Refuses(limit) => {
                ingredients.fit_limit(limit, RingDepth::Exactly(depth.most_slots()), &faster)?
            }
            HostLimit::LowersDepth(limit) => {
                let (memory, refusal) = ingredients.fit_limit(limit, depth, &faster)?;
                if memory.depth < depth.most_slots() {
                    lowered = is_lowered(requested, memory.depth, limit.by, limit.bytes);
                }
                (memory, refusal)
            }
        };
        let mut upload = None;
        if let Some(uploads) = uploads {
            // Fewer slots may leave room for another upload mode.
            let chosen = uploads.choose(slot_bytes, RingDepth::Exactly(memory.depth))?;
            ingredients.device = Some(chosen.bytes);
            memory = ingredients.with_depth(memory.depth)?;
            upload = Some(chosen.choice);
        }
        Ok(MemoryDecision {
            memory,
            upload,
            lowered: lowered.filter(|_| refusal.is_none()),
            refusal,
            finished: None,
            window,
        })
    }

    /// The scratch of a worker under `reorder: fast`. None if the order is the same. Reads all
    /// headers again, but only for a run that is rejected.
    fn scratch_if_faster(&self, request: &RunRequest<'_>) -> Option<u64> {
        self.scratch.as_ref()?;
        let program = request.program.with_fast_order()?;
        let files = (&self.index, &self.rasters[..], self.objects.as_ref());
        let read = read_headers(&program, files, &self.plan, &request.limits);
        let (worst, _) = read.ok()?;
        Some(worst.scratch_bytes().saturating_add(self.object_scratch()))
    }

    /// The memory that keeps the pictures of joined samples, without a limit.
    fn kept_pictures(&self) -> Option<WindowShape> {
        let has_masks = (self.rasters.iter()).any(|raster| raster.named.name == MASKS);
        let rule = self.objects.as_ref().map(|objects| &objects.rule);
        let needs = StageNeeds::of(&self.program, has_masks, rule);
        WindowShape::of(&self.program, needs, self.plan.places())
    }

    /// Most bytes that the objects of a row take while they move.
    fn object_scratch(&self) -> u64 {
        let objects = self.objects.as_ref();
        let pictures = self.program.most_pictures();
        objects.map_or(0, |objects| {
            object_record::scratch_bytes(&objects.table, pictures)
        })
    }

    fn ingredients(&self, workers: u32, packing: &SlotPacking) -> MemoryInputs {
        let sizes = self.sizes.as_ref().map_or(0, |sizes| sizes.len() * 8);
        let table = self.plan.table().map_or(0, SamplerTable::bytes);
        // A second copy: the index has the names too.
        let classes = self.index.classes().bytes().saturating_sub(FEW_CLASSES);
        let worst = self.scratch.as_ref();
        let shards = self.index.shard_bytes();
        let of_shards = workers > 0 && shards.is_some();
        // A packed page stays unpacked while its samples are used. Workers map the packed bytes, so
        // without workers they count as well.
        let pages_of = |index: &Index| match workers {
            0 => index.largest_page() + index.largest_packed(),
            _ => index.largest_page(),
        };
        let pages = (self.rasters.iter().map(|raster| pages_of(&raster.files)))
            .fold(pages_of(&self.index), u64::saturating_add);
        let has_several_sizes =
            self.plan.scales().next().is_some() || self.program.extent.is_of_data();
        let of_sizes = match workers > 0 && has_several_sizes {
            true => SEVERAL_SIZES,
            false => 0,
        };
        MemoryInputs {
            workers,
            batch: self.plan.most_rows(),
            slot_bytes: packing.slot_bytes(),
            row_bytes: packing.row_bytes(),
            scratch_bytes: worst
                .map_or(0, ScratchSurvey::scratch_bytes)
                .saturating_add(self.object_scratch())
                .saturating_add(of_sizes),
            input_bytes: worst
                .filter(|_| !of_shards)
                .map_or(0, |w| w.input_bytes)
                .saturating_add(pages),
            page_cache_bytes: shards.filter(|_| of_shards).map_or(0, |(all, largest)| {
                all.min(
                    MAPPED_SHARDS
                        .max(largest)
                        .saturating_mul(u64::from(workers)),
                )
            }),
            table_bytes: self.index.bytes()
                + (self.rasters.iter().map(|raster| raster.files.bytes())).sum::<u64>()
                + self
                    .objects
                    .as_ref()
                    .map_or(0, |objects| objects.table.bytes())
                + classes
                + sizes
                + table
                + self.feed_bytes
                + column_set::unpacked_bytes(&self.columns.readers),
            mixing: self.mixing,
            kept_picture_bytes: 0,
            device: None,
        }
    }
}

/// The memory that samples of this program need, and the sizes of its images. Reads the header of
/// each image and of each raster.
///
/// # Errors
/// A data set that cannot be read.
fn read_headers(
    program: &SampleProgram,
    (index, rasters, objects): (&Index, &[OpenedRaster], Option<&OpenedObjects>),
    plan: &EpochPlan,
    limits: &PictureLimits,
) -> Result<(ScratchSurvey, SampleSizes)> {
    let decoding = program.decoding_stage();
    let labels = decoding.for_labels().ok();
    let files = rasters.iter();
    let files = files.map(|raster| (&raster.named.rule, &raster.files));
    let files: Vec<_> = files.collect();
    let has_masks = rasters.iter().any(|raster| raster.named.name == MASKS);
    let rule = objects.map(|objects| &objects.rule);
    let needs = StageNeeds::of(program, has_masks, rule);
    let draws = rule.is_some_and(|rule| rule.masks.is_some());
    let instances = labels.as_ref().filter(|_| draws || needs.objects.is_some());
    let programs = (decoding, labels.as_ref(), instances);
    let rows = sizes_of_batches(plan)?;
    // Batches set the size of rows, and stages before the last have their own.
    let of_images = match program.is_joined() {
        true => &BatchSizes::OfRecipe,
        false => &rows,
    };
    let (most, sizes) = ScratchSurvey::read_headers(index, (programs, &files), limits, of_images)?;
    let most_objects = objects.map_or(0, |objects| {
        let each = objects.table.most_objects() as u64;
        each.saturating_mul(program.most_pictures())
    });
    let most = most.with_joined(program, &rows, (needs, most_objects));
    Ok((most, sizes))
}

/// Rejects options that need samples before the run, which a feed gives only during it.
fn check_feed(request: &RunRequest<'_>) -> Result<()> {
    let sampler = &request.plan.sampler;
    let refused = |option: &'static str, what: String| {
        Err(Error::option(
            option,
            format!("{what}: a method gives the bytes and labels of samples while the run goes on"),
        ))
    };
    if request.on_error == OnError::Substitute {
        return refused(
            "on_error",
            "substitute needs samples that are known before the run; use skip or stop".into(),
        );
    }
    if sampler.reads_classes() || sampler.reads_sizes() {
        return refused(
            "sampler",
            format!("{sampler} needs labels or sizes of all samples"),
        );
    }
    match request.program.extent {
        RowExtent::Fixed { .. } => Ok(()),
        RowExtent::Own => refused(
            "recipe",
            "this recipe keeps the sizes of images, for which memory is made: end it with a resize \
             or a crop"
                .into(),
        ),
        RowExtent::Patches(_) => refused(
            "recipe",
            "this recipe makes patches or tiles, whose number follows from the sizes of all images: \
             give files, or make images of one size"
                .into(),
        ),
    }
}

/// Rejects options that rows of patches do not have.
fn check_patches(request: &RunRequest<'_>, rule: &CutRule, has_masks: bool) -> Result<()> {
    if request.on_error == OnError::Substitute && rule.padded_patches().is_none() {
        return Err(Error::option(
            "on_error",
            format!(
                "a substitute has other patches than the image that it replaces, and rows of style \
                 {} follow each other without a gap: use skip or stop",
                rule.style()
            ),
        ));
    }
    if has_masks {
        return Err(Error::option(
            "objects",
            "rows of patches have no instance masks yet: remove masks",
        ));
    }
    Ok(())
}

/// Rejects options with which rows of several samples cannot be made.
fn check_joined(
    request: &RunRequest<'_>,
    objects: Option<&OpenedObjects>,
    has_masks: bool,
    is_remote: bool,
) -> Result<()> {
    let program = request.program;
    let names = program.joined_stages().iter().map(|stage| stage.name);
    let refused = |what: &str| {
        let names = names.clone().collect::<Vec<_>>().join(" and ");
        Err(Error::option("recipe", format!("{names}: {what}")))
    };
    if request.feed.is_some() {
        return refused(
            "a method gives the bytes of each image while the run goes on, and partners are drawn \
             from all images: use image files",
        );
    }
    if is_remote {
        return refused(
            "the images are in an object store, and partners are drawn from all of them: use a \
             copy on this machine",
        );
    }
    let has = |is_kind: fn(&JointKind) -> bool| {
        let mut stages = program.joined_stages().iter();
        stages.any(|stage| is_kind(&stage.joint.kind))
    };
    if objects.is_none() && has(|kind| matches!(kind, JointKind::Cut { .. })) {
        return refused(
            "cut_samples chooses its box by the objects of images: give `objects`, or remove it. \
             cutmix of `mixing` mixes images with their labels",
        );
    }
    let mut stages = program.joined_stages().iter();
    let has_window = stages.any(|stage| stage.joint.window.is_some());
    let draws_identities = matches!(request.plan.sampler, Sampler::Identity { .. });
    if draws_identities && has_window {
        return refused(
            "partner_window divides the order of an epoch, and the sampler draws identities \
             without an order: remove partner_window, or use another sampler",
        );
    }
    if program.pastes_objects() && !objects.is_some_and(|objects| objects.table.form().shapes) {
        return refused(
            "copy_paste pastes objects, and these images have none with polygons or run lengths: \
             give `objects` that have them, or remove it",
        );
    }
    if has_masks && has(|kind| matches!(kind, JointKind::Mix { .. })) {
        return refused(
            "mix_samples mixes pixels of two images, so a pixel has no single label: remove it, or \
             load images without masks",
        );
    }
    let stages = program.joined_stages().iter();
    let needs = StageNeeds::of(program, has_masks, objects.map(|objects| &objects.rule));
    let each = stages.map(|stage| stage.bytes().saturating_add(needs.bytes(stage)));
    let bytes = each.fold(0, u64::saturating_add);
    let most = request.limits.max_scratch;
    if bytes > most {
        return refused(&format!(
            "the joined images of a row take {}, and `max_scratch` allows {}: use a smaller size",
            size_rounded_up(bytes),
            size_rounded_down(most)
        ));
    }
    Ok(())
}

/// Bytes of class names that fit the consumer's fixed share.
const FEW_CLASSES: u64 = 1 << 20;

/// Rejects a recipe whose rows cannot have the sizes that batches set.
fn check_sizes(program: &SampleProgram, options: &OrderOptions) -> Result<()> {
    let Some(setter) = options.size_setter() else {
        return Ok(());
    };
    if program.is_crop_set() {
        return Err(Error::option(
            setter,
            format!(
                "{setter} sets one size for a sample, and this recipe makes several crops of each \
                 image: use a recipe of one crop, or another {setter}"
            ),
        ));
    }
    if matches!(options.sampler, Sampler::Buckets(_)) && program.is_joined() {
        return Err(Error::option(
            setter,
            "the rows of a bucket have the shape of their images, and this recipe joins several \
             images: use another sampler",
        ));
    }
    if !program.allows_batch_sizes() {
        return Err(Error::option(
            setter,
            format!(
                "{setter} sets the size of rows, and this recipe does not set it last with \
                 cover_crop, random_resized_crop, bounded_resized_crop or a resize to [height, \
                 width]: use one of them, or another {setter}"
            ),
        ));
    }
    Ok(())
}

/// The warning about buckets that hardly fill batches. None if most batches are full.
fn short_buckets(buckets: &BucketBatches, plan: &EpochPlan) -> Option<String> {
    let (count, batches, short) = (buckets.count(), plan.batches(), buckets.short_batches());
    let left_out = plan.samples().saturating_sub(plan.filled_positions());
    let what = if short > batches / 2 {
        format!("{short} of {batches} batches are short")
    } else if left_out > plan.samples() / 10 {
        format!("{left_out} of {} images fill no batch", plan.samples())
    } else {
        return None;
    };
    let fix = match buckets.have_sizes() {
        true => "a larger step, or a smaller `batch_size`",
        false => "a smaller budget of patches, or a smaller `batch_size`",
    };
    Some(format!("there are {count} buckets, and {what}: use {fix}"))
}

/// Row sizes that batches set.
fn sizes_of_batches(plan: &EpochPlan) -> Result<BatchSizes<'_>> {
    let options = plan.options();
    Ok(match (&options.multi_scale, &options.sampler) {
        (Some(scales), _) => BatchSizes::Any(&scales.sizes),
        (None, Sampler::Buckets(rule)) => {
            let largest = plan.buckets().and_then(BucketBatches::largest_bucket);
            let largest = largest.ok_or_else(|| Error::protocol("a plan of buckets has none"))?;
            BatchSizes::Bucket(rule.fitter()?, largest)
        }
        (None, _) => BatchSizes::OfRecipe,
    })
}

/// The message about a reduced number of slots.
fn is_lowered(requested: RingDepth, depth: u32, by: &str, bytes: u64) -> Option<String> {
    (depth < requested.most_slots()).then(|| {
        format!(
            "`depth` is {depth} instead of {}: {by} allows {}",
            requested.most_slots(),
            size_rounded_down(bytes)
        )
    })
}
