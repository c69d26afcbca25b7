//! Steps of a start: coordinators first, then the scene and its masks, then the store.
//!
//! In the consumer. Never in here: what the images are for.

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
    /// Of the job that reads masks.
    masks: Option<LaunchedWorkers>,
}

impl RunOptions {
    /// Makes the coordinators, before anything is read: also that of the masks, since
    /// nobody knows yet.
    ///
    /// # Errors
    /// A system that refuses, a helper that is missing.
    pub(crate) fn launch(&self) -> Result<RunCoordinators> {
        let run = self.crew.clone().launch(KINDS)?;
        let masks = match self.masks {
            true => Some(self.crew.clone().launch(KINDS)?),
            false => None,
        };
        Ok(RunCoordinators { run, masks })
    }

    /// Reads the scene, and chooses its frames.
    ///
    /// # Errors
    /// A scene that cannot be read; nothing to choose.
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

    /// The coordinator of the run, and the masks of the frames that have one, in order.
    ///
    /// # Errors
    /// Masks that cannot be read.
    pub(crate) fn read_masks(
        &self,
        chosen: &SplitFrames,
        crews: RunCoordinators,
    ) -> Result<(LaunchedWorkers, Vec<Vec<u64>>)> {
        let words = match crews.masks.filter(|_| !chosen.masks.is_empty()) {
            Some(crew) => {
                let spec = chosen.masks_spec(self.limits);
                masks::run::read_all(crew, &spec, &chosen.index_of_masks()?)?
            }
            None => Vec::new(),
        };
        Ok((crews.run, words))
    }

    /// The store of these images: that of another process, or a new one where `forecast`
    /// says.
    ///
    /// # Errors
    /// No room for a file; an image that has gone.
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
        // With a limit a store in memory that breaks it is not joined, nor one in a file where
        // a device reads images in it.
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
            // That of who made the store.
            holding: pictures.backing(),
            key,
        };
        Ok((
            RunStore {
                offer: presence,
                images: pictures,
            },
            spec,
        ))
    }
}
