//! The start of a run over the images of a scene, in its order.
//!
//! In the consumer. First the coordinators, before a thread or a byte of data exists; then the
//! scene and its masks; then store, tables, ring and workers.

use std::time::Instant;

use crate::error::{self, Result};
use crate::scene::jobs::pictures::on_device::DeviceRun;
use crate::scene::jobs::pictures::spec::PicturesSpec;
use crate::scene::jobs::shared::spec::StoreMemory;
use crate::scene::jobs::shared::worker_run::WorkerRun;
use crate::scene::run::builder::SceneBuilder;
use crate::scene::run::chosen::ReadScene;
use crate::scene::run::kind::SceneKind;
use crate::scene::run::memory::accepted;
use crate::scene::run::prepared::Prepared;
use crate::scene::run::scene_run::{Maker, SceneRun};
use crate::scene::run::source::SceneSource;
use crate::scene::run::state::{SceneFacts, fingerprint};
use crate::sys::cpu::CpuLevel;

impl<K: SceneKind> SceneRun<K> {
    /// Starts the description of a run over `scene`.
    pub fn builder(scene: impl Into<SceneSource>) -> SceneBuilder<K> {
        SceneBuilder::new(scene.into())
    }
}

impl<K: SceneKind> SceneBuilder<K> {
    /// Starts coordinator and workers, reads the scene, and gives a run.
    ///
    /// # Errors
    /// Options that cannot work, a scene that cannot be read, masks that cannot, too
    /// little memory and no room for a file, a system that refuses.
    pub fn build(mut self) -> Result<SceneRun<K>> {
        let began = Instant::now();
        CpuLevel::detect()?;
        self.check()?;
        let crews = self.run.launch()?;
        let (scene, mut chosen) = self.run.choose(self.source.take())?;
        let index = chosen.index()?;
        let Prepared {
            plan,
            shape,
            forecast,
            device,
        } = accepted(self.prepared(&chosen, &index)?)?;
        let run = &self.run;
        let (ready, words) = run.read_masks(&chosen, crews)?;
        let words = K::masks(&mut chosen, words)?;
        let frames = chosen.frames.seal()?;
        let step = run.first_step;
        let facts = SceneFacts {
            step,
            seed: run.seed,
            split: run.split,
            downscale: run.downscale.max(1),
            images: chosen.images.len() as u64,
            scene: fingerprint(&chosen, &words)?,
        };
        let (store, store_spec) = run.store(&chosen, &forecast)?;
        let images = std::mem::take(&mut chosen.images);
        let read = ReadScene {
            chosen,
            words,
            store: store_spec,
            root: scene.root.clone(),
        };
        let (state, kind, setup) = K::begin(&self.kind, plan, read, facts)?;
        let memory = StoreMemory {
            index: &index,
            frames: &frames,
            pictures: &store.pictures,
        };
        let no_room = |needed: u64, free: u64| {
            format!(
                "the ring needs {} and {} are available: lower {}",
                error::needed(needed),
                error::room(free),
                K::LOWER[0]
            )
        };
        let maker = match device {
            None => {
                let (order, first) = K::order(&setup, memory, step)?;
                let engine = ready.start(&order, shape, first, no_room)?;
                let steps = K::workers(setup);
                Maker::Workers(Box::new(WorkerRun::new(engine, index, steps)))
            }
            Some((ordinal, bytes)) => {
                let pictures = PicturesSpec {
                    store: store_spec,
                    jpegs: bytes.jpegs,
                };
                let first = PicturesSpec::place(kind.first_image(step), false);
                let engine = ready.start(&pictures.order(memory)?, shape, first, no_room)?;
                let run = DeviceRun {
                    ordinal,
                    pictures: &store.pictures,
                    engine,
                    index,
                    bytes,
                    hold_timeout: run.crew.hold_timeout,
                };
                Maker::Device(Box::new(K::kernel(setup, run, step)?))
            }
        };
        Ok(SceneRun {
            maker,
            step,
            kind,
            scene,
            images,
            store,
            began: state,
            startup: began.elapsed(),
        })
    }
}
