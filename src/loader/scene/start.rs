//! The part of a start that all runs over the images of a scene share: coordinators
//! first, then the scene and its masks, then the store.
//!
//! In the consumer. Never in here: what the images are for.

use crate::data::scenes::Scene;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::forecast::MemoryLimit;
use crate::jobs::kinds::KINDS;
use crate::jobs::masks;
use crate::jobs::scene::spec::StoreSpec;
use crate::loader::scene::chosen::{Chosen, Wanted};
use crate::loader::scene::options::SceneRun;
use crate::loader::scene::source::SceneSource;
use crate::loader::scene::store::HeldStore;
use crate::pool::crew::Ready;
use crate::pool::ring::Shape;
use crate::store;
use crate::store::{Holding, Pictures, default_folder};

/// What a worker takes beside the pixels that it decodes: its code's data, tables, what a
/// decoder works with.
const WORKER_BYTES: u64 = 4 << 20;

/// Coordinators that wait for their jobs.
#[derive(Debug)]
pub(in crate::loader) struct Crews {
    pub(in crate::loader) run: Ready,
    /// Of the job that reads masks.
    masks: Option<Ready>,
}

/// What a run takes beside its store, its ring and what decoding takes; bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::loader) struct Beside {
    /// Each worker for itself.
    pub(in crate::loader) worker: u64,
    /// All together.
    pub(in crate::loader) shared: u64,
}

/// A scene whose frames are chosen and whose masks are read.
#[derive(Debug)]
pub(in crate::loader) struct ReadScene {
    pub(in crate::loader) run: Ready,
    pub(in crate::loader) scene: Scene,
    pub(in crate::loader) chosen: Chosen,
    /// The masks of the frames that have one, in order.
    pub(in crate::loader) words: Vec<Vec<u64>>,
}

/// What is said of a device that there is none of.
///
/// # Errors
/// A limit of its memory.
pub(in crate::loader) fn check_device(device: Device, limit: Option<u64>) -> Result<()> {
    match (device, limit) {
        (Device::Cpu, Some(_)) => Err(Error::option(
            "gpu_memory_limit",
            "gpu_memory_limit has no effect on device cpu: use device cuda, or remove it",
        )),
        _ => Ok(()),
    }
}

impl SceneRun {
    /// Makes the coordinators, before anything is read: also that of the masks, since
    /// nobody knows yet.
    ///
    /// # Errors
    /// A system that refuses, a helper that is missing.
    pub(in crate::loader) fn launch(&self) -> Result<Crews> {
        let run = self.crew.clone().launch(KINDS)?;
        let masks = match self.masks {
            true => Some(self.crew.clone().launch(KINDS)?),
            false => None,
        };
        Ok(Crews { run, masks })
    }

    /// Reads the scene and its masks.
    ///
    /// # Errors
    /// A scene or masks that cannot be read.
    pub(in crate::loader) fn read(&self, source: SceneSource, crews: Crews) -> Result<ReadScene> {
        let scene = source.open(self.limits.max_pixels)?;
        let wanted = Wanted {
            masks: self.masks,
            depths: self.depths,
            alpha: self.alpha,
        };
        let chosen = Chosen::new(&scene, self.split, self.downscale, wanted)?;
        let words = match crews.masks.filter(|_| !chosen.masks.is_empty()) {
            Some(crew) => {
                let spec = chosen.masks_spec(self.limits);
                masks::run::read_all(crew, &spec, &chosen.index_of_masks()?)?
            }
            None => Vec::new(),
        };
        Ok(ReadScene {
            run: crews.run,
            scene,
            chosen,
            words,
        })
    }

    /// The store of these images: that of another process, or a new one. `shape` is that
    /// of the ring beside it.
    ///
    /// # Errors
    /// Too little memory, and no room for a file; an image that has gone.
    pub(in crate::loader) fn store(
        &self,
        read: &ReadScene,
        shape: Shape,
        beside: Beside,
    ) -> Result<(HeldStore, StoreSpec)> {
        let chosen = &read.chosen;
        let holding = self.holding(read, shape, beside)?;
        let folder = self.store_folder.clone().unwrap_or_else(default_folder);
        let key = chosen.store_key(self.background)?;
        let places = &chosen.frames.places;
        let create = || Pictures::create(places.clone(), holding, &folder, key);
        // With a limit a store in memory that breaks it is not joined.
        let suits = |found: Holding| self.memory_limit.is_none() || found == holding;
        let (pictures, presence) = match self.shares {
            true => store::meet(key, places, suits, create)?,
            false => (create()?, None),
        };
        let spec = StoreSpec {
            background: self.background,
            limits: self.limits,
            // That of who made the store.
            holding: pictures.holding(),
            key,
        };
        Ok((HeldStore { presence, pictures }, spec))
    }

    /// Where the pixels are held: in memory if they fit beside the rest of the run.
    fn holding(&self, read: &ReadScene, shape: Shape, beside: Beside) -> Result<Holding> {
        let places = &read.chosen.frames.places;
        let largest = places.largest();
        let lanes = u64::from(shape.lanes);
        let ring = u64::from(shape.slots).saturating_mul(shape.slot_bytes);
        // A worker has the pixels of the picture that it decodes, at the size of its file.
        let decoded = read.chosen.largest_file();
        let worker = WORKER_BYTES
            .saturating_add(decoded)
            .saturating_add(read.chosen.apart_bytes())
            .saturating_add(beside.worker);
        let rest = lanes.saturating_mul(worker);
        // Masks lie in memory twice for a moment.
        let masks = read.words.iter().map(|words| words.len() as u64);
        let masks = 2 * 8 * masks.sum::<u64>();
        let rest = rest.saturating_add(ring).saturating_add(masks);
        let rest = rest.saturating_add(beside.shared);
        let Some(limit) = MemoryLimit::lowest(self.memory_limit) else {
            return Ok(Holding::Memory);
        };
        // What nobody limited is the trainer's too, which may need more later.
        let room = match self.memory_limit {
            Some(_) => limit.bytes,
            None => limit.bytes / 4 * 3,
        };
        if rest.saturating_add(places.bytes()) <= room {
            return Ok(Holding::Memory);
        }
        // And of one that goes to the file, once more.
        let rest = rest.saturating_add(lanes.saturating_mul(largest));
        if rest > limit.bytes {
            return Err(Error::option(
                "memory_limit",
                format!(
                    "{} bytes ({}) do not hold the ring of {ring} bytes, {masks} of masks, and \
                     {lanes} workers with a picture of {decoded} bytes each, {rest} in all: \
                     raise it, or lower workers or depth",
                    limit.bytes, limit.by
                ),
            ));
        }
        Ok(Holding::File)
    }
}
