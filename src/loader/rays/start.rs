//! The start of rays, in its order.
//!
//! In the consumer. First the coordinators, before a thread or a byte of data exists;
//! then the scene; masks, since they say what may be drawn; then store, ring and workers.

use std::time::Instant;

use crate::error::{self, Error, Result};
use crate::jobs::pictures::on_device::DeviceRun;
use crate::jobs::pictures::spec::PicturesSpec;
use crate::jobs::rays::on_device::{DeviceRays, RayWork};
use crate::jobs::rays::run::RayRun;
use crate::jobs::rays::spec::{RaysMemory, RaysSpec};
use crate::jobs::scene::spec::StoreMemory;
use crate::loader::rays::builder::RaysBuilder;
use crate::loader::rays::forecast::Prepared;
use crate::loader::rays::prepared::table;
use crate::loader::rays::state::RaysState;
use crate::loader::rays::steps::{Maker, Rays};
use crate::loader::scene::{ReadScene, SceneSource, accepted, fingerprint};
use crate::sys::cpu::CpuLevel;

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
    pub fn build(mut self) -> Result<Rays> {
        let began = Instant::now();
        CpuLevel::detect()?;
        self.check()?;
        let most_rays = self.checked_rays()?;
        let crews = self.run.launch()?;
        let (scene, chosen) = self.run.choose(self.source.take())?;
        let index = chosen.index()?;
        let prepared = accepted(self.prepared(&chosen, &index)?)?;
        let read = self.run.read((scene, chosen), crews)?;
        let (chosen, words) = (&read.chosen, &read.words);
        let frames = chosen.frames.seal()?;
        let at = RaysState {
            version: RaysState::VERSION,
            step: self.first_step,
            seed: self.seed,
            sampler: self.sampler,
            joining: self.joining,
            split: self.run.split,
            downscale: self.run.downscale.max(1),
            images: chosen.images.len() as u64,
            scene: fingerprint(chosen, words)?,
        };
        let (table, masks) = table(chosen, self.sampler, (self.seed, self.joining), words)?;
        let Prepared {
            form,
            shape,
            forecast,
            device,
        } = prepared;
        let (store, store_spec) = self.run.store(&read.chosen, &forecast)?;
        let ReadScene {
            run: ready,
            scene,
            chosen,
            words,
        } = read;
        drop(words);
        let spec = RaysSpec {
            rank: self.rank.rank,
            most_rays,
            form,
            depth_scale: chosen.depth_scale,
            store: store_spec,
        };
        let memory = RaysMemory {
            store: StoreMemory {
                index: &index,
                frames: &frames,
                pictures: &store.pictures,
            },
            table: &table,
            masks: &masks,
        };
        let no_room = |needed: u64, free: u64| {
            format!(
                "the ring needs {} and {} are available: lower `rays`, most_rays or `depth`",
                error::needed(needed),
                error::room(free)
            )
        };
        let root = scene.root.clone();
        let run = match device {
            None => {
                let first = RaysSpec::place(self.rays, self.first_step);
                let engine = ready.start(&spec.order(memory)?, shape, first, no_room)?;
                let files = (index, root);
                let run = RayRun::new(engine, spec, files, self.rays, self.first_step);
                Maker::Workers(Box::new(run))
            }
            Some((ordinal, bytes)) => {
                let pictures = PicturesSpec {
                    store: spec.store,
                    jpegs: bytes.jpegs,
                };
                let drawn = table.drawn_images().first().copied().unwrap_or_default();
                let first = PicturesSpec::place(drawn, false);
                let engine = ready.start(&pictures.order(memory.store)?, shape, first, no_room)?;
                let work = RayWork {
                    frames: &chosen.frames,
                    table: &table,
                    masks: &masks,
                    spec: &spec,
                };
                let run = DeviceRun {
                    ordinal,
                    pictures: &store.pictures,
                    engine,
                    index,
                    bytes,
                    hold_timeout: self.run.crew.hold_timeout,
                };
                Maker::Device(Box::new(DeviceRays::open(work, run, self.first_step)?))
            }
        };
        Ok(Rays {
            run,
            scene,
            images: chosen.images,
            store,
            table,
            began: at,
            rays: self.rays,
            startup: began.elapsed(),
        })
    }

    /// Room for rays of a step.
    pub(super) fn checked_rays(&self) -> Result<u64> {
        let most = self.most_rays.unwrap_or(self.rays);
        let per_unit = u64::from(self.sampler.rays_per_unit());
        if self.rays == 0 || self.sampler.whole_rays(self.rays) != self.rays {
            return Err(Error::option(
                "rays",
                format!(
                    "`rays` is {}, and a unit has {per_unit} rays: use {}",
                    self.rays,
                    self.sampler.whole_rays(self.rays).max(per_unit)
                ),
            ));
        }
        if most < self.rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "most_rays is {most}, and `rays` is {}: raise most_rays",
                    self.rays
                ),
            ));
        }
        // A row's length is counted in 32 bits in places; nobody trains on more.
        if most > 1 << 24 {
            return Err(Error::option(
                "most_rays",
                format!("most_rays is {most}: use at most {}", 1 << 24),
            ));
        }
        Ok(most)
    }
}
