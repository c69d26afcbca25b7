//! Values that a run over a scene needs, computed before any process starts.
//!
//! Runs in the consumer. `build` and [`SceneBuilder::memory_plan`] share them.

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

/// Values computed from options and frames.
pub(super) struct RunPlan<P> {
    pub(super) plan: P,
    /// Shape of the ring.
    pub(super) shape: RingShape,
    pub(super) memory_plan: SceneMemoryPlan,
    /// For a device: its number, and its memory.
    pub(super) device: Option<(u32, SceneDeviceBytes)>,
}

impl<K: SceneKind> SceneBuilder<K> {
    /// Computes the memory that [`SceneBuilder::build`] would use, and whether decoded images are
    /// kept in memory or in a file. Reads the scene and the headers of its files. Decodes nothing
    /// and starts no process. Assumes that no other process shares its images.
    ///
    /// # Errors
    /// What `build` rejects before it decodes: invalid options, a scene that cannot be read, a run
    /// that does not fit.
    pub fn memory_plan(self) -> Result<SceneMemoryPlan> {
        accept(self.memory_plan_with_refusal()?)
    }

    /// Like [`SceneBuilder::memory_plan`], but also returns the plan of a run that exceeds a limit,
    /// together with the error.
    ///
    /// # Errors
    /// The other errors of [`SceneBuilder::memory_plan`].
    pub fn memory_plan_with_refusal(mut self) -> Result<(SceneMemoryPlan, Option<Error>)> {
        self.check()?;
        let (_, chosen) = self.run.open_split(self.source.take())?;
        let (prepared, refusal) = self.prepare(&chosen, &chosen.index()?)?;
        Ok(check_store_folder((prepared.memory_plan, refusal)))
    }

    /// # Errors
    /// Options that are invalid for any scene.
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
    /// Invalid options; files that cannot be read; a run that does not fit the device.
    pub(super) fn prepare(
        &self,
        chosen: &SplitFrames,
        index: &Index,
    ) -> Result<WithRefusal<RunPlan<K::Plan>>> {
        let run = &self.run;
        let workers = run.worker_options.count()?;
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
            // For a device, workers pass coded images on, or nothing.
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
