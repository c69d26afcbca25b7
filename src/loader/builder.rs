//! The options of a [`Loader`](crate::Loader).
//!
//! In the consumer. Never in here: what the options do (`start`, `memory_plan`).

use std::path::PathBuf;
use std::time::Duration;

use crate::device::{DecodeOn, Device, UploadMode};
use crate::error::{Error, Result};
use crate::jobs::caption_rule::CaptionRule;
use crate::jobs::images::on_error::OnError;
use crate::jobs::item_feed::ItemFeed;
use crate::jobs::raster_rule::RasterRule;
use crate::loader::hull_room;
use crate::loader::jpeg_decoding::{self, DecodeWish};
use crate::loader::mask_source::MaskOptions;
use crate::loader::object_source::ObjectOptions;
use crate::loader::raster_source::{RasterList, RasterOptions, check_moves};
use crate::loader::run_columns::RunColumns;
use crate::loader::source::Source;
use crate::loader::upload::UploadPlanner;
use crate::memory_plan::run_memory as forecast_memory;
use crate::memory_plan::run_memory::RingDepth;
use crate::order::{
    EpochLength, EpochTail, IdentityRatio, MultiScale, OrderOptions, Position, Rank, Sampler, State,
};
use crate::picture::PictureLimits;
use crate::pool::coordinator::launch::LaunchMethod;
use crate::pool::sandbox::Sandbox;
use crate::pool::worker_options::WorkerOptions;
use crate::recipe::{Recipe, RowExtent, SampleProgram};

/// Why workers finish rows for a device.
const WITH_PAIRS: &str = "the images have paired images, which workers make by the same steps";

/// Builds a [`Loader`](crate::Loader).
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct LoaderBuilder {
    pub(super) source: Source,
    pub(super) recipe: Recipe,
    pub(super) plan: OrderOptions,
    pub(super) sample_weights: Option<Vec<f64>>,
    pub(super) worker_options: WorkerOptions,
    pub(super) depth: RingDepth,
    pub(super) memory_limit: Option<u64>,
    pub(super) on_error: OnError,
    pub(super) epochs: Option<u64>,
    pub(super) start: Position,
    pub(super) resume: Option<State>,
    pub(super) device: Device,
    upload: Option<UploadMode>,
    pub(super) gpu_memory_limit: Option<u64>,
    /// Which decoders decode JPEGs.
    pub(super) decode_on: DecodeOn,
    /// Gives the samples while the run goes on.
    pub(super) feed: Option<ItemFeed>,
    pub(super) limits: PictureLimits,
    columns: Vec<String>,
    captions: Option<CaptionRule>,
    /// Whether rows have pixels.
    has_images: bool,
    pub(super) masks: Option<MaskOptions>,
    pub(super) rasters: RasterList,
    pub(super) objects: Option<ObjectOptions>,
}

impl LoaderBuilder {
    /// Default number of ring slots.
    pub const DEFAULT_DEPTH: u32 = forecast_memory::DEFAULT_DEPTH;

    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            recipe: Recipe::train224(),
            plan: OrderOptions::default(),
            sample_weights: None,
            worker_options: WorkerOptions::default(),
            depth: RingDepth::AtMost(Self::DEFAULT_DEPTH),
            memory_limit: None,
            on_error: OnError::default(),
            epochs: None,
            start: Position::default(),
            resume: None,
            device: Device::Cpu,
            upload: None,
            gpu_memory_limit: None,
            decode_on: DecodeOn::default(),
            feed: None,
            limits: PictureLimits::default(),
            columns: Vec::new(),
            captions: None,
            has_images: true,
            masks: None,
            rasters: RasterList::default(),
            objects: None,
        }
    }

    /// Takes the bytes and labels of samples from this feed while the run goes on. The source then
    /// has the number of the samples, and for each of them a label of the same kind: an index of
    /// [`MemoryItems`](crate::index::MemoryItems) without bytes. Workers decode all images.
    pub fn feed(mut self, feed: &ItemFeed) -> Self {
        self.feed = Some(feed.clone());
        self
    }

    /// The operations for each sample. Default: [`Recipe::train224`].
    pub fn recipe(mut self, recipe: Recipe) -> Self {
        self.recipe = recipe;
        self
    }

    /// Rows per batch. Default 64.
    pub fn batch_size(mut self, rows: u32) -> Self {
        self.plan.batch = rows;
        self
    }

    /// Number of worker processes. 0 decodes in this process, without ring or coordinator: the same
    /// bytes, for debugging. Default: the CPUs that this process may use, by affinity and cgroup
    /// quota.
    pub fn num_workers(mut self, workers: usize) -> Self {
        self.worker_options.workers = Some(workers);
        self
    }

    /// Seed of the order and of all random parameters. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    /// True: [`Sampler::Shuffle`], another order in each epoch. False: [`Sampler::Sequential`].
    /// Default true.
    pub fn shuffle(self, shuffle: bool) -> Self {
        self.sampler(if shuffle {
            Sampler::Shuffle
        } else {
            Sampler::Sequential
        })
    }

    /// The order of each epoch. Default [`Sampler::Shuffle`]. Replaces an earlier
    /// [`LoaderBuilder::shuffle`].
    pub fn sampler(mut self, sampler: Sampler) -> Self {
        self.plan.sampler = sampler;
        self
    }

    /// Output sizes that alternate from batch to batch. The number of rows changes with the size,
    /// so that each batch has about as many pixels. Default: the recipe's one size.
    pub fn multi_scale(mut self, scales: MultiScale) -> Self {
        self.plan.multi_scale = Some(scales);
        self
    }

    /// The weight of each sample, in the order of the index. Used by
    /// [`SampleWeights::Given`](crate::order::SampleWeights::Given).
    pub fn sample_weights(mut self, weights: Vec<f64>) -> Self {
        self.sample_weights = Some(weights);
        self
    }

    /// Identities that are drawn more often. Used by [`Sampler::Identity`].
    pub fn identity_ratios(mut self, ratios: Vec<IdentityRatio>) -> Self {
        self.plan.identity_ratios = ratios;
        self
    }

    /// Length of an epoch. Default: the sampler decides.
    pub fn epoch_length(mut self, length: EpochLength) -> Self {
        self.plan.length = length;
        self
    }

    /// What happens to the last samples of an epoch when they do not fill a batch. Default: a short
    /// batch.
    pub fn tail(mut self, tail: EpochTail) -> Self {
        self.plan.tail = tail;
        self
    }

    /// The rank of this process among the processes that train together. Every rank gets the same
    /// number of batches. Default: rank 0 of 1.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.plan.rank = rank.rank;
        self.plan.world = rank.world;
        self
    }

    /// Number of ring slots: batches that are held, ready or being filled at one time. Default 3,
    /// or as many as a memory limit leaves.
    pub fn depth(mut self, slots: u32) -> Self {
        self.depth = RingDepth::Exactly(slots);
        self
    }

    /// Most bytes that all processes of the run may use together. `build` reads the header of every
    /// sample. It reduces the number of slots if it must, and rejects a run that does not fit.
    /// Without this limit, only the ring is compared with the available memory.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Where batches are delivered. Default [`Device::Cpu`].
    ///
    /// On a GPU, workers hand over crops if the recipe lets the device finish the rows. Those rows
    /// are resized and coloured in `f32` without rounding in between, whatever the recipe's
    /// `reorder` is. So their values differ from the CPU's. A crop that does not fit its row is
    /// resized in `u8`, as on the CPU. Otherwise workers hand over finished rows.
    /// [`NumericProfile`](crate::NumericProfile) reports which.
    ///
    /// `build` creates the primary context of the device and allocates all device memory of the
    /// run. Batches are [`Batch::on_device`](crate::Batch::on_device). As many as `depth`, and at
    /// least 2, exist at one time.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// How the device reads crops. The values are the same either way. Default:
    /// [`UploadMode::Copied`] if the kernel reads pixels twice, or if copies fit a given
    /// [`gpu_memory_limit`](LoaderBuilder::gpu_memory_limit). Otherwise [`UploadMode::InPlace`].
    /// Finished rows are always copied. [`MemoryPlan`](crate::loader::MemoryPlan) contains the
    /// choice and its reason.
    pub fn upload(mut self, upload: UploadMode) -> Self {
        self.upload = Some(upload);
        self
    }

    /// Most bytes of device memory that the run may use, without the device's context. Needs
    /// [`Device::Cuda`]. The run gets fewer slots if it must. `build` and
    /// [`memory_plan`](LoaderBuilder::memory_plan) reject a run that does not fit. If all rows have
    /// one size, `build` does so before it starts a process.
    pub fn gpu_memory_limit(mut self, bytes: u64) -> Self {
        self.gpu_memory_limit = Some(bytes);
        self
    }

    /// Which decoders decode JPEGs. Default [`DecodeOn::Auto`]: on a [`Device::Cuda`], kernels
    /// decode every JPEG that they support. This needs a recipe that lets the device finish the
    /// rows, and room within the [`gpu_memory_limit`](LoaderBuilder::gpu_memory_limit). Workers
    /// decode all other files. With [`DecodeOn::Gpu`], a run that cannot decode on the device is
    /// rejected.
    ///
    /// Kernels support baseline JPEGs with one scan, grey or with three components. The file must
    /// fit its row, and its crop must fit the device's decoder. Limits: 16 MiB of coded data, 2^26
    /// pixels, 16,384 restart segments. If the kernels flag an image as damaged, the CPU decoder in
    /// this process decodes it again, and its result counts. So the stream is the same for each
    /// choice. `build` allocates all device memory of the kernels.
    pub fn decode_on(mut self, on: DecodeOn) -> Self {
        self.decode_on = on;
        self
    }

    /// How worker processes are started. Default [`LaunchMethod::Exec`].
    pub fn launch(mut self, launch: LaunchMethod) -> Self {
        self.worker_options.launch = launch;
        self
    }

    /// The executable that [`LaunchMethod::Exec`] starts: `featherload`, or a program whose `main`
    /// begins with [`init`](crate::init()). [`LaunchMethod::Exec`] documents the default.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.worker_options.helper = Some(path.into());
        self
    }

    /// What happens when a sample cannot be used. Default [`OnError::Stop`].
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.on_error = policy;
        self
    }

    /// Number of epochs of the run, if known. Workers then continue with the next epoch without a
    /// gap. At least 1.
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.epochs = Some(epochs);
        self
    }

    /// Starts at this position. Default: the first batch of the first epoch.
    pub fn start(mut self, at: Position) -> Self {
        self.start = at;
        self
    }

    /// Continues at the position of `state`, with any ranks and batch size.
    /// [`Loader::resume`](crate::Loader::resume) has the rules.
    pub fn resume(mut self, state: State) -> Self {
        self.resume = Some(state);
        self
    }

    /// How long [`Epoch::next`](crate::loader::Epoch) waits for the caller to drop a batch when
    /// every slot is held. 0 means an error at once. Default 2 s.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.worker_options.hold_timeout = limit;
        self
    }

    /// The kernel's limits on what workers may open and call. Default [`Sandbox::Auto`].
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.worker_options.sandbox = sandbox;
        self
    }

    /// Time limit for one sample, and for each substitute. After it the worker is killed and the
    /// sample fails. Time during which the worker or the coordinator was stopped (SIGSTOP) does not
    /// count. Default 60 s. Without workers there is no limit.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.worker_options.row_limit = limit;
        self
    }

    /// Further columns of the data set that batches have
    /// ([`Batch::column`](crate::Batch::column)): of tables, Parquet and Arrow files, and members
    /// of tar shards. A batch reads them from the files when it is asked for them. Default: none.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// The captions of batches ([`Batch::captions`](crate::Batch::captions)): the column of their
    /// texts, and how a text becomes the caption of a row. The column need not be among
    /// [`columns`](LoaderBuilder::columns). Default: none.
    pub fn captions(mut self, rule: CaptionRule) -> Self {
        self.captions = Some(rule);
        self
    }

    /// Reads no image: batches have ids, labels, columns and captions, in the order of the same run
    /// with images. The recipe still decides the buckets of [`Sampler::Buckets`], for which headers
    /// are read. Not with a device, objects, masks, rasters, mixing or a feed.
    pub fn without_images(mut self) -> Self {
        self.has_images = false;
        self
    }

    /// The columns that the run opens.
    ///
    /// # Errors
    /// A rule of captions that has no meaning.
    pub(super) fn run_columns(&self) -> Result<RunColumns> {
        RunColumns::new(&self.columns, self.captions.as_ref())
    }

    /// Masks that belong to the images, such as the labels of a segmentation
    /// ([`Batch::masks`](crate::Batch::masks)). They go through the same crops, flips, resizes and
    /// other moves as their image, without mixing labels. With [`Device::Cuda`] workers make them,
    /// and they are copied to the device after the rows that it makes. With
    /// [`OnError::Substitute`] workers also decode the images. Default: none. Not with several
    /// crops, mixed batches or rows of own sizes.
    pub fn masks(mut self, masks: MaskOptions) -> Self {
        self.masks = Some(masks);
        self
    }

    /// A raster of each image under this name: depths, a flow, another image, further masks
    /// ([`Batch::raster`](crate::Batch::raster)). It moves with its image. May be called several
    /// times, with different names. The limits of [`LoaderBuilder::masks`] hold. With a paired
    /// image, workers finish the rows.
    pub fn raster(mut self, name: impl Into<String>, raster: RasterOptions) -> Self {
        self.rasters.push(name, raster);
        self
    }

    /// All rasters, in place of those before.
    pub fn rasters(mut self, rasters: RasterList) -> Self {
        self.rasters = rasters;
        self
    }

    /// Objects in the images: boxes, labels, keypoints ([`Batch::objects`](crate::Batch::objects)).
    /// They move with their image, and a style says which are dropped. With [`Device::Cuda`] they
    /// stay in the memory of the host, and their masks are copied to the device. With
    /// [`OnError::Substitute`] workers then decode the images. Default: none. Not with several crops
    /// or mixed batches.
    pub fn objects(mut self, objects: ObjectOptions) -> Self {
        self.objects = Some(objects);
        self
    }

    /// Most pixels that an image may have. Default 178,956,970, as Pillow.
    pub fn max_pixels(mut self, pixels: u64) -> Self {
        self.limits.max_pixels = pixels;
        self
    }

    /// Most bytes that a worker may take to decode one image. Default 512 MiB.
    pub fn max_scratch(mut self, bytes: u64) -> Self {
        self.limits.max_scratch = bytes;
        self
    }

    /// The program for each sample. For a device it makes crops, if the recipe allows that.
    ///
    /// # Errors
    /// A recipe that cannot run; 0 epochs.
    pub(super) fn program(&self) -> Result<SampleProgram> {
        if self.epochs == Some(0) {
            return Err(Error::option("epochs", "`epochs` is 0: use at least 1"));
        }
        let program = SampleProgram::compile(&self.recipe)?;
        if !self.has_images {
            self.check_without_images(&program)?;
            return Ok(program.without_pixels());
        }
        if let Some(op) = program.box_reader().filter(|_| self.objects.is_none()) {
            return Err(Error::option(
                "objects",
                format!("{op} reads the boxes of objects: give `objects`, or remove it"),
            ));
        }
        if self.masks.is_some() {
            self.check_companions(&program, "masks")?;
            let checked = program.for_labels();
            checked.map_err(|fault| fault.into_error(&self.recipe.name))?;
        }
        self.check_rasters(&program)?;
        if let Some(objects) = &self.objects {
            objects.check()?;
            self.check_objects(objects, &program)?;
        }
        if let (Device::Cuda(_), Some(why)) = (self.device, self.finished_why()) {
            tracing::info!("workers finish the rows: {why}");
            return Ok(program);
        }
        Ok(match self.device {
            Device::Cpu => program,
            Device::Cuda(_) if program.is_crop_set() => match self.hulls(&program) {
                Ok(hulls) => hulls,
                Err(why) => {
                    tracing::info!("workers finish the crops: {why}");
                    program
                }
            },
            Device::Cuda(_) => program.with_crops().unwrap_or_else(|why| {
                tracing::info!("workers finish the rows: {why}");
                program
            }),
        })
    }

    /// Rejects options that need the pixels of images.
    fn check_without_images(&self, program: &SampleProgram) -> Result<()> {
        let used = [
            (self.device != Device::Cpu, "device", "a device makes rows"),
            (
                self.feed.is_some(),
                "images",
                "a method gives the bytes of images",
            ),
            (
                self.masks.is_some(),
                "masks",
                "masks move with their images",
            ),
            (
                !self.rasters.0.is_empty(),
                "rasters",
                "rasters move with their images",
            ),
            (
                self.objects.is_some(),
                "objects",
                "objects move with their images",
            ),
            (
                program.recipe().mixing.is_some(),
                "recipe",
                "mixing makes images",
            ),
        ];
        match used.iter().find(|(is_used, ..)| *is_used) {
            Some((_, option, why)) => Err(Error::option(
                option,
                format!(
                    "{why}, and this run reads no images (--no-images, images=False, \
                     without_images): remove one of them"
                ),
            )),
            None => Ok(()),
        }
    }

    /// Rejects runs whose images cannot have masks or other rasters. `what`: the option.
    fn check_companions(&self, program: &SampleProgram, what: &'static str) -> Result<()> {
        let refused = |text: &str| Err(Error::option(what, format!("{what}: {text}")));
        if self.feed.is_some() {
            return refused(&format!(
                "a method gives the bytes of images, and no {what}: use image files"
            ));
        }
        match program.extent {
            RowExtent::Fixed { .. } => Ok(()),
            RowExtent::Own => refused(&format!(
                "rows of own sizes have no {what} yet: end the recipe with a resize or a crop"
            )),
            RowExtent::Patches(_) => refused(&format!(
                "rows of patches have no {what} yet: make images of one size instead"
            )),
        }
    }

    /// Rejects rasters that cannot be made.
    fn check_rasters(&self, program: &SampleProgram) -> Result<()> {
        self.rasters.check()?;
        for (name, rule) in self.rasters.rules() {
            self.check_companions(program, "rasters")?;
            rule.map_or(Ok(()), |rule| check_moves(program, name, rule))?;
        }
        Ok(())
    }

    /// The same options, with the rules that a cache on this machine has for its rasters, and with
    /// the sampler's buckets in the recipe.
    ///
    /// # Errors
    /// A cache that cannot be read, or does not have a raster. A recipe for other buckets.
    pub(super) fn with_rules(mut self) -> Result<Self> {
        if let Source::Cache(folder) = &self.source {
            self.rasters = std::mem::take(&mut self.rasters).with_rules_of(folder)?;
        }
        if let Sampler::Buckets(rule) = self.plan.sampler {
            self.recipe = self.recipe.with_buckets(rule)?;
        } else if self.recipe.has_buckets() {
            return Err(Error::option(
                "recipe",
                "cover_crop has `buckets`, and the sampler makes none: use the sampler of buckets, \
                 or remove them",
            ));
        }
        Ok(self)
    }

    /// Why workers finish the rows, if rasters are the reason.
    fn finished_why(&self) -> Option<&'static str> {
        (self.rasters.rules()).find_map(|(_, rule)| match rule {
            Some(RasterRule::Image(_)) => Some(WITH_PAIRS),
            Some(_) => None,
            // A cache in an object store. It is read when the program is known.
            None => Some("the rasters of the cache may be paired images"),
        })
    }

    /// Rejects runs whose images cannot have objects.
    fn check_objects(&self, objects: &ObjectOptions, program: &SampleProgram) -> Result<()> {
        let refused = |what: &str| Err(Error::option("objects", format!("objects: {what}")));
        if self.feed.is_some() {
            return refused("a method gives the bytes of images, and no objects: use image files");
        }
        if program.is_crop_set() {
            return refused(
                "several crops of an image have no objects: use a recipe with one output",
            );
        }
        if objects.has_masks() {
            let checked = program.for_labels();
            checked.map_err(|fault| fault.into_error(&self.recipe.name))?;
        }
        if self.recipe.mixing.is_some() {
            return refused("mixed batches have no objects: remove the mixing from the recipe");
        }
        Ok(())
    }

    /// The same program for a device that makes several crops, if its memory and the ring suffice.
    ///
    /// # Errors
    /// The reason why workers finish the crops.
    fn hulls(&self, program: &SampleProgram) -> std::result::Result<SampleProgram, String> {
        let hulls = program.with_hulls()?;
        match hull_room::what_is_too_large(&self.upload_planner(&hulls), program, self.depth) {
            None => Ok(hulls),
            Some(why) => Err(why),
        }
    }

    fn upload_planner<'a>(&self, program: &'a SampleProgram) -> UploadPlanner<'a> {
        UploadPlanner {
            program,
            plan: self.plan.clone(),
            limits: self.limits,
            requested: self.upload,
            limit: self.gpu_memory_limit,
            jpegs: None,
            finished_why: None,
            // Known when the images are.
            rasters: Vec::new(),
            mask_bytes: 0,
            target_bytes: (0, 0),
        }
    }

    pub(super) fn decode_wish(&self) -> DecodeWish {
        let has_rasters = self.masks.is_some() || !self.rasters.0.is_empty();
        let has_targets = self.objects.is_some() || has_rasters;
        let by_workers = if self.feed.is_some() {
            Some("a feed gives the bytes of images, so workers decode them")
        } else if has_targets && self.on_error == OnError::Substitute {
            // A substitute for an image that the device rejects has other targets, and its worker
            // is done.
            Some(
                "on_error is substitute, and a substitute needs objects, masks and rasters of its \
                 own, so workers decode",
            )
        } else {
            None
        };
        DecodeWish {
            on: self.decode_on,
            device: self.device,
            by_workers,
        }
    }

    /// The ways in which the device can read what workers hand over. None without a device.
    ///
    /// # Errors
    /// GPU options on a CPU run; [`DecodeOn::Gpu`] on a run that cannot decode on a device.
    pub(super) fn uploads<'a>(
        &self,
        program: &'a SampleProgram,
    ) -> Result<Option<UploadPlanner<'a>>> {
        let on_cpu = |option: &'static str| {
            Err(Error::option(
                option,
                format!("{option} has no effect on device cpu: use device cuda, or remove it"),
            ))
        };
        let wish = self.decode_wish();
        match (self.device, self.gpu_memory_limit) {
            (Device::Cpu, Some(_)) => on_cpu("gpu_memory_limit"),
            (Device::Cpu, None) if self.upload.is_some() => on_cpu("upload"),
            (Device::Cpu, None) => {
                jpeg_decoding::device_decodes(wish, program)?;
                Ok(None)
            }
            (Device::Cuda(_), _) => {
                let finished = program.is_crop_set() && program.hulls.is_none();
                let uploads = UploadPlanner {
                    finished_why: match self.finished_why() {
                        Some(why) => Some(why.into()),
                        None => finished.then(|| self.hulls(program).err()).flatten(),
                    },
                    ..self.upload_planner(program)
                };
                match jpeg_decoding::device_decodes(wish, program)? {
                    true => uploads.with_jpeg_parts(0, self.depth, wish.on == DecodeOn::Gpu),
                    false => Ok(uploads),
                }
                .map(Some)
            }
        }
    }
}

#[cfg(feature = "internals")]
impl crate::pool::worker_options::DrillBuilder for LoaderBuilder {
    fn worker_options(&mut self) -> &mut WorkerOptions {
        &mut self.worker_options
    }
}
