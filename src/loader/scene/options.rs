//! What every run over the images of a scene is told.
//!
//! In the consumer. Never in here: what is done with them; options of one kind of run.

use std::path::PathBuf;
use std::time::Duration;

use crate::data::scenes::Split;
use crate::picture::{Background, Limits};
use crate::pool::crew::Crew;

/// Which images, how they are decoded and held, and by whom.
#[derive(Debug)]
pub(in crate::loader) struct SceneRun {
    pub(in crate::loader) split: Split,
    pub(in crate::loader) downscale: u32,
    pub(in crate::loader) masks: bool,
    /// None = those that the scene's file names; true = also those that are found by name.
    pub(in crate::loader) depths: Option<bool>,
    pub(in crate::loader) alpha: bool,
    pub(in crate::loader) background: Background,
    pub(in crate::loader) crew: Crew,
    /// Slots of the ring.
    pub(in crate::loader) depth: Option<u32>,
    pub(in crate::loader) memory_limit: Option<u64>,
    pub(in crate::loader) store_folder: Option<PathBuf>,
    pub(in crate::loader) shares: bool,
    pub(in crate::loader) limits: Limits,
}

impl SceneRun {
    /// Most time that a step may take, when nobody says another.
    pub(in crate::loader) const DEFAULT_ROW_LIMIT: Duration = Duration::from_secs(600);

    pub(in crate::loader) fn new() -> Self {
        Self {
            split: Split::Train,
            downscale: 1,
            masks: true,
            depths: None,
            alpha: false,
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
}

/// The methods by which a builder with a field `run: SceneRun` is told of it.
macro_rules! scene_run_options {
    () => {
        /// Which frames are used. Default [`Split::Train`](crate::scenes::Split::Train).
        pub fn split(mut self, split: crate::data::scenes::Split) -> Self {
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
        pub fn background(mut self, background: crate::picture::Background) -> Self {
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
        pub fn store_folder(mut self, folder: impl Into<std::path::PathBuf>) -> Self {
            self.run.store_folder = Some(folder.into());
            self
        }

        /// Whether decoded images are shared with other processes of this user on this machine
        /// that read the same files at the same size: the ranks of a training. Default true.
        pub fn share_store(mut self, shared: bool) -> Self {
            self.run.shares = shared;
            self
        }

        /// How the coordinator is started. Default [`Launch::Exec`](crate::Launch::Exec).
        pub fn launch(mut self, launch: crate::pool::coordinator::launch::Launch) -> Self {
            self.run.crew.launch = launch;
            self
        }

        /// The executable of [`Launch::Exec`](crate::Launch::Exec). Default: searched for.
        pub fn helper(mut self, path: impl Into<std::path::PathBuf>) -> Self {
            self.run.crew.helper = Some(path.into());
            self
        }

        /// What workers are kept from, beside their work. Default
        /// [`Sandbox::Auto`](crate::Sandbox::Auto).
        pub fn sandbox(mut self, sandbox: crate::pool::sandbox::Sandbox) -> Self {
            self.run.crew.sandbox = sandbox;
            self
        }

        /// Most time that one step may take in a worker. Default
        /// [`DEFAULT_ROW_LIMIT`](Self::DEFAULT_ROW_LIMIT), 10 minutes.
        pub fn row_limit(mut self, limit: std::time::Duration) -> Self {
            self.run.crew.row_limit = limit;
            self
        }

        /// How long to wait for a batch to be dropped when all are held. Default 2 s.
        pub fn hold_timeout(mut self, limit: std::time::Duration) -> Self {
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
    };
}

pub(in crate::loader) use scene_run_options;
