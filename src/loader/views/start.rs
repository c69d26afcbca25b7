//! The start of views, in its order.
//!
//! In the consumer. First the coordinators, before a thread or a byte of data exists;
//! then the scene and its masks; then store, ring and workers.

use std::path::PathBuf;
use std::time::Instant;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::jobs::pictures::on_device::DeviceRun;
use crate::jobs::pictures::spec::{PicturesSpec, ROW_BYTES};
use crate::jobs::scene::masks::Masks;
use crate::jobs::scene::spec::StoreMemory;
use crate::jobs::views::on_device::DeviceViews;
use crate::jobs::views::run::ViewRun;
use crate::jobs::views::shown::{Refused, ShownImages};
use crate::jobs::views::spec::{MAPS_KEY, ViewForm, ViewsSpec};
use crate::loader::scene::{
    Beside, ReadScene, SceneSource, check_device, check_first_step, fingerprint,
};
use crate::loader::views::builder::ViewsBuilder;
use crate::loader::views::discs::masks_within_discs;
use crate::loader::views::state::ViewsState;
use crate::loader::views::steps::{Maker, Views};
use crate::plan::ViewOrder;
use crate::pool::ring::Shape;
use crate::store::{Holding, Pictures, default_folder};
use crate::sys::cpu::CpuLevel;

/// Views that are made ahead, when nobody says another number, however many workers there
/// are: each takes a whole image.
const MOST_DEPTH: u32 = 8;

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
    pub fn build(self) -> Result<Views> {
        let began = Instant::now();
        CpuLevel::detect()?;
        check_device(self.device, self.gpu_memory_limit)?;
        check_first_step(self.first_step)?;
        let workers = self.run.crew.count()?;
        let mut read = self.run.read(self.source, self.run.launch()?)?;
        let words = std::mem::take(&mut read.words);
        read.words = masks_within_discs(&mut read.chosen, words)?;
        let images = read.chosen.images.len() as u64;
        let order = ViewOrder::new(images, self.seed, self.shuffles, self.rank)?;
        let form = ViewForm {
            float: self.float,
            straight: self.undistort,
        };
        let frames = &read.chosen.frames;
        let shown = ShownImages::new(frames, form);
        let shown = shown.map_err(|refused| not_straight(&read.chosen.images, &refused))?;
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
        let view = shown.most_bytes(frames);
        // A row's length is counted in 32 bits.
        if view > u64::from(u32::MAX) {
            return Err(Error::option(
                "downscale",
                format!("the largest view takes {view} bytes, more than 4 GiB: raise downscale"),
            ));
        }
        let (slots, slot_bytes) = match self.device {
            Device::Cpu => (
                self.run.depth.unwrap_or((workers + 2).min(MOST_DEPTH)),
                view,
            ),
            // Workers hand nothing over.
            Device::Cuda(_) => (workers + 2, ROW_BYTES),
        };
        let shape = Shape {
            slots: slots.max(1),
            rows: 1,
            slot_bytes,
            lanes: workers.max(1),
        };
        let words: Vec<&[u64]> = read.words.iter().map(Vec::as_slice).collect();
        let masks = Masks::seal(frames, &words)?;
        let most_maps = match self.device {
            Device::Cpu => most_maps(self.run.memory_limit),
            // A kernel makes its places anew.
            Device::Cuda(_) => 0,
        };
        let map_places = shown.maps(frames, most_maps)?.places;
        let beside = Beside {
            // The bent image with its depths, and its mask.
            worker: match (self.device, self.float || self.undistort) {
                (Device::Cpu, true) => frames.places.largest() / 3 * 4,
                _ => 0,
            },
            shared: map_places.bytes(),
        };
        let (store, store_spec) = self.run.store(&read, shape, beside)?;
        let maps = match map_places.len() {
            0 => None,
            _ => Some(Pictures::create(
                map_places,
                Holding::Memory,
                &default_folder(),
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
        let index = chosen.index()?;
        let memory = StoreMemory {
            index: &index,
            frames: &sealed,
            pictures: &store.pictures,
        };
        let no_room = |needed: u64, free: u64| {
            format!("the ring needs {needed} bytes and {free} are available: lower depth")
        };
        let cameras = (0..chosen.images.len())
            .filter_map(|image| shown.camera(&chosen.frames, image).copied())
            .collect();
        let run = match self.device {
            Device::Cpu => {
                let first = ViewsSpec::place(self.first_step);
                let order = spec.order(memory, &masks, maps.as_ref())?;
                let engine = ready.start(&order, shape, first, no_room)?;
                let frames = (chosen.frames, shown);
                let run = ViewRun::new(engine, spec, index, frames, self.first_step);
                Maker::Workers(Box::new(run))
            }
            Device::Cuda(ordinal) => {
                let pictures = PicturesSpec { store: spec.store };
                let first = PicturesSpec::place(order.image(self.first_step) as u32);
                let engine = ready.start(&pictures.order(memory)?, shape, first, no_room)?;
                let run = DeviceRun {
                    ordinal,
                    pictures: &store.pictures,
                    engine,
                    files: (index, scene.root.clone()),
                    depth: self.run.depth,
                    limit: self.gpu_memory_limit,
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

/// The most bytes that maps of cameras may take: what does not fit is made anew for each
/// view.
fn most_maps(memory_limit: Option<u64>) -> u64 {
    const MOST: u64 = 256 << 20;
    memory_limit.map_or(MOST, |limit| MOST.min(limit / 8))
}

fn not_straight(images: &[PathBuf], refused: &Refused) -> Error {
    let path = images.get(refused.image);
    let name = path.map_or_else(String::new, |path| path.display().to_string());
    Error::option(
        "undistort",
        format!(
            "`undistort` is not possible for {name}, taken with a lens {}: {}; leave `undistort` out",
            refused.lens, refused.why,
        ),
    )
}
