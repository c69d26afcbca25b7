//! What a run over the images of a scene will take, by what is known of its files: one
//! account, by which `build` decides and which a forecast gives.
//!
//! In the consumer. Reads headers. Never in here: what is decided with the numbers (the
//! room `forecast`), processes.

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

/// What a run takes beside its store and what decoding takes; bytes.
#[derive(Debug, Default)]
pub(crate) struct RunSizes {
    /// The largest batch.
    pub(crate) batch: u64,
    /// Each worker for itself.
    pub(crate) worker: u64,
    /// Maps that all share.
    pub(crate) maps: u64,
    /// Tables of draws.
    pub(crate) tables: u64,
    /// Crop radii become masks.
    pub(crate) discs_are_masks: bool,
    /// On a device: its images, in the order in which they are needed, and all else that lies
    /// there from the beginning.
    pub(crate) device: (Vec<u32>, u64),
}

/// What follows from options and frames, and why the run does not begin, where it does not
/// fit.
pub(crate) type WithRefusal<T> = (T, Option<Error>);

/// What fits.
///
/// # Errors
/// The refusal of what does not.
pub(crate) fn accept<T>((judged, refusal): WithRefusal<T>) -> Result<T> {
    match refusal {
        Some(refusal) => Err(refusal),
        None => Ok(judged),
    }
}

/// Whether the folder of a store in a file has room for it, which `build` looks at when it
/// makes the file: the refusal where it has none, or lies in memory.
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
    /// What decoding the images takes. `index` is that of `chosen`. Reads all headers.
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

    /// What the run takes, and where its images lie. `index` is that of `chosen`; `shape`
    /// that of the ring.
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
            workers: self.crew.count()?,
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
        let workers = self.crew.count()?;
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
            // One that is made of the disc alone.
            if !frame.has_mask {
                found.masks += 1;
                found.bytes += 8 * mask_words(camera.width, camera.height);
            }
        }
        Ok(found)
    }
}
