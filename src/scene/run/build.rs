//! Starts a run over the images of a scene, in a fixed order.
//!
//! Runs in the consumer. First the coordinators start, before any thread or data exists. Then the
//! scene and its masks are read. Then the image store, tables, ring and workers are created.

use std::time::Instant;

use crate::error::{self, Result};
use crate::scene::jobs::device_images::image_uploads::DeviceRun;
use crate::scene::jobs::device_images::spec::DeviceImagesSpec;
use crate::scene::jobs::shared::spec::StoreMemory;
use crate::scene::jobs::shared::ticket_run::TicketRun;
use crate::scene::run::builder::SceneBuilder;
use crate::scene::run::kind::SceneKind;
use crate::scene::run::memory::accept;
use crate::scene::run::run_plan::RunPlan;
use crate::scene::run::scene_run::{SceneBatchMaker, SceneRun};
use crate::scene::run::source::SceneSource;
use crate::scene::run::split_frames::SceneInputs;
use crate::scene::run::state::{SceneFacts, fingerprint};
use crate::sys::cpu::CpuLevel;

impl<K: SceneKind> SceneRun<K> {
    /// Creates a builder of a run over `scene`.
    pub fn builder(scene: impl Into<SceneSource>) -> SceneBuilder<K> {
        SceneBuilder::new(scene.into())
    }
}

impl<K: SceneKind> SceneBuilder<K> {
    /// Starts coordinator and workers, and reads the scene.
    ///
    /// # Errors
    /// Invalid options; a scene or masks that cannot be read; too little memory, and no space for a
    /// file; a system call that fails.
    pub fn build(mut self) -> Result<SceneRun<K>> {
        let began = Instant::now();
        CpuLevel::detect()?;
        self.check()?;
        let coordinators = self.run.launch()?;
        let (scene, mut chosen) = self.run.open_split(self.source.take())?;
        let index = chosen.index()?;
        let RunPlan {
            plan,
            shape,
            memory_plan: forecast,
            device,
        } = accept(self.prepare(&chosen, &index)?)?;
        let run = &self.run;
        let (ready, words) = run.read_masks(&chosen, coordinators)?;
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
        let (store, store_spec) = run.open_store(&chosen, &forecast)?;
        let images = std::mem::take(&mut chosen.images);
        let read = SceneInputs {
            split: chosen,
            words,
            store: store_spec,
            root: scene.root.clone(),
        };
        let (state, kind, setup) = K::prepare_batches(&self.kind, plan, read, facts)?;
        let memory = StoreMemory {
            index: &index,
            frames: &frames,
            store: &store.images,
        };
        let no_room = |needed: u64, free: u64| {
            format!(
                "the ring needs {}, but {} are available: lower {}",
                error::size_rounded_up(needed),
                error::size_rounded_down(free),
                K::LOWER[0]
            )
        };
        let maker = match device {
            None => {
                let (order, first) = K::order(&setup, memory, step)?;
                let filler = ready.start(&order, shape, first, no_room)?;
                let steps = K::workers(setup);
                SceneBatchMaker::Workers(Box::new(TicketRun::new(filler, index, steps)))
            }
            Some((ordinal, bytes)) => {
                let pictures = DeviceImagesSpec {
                    store: store_spec,
                    jpegs: bytes.jpegs,
                };
                let first = DeviceImagesSpec::place(kind.first_image(step), false);
                let filler = ready.start(&pictures.order(memory)?, shape, first, no_room)?;
                let run = DeviceRun {
                    ordinal,
                    store: &store.images,
                    filler,
                    index,
                    bytes,
                    hold_timeout: run.worker_options.hold_timeout,
                };
                SceneBatchMaker::Device(Box::new(K::kernel(setup, run, step)?))
            }
        };
        Ok(SceneRun {
            maker,
            step,
            kind,
            scene,
            images,
            store,
            start_state: state,
            startup: began.elapsed(),
        })
    }
}
