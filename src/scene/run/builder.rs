//! The builder of a run over the images of a scene, with the options that all kinds of runs have.
//!
//! Runs in the consumer. Not here: what the options do (`run_plan`, `build`); options of one kind.

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
    /// Options of this kind of run.
    pub(crate) kind: K::Options,
}

impl<K: SceneKind> SceneBuilder<K> {
    /// Default time limit of a step. It is long because a step may have to decode all images that
    /// it needs.
    pub const DEFAULT_ROW_LIMIT: Duration = RunOptions::DEFAULT_ROW_LIMIT;

    pub(super) fn new(source: SceneSource) -> Self {
        Self {
            source,
            run: RunOptions::default(),
            kind: K::Options::default(),
        }
    }

    /// Seed of random draws and orders. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.run.seed = seed;
        self
    }

    /// The first step. Default 0. To continue a run, pass its
    /// [`SceneRun::step`](crate::scene::SceneRun::step).
    pub fn start(mut self, step: u64) -> Self {
        self.run.first_step = step;
        self
    }

    /// Frames to use. Default [`SceneSplit::Train`].
    pub fn split(mut self, split: SceneSplit) -> Self {
        self.run.split = split;
        self
    }

    /// Divides width and height of images by this number, rounding down. Default 1.
    pub fn downscale(mut self, by: u32) -> Self {
        self.run.downscale = by;
        self
    }

    /// Whether masks of the scene are used. Default true.
    pub fn masks(mut self, used: bool) -> Self {
        self.run.masks = used;
        self
    }

    /// Whether depths are read. Default: the depths that the scene's file names. True: also those
    /// that have the name of their image, in the folder `depths` or `depth`. False: none. Formats:
    /// PNG, TIFF, OpenEXR and NumPy's `.npy`, of any size.
    pub fn depths(mut self, read: bool) -> Self {
        self.run.depths = Some(read);
        self
    }

    /// Whether images keep their alpha as a fourth channel, which is 255 if a file has none.
    /// Otherwise they are composited on the background. Default false.
    pub fn alpha(mut self, kept: bool) -> Self {
        self.run.alpha = kept;
        self
    }

    /// Background of transparent pixels. Default white.
    pub fn background(mut self, background: BackgroundColor) -> Self {
        self.run.background = background;
        self
    }

    /// Worker processes. 0 works in this process and makes the same bytes, for debugging. Default:
    /// the CPUs that this process may use.
    pub fn num_workers(mut self, workers: usize) -> Self {
        self.run.worker_options.workers = Some(workers);
        self
    }

    /// Batches made ahead, which may also be held at once. Default: the workers plus 2, and at most
    /// 8 for views.
    pub fn depth(mut self, batches: u32) -> Self {
        self.run.depth = Some(batches);
        self
    }

    /// Memory limit of all processes of this run, in bytes. Images that do not fit are kept in a
    /// file ([`store_folder`](Self::store_folder)). Default: the memory that the machine has
    /// available and its cgroup allows.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.run.memory_limit = Some(bytes);
        self
    }

    /// Folder of the file that holds decoded images if they do not fit in memory. The file has no
    /// name and disappears with the last process that uses it. Default: `TMPDIR` or `/tmp`;
    /// `/var/tmp` if that folder is in memory.
    pub fn store_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.run.store_folder = Some(folder.into());
        self
    }

    /// Whether decoded images are shared with other processes of this user on this machine, such as
    /// the ranks of a training. They must read the same files at the same size. Default true.
    pub fn share_store(mut self, shared: bool) -> Self {
        self.run.shares = shared;
        self
    }

    /// How the coordinator is started. Default [`LaunchMethod::Exec`].
    pub fn launch(mut self, launch: LaunchMethod) -> Self {
        self.run.worker_options.launch = launch;
        self
    }

    /// The executable for [`LaunchMethod::Exec`]. Default: searched for.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.run.worker_options.helper = Some(path.into());
        self
    }

    /// Restrictions of workers. Default [`Sandbox::Auto`].
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.run.worker_options.sandbox = sandbox;
        self
    }

    /// Time limit of one step in a worker. Default [`DEFAULT_ROW_LIMIT`](Self::DEFAULT_ROW_LIMIT),
    /// 10 minutes. With zero workers there is no limit.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.run.worker_options.row_limit = limit;
        self
    }

    /// How long to wait for a batch to be dropped when all are held. Default 2 s.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.run.worker_options.hold_timeout = limit;
        self
    }

    /// Most pixels of an image. Default 178,956,970.
    pub fn max_pixels(mut self, pixels: u64) -> Self {
        self.run.limits.max_pixels = pixels;
        self
    }

    /// Memory limit for decoding one image, in bytes. Default 512 MiB.
    pub fn max_scratch(mut self, bytes: u64) -> Self {
        self.run.limits.max_scratch = bytes;
        self
    }

    /// Where batches are made and delivered. Default [`Device::Cpu`].
    ///
    /// On a device, workers only decode images. Each image is uploaded once, and a kernel makes the
    /// batches. Rays have the same pixels and colours as on the CPU, and directions and origins
    /// within 1e-6. Views have the same numbers, except for one in a million pixels of straightened
    /// images, where a coordinate rounds to the other side.
    ///
    /// `build` allocates all device memory and creates the device's primary context. Batches have
    /// [`SceneBatch::on_device`](crate::scene::SceneBatch::on_device); at most `depth` of them, by
    /// default 4, exist at a time.
    pub fn device(mut self, device: Device) -> Self {
        self.run.device = device;
        self
    }

    /// Device memory limit of the run in bytes, without the device's context. Images that do not
    /// fit stay in host memory, where the kernel reads them over the bus. They are the images
    /// needed last. Default: no limit.
    pub fn gpu_memory_limit(mut self, bytes: u64) -> Self {
        self.run.gpu_memory_limit = Some(bytes);
        self
    }
}

#[cfg(feature = "internals")]
impl<K: SceneKind> crate::pool::worker_options::DrillBuilder for SceneBuilder<K> {
    fn worker_options(&mut self) -> &mut crate::pool::worker_options::WorkerOptions {
        &mut self.run.worker_options
    }
}
