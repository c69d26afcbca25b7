//! What a run over the images of a scene will take, before a process is started.
//!
//! In the consumer. One account: `build` decides by it, [`SceneBuilder::forecast`] gives it.

use crate::data::index::Index;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::pool::ring::RingShape;
use crate::scene::jobs::device_images::device_bytes::SceneDeviceBytes;
use crate::scene::jobs::device_images::jpeg_decoding::JpegDecoding;
use crate::scene::memory_plan::SceneMemoryPlan;
use crate::scene::run::builder::SceneBuilder;
use crate::scene::run::kind::SceneKind;
use crate::scene::run::memory::{WithRefusal, accept, check_store_folder};
use crate::scene::run::split_frames::SplitFrames;
use crate::scene::run::state::check_first_step;

/// What follows from options and frames.
pub(super) struct RunPlan<P> {
    pub(super) plan: P,
    /// Of the ring.
    pub(super) shape: RingShape,
    pub(super) memory_plan: SceneMemoryPlan,
    /// With a device: its number, and what is taken of it.
    pub(super) device: Option<(u32, SceneDeviceBytes)>,
}

impl<K: SceneKind> SceneBuilder<K> {
    /// The memory that [`SceneBuilder::build`] would take, and whether decoded images lie in
    /// memory or in a file. Reads the scene and the headers of its files; decodes nothing,
    /// starts nothing. As if no other process shares its images.
    ///
    /// # Errors
    /// What `build` would refuse before it decodes: options that cannot work, a scene that
    /// cannot be read, a run that does not fit.
    pub fn memory_plan(self) -> Result<SceneMemoryPlan> {
        accept(self.memory_plan_with_refusal()?)
    }

    /// The same, also of a run that does not fit a limit: with the error that
    /// [`SceneBuilder::forecast`] gives.
    ///
    /// # Errors
    /// The others of [`SceneBuilder::forecast`].
    pub fn memory_plan_with_refusal(mut self) -> Result<(SceneMemoryPlan, Option<Error>)> {
        self.check()?;
        let (_, chosen) = self.run.open_split(self.source.take())?;
        let (prepared, refusal) = self.prepare(&chosen, &chosen.index()?)?;
        Ok(check_store_folder((prepared.memory_plan, refusal)))
    }

    /// # Errors
    /// Options that cannot work, whatever the scene.
    pub(super) fn check(&self) -> Result<()> {
        K::check(&self.kind)?;
        if self.run.device == Device::Cpu && self.run.gpu_memory_limit.is_some() {
            return Err(Error::option(
                "gpu_memory_limit",
                "gpu_memory_limit has no effect on device cpu: use device cuda, or remove it",
            ));
        }
        check_first_step(self.run.first_step)
    }

    /// # Errors
    /// Options that cannot work; files that cannot be read; what does not fit a device.
    pub(super) fn prepare(
        &self,
        chosen: &SplitFrames,
        index: &Index,
    ) -> Result<WithRefusal<RunPlan<K::Plan>>> {
        let run = &self.run;
        let workers = run.crew.count()?;
        let (plan, beside) = K::plan(run, &self.kind, chosen)?;
        let files = run.image_decode_bytes(chosen, index)?;
        let device = match run.device {
            Device::Cpu => None,
            Device::Cuda(ordinal) => {
                let (images, scene) = &beside.device;
                let places = &chosen.frames.places;
                let bytes = SceneDeviceBytes::new(
                    images.iter().filter_map(|image| places.of(*image as usize)),
                    *scene,
                    beside.batch as usize,
                    (run.depth, run.gpu_memory_limit),
                    K::LOWER[1],
                );
                Some((ordinal, bytes.with_jpegs(JpegDecoding::of(files.jpegs))))
            }
        };
        let (slots, slot_bytes) = match device {
            None => {
                let ahead = (workers + 2).min(K::MOST_DEPTH);
                (run.depth.unwrap_or(ahead), beside.batch)
            }
            // Workers hand coded images over, or nothing.
            Some((_, bytes)) => (workers + 2, bytes.row_bytes()),
        };
        let shape = RingShape {
            slots: slots.max(1),
            rows: 1,
            slot_bytes,
            lanes: workers.max(1),
        };
        let bytes = device.map(|(_, bytes)| bytes);
        let (forecast, refusal) = run.memory_plan(chosen, index, files, (shape, &beside), bytes)?;
        let prepared = RunPlan {
            plan,
            shape,
            memory_plan: forecast,
            device,
        };
        Ok((prepared, refusal))
    }
}
