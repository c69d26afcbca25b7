//! Memory of a run over the images of a scene, computed from the headers of its files. `build` and
//! the memory plan use the same computation.
//!
//! Runs in the consumer. Reads headers. Not here: decisions from the numbers (`memory_plan`),
//! processes.

use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::pool::ring::RingShape;
use crate::scene::draw::mask_words;
use crate::scene::image_store::{check_folder, default_folder};
use crate::scene::jobs::device_images::device_bytes::SceneDeviceBytes;
use crate::scene::memory_plan::{ImageDecodeBytes, MaskDecodeBytes};
use crate::scene::memory_plan::{MaskMemoryInputs, SceneLimit, SceneMemoryInputs};
use crate::scene::memory_plan::{SceneDeviceMemory, SceneMemoryPlan};
use crate::scene::run::options::RunOptions;
use crate::scene::run::split_frames::SplitFrames;

/// Memory of a run without its image store and decoding, in bytes.
#[derive(Debug, Default)]
pub(crate) struct RunSizes {
    /// The largest batch.
    pub(crate) batch: u64,
    /// For each worker.
    pub(crate) worker: u64,
    /// Straightening maps, shared by all processes.
    pub(crate) maps: u64,
    /// Sampling tables.
    pub(crate) tables: u64,
    /// Whether crop discs are converted to masks.
    pub(crate) discs_are_masks: bool,
    /// For a device: its images in the order of their first use, and the bytes of all other data
    /// that it holds from the start.
    pub(crate) device: (Vec<u32>, u64),
}

/// A value and, if the run does not fit, the error that rejects it.
pub(crate) type WithRefusal<T> = (T, Option<Error>);

/// Returns the value.
///
/// # Errors
/// The error that came with the value.
pub(crate) fn accept<T>((judged, refusal): WithRefusal<T>) -> Result<T> {
    match refusal {
        Some(refusal) => Err(refusal),
        None => Ok(judged),
    }
}

/// Checks that the folder of a store file has enough space and is not in memory, as `build` does
/// when it creates the file. Adds the error if it fails.
pub(crate) fn check_store_folder(
    (forecast, refusal): WithRefusal<SceneMemoryPlan>,
) -> WithRefusal<SceneMemoryPlan> {
    let no_room = || {
        let folder = forecast.store.folder.as_ref()?;
        check_folder(folder, forecast.store.bytes).err()
    };
    let refusal = refusal.or_else(no_room);
    (forecast, refusal)
}

impl RunOptions {
    /// Memory for decoding the images. `index` is that of `chosen`. Reads all headers.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub(crate) fn image_decode_bytes(
        &self,
        chosen: &SplitFrames,
        index: &Index,
    ) -> Result<ImageDecodeBytes> {
        ImageDecodeBytes::of(index, &chosen.frames, self.background, &self.limits)
    }

    /// Computes the memory of the run, and where its images are kept. `index` is that of `chosen`;
    /// `shape` is that of the ring.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub(crate) fn memory_plan(
        &self,
        chosen: &SplitFrames,
        index: &Index,
        files: ImageDecodeBytes,
        (shape, beside): (RingShape, &RunSizes),
        device: Option<SceneDeviceBytes>,
    ) -> Result<WithRefusal<SceneMemoryPlan>> {
        let frames = &chosen.frames;
        let deep = (frames.frames.iter()).filter(|frame| frame.has_depth);
        let ingredients = SceneMemoryInputs {
            workers: self.worker_options.count()?,
            shape,
            images: frames.frames.len() as u64,
            depths: deep.count() as u64,
            store: (frames.places.bytes(), frames.places.largest()),
            files,
            masks: self.mask_ingredients(chosen, beside.discs_are_masks)?,
            view_bytes: beside.worker,
            maps_bytes: beside.maps,
            table_bytes: index.bytes() + beside.tables,
            device: device.map(|bytes| {
                SceneDeviceMemory::new(
                    (bytes.batches, bytes.batch_bytes),
                    (bytes.scene_bytes, bytes.decoder_bytes()),
                    (bytes.image_bytes, bytes.host_bytes),
                    bytes.limit,
                )
            }),
            pinned_bytes: device
                .and_then(|bytes| bytes.jpegs)
                .map_or(0, |jpegs| jpegs.pinned_bytes()),
        };
        let folder = || self.store_folder.clone().unwrap_or_else(default_folder);
        let limit = SceneLimit::lowest(self.memory_limit);
        let (forecast, refusal) = ingredients.plan_within(limit, folder)?;
        let in_file = forecast.store.in_file;
        let device = device.and_then(|bytes| bytes.refusal(in_file));
        Ok((forecast, refusal.or(device)))
    }

    fn mask_ingredients(&self, chosen: &SplitFrames, discs: bool) -> Result<MaskMemoryInputs> {
        let workers = self.worker_options.count()?;
        let spec = chosen.masks_spec(self.limits);
        let files = match spec.masks.is_empty() {
            true => MaskDecodeBytes::default(),
            false => MaskDecodeBytes::of(&chosen.index_of_masks()?, &spec)?,
        };
        let mut found = MaskMemoryInputs {
            masks: spec.masks.len() as u64,
            bytes: spec.all_bytes(),
            files,
            worker_bytes: spec.worker_bytes(),
            shape: (!spec.masks.is_empty()).then(|| spec.shape(workers)),
            disc_bytes: 0,
        };
        for (image, radius) in chosen.crop_radii.iter().enumerate() {
            let (Some(camera), Some(frame)) =
                (chosen.frames.camera(image), chosen.frames.frames.get(image))
            else {
                continue;
            };
            if !discs || radius.is_none() {
                continue;
            }
            let pixels = u64::from(camera.width) * u64::from(camera.height);
            found.disc_bytes = found.disc_bytes.max(pixels);
            // This frame's mask will be made from its disc.
            if !frame.has_mask {
                found.masks += 1;
                found.bytes += 8 * mask_words(camera.width, camera.height);
            }
        }
        Ok(found)
    }
}
