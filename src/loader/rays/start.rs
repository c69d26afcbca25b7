//! The start of rays, in its order.
//!
//! In the consumer. First the coordinators, before a thread or a byte of data exists;
//! then the scene; masks, since they say what may be drawn; then store, ring and workers.

use std::path::PathBuf;
use std::time::Instant;

use crate::data::scenes::{Scene, SceneOptions};
use crate::error::{Error, Result};
use crate::forecast::MemoryLimit;
use crate::jobs::kinds::KINDS;
use crate::jobs::masks;
use crate::jobs::rays::fields::RayLayout;
use crate::jobs::rays::run::RayRun;
use crate::jobs::rays::spec::{RaysMemory, RaysSpec};
use crate::jobs::scene::spec::{StoreMemory, StoreSpec};
use crate::loader::rays::builder::{RaysBuilder, SceneSource};
use crate::loader::rays::prepared::Chosen;
use crate::loader::rays::state::{self, RaysState};
use crate::loader::rays::steps::{HeldStore, Rays};
use crate::pool::ring::Shape;
use crate::store;
use crate::store::{Holding, Pictures, default_folder};
use crate::sys::cpu::CpuLevel;

/// What a worker takes beside the pixels that it decodes: its code's data, tables, what a
/// decoder works with.
const WORKER_BYTES: u64 = 4 << 20;

/// The last step that a run may begin at: there are steps behind it for every trainer.
const LAST_STEP: u64 = 1 << 62;

impl Rays {
    /// Starts the description of rays over `scene`.
    pub fn builder(scene: impl Into<SceneSource>) -> RaysBuilder {
        RaysBuilder::new(scene.into())
    }
}

impl RaysBuilder {
    /// Starts the pool.
    ///
    /// # Errors
    /// Options that cannot work, a scene that cannot be read, masks that cannot, too
    /// little memory and no room for a file, a system that refuses.
    pub fn build(self) -> Result<Rays> {
        let began = Instant::now();
        CpuLevel::detect()?;
        let most_rays = self.checked_rays()?;
        if self.first_step > LAST_STEP {
            return Err(Error::option(
                "start",
                format!(
                    "`start` of {} is too far: use at most {LAST_STEP}",
                    self.first_step
                ),
            ));
        }
        let workers = self.crew.count()?;
        // Before anything is read: also that of the masks, since nobody knows yet.
        let crew = self.crew.clone().launch(KINDS)?;
        let crew_of_masks = match self.masks {
            true => Some(self.crew.clone().launch(KINDS)?),
            false => None,
        };
        let scene = match self.source {
            SceneSource::Read(scene) => *scene,
            SceneSource::Path(path, options) => {
                // A limit of the run is one of its scene.
                let max_pixels = self.limits.max_pixels;
                Scene::open(
                    &path,
                    &SceneOptions {
                        max_pixels,
                        ..options
                    },
                )?
            }
        };
        let chosen = Chosen::new(&scene, self.split, self.downscale, self.masks)?;
        let words = match crew_of_masks.filter(|_| !chosen.masks.is_empty()) {
            Some(crew) => {
                let spec = chosen.masks_spec(self.limits);
                masks::run::read_all(crew, &spec, &chosen.index_of_masks()?)?
            }
            None => Vec::new(),
        };
        let frames = chosen.frames.seal()?;
        let at = RaysState {
            version: RaysState::VERSION,
            step: self.first_step,
            seed: self.seed,
            sampler: self.sampler,
            joining: self.joining,
            split: self.split,
            downscale: self.downscale.max(1),
            images: chosen.images.len() as u64,
            scene: state::fingerprint(&frames, &words),
        };
        let (table, masks) = chosen.table(self.sampler, (self.seed, self.joining), &words)?;
        let shape = Shape {
            slots: self.depth.unwrap_or(workers + 2).max(1),
            rows: 1,
            slot_bytes: RayLayout::new(most_rays as usize, chosen.times).bytes() as u64,
            lanes: workers.max(1),
        };
        let holding = holding(&chosen, &words, shape, self.memory_limit)?;
        drop(words);
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
        let spec = RaysSpec {
            rank: self.rank,
            most_rays,
            times: chosen.times,
            store: StoreSpec {
                background: self.background,
                limits: self.limits,
                // That of who made the store.
                holding: pictures.holding(),
                key,
            },
        };
        let index = chosen.index()?;
        let memory = RaysMemory {
            store: StoreMemory {
                index: &index,
                frames: &frames,
                pictures: &pictures,
            },
            table: &table,
            masks: &masks,
        };
        let posted = self.rays;
        let first = RaysSpec::place(posted, self.first_step);
        let engine = crew.start(&spec.order(memory)?, shape, first, |needed, free| {
            format!(
                "the ring needs {needed} bytes and {free} are available: lower rays, most_rays \
                 or depth"
            )
        })?;
        let images: Vec<PathBuf> = chosen.images;
        let run = RayRun::new(
            engine,
            spec,
            (index, scene.root.clone()),
            posted,
            self.first_step,
        );
        let store = HeldStore { presence, pictures };
        Ok(Rays {
            run,
            scene,
            images,
            store,
            table,
            began: at,
            rays: self.rays,
            startup: began.elapsed(),
        })
    }

    /// Room for rays of a step.
    fn checked_rays(&self) -> Result<u64> {
        let most = self.most_rays.unwrap_or(self.rays);
        let per_unit = u64::from(self.sampler.rays_per_unit());
        if self.rays == 0 || self.sampler.whole_rays(self.rays) != self.rays {
            return Err(Error::option(
                "rays",
                format!(
                    "`rays` of {} are not whole units of {per_unit}: use {}",
                    self.rays,
                    self.sampler.whole_rays(self.rays).max(per_unit)
                ),
            ));
        }
        if most < self.rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "most_rays of {most} is below rays of {}: raise it",
                    self.rays
                ),
            ));
        }
        // A row's length is counted in 32 bits in places; nobody trains on more.
        if most > 1 << 24 {
            return Err(Error::option(
                "most_rays",
                format!("most_rays of {most} is too many: use at most {}", 1 << 24),
            ));
        }
        Ok(most)
    }
}

/// Where the pixels are held: in memory if they fit beside the rest of the run.
fn holding(
    chosen: &Chosen,
    masks: &[Vec<u64>],
    shape: Shape,
    asked: Option<u64>,
) -> Result<Holding> {
    let places = &chosen.frames.places;
    let largest = places.largest();
    let lanes = u64::from(shape.lanes);
    let ring = u64::from(shape.slots).saturating_mul(shape.slot_bytes);
    // A worker has the pixels of the picture that it decodes, at the size of its file.
    let decoded = chosen.largest_file();
    let rest = lanes.saturating_mul(WORKER_BYTES.saturating_add(decoded));
    // Masks lie in memory twice for a moment.
    let masks = 2 * 8 * masks.iter().map(|words| words.len() as u64).sum::<u64>();
    let rest = rest.saturating_add(ring).saturating_add(masks);
    let Some(limit) = MemoryLimit::lowest(asked) else {
        return Ok(Holding::Memory);
    };
    // What nobody limited is the trainer's too, which may need more later.
    let room = match asked {
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
                 {lanes} workers with a picture of {decoded} bytes each, {rest} in all: raise \
                 it, or lower workers, depth or rays",
                limit.bytes, limit.by
            ),
        ));
    }
    Ok(Holding::File)
}
