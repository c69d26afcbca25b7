//! What the user asks for, as options.
//!
//! In the consumer. Never in here: what is done with them (`prepared`, `start`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::data::scenes::{Scene, SceneOptions, Split};
use crate::picture::{Background, Limits};
use crate::plan::RaySampler;
use crate::pool::coordinator::launch::Launch;
use crate::pool::crew::Crew;

/// Where a scene comes from.
#[derive(Debug)]
#[non_exhaustive]
pub enum SceneSource {
    /// Read within [`RaysBuilder::build`], behind the start of the coordinator.
    Path(PathBuf, SceneOptions),
    Read(Box<Scene>),
}

impl From<Scene> for SceneSource {
    fn from(scene: Scene) -> Self {
        Self::Read(Box::new(scene))
    }
}

impl From<&Path> for SceneSource {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned(), SceneOptions::default())
    }
}

impl From<PathBuf> for SceneSource {
    fn from(path: PathBuf) -> Self {
        Self::Path(path, SceneOptions::default())
    }
}

impl From<&str> for SceneSource {
    fn from(path: &str) -> Self {
        Self::from(Path::new(path))
    }
}

/// Builds [`Rays`](crate::rays::Rays).
#[derive(Debug)]
#[must_use = "a builder does nothing before build"]
pub struct RaysBuilder {
    pub(super) source: SceneSource,
    pub(super) split: Split,
    pub(super) sampler: RaySampler,
    pub(super) seed: u64,
    pub(super) rank: u32,
    pub(super) joining: u32,
    pub(super) rays: u64,
    pub(super) most_rays: Option<u64>,
    pub(super) first_step: u64,
    pub(super) downscale: u32,
    pub(super) masks: bool,
    pub(super) background: Background,
    pub(super) crew: Crew,
    pub(super) depth: Option<u32>,
    pub(super) memory_limit: Option<u64>,
    pub(super) store_folder: Option<PathBuf>,
    pub(super) shares: bool,
    pub(super) limits: Limits,
}

impl RaysBuilder {
    /// Rays of a step, when nobody says another number.
    pub const DEFAULT_RAYS: u64 = 4096;

    /// Most time that a step may take, when nobody says another: a step in the middle of a
    /// training may find no image decoded, and waits for all that it needs.
    pub const DEFAULT_ROW_LIMIT: Duration = Duration::from_secs(600);

    /// Images that join at each step, when nobody says another number.
    pub const DEFAULT_JOINING: u32 = 4;

    pub(super) fn new(source: SceneSource) -> Self {
        Self {
            source,
            split: Split::Train,
            sampler: RaySampler::default(),
            seed: 0,
            rank: 0,
            joining: Self::DEFAULT_JOINING,
            rays: Self::DEFAULT_RAYS,
            most_rays: None,
            first_step: 0,
            downscale: 1,
            masks: true,
            background: Background::default(),
            crew: Crew {
                row_limit: Self::DEFAULT_ROW_LIMIT,
                ..Crew::default()
            },
            depth: None,
            memory_limit: None,
            store_folder: None,
            shares: true,
            limits: Limits::default(),
        }
    }

    /// Which frames rays are drawn from. Default [`Split::Train`].
    pub fn split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }

    /// How rays are spread over the images. Default [`RaySampler::Uniform`].
    pub fn sampler(mut self, sampler: RaySampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// Seed of the draws. Default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Number of this process among those that train together: each draws rays of its
    /// own. Default 0.
    pub fn rank(mut self, rank: u32) -> Self {
        self.rank = rank;
        self
    }

    /// Images that join at each step: step s draws from the first `images * (s + 1)` of a
    /// random order, so that training begins when a few are decoded. 0 draws from all at
    /// once, and the first step waits for every image that it draws from. Default
    /// [`RaysBuilder::DEFAULT_JOINING`].
    pub fn joining(mut self, images: u32) -> Self {
        self.joining = images;
        self
    }

    /// Rays of a step. Default [`RaysBuilder::DEFAULT_RAYS`].
    pub fn rays(mut self, rays: u64) -> Self {
        self.rays = rays;
        self
    }

    /// The most rays that [`Rays::next_rays`](crate::rays::Rays::next_rays) may ask for.
    /// Default: those of a step.
    pub fn most_rays(mut self, rays: u64) -> Self {
        self.most_rays = Some(rays);
        self
    }

    /// The first step. Default 0: to go on, that of
    /// [`Rays::step`](crate::rays::Rays::step).
    pub fn start(mut self, step: u64) -> Self {
        self.first_step = step;
        self
    }

    /// Images are read at a fraction of their width and height, rounded down. Default 1.
    pub fn downscale(mut self, by: u32) -> Self {
        self.downscale = by;
        self
    }

    /// Whether masks are used, where the scene has any. Default true.
    pub fn masks(mut self, used: bool) -> Self {
        self.masks = used;
        self
    }

    /// What shows through where an image is transparent. Default white.
    pub fn background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// Worker processes. 0 makes rays in this process: the same rays, for debugging.
    /// Default: the CPUs that this process may use.
    pub fn workers(mut self, workers: usize) -> Self {
        self.crew.workers = Some(workers);
        self
    }

    /// Batches that are made ahead, and may be held at once. Default: the workers and 2.
    pub fn depth(mut self, batches: u32) -> Self {
        self.depth = Some(batches);
        self
    }

    /// The most memory that all processes of this run may take, bytes. Images that do not
    /// fit are kept in a file ([`RaysBuilder::store_folder`]). Default: what the machine
    /// has available and its cgroup leaves.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Where the file of decoded images goes, if they do not fit in memory. It has no
    /// name, and goes with the last process that uses it. Default:
    /// `TMPDIR`, or `/tmp`; `/var/tmp` where that lies in memory.
    pub fn store_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.store_folder = Some(folder.into());
        self
    }

    /// Whether decoded images are shared with other processes of this user on this machine
    /// that read the same files at the same size: the ranks of a training. Default true.
    pub fn share_store(mut self, shared: bool) -> Self {
        self.shares = shared;
        self
    }

    /// How the coordinator is started. Default [`Launch::Exec`].
    pub fn launch(mut self, launch: Launch) -> Self {
        self.crew.launch = launch;
        self
    }

    /// The executable of [`Launch::Exec`]. Default: searched for.
    pub fn helper(mut self, path: impl Into<PathBuf>) -> Self {
        self.crew.helper = Some(path.into());
        self
    }

    /// Most time that one step may take in a worker. Default
    /// [`RaysBuilder::DEFAULT_ROW_LIMIT`], 10 minutes.
    pub fn row_limit(mut self, limit: Duration) -> Self {
        self.crew.row_limit = limit;
        self
    }

    /// How long to wait for a batch to be dropped when all are held. Default 2 s.
    pub fn hold_timeout(mut self, limit: Duration) -> Self {
        self.crew.hold_timeout = limit;
        self
    }

    /// Most pixels of an image. Default 178,956,970.
    pub fn max_pixels(mut self, pixels: u64) -> Self {
        self.limits.max_pixels = pixels;
        self
    }

    /// Most memory that decoding one image may take, bytes. Default 512 MiB.
    pub fn max_scratch(mut self, bytes: u64) -> Self {
        self.limits.max_scratch = bytes;
        self
    }
}

#[cfg(feature = "internals")]
impl crate::pool::crew::Drilled for RaysBuilder {
    fn crew(&mut self) -> &mut Crew {
        &mut self.crew
    }
}
