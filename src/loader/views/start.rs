//! The start of views, in its order.
//!
//! In the consumer. First the coordinators, before a thread or a byte of data exists;
//! then the scene and its masks; then store, ring and workers.

use std::path::Path;
use std::time::Instant;

use crate::error::{self, Result};
use crate::jobs::pictures::on_device::DeviceRun;
use crate::jobs::pictures::spec::PicturesSpec;
use crate::jobs::scene::masks::Masks;
use crate::jobs::scene::spec::StoreMemory;
use crate::jobs::views::on_device::DeviceViews;
use crate::jobs::views::run::ViewRun;
use crate::jobs::views::spec::{MAPS_KEY, ViewsSpec};
use crate::loader::scene::{ReadScene, SceneSource, accepted, fingerprint};
use crate::loader::views::builder::ViewsBuilder;
use crate::loader::views::discs::masks_within_discs;
use crate::loader::views::forecast::Prepared;
use crate::loader::views::state::ViewsState;
use crate::loader::views::steps::{Maker, Views};
use crate::store::{Holding, Pictures};
use crate::sys::cpu::CpuLevel;

impl Views {
    /// Starts the description of views of `scene`.
    pub fn builder(scene: impl Into<SceneSource>) -> ViewsBuilder {
        ViewsBuilder::new(scene.into())
    }
}

impl ViewsBuilder {
    /// Starts the pool.
    ///
    /// # Errors
    /// Options that cannot work, a scene that cannot be read, masks that cannot, too
    /// little memory and no room for a file, a system that refuses.
    pub fn build(mut self) -> Result<Views> {
        let began = Instant::now();
        CpuLevel::detect()?;
        self.check()?;
        let crews = self.run.launch()?;
        let (scene, chosen) = self.run.choose(self.source.take())?;
        let index = chosen.index()?;
        let prepared = accepted(self.prepared(&chosen, &index)?)?;
        let mut read = self.run.read((scene, chosen), crews)?;
        let words = std::mem::take(&mut read.words);
        read.words = masks_within_discs(&mut read.chosen, words)?;
        let images = read.chosen.images.len() as u64;
        let frames = &read.chosen.frames;
        let sealed = frames.seal()?;
        let at = ViewsState {
            version: ViewsState::VERSION,
            step: self.first_step,
            seed: self.seed,
            shuffle: self.shuffles,
            world: self.rank.world,
            split: self.run.split,
            downscale: self.run.downscale.max(1),
            undistort: self.undistort,
            images,
            scene: fingerprint(&read.chosen, &read.words)?,
        };
        let Prepared {
            order,
            form,
            shown,
            shape,
            maps: map_places,
            most_maps,
            forecast,
            device,
        } = prepared;
        let words: Vec<&[u64]> = read.words.iter().map(Vec::as_slice).collect();
        let masks = Masks::seal(frames, &words)?;
        let (store, store_spec) = self.run.store(&read.chosen, &forecast)?;
        let maps = match map_places.len() {
            0 => None,
            _ => Some(Pictures::create(
                map_places,
                Holding::Memory,
                Path::new(""),
                MAPS_KEY,
            )?),
        };
        let ReadScene {
            run: ready,
            scene,
            chosen,
            words,
        } = read;
        drop(words);
        let spec = ViewsSpec {
            order,
            form,
            depth_scale: chosen.depth_scale,
            most_maps,
            store: store_spec,
        };
        let memory = StoreMemory {
            index: &index,
            frames: &sealed,
            pictures: &store.pictures,
        };
        let no_room = |needed: u64, free: u64| {
            format!(
                "the ring needs {} and {} are available: lower `depth`",
                error::needed(needed),
                error::room(free)
            )
        };
        let cameras = (0..chosen.images.len())
            .filter_map(|image| shown.camera(&chosen.frames, image).copied())
            .collect();
        let run = match device {
            None => {
                let first = ViewsSpec::place(self.first_step);
                let order = spec.order(memory, &masks, maps.as_ref())?;
                let engine = ready.start(&order, shape, first, no_room)?;
                let frames = (chosen.frames, shown);
                let run = ViewRun::new(engine, spec, index, frames, self.first_step);
                Maker::Workers(Box::new(run))
            }
            Some((ordinal, bytes)) => {
                let pictures = PicturesSpec {
                    store: spec.store,
                    jpegs: bytes.jpegs,
                };
                let image = order.image(self.first_step) as u32;
                let first = PicturesSpec::place(image, false);
                let engine = ready.start(&pictures.order(memory)?, shape, first, no_room)?;
                let run = DeviceRun {
                    ordinal,
                    pictures: &store.pictures,
                    engine,
                    index,
                    bytes,
                    hold_timeout: self.run.crew.hold_timeout,
                };
                let frames = (chosen.frames, shown);
                let views = DeviceViews::open(frames, &masks, spec, run, self.first_step)?;
                Maker::Device(Box::new(views))
            }
        };
        Ok(Views {
            run,
            scene,
            images: chosen.images,
            cameras,
            store,
            order,
            began: at,
            startup: began.elapsed(),
        })
    }
}
