//! What the user asks for, and the order of the start.
//!
//! In the consumer. First the coordinator (before a thread or a byte of data
//! exists), then the names of the samples (and their sizes, where rows have their
//! own), then the ring, then the workers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::device_pool::DevicePool;
use super::engine::Engine;
use super::epoch::Loader;
use super::mixed::MixedBatches;
use super::on_device::{self, DeviceWork, OnDevice};
use super::pool::{Place, Pool, PoolOptions};
use super::prepared::{HostLimit, Prepared, Settled, Wanted};
use super::run::Run;
use super::source::Source;
use super::upload::Uploads;
use crate::coordinator::launch::{Launch, launch};
use crate::coordinator::messages::StartRequest;
use crate::device::{Device, Upload};
use crate::error::{Error, Result};
use crate::forecast::MemoryLimit;
use crate::forecast::memory::{self as forecast_memory, Depth};
use crate::index::Index;
use crate::packing::{PackedBatch, Packing, Sizes};
use crate::picture::Limits;
use crate::plan::{MultiScale, Plan, PlanOptions, Sampler, SamplerTable, State, Tail};
use crate::recipe::{NumericProfile, Recipe, SampleProgram};
use crate::ring::{Layout, Ring, Shape};
use crate::sys::clock::monotonic_ns;
use crate::sys::cpu::CpuLevel;
use crate::sys::memory;
use crate::worker::spec::{ImageSpec, JobInput};

/// What happens when a sample gives no pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The run stops with the first failed sample in delivery order.
    #[default]
    Stop,
    /// The row is masked: zero pixels, status `Failed`, listed in the batch.
    Skip,
    /// The row takes the next sample of the epoch's order that gives pixels,
    /// out of at most 8, each with the random parameters of its own place;
    /// status `Substituted`, both samples listed in the batch. The row is
    /// masked when all of them fail.
    Substitute,
}

impl OnError {
    /// Samples that are tried in the place of one that gives no pixels.
    pub(super) fn tries(self, plan: &Plan) -> u32 {
        match self {
            Self::Stop | Self::Skip => 0,
            Self::Substitute => plan.substitutes(),
        }
    }
}

/// Builds a [`Loader`].
#[derive(Debug)]
pub struct LoaderBuilder {
    pub(super) source: Source,
    pub(super) recipe: Recipe,
    pub(super) plan: PlanOptions,
    pub(super) sample_weights: Option<Vec<f64>>,
    pub(super) workers: Option<usize>,
    pub(super) depth: Depth,
    pub(super) memory_limit: Option<u64>,
    launch: Launch,
    helper: Option<PathBuf>,
    pub(super) on_error: OnError,
    epochs: Option<u64>,
    pub(super) start: (u64, u64),
    resume: Option<State>,
    pub(super) device: Device,
    upload: Option<Upload>,
    pub(super) gpu_memory_limit: Option<u64>,
    hold_timeout: Duration,
    row_limit: Duration,
    kill_every: Option<Duration>,
    pub(super) limits: Limits,
    first_sequence: u32,
    first_serial: u32,
}

impl LoaderBuilder {
    /// Slots of the ring, where nobody says another number.
    pub const DEFAULT_DEPTH: u32 = forecast_memory::DEFAULT_DEPTH;

    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            recipe: Recipe::train224(),
            plan: PlanOptions::default(),
            sample_weights: None,
            workers: None,
            depth: Depth::AtMost(Self::DEFAULT_DEPTH),
            memory_limit: None,
            launch: Launch::default(),
            helper: None,
            on_error: OnError::default(),
            epochs: None,
            start: (0, 0),
            resume: None,
            device: Device::Cpu,
            upload: None,
            gpu_memory_limit: None,
            hold_timeout: Duration::from_secs(2),
            row_limit: Duration::from_secs(60),
            kill_every: None,
            limits: Limits::default(),
            first_sequence: 1,
            first_serial: 1,
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
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Seed of order and random parameters. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.plan.seed = seed;
        self
    }

    /// [`Sampler::Shuffle`], another order in each epoch, or
    /// [`Sampler::Sequential`]. Default true.
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
    /// [`Weights::Given`](crate::plan::Weights::Given).
    pub fn sample_weights(mut self, weights: Vec<f64>) -> Self {
        self.sample_weights = Some(weights);
        self
    }

    /// What happens to samples that do not fill a batch. Default: a short batch.
    pub fn tail(mut self, tail: Tail) -> Self {
        self.plan.tail = tail;
        self
    }

    /// This process's place among those that train together. Every rank gets
    /// the same number of batches. Default 0 of 1.
    pub fn rank(mut self, rank: u32, world: u32) -> Self {
        self.plan.rank = rank;
        self.plan.world = world;
        self
    }

    /// Slots of the ring: batches that are held, ready or being filled at a
    /// time. Default 3, or as many as a memory limit leaves.
    pub fn depth(mut self, slots: u32) -> Self {
        self.depth = Depth::Exactly(slots);
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
    /// CPU's; a crop that has no room in its row is resized by its worker, in `u8`. Else
    /// workers hand over finished rows. [`NumericProfile`] says which. All memory of the
    /// device is taken by `build`, which makes the device's primary context; batches
    /// are [`Batch::on_device`](crate::Batch::on_device), as many at a time as `depth`,
    /// and at least 2.
    pub fn device(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// How a device gets at crops. Without it the recipe and the limit say so:
    /// [`Upload::Copied`] where the kernel reads pixels twice, or where copies fit the
    /// [`gpu_memory_limit`](LoaderBuilder::gpu_memory_limit) that was given; else
    /// [`Upload::InPlace`]. Finished rows have one way. [`Forecast`](super::Forecast)
    /// has the choice and its reason. The values are the same.
    pub fn upload(mut self, upload: Upload) -> Self {
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

    /// How the coordinator is made. Default [`Launch::Exec`].
    pub fn launch(mut self, launch: Launch) -> Self {
        self.launch = launch;
        self
    }

    /// The executable for [`Launch::Exec`]; searched for when not given.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.helper = Some(path.into());
        self
    }

    /// What happens when a sample gives no pixels. Default [`OnError::Stop`].
    pub fn on_error(mut self, policy: OnError) -> Self {
        self.on_error = policy;
        self
    }

    /// Epochs that the run will have, when that is known: lets workers go on
    /// to the next epoch without a gap.
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.epochs = Some(epochs);
        self
    }

    /// Starts at batch `batch` of epoch `epoch`.
    pub fn start(mut self, epoch: u64, batch: u64) -> Self {
        self.start = (epoch, batch);
        self
    }

    /// Goes on where `state` stands.
    pub fn resume(mut self, state: State) -> Self {
        self.resume = Some(state);
        self
    }

    /// How long [`Epoch::next`](super::Epoch) waits for a batch to be dropped
    /// when every slot is held. 0 = an error at once. Default 2 s.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.hold_timeout = limit;
        self
    }

    /// Most time that one sample may take; its worker is killed and the sample
    /// fails. Each substitute has that time as well. Time in which the worker, or
    /// the coordinator, was stopped (SIGSTOP) does not count. Default 60 s.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.row_limit = limit;
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

    /// Kills a worker that often: a test of the recovery. The batches stay the same.
    pub fn kill_workers_every(mut self, every: Duration) -> Self {
        self.kill_every = Some(every);
        self
    }

    /// Starts the counts that never wrap elsewhere than at 1: for tests of
    /// their limits.
    #[doc(hidden)]
    pub fn first_counts(mut self, sequence: u32, serial: u32) -> Self {
        self.first_sequence = sequence;
        self.first_serial = serial;
        self
    }

    /// What runs for each sample: for a device, crops where it can make the rows.
    pub(super) fn program(&self) -> Result<SampleProgram> {
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
    /// What is said of a device that there is none of.
    pub(super) fn uploads<'a>(&self, program: &'a SampleProgram) -> Result<Option<Uploads<'a>>> {
        let on_cpu = |option: &str| {
            Err(Error::config(format!(
                "{option} says nothing of batches on cpu: let them end on device cuda, or leave it \
                 out"
            )))
        };
        match (self.device, self.gpu_memory_limit) {
            (Device::Cpu, Some(_)) => on_cpu("gpu_memory_limit"),
            (Device::Cpu, None) if self.upload.is_some() => on_cpu("upload"),
            (Device::Cpu, None) => Ok(None),
            (Device::Cuda(_), limit) => Ok(Some(Uploads {
                program,
                plan: self.plan.clone(),
                limits: self.limits,
                asked: self.upload,
                limit,
            })),
        }
    }

    /// Starts the pool.
    ///
    /// # Errors
    /// Options that cannot work, a data set that cannot be read, a helper that
    /// is missing or of another version, a system that refuses.
    pub fn build(self) -> Result<Loader> {
        let began = Instant::now();
        let began_ns = monotonic_ns();
        let program = self.program()?;
        // Asked again by the workers; here for an error that the caller sees.
        CpuLevel::detect()?;
        let workers = self.workers.unwrap_or_else(default_workers);
        let lanes = u32::try_from(workers)
            .map_err(|_| Error::config(format!("{workers} workers are too many")))?;
        on_device::check(self.device, lanes)?;
        let uploads = self.uploads(&program)?;
        if let Some(uploads) = &uploads {
            uploads.check(self.depth)?;
        }
        let coordinator = match lanes {
            0 => None,
            _ => Some(launch(self.launch, self.helper.as_deref())?),
        };
        let host = self
            .memory_limit
            .and_then(|asked| MemoryLimit::lowest(Some(asked)))
            .map_or(HostLimit::None, HostLimit::LowersDepth);
        let prepared = Prepared::new(
            self.source,
            &Wanted {
                program: &program,
                plan: &self.plan,
                sample_weights: self.sample_weights.as_deref(),
                limits: self.limits,
                on_error: self.on_error,
                forecasts: self.memory_limit.is_some(),
            },
        )?;
        let Settled { memory, upload } =
            prepared.settle(lanes, host, self.depth, uploads.as_ref())?;
        let depth = memory.depth;
        let Prepared {
            index,
            scan,
            plan,
            packing,
            sizes,
            tries,
            ..
        } = prepared;
        let mut state = State {
            version: State::VERSION,
            epoch: self.start.0,
            batch: self.start.1,
            plan: plan.options().clone(),
            sampler_hash: plan.table().map(SamplerTable::hash),
            index_hash: format!("{:032x}", index.hash()),
            recipe_hash: format!("{:016x}", self.recipe.hash()),
            profile: NumericProfile::of(&program),
            max_pixels: self.limits.max_pixels,
            max_scratch: self.limits.max_scratch,
        };
        if let Some(from) = self.resume {
            from.check_resumable(&state)?;
            if self.start != (0, 0) {
                return Err(Error::config(
                    "start and resume both say where to begin: give one of them",
                ));
            }
            state.epoch = from.epoch;
            state.batch = from.batch;
        }
        let shape = Shape {
            slots: depth,
            rows: plan.most_rows(),
            slot_bytes: packing.slot_bytes(),
            lanes: lanes.max(1),
        };
        // Zero workers have no ring, but the same limits.
        let ring_bytes = Layout::new(shape)?.total_bytes() as u64;
        if state.batch >= plan.batches() && state.batch != 0 {
            return Err(Error::config(format!(
                "start is batch {} of epoch {}, an epoch has {} batches",
                state.batch,
                state.epoch,
                plan.batches()
            )));
        }
        let spec = ImageSpec {
            program: program.clone(),
            plan: plan.options().clone(),
            limits: self.limits,
            tries,
        };
        let engine = match coordinator {
            None => in_process(spec, &index, sizes, plan.table())?,
            Some(coordinator) => {
                check_fits(ring_bytes, shape, &packing, &index)?;
                if let Some(what) = what_is_uneven(shape, &packing, &index) {
                    tracing::warn!("{what}");
                }
                let job = JobInput::Images(Box::new(spec), &index, sizes.as_ref(), plan.table());
                let request = StartRequest {
                    shape,
                    job: job.spec(),
                    row_limit_ms: self.row_limit.as_millis().max(1) as u64,
                    kill_every_ms: self.kill_every.map(|d| d.as_millis() as u64),
                    first_serial: self.first_serial,
                };
                let ring = Ring::create(shape)?;
                Engine::Pool(Box::new(Pool::start(
                    coordinator,
                    ring,
                    &job,
                    request,
                    PoolOptions {
                        hold_timeout: self.hold_timeout,
                        first_sequence: self.first_sequence,
                        began_ns,
                    },
                    Place::of(&plan, state.epoch, state.batch),
                )?))
            }
        };
        let engine = match (self.device, engine, upload) {
            (Device::Cuda(ordinal), Engine::Pool(pool), Some(choice)) => {
                let work = DeviceWork {
                    program: &program,
                    plan: &plan,
                    upload: choice.upload,
                    outputs: on_device::outputs(depth) as usize,
                };
                let on = OnDevice::open(ordinal, pool.ring(), &work)?;
                Engine::Device(Box::new(DevicePool::new(on, *pool, self.hold_timeout)))
            }
            (_, engine, _) => engine,
        };
        Ok(Loader::new(
            engine,
            Run {
                index,
                scan,
                plan,
                program,
                packing,
                packed: PackedBatch::default(),
                state,
                epochs: self.epochs,
                on_error: self.on_error,
                tries,
                startup: began.elapsed(),
                mixed: self.recipe.mixing.as_ref().map(MixedBatches::new),
                mixing: Duration::ZERO,
            },
        ))
    }
}

#[cfg(feature = "codecs")]
fn in_process(
    spec: ImageSpec,
    index: &Index,
    sizes: Option<Sizes>,
    table: Option<&SamplerTable>,
) -> Result<Engine> {
    use std::os::fd::AsFd;
    let fd = index
        .as_fd()
        .try_clone_to_owned()
        .map_err(|e| Error::io("duplicate the index's descriptor", e))?;
    let index = Index::from_fd(fd)?;
    let table = table.map(SamplerTable::try_clone).transpose()?;
    Ok(Engine::InProcess(Box::new(
        super::in_process::InProcess::new(&spec, index, sizes, table)?,
    )))
}

#[cfg(not(feature = "codecs"))]
fn in_process(
    _spec: ImageSpec,
    _index: &Index,
    _sizes: Option<Sizes>,
    _table: Option<&SamplerTable>,
) -> Result<Engine> {
    Err(Error::config(
        "zero workers decode in this process, and this library was built without the feature \
         'codecs'; use at least 1 worker",
    ))
}

/// The ring is allocated as a whole: one that is larger than what is free
/// would call the out-of-memory killer, not fail.
fn check_fits(ring_bytes: u64, shape: Shape, packing: &Packing, index: &Index) -> Result<()> {
    match memory::available_bytes() {
        Some(free) if ring_bytes > free => Err(Error::config(format!(
            "the ring needs {ring_bytes} bytes and {free} are available: lower batch or depth, or \
             take a smaller dtype{}",
            what_is_large(shape, packing, index)
        ))),
        _ => Ok(()),
    }
}

/// The largest pictures that are named.
const NAMED: usize = 3;

/// Where rows have sizes of their own: which pictures make a slot so large.
fn what_is_large(shape: Shape, packing: &Packing, index: &Index) -> String {
    let Some(named) = largest(packing, index) else {
        return String::new();
    };
    format!(
        ", or leave the largest pictures out, or give the recipe a resize; each of {} slots has \
         {} bytes, room for any {} rows; the largest: {named}",
        shape.slots, shape.slot_bytes, shape.rows,
    )
}

/// What there is to say when a few pictures make most of every slot.
fn what_is_uneven(shape: Shape, packing: &Packing, index: &Index) -> Option<String> {
    let without = packing.slot_bytes_but_for(NAMED)?;
    if shape.slot_bytes / 2 <= without {
        return None;
    }
    Some(format!(
        "a few pictures make most of the ring: each of {} slots has {} bytes, and would have \
         {without} if the largest were like the rest; leave them out, lower max_pixels, or give \
         the recipe a resize: {}",
        shape.slots,
        shape.slot_bytes,
        largest(packing, index)?
    ))
}

/// Paths and sizes of the largest pictures; none when rows are equal.
fn largest(packing: &Packing, index: &Index) -> Option<String> {
    let named: Vec<String> = packing
        .largest(NAMED)
        .into_iter()
        .filter_map(|(bytes, id)| {
            let (height, width) = packing.scanned_size(id)?;
            let path = index.path(id);
            let path = path.display();
            Some(format!("{path} of {height} x {width} takes {bytes}"))
        })
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

pub(crate) fn default_workers() -> usize {
    // Affinity and cgroup quota are both in it; at least 1 by its type.
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
