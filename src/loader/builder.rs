//! What the user asks for, as options.
//!
//! In the consumer. Never in here: what is done with them (`start`, `forecast`).

use std::path::PathBuf;
use std::time::Duration;

use crate::device::{DecodeOn, Device, UploadMode};
use crate::error::{Error, Result};
use crate::jobs::images::on_error::OnError;
use crate::loader::jpeg_decoding;
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
use crate::recipe::{Recipe, SampleProgram};

/// Builds a [`Loader`](crate::Loader).
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct LoaderBuilder {
    pub(super) source: Source,
    pub(super) recipe: Recipe,
    pub(super) plan: OrderOptions,
    pub(super) sample_weights: Option<Vec<f64>>,
    pub(super) crew: WorkerOptions,
    pub(super) depth: RingDepth,
    pub(super) memory_limit: Option<u64>,
    pub(super) on_error: OnError,
    pub(super) epochs: Option<u64>,
    pub(super) start: Position,
    pub(super) resume: Option<State>,
    pub(super) device: Device,
    upload: Option<UploadMode>,
    pub(super) gpu_memory_limit: Option<u64>,
    /// Which decoders make the pixels of JPEGs.
    pub(super) decode_on: DecodeOn,
    pub(super) limits: PictureLimits,
}

impl LoaderBuilder {
    /// Slots of the ring, where nobody says another number.
    pub const DEFAULT_DEPTH: u32 = forecast_memory::DEFAULT_DEPTH;

    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            recipe: Recipe::train224(),
            plan: OrderOptions::default(),
            sample_weights: None,
            crew: WorkerOptions::default(),
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
            limits: PictureLimits::default(),
        }
    }

    /// What is done to each sample. Default: [`Recipe::train224`].
    pub fn recipe(mut self, recipe: Recipe) -> Self {
        self.recipe = recipe;
        self
    }

    /// Rows of a batch. Default 64.
    pub fn batch_size(mut self, rows: u32) -> Self {
        self.plan.batch = rows;
        self
    }

    /// Worker processes. 0 decodes in this process, without ring or
    /// coordinator: the same bytes, for debugging. Default: the CPUs that this
    /// process may use, by affinity and cgroup quota.
    pub fn num_workers(mut self, workers: usize) -> Self {
        self.crew.workers = Some(workers);
        self
    }

    /// Seed of order and random parameters. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    /// [`Sampler::Shuffle`], another order in each epoch, or
    /// [`Sampler::SequentialDecoder`]. Default true.
    pub fn shuffle(self, shuffle: bool) -> Self {
        self.sampler(if shuffle {
            Sampler::Shuffle
        } else {
            Sampler::Sequential
        })
    }

    /// The order of each epoch. Default [`Sampler::Shuffle`]. Takes the place of
    /// an earlier [`LoaderBuilder::shuffle`].
    pub fn sampler(mut self, sampler: Sampler) -> Self {
        self.plan.sampler = sampler;
        self
    }

    /// Output sizes that take turns from batch to batch, with as many rows as
    /// keep the pixels of a batch about equal. Default: the recipe's one size.
    pub fn multi_scale(mut self, scales: MultiScale) -> Self {
        self.plan.multi_scale = Some(scales);
        self
    }

    /// How likely each sample is, in the order of the index, for
    /// [`Weights::OriginalStderr`](crate::plan::Weights::Given).
    pub fn sample_weights(mut self, weights: Vec<f64>) -> Self {
        self.sample_weights = Some(weights);
        self
    }

    /// Identities that come more often, for [`Sampler::Identity`].
    pub fn identity_ratios(mut self, ratios: Vec<IdentityRatio>) -> Self {
        self.plan.identity_ratios = ratios;
        self
    }

    /// How long an epoch is. Default: as the sampler says.
    pub fn epoch_length(mut self, length: EpochLength) -> Self {
        self.plan.length = length;
        self
    }

    /// What happens to samples that do not fill a batch. Default: a short batch.
    pub fn tail(mut self, tail: EpochTail) -> Self {
        self.plan.tail = tail;
        self
    }

    /// This process's place among those that train together. Every rank gets
    /// the same number of batches. Default 0 of 1.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.plan.rank = rank.rank;
        self.plan.world = rank.world;
        self
    }

    /// Slots of the ring: batches that are held, ready or being filled at a
    /// time. Default 3, or as many as a memory limit leaves.
    pub fn depth(mut self, slots: u32) -> Self {
        self.depth = RingDepth::Exactly(slots);
        self
    }

    /// Most bytes that all processes of the run may take together. `build` reads
    /// the header of every sample, gives the ring fewer slots if it must, and
    /// refuses what cannot fit. Without it the ring alone is compared with what
    /// is available.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Where batches end. Default [`Device::Cpu`]. On a device workers hand over crops
    /// where it can make the rows: those are resized and coloured in `f32` and not
    /// rounded on the way, whatever the recipe's `reorder`, so their values are not the
    /// CPU's; a crop that has no room in its row is resized in `u8`, as on the CPU. Else
    /// workers hand over finished rows. [`NumericProfile`](crate::NumericProfile) says which. All memory of the
    /// device is taken by `build`, which makes the device's primary context; batches
    /// are [`Batch::on_device`](crate::Batch::on_device), as many at a time as `depth`,
    /// and at least 2.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// How a device gets at crops. Without it the recipe and the limit say so:
    /// [`Upload::CopyShape`] where the kernel reads pixels twice, or where copies fit the
    /// [`gpu_memory_limit`](LoaderBuilder::gpu_memory_limit) that was given; else
    /// [`Upload::InPlace`]. Finished rows have one way. [`MemoryPlan`](crate::loader::Forecast)
    /// has the choice and its reason. The values are the same.
    pub fn upload(mut self, upload: UploadMode) -> Self {
        self.upload = Some(upload);
        self
    }

    /// Most bytes of the device that the run may take for itself, the device's context
    /// apart. Gives the ring fewer slots if it must; `build` and
    /// [`forecast`](LoaderBuilder::forecast) refuse what cannot fit, `build` before it
    /// starts a process where rows have one size. Needs [`Device::Cuda`].
    pub fn gpu_memory_limit(mut self, bytes: u64) -> Self {
        self.gpu_memory_limit = Some(bytes);
        self
    }

    /// Which decoders make the pixels of JPEGs. Default [`DecodeOn::Auto`]: on a
    /// [`Device::Cuda`] kernels decode every JPEG that they take, where the device can make the
    /// rows and [`gpu_memory_limit`](LoaderBuilder::gpu_memory_limit) leaves room. Workers decode
    /// all other files. With [`DecodeOn::Gpu`] a run that cannot decode on the device is refused.
    ///
    /// Kernels take baseline JPEGs of one scan, grey or of three colours. A file must fit the
    /// room of its row, and its crop that of the device's decoder. It may have 16 MiB of coded
    /// data, 2^26 pixels and 16,384 restart segments. A picture that the kernels flag as damaged
    /// is decoded again by the CPU decoder, in this process: its verdict and its pixels count. So
    /// the stream is the same for each choice. All memory that kernels take of the device is taken
    /// by `build`.
    pub fn decode_on(mut self, on: DecodeOn) -> Self {
        self.decode_on = on;
        self
    }

    /// How worker processes are started. Default [`Launch::Exec`].
    pub fn launch(mut self, launch: LaunchMethod) -> Self {
        self.crew.launch = launch;
        self
    }

    /// The executable that [`Launch::Exec`] starts: `featherload`, or a program whose
    /// `main` begins with [`init`](crate::init()). Without it [`Launch::Exec`] says what
    /// is looked for.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.crew.helper = Some(path.into());
        self
    }

    /// What happens when a sample gives no pixels. Default [`OnError::SessionEnd`].
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.on_error = policy;
        self
    }

    /// Epochs that the run will have, when that is known: lets workers go on
    /// to the next epoch without a gap. At least 1.
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.epochs = Some(epochs);
        self
    }

    /// Starts elsewhere than at the first batch of the first epoch.
    pub fn start(mut self, at: Position) -> Self {
        self.start = at;
        self
    }

    /// Goes on where `state` stands, with any ranks and batch size
    /// ([`Loader::resume`](crate::Loader::resume) has the rules).
    pub fn resume(mut self, state: State) -> Self {
        self.resume = Some(state);
        self
    }

    /// How long [`Epoch::next`](crate::loader::Epoch) waits for a batch to be dropped
    /// when every slot is held. 0 = an error at once. Default 2 s.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.crew.hold_timeout = limit;
        self
    }

    /// What workers are kept from, beside their work. Default [`Sandbox::Auto`].
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.crew.sandbox = sandbox;
        self
    }

    /// Most time that one sample may take; its worker is killed and the sample
    /// fails. Each substitute has that time as well. Time in which the worker, or
    /// the coordinator, was stopped (SIGSTOP) does not count. Default 60 s. With zero workers
    /// there is no limit.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.crew.row_limit = limit;
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

    /// What runs for each sample: for a device, crops where it can make the rows.
    ///
    /// # Errors
    /// A recipe that cannot run; a run of no epochs.
    pub(super) fn program(&self) -> Result<SampleProgram> {
        if self.epochs == Some(0) {
            return Err(Error::option("epochs", "`epochs` is 0: use at least 1"));
        }
        let program = SampleProgram::compile(&self.recipe)?;
        Ok(match self.device {
            Device::Cpu => program,
            Device::Cuda(_) => program.with_crops().unwrap_or_else(|why| {
                tracing::info!("workers finish the rows: {why}");
                program
            }),
        })
    }

    /// How a device may get at what workers hand over; none without a device.
    ///
    /// # Errors
    /// Options of a device for a run on the CPU; [`DecodeOn::Gpu`] for a run that cannot.
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
        match (self.device, self.gpu_memory_limit) {
            (Device::Cpu, Some(_)) => on_cpu("gpu_memory_limit"),
            (Device::Cpu, None) if self.upload.is_some() => on_cpu("upload"),
            (Device::Cpu, None) => {
                jpeg_decoding::device_decodes(self.decode_on, self.device, program)?;
                Ok(None)
            }
            (Device::Cuda(_), limit) => {
                let uploads = UploadPlanner {
                    program,
                    plan: self.plan.clone(),
                    limits: self.limits,
                    requested: self.upload,
                    limit,
                    jpegs: None,
                };
                match jpeg_decoding::device_decodes(self.decode_on, self.device, program)? {
                    true => uploads.with_jpeg_parts(0, self.depth, self.decode_on == DecodeOn::Gpu),
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
        &mut self.crew
    }
}
