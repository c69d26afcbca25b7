//! The builder of a run over the images of a scene, with the options that all runs share.
//!
//! In the consumer. Never in here: what is done with them (`prepared`, `build`); options of one
//! kind of run.

use std::path::PathBuf;
use std::time::Duration;

use crate::device::Device;
use crate::picture::BackgroundColor;
use crate::pool::coordinator::launch::LaunchMethod;
use crate::pool::sandbox::Sandbox;
use crate::scene::data::SceneSplit;
use crate::scene::run::kind::SceneKind;
use crate::scene::run::options::RunOptions;
use crate::scene::run::source::SceneSource;

/// Builds a [`SceneRun`](crate::scene::SceneRun): [`Rays`](crate::rays::Rays) or
/// [`Views`](crate::views::Views).
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct SceneBuilder<K: SceneKind> {
    pub(super) source: SceneSource,
    pub(super) run: RunOptions,
    /// Options of this kind of run alone.
    pub(crate) kind: K::Options,
}

impl<K: SceneKind> SceneBuilder<K> {
    /// Most time that a step may take, when nobody says another: it may find no image decoded,
    /// and waits for all that it needs.
    pub const DEFAULT_ROW_LIMIT: Duration = RunOptions::DEFAULT_ROW_LIMIT;

    pub(super) fn new(source: SceneSource) -> Self {
        Self {
            source,
            run: RunOptions::default(),
            kind: K::Options::default(),
        }
    }

    /// Seed of draws and orders. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self
    }

    /// The first step. Default 0: to go on, that of
    /// [`SceneRun::step`](crate::scene::SceneRun::step).
    pub fn start(mut self, step: u64) -> Self {
        self.run.first_step = step;
        self
    }

    /// Which frames are used. Default [`Split::Train`].
    pub fn split(mut self, split: SceneSplit) -> Self {
        self.run.split = split;
        self
    }

    /// Images are read at a fraction of their width and height, rounded down. Default 1.
    pub fn downscale(mut self, by: u32) -> Self {
        self.run.downscale = by;
        self
    }

    /// Whether masks are used, where the scene has any. Default true.
    pub fn masks(mut self, used: bool) -> Self {
        self.run.masks = used;
        self
    }

    /// Whether depths are read. True: those that the scene's file names, and others that
    /// have the name of their image, in `depths` or `depth`. False: none. Default: those
    /// that the file names. PNG, TIFF, OpenEXR and NumPy's `.npy`, of any size.
    pub fn depths(mut self, read: bool) -> Self {
        self.run.depths = Some(read);
        self
    }

    /// Whether images keep their alpha, as a fourth channel (255 where a file has none),
    /// instead of being composited on the background. Default false.
    pub fn alpha(mut self, kept: bool) -> Self {
        self.run.alpha = kept;
        self
    }

    /// What shows through where an image is transparent. Default white.
    pub fn background(mut self, background: BackgroundColor) -> Self {
        self.run.background = background;
        self
    }

    /// Worker processes. 0 works in this process: the same bytes, for debugging.
    /// Default: the CPUs that this process may use.
    pub fn num_workers(mut self, workers: usize) -> Self {
        self.run.crew.workers = Some(workers);
        self
    }

    /// Batches that are made ahead, and may be held at once. Default: the workers and 2;
    /// of whole images at most 8.
    pub fn depth(mut self, batches: u32) -> Self {
        self.run.depth = Some(batches);
        self
    }

    /// The most memory that all processes of this run may take, bytes. Images that do not
    /// fit are kept in a file ([`store_folder`](Self::store_folder)). Default: what the machine
    /// has available and its cgroup leaves.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.run.memory_limit = Some(bytes);
        self
    }

    /// Where the file of decoded images goes, if they do not fit in memory. It has no
    /// name, and goes with the last process that uses it. Default:
    /// `TMPDIR`, or `/tmp`; `/var/tmp` where that lies in memory.
    pub fn store_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.run.store_folder = Some(folder.into());
        self
    }

    /// Whether decoded images are shared with other processes of this user on this machine
    /// that read the same files at the same size: the ranks of a training. Default true.
    pub fn share_store(mut self, shared: bool) -> Self {
        self.run.shares = shared;
        self
    }

    /// How the coordinator is started. Default [`Launch::Exec`].
    pub fn launch(mut self, launch: LaunchMethod) -> Self {
        self.run.crew.launch = launch;
        self
    }

    /// The executable of [`Launch::Exec`]. Default: searched for.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.run.crew.helper = Some(path.into());
        self
    }

    /// What workers are kept from, beside their work. Default [`Sandbox::Auto`].
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.run.crew.sandbox = sandbox;
        self
    }

    /// Most time that one step may take in a worker. Default
    /// [`DEFAULT_ROW_LIMIT`](Self::DEFAULT_ROW_LIMIT), 10 minutes. With zero workers there is no
    /// limit.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.run.crew.row_limit = limit;
        self
    }

    /// How long to wait for a batch to be dropped when all are held. Default 2 s.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.run.crew.hold_timeout = limit;
        self
    }

    /// Most pixels of an image. Default 178,956,970.
    pub fn max_pixels(mut self, pixels: u64) -> Self {
        self.run.limits.max_pixels = pixels;
        self
    }

    /// Most memory that decoding one image may take, bytes. Default 512 MiB.
    pub fn max_scratch(mut self, bytes: u64) -> Self {
        self.run.limits.max_scratch = bytes;
        self
    }

    /// Where batches are made and end. Default [`Device::Cpu`]. On a device workers only decode
    /// images, each goes up once, and a kernel makes the batches. Rays have the same pixels and
    /// colours, and directions and origins within 1e-6. Views have the same numbers, but for one
    /// in a million of straightened images, where a place rounds to the other side. All memory of
    /// the device is taken by `build`, which makes the device's primary context; batches are
    /// [`SceneBatch::on_device`](crate::scene::SceneBatch::on_device), 4 at a time or as many as
    /// `depth`.
    pub fn device(mut self, device: Device) -> Self {
        self.run.device = device;
        self
    }

    /// Most bytes of the device that the run may take for itself, the device's context apart.
    /// Images that do not fit stay in the host's memory, where the kernel reads them over the
    /// bus: those that are needed last. Default: no limit.
    pub fn gpu_memory_limit(mut self, bytes: u64) -> Self {
        self.run.gpu_memory_limit = Some(bytes);
        self
    }
}

#[cfg(feature = "internals")]
impl<K: SceneKind> crate::pool::worker_options::DrillBuilder for SceneBuilder<K> {
    fn worker_options(&mut self) -> &mut crate::pool::worker_options::WorkerOptions {
        &mut self.run.crew
    }
}
