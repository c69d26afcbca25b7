//! Steps of a start: coordinators, then scene and masks, then the image store.
//!
//! Runs in the consumer. Not here: which kind of run it is.

use std::path::PathBuf;

use crate::error::Result;
use crate::pool::worker_options::LaunchedWorkers;
use crate::scene::data::Scene;
use crate::scene::image_store;
use crate::scene::image_store::{ImageStore, StoreBacking, default_folder};
use crate::scene::jobs::kinds::KINDS;
use crate::scene::jobs::masks;
use crate::scene::jobs::shared::spec::StoreSpec;
use crate::scene::memory_plan::SceneMemoryPlan;
use crate::scene::run::options::RunOptions;
use crate::scene::run::run_store::RunStore;
use crate::scene::run::source::SceneSource;
use crate::scene::run::split_frames::{ImageExtras, SplitFrames};

/// Coordinators that wait for their jobs.
#[derive(Debug)]
pub(crate) struct RunCoordinators {
    run: LaunchedWorkers,
    /// The coordinator of the job that reads masks.
    masks: Option<LaunchedWorkers>,
}

impl RunOptions {
    /// Starts the coordinators before any file is read. The one for masks starts too, because it is
    /// not known yet whether the scene has masks.
    ///
    /// # Errors
    /// A system call that fails; a missing helper.
    pub(crate) fn launch(&self) -> Result<RunCoordinators> {
        let run = self.worker_options.clone().launch(KINDS)?;
        let masks = match self.masks {
            true => Some(self.worker_options.clone().launch(KINDS)?),
            false => None,
        };
        Ok(RunCoordinators { run, masks })
    }

    /// Reads the scene and selects its frames.
    ///
    /// # Errors
    /// A scene that cannot be read; a split without frames.
    pub(crate) fn open_split(&self, source: SceneSource) -> Result<(Scene, SplitFrames)> {
        let scene = source.open(self.limits.max_pixels)?;
        for line in scene.missing.lines() {
            tracing::warn!("{}: {line}", scene.root.display());
        }
        let wanted = ImageExtras {
            masks: self.masks,
            depths: self.depths,
            alpha: self.alpha,
        };
        let chosen = SplitFrames::new(&scene, self.split, self.downscale, wanted)?;
        Ok((scene, chosen))
    }

    /// Reads the masks of the frames that have one, in frame order. Also returns the coordinator of
    /// the run.
    ///
    /// # Errors
    /// Masks that cannot be read.
    pub(crate) fn read_masks(
        &self,
        chosen: &SplitFrames,
        coordinators: RunCoordinators,
    ) -> Result<(LaunchedWorkers, Vec<Vec<u64>>)> {
        let words = match coordinators.masks.filter(|_| !chosen.masks.is_empty()) {
            Some(launched) => {
                let spec = chosen.masks_spec(self.limits);
                masks::run::read_all(launched, &spec, &chosen.index_of_masks()?)?
            }
            None => Vec::new(),
        };
        Ok((coordinators.run, words))
    }

    /// Opens the image store of these images: that of another process, or a new one of the kind
    /// that `forecast` states.
    ///
    /// # Errors
    /// No space for a file; an image that no longer exists.
    pub(crate) fn open_store(
        &self,
        chosen: &SplitFrames,
        forecast: &SceneMemoryPlan,
    ) -> Result<(RunStore, StoreSpec)> {
        let holding = match forecast.store.in_file {
            true => StoreBacking::File,
            false => StoreBacking::Memory,
        };
        let folder = match holding {
            StoreBacking::File => self.store_folder.clone().unwrap_or_else(default_folder),
            StoreBacking::Memory => PathBuf::new(),
        };
        let key = chosen.store_key(self.background)?;
        let places = &chosen.frames.places;
        let create = || ImageStore::create(places.clone(), holding, &folder, key);
        // With a memory limit, do not join another process's store in memory that exceeds it. Do
        // not join a store in a file if a device reads images in the store.
        let limited = self.memory_limit.is_some();
        let reads = forecast
            .device
            .is_some_and(|device| device.host_image_bytes > 0);
        let suits = |found: StoreBacking| found == holding || !(limited || reads);
        let (pictures, presence) = match self.shares {
            true => image_store::open_or_create(key, places, suits, create)?,
            false => (create()?, None),
        };
        let spec = StoreSpec {
            background: self.background,
            limits: self.limits,
            // The backing of the process that created the store.
            holding: pictures.backing(),
            key,
        };
        Ok((
            RunStore {
                presence,
                images: pictures,
            },
            spec,
        ))
    }
}
