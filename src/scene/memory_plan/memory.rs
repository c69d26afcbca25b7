//! The memory of a run over the images of a scene, before anything of it is allocated: what
//! `build` decides by, and what a plan prints.
//!
//! In the consumer. Pure: numbers alone. Never in here: where they come from, the folder of
//! a file, what the images are for.

use std::path::PathBuf;

use serde::Serialize;

use crate::data::index::lossy_option;
use crate::error::{self, Error, Result};
use crate::memory_plan::run_memory::{
    CONSUMER, COORDINATOR, DRIVER, LargestSample, MemoryLimit, advice_text, largest_that_fits,
    workers_text,
};
use crate::pool::ring::{RingLayout, RingShape};
use crate::scene::memory_plan::decode_bytes::{ImageDecodeBytes, MaskDecodeBytes};

/// PSS of a worker beside what it decodes and what it knows of the images: code and data of
/// the executable, the heap, what decoders work with.
const WORKER: u64 = 4 << 20;

/// What is known of an image in the consumer: frame, camera, pose, paths; and of all
/// images in sealed memory.
const FRAME: u64 = 2 << 10;

/// The same in each worker.
const FRAME_OF_WORKER: u64 = 512;

/// Two pinned buffers, for images on their way to a device.
const PINNED: u64 = 8 << 20;

/// What a run over the images of a scene will take, and whether that fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SceneMemoryPlan {
    /// Images of the split.
    pub images: u64,
    /// Those with a mask.
    pub masks: u64,
    /// Those with depths.
    pub depths: u64,
    pub memory: SceneMemory,
    pub store: ImageStorePlan,
    /// The lowest limit that there is; a run that does not fit it is refused.
    pub limit: Option<MemoryLimit>,
    /// The image that takes the most to decode.
    pub largest: Option<LargestSample>,
    /// Where what a run makes ends on a device.
    pub device: Option<SceneDeviceMemory>,
}

/// The memory of a run over the images of a scene, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SceneMemory {
    pub workers: u32,
    /// Slots of the ring.
    pub depth: u32,
    /// A batch of rays, or the largest view.
    pub slot_bytes: u64,
    /// All decoded images with their depths, shared by all processes. In memory or in a
    /// file: [`ImageStorePlan::in_file`].
    pub store_bytes: u64,
    /// Shared by all processes. Without workers the batches themselves, of which two live
    /// at a time.
    pub ring_bytes: u64,
    /// Masks as bits, and once more while they are put in order.
    pub masks_bytes: u64,
    /// Where the pixels of straight images come from, shared by all processes.
    pub maps_bytes: u64,
    /// Names, cameras, poses; tables of draws.
    pub tables_bytes: u64,
    /// What each worker takes.
    pub worker: SceneWorkerMemory,
    /// Consumer and coordinator; with a device its driver and pinned buffers.
    pub fixed_bytes: u64,
    /// All of it, while images are decoded.
    pub running_bytes: u64,
    /// All of it before that, while masks are read; 0 without masks.
    pub reading_masks_bytes: u64,
    /// Of a device, its context apart: with [`Device::Cuda`](crate::Device::Cuda).
    pub device_bytes: u64,
    /// PSS of all processes at most.
    pub total_bytes: u64,
}

/// What one worker takes for itself, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SceneWorkerMemory {
    /// Pixels, and what decoders hold beside them.
    pub decode_bytes: u64,
    /// Colours and alpha, before they are put together.
    pub alpha_bytes: u64,
    /// Levels of depths.
    pub depth_bytes: u64,
    /// Copies of an image that becomes a view: to straighten it, or as floats.
    pub view_bytes: u64,
    /// A decoded image on its way to the file.
    pub file_buffer_bytes: u64,
    /// The longest file, mapped while it is decoded.
    pub input_bytes: u64,
    /// The process, and what it knows of the images.
    pub process_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// Where decoded images lie, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImageStorePlan {
    pub bytes: u64,
    pub in_file: bool,
    /// Where the file goes. As JSON with a replacement for bytes that are no UTF-8.
    #[serde(serialize_with = "lossy_option")]
    pub folder: Option<PathBuf>,
    /// What images in memory may take with the rest of the run; none without a limit. Of
    /// what nobody limited a quarter is the trainer's.
    pub room_bytes: Option<u64>,
    /// What the run takes with its images in memory.
    pub needed_bytes: u64,
    /// In words.
    pub why: String,
}

/// What a run takes of a device, its context apart; bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SceneDeviceMemory {
    /// Batches that have memory there.
    pub batches: u32,
    /// Of the batches, and what the driver takes for the kernel.
    pub batch_bytes: u64,
    /// Cameras, masks, tables.
    pub scene_bytes: u64,
    /// What JPEGs are decoded with there; 0 = workers decode all images.
    pub decoder_bytes: u64,
    /// Images that lie there.
    pub image_bytes: u64,
    /// Images that do not fit `gpu_memory_limit`: they are read in the host's memory.
    pub host_image_bytes: u64,
    pub limit_bytes: Option<u64>,
    pub total_bytes: u64,
}

impl SceneDeviceMemory {
    /// Of these parts.
    pub(crate) fn new(
        (batches, batch_bytes): (u32, u64),
        (scene_bytes, decoder_bytes): (u64, u64),
        (image_bytes, host_image_bytes): (u64, u64),
        limit_bytes: Option<u64>,
    ) -> Self {
        Self {
            batches,
            batch_bytes,
            scene_bytes,
            decoder_bytes,
            image_bytes,
            host_image_bytes,
            limit_bytes,
            total_bytes: batch_bytes + scene_bytes + decoder_bytes + image_bytes,
        }
    }
}

/// What a forecast is made from.
#[derive(Debug)]
pub(crate) struct SceneMemoryInputs {
    pub(crate) workers: u32,
    pub(crate) shape: RingShape,
    pub(crate) images: u64,
    pub(crate) depths: u64,
    /// Of all images, and of the largest.
    pub(crate) store: (u64, u64),
    pub(crate) files: ImageDecodeBytes,
    pub(crate) masks: MaskMemoryInputs,
    /// Straightening, floats: each worker for itself.
    pub(crate) view_bytes: u64,
    pub(crate) maps_bytes: u64,
    /// Names of files, tables of draws.
    pub(crate) table_bytes: u64,
    pub(crate) device: Option<SceneDeviceMemory>,
    /// Pinned buffers of what decodes JPEGs on the device.
    pub(crate) pinned_bytes: u64,
}

/// The same of masks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MaskMemoryInputs {
    pub(crate) masks: u64,
    /// Bits of all.
    pub(crate) bytes: u64,
    pub(crate) files: MaskDecodeBytes,
    /// Pixels of a mask, beside its decoder.
    pub(crate) worker_bytes: u64,
    /// The ring that they are read through; none where none is read.
    pub(crate) shape: Option<RingShape>,
    /// Pixels in the consumer, while discs are made masks.
    pub(crate) disc_bytes: u64,
}

/// What a run may take, and who says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SceneLimit {
    pub(crate) limit: Option<MemoryLimit>,
    /// Somebody asked for it: then all of it may be taken.
    pub(crate) is_asked: bool,
}

impl SceneLimit {
    /// The lowest of what was asked for and what there is.
    pub(crate) fn lowest(asked: Option<u64>) -> Self {
        Self {
            limit: MemoryLimit::lowest_of(asked),
            is_asked: asked.is_some(),
        }
    }

    /// What images in memory may take with the rest.
    fn room(self) -> Option<u64> {
        let bytes = self.limit?.bytes;
        // What nobody limited is the trainer's too, which may need more later.
        Some(match self.is_asked {
            true => bytes,
            false => bytes / 4 * 3,
        })
    }
}

impl SceneMemoryInputs {
    /// Whether images lie in memory, and what the run takes then. `folder` is that of a
    /// file, if one is needed.
    ///
    /// With the refusal of what does not fit the limit even with images in a file: it says
    /// what to lower.
    ///
    /// # Errors
    /// Numbers of which no ring can be made.
    pub(crate) fn plan_within(
        self,
        limit: SceneLimit,
        folder: impl FnOnce() -> PathBuf,
    ) -> Result<(SceneMemoryPlan, Option<Error>)> {
        let in_memory = self.memory(false)?;
        let needed = in_memory.running_bytes;
        let room = limit.room();
        let in_file = room.is_some_and(|room| needed > room);
        let memory = match in_file {
            true => self.memory(true)?,
            false => in_memory,
        };
        let exceeded = limit.limit.filter(|l| memory.total_bytes > l.bytes);
        let refusal = exceeded.map(|limit| self.refusal(limit, &memory));
        let why = match (limit.limit, room) {
            (Some(limit), Some(room)) => {
                let by = limit.by;
                let whose = if room < limit.bytes {
                    "three quarters of "
                } else {
                    ""
                };
                let fits = if in_file { "more than" } else { "within" };
                format!(
                    "with images in memory the run takes {}, {fits} {}: {whose}{by}",
                    error::size_rounded_up(needed),
                    error::size_rounded_down(room)
                )
            }
            _ => "there is no limit".to_owned(),
        };
        let forecast = SceneMemoryPlan {
            images: self.images,
            masks: self.masks.masks,
            depths: self.depths,
            memory,
            store: ImageStorePlan {
                bytes: self.store.0,
                in_file,
                folder: in_file.then(folder),
                room_bytes: room,
                needed_bytes: needed,
                why,
            },
            limit: limit.limit,
            largest: self.files.largest,
            device: self.device,
        };
        Ok((forecast, refusal))
    }

    /// # Errors
    /// Numbers of which no ring can be made.
    fn memory(&self, in_file: bool) -> Result<SceneMemory> {
        let lanes = u64::from(self.workers.max(1));
        let ring_bytes = ring(self.workers, self.shape)?;
        let (store_bytes, largest) = self.store;
        let files = &self.files;
        let process = |beside: u64| match self.workers {
            0 => beside,
            _ => WORKER + beside,
        };
        let process_bytes = process(FRAME_OF_WORKER * self.images);
        let file_buffer_bytes = if in_file { largest } else { 0 };
        let worker = SceneWorkerMemory {
            decode_bytes: files.decode_bytes,
            alpha_bytes: files.alpha_bytes,
            depth_bytes: files.depth_bytes,
            view_bytes: self.view_bytes,
            file_buffer_bytes,
            input_bytes: files.input_bytes,
            process_bytes,
            total_bytes: [
                files.decode_bytes,
                files.alpha_bytes,
                files.depth_bytes,
                self.view_bytes,
                file_buffer_bytes,
                files.input_bytes,
                process_bytes,
            ]
            .into_iter()
            .fold(0, u64::saturating_add),
        };
        let coordinator = if self.workers == 0 { 0 } else { COORDINATOR };
        let driver = self
            .device
            .map_or(0, |_| DRIVER + PINNED + self.pinned_bytes);
        let fixed_bytes = CONSUMER + coordinator + driver;
        let tables_bytes = self.table_bytes + FRAME * self.images;
        let masks = &self.masks;
        let masks_bytes = 2 * masks.bytes;
        let running_bytes = [
            if in_file { 0 } else { store_bytes },
            ring_bytes,
            masks_bytes,
            self.maps_bytes,
            tables_bytes,
            lanes.saturating_mul(worker.total_bytes),
            fixed_bytes,
        ]
        .into_iter()
        .fold(0, u64::saturating_add);
        let reading_masks_bytes = match masks.masks {
            0 => 0,
            _ => {
                let read = &masks.files;
                let decoding = read.decode_bytes + read.pixel_bytes + read.input_bytes;
                let (reader, ring) = match masks.shape {
                    Some(shape) => (
                        process(masks.worker_bytes + decoding),
                        ring(self.workers, shape)?,
                    ),
                    None => (0, 0),
                };
                // As they came, as they are drawn from, and sealed.
                [
                    3 * masks.bytes,
                    ring,
                    lanes.saturating_mul(reader),
                    masks.disc_bytes,
                    tables_bytes,
                    CONSUMER + 2 * coordinator,
                ]
                .into_iter()
                .fold(0, u64::saturating_add)
            }
        };
        Ok(SceneMemory {
            workers: self.workers,
            depth: self.shape.slots,
            slot_bytes: self.shape.slot_bytes,
            store_bytes,
            ring_bytes,
            masks_bytes,
            maps_bytes: self.maps_bytes,
            tables_bytes,
            worker,
            fixed_bytes,
            running_bytes,
            reading_masks_bytes,
            device_bytes: self.device.map_or(0, |device| device.total_bytes),
            total_bytes: running_bytes.max(reading_masks_bytes),
        })
    }

    fn refusal(&self, limit: MemoryLimit, memory: &SceneMemory) -> Error {
        let mut fits = Vec::new();
        let fewer = largest_that_fits(self.workers, |n| self.fits(n, self.shape.slots, limit));
        fits.extend(fewer.map(workers_text));
        // On a device the ring holds no batches.
        let is_ring = self.device.is_none();
        if is_ring && self.shape.slots > 1 && self.fits(self.workers, 1, limit) {
            fits.push("depth 1".to_owned());
        }
        fits.push("a larger downscale".to_owned());
        let what = match memory.reading_masks_bytes > memory.running_bytes {
            true => "while it reads the masks",
            false => "with the images in a file",
        };
        Error::option(
            "memory_limit",
            format!(
                "the run needs {} {what} and {} allows {}: {}. The ring takes {}, {}each of {} workers \
                 {}, the rest {}",
                error::size_rounded_up(memory.total_bytes),
                limit.by,
                error::size_rounded_down(limit.bytes),
                advice_text(&fits),
                error::size(memory.ring_bytes),
                match memory.masks_bytes {
                    0 => String::new(),
                    bytes => format!("masks {}, ", error::size(bytes)),
                },
                memory.workers,
                error::size(memory.worker.total_bytes),
                error::size(memory.fixed_bytes + memory.tables_bytes + memory.maps_bytes),
            ),
        )
    }

    fn fits(&self, workers: u32, slots: u32, limit: MemoryLimit) -> bool {
        let with = |shape: RingShape| RingShape {
            lanes: workers.max(1),
            ..shape
        };
        let other = Self {
            workers,
            shape: RingShape {
                slots,
                ..with(self.shape)
            },
            masks: MaskMemoryInputs {
                shape: self.masks.shape.map(with),
                ..self.masks
            },
            files: self.files.clone(),
            ..*self
        };
        let memory = other.memory(true);
        memory.is_ok_and(|memory| memory.total_bytes <= limit.bytes)
    }
}

/// Bytes of a ring. Without workers the batches themselves, of which two live at a time.
fn ring(workers: u32, shape: RingShape) -> Result<u64> {
    let bytes = RingLayout::new(shape)?.total_bytes() as u64;
    Ok(match workers {
        0 => shape.slot_bytes.saturating_mul(2),
        _ => bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::jobs::device_images::jpeg_decoding::LargestJpeg;

    const MIB: u64 = 1 << 20;

    fn ingredients(workers: u32) -> SceneMemoryInputs {
        SceneMemoryInputs {
            workers,
            shape: RingShape {
                slots: 4,
                rows: 1,
                slot_bytes: MIB,
                lanes: workers.max(1),
            },
            images: 100,
            depths: 0,
            store: (1000 * MIB, 10 * MIB),
            files: ImageDecodeBytes {
                decode_bytes: 20 * MIB,
                alpha_bytes: 0,
                depth_bytes: 0,
                input_bytes: 3 * MIB,
                largest: None,
                jpegs: LargestJpeg::default(),
            },
            masks: MaskMemoryInputs::default(),
            view_bytes: 0,
            maps_bytes: 0,
            table_bytes: 0,
            device: None,
            pinned_bytes: 0,
        }
    }

    fn asked(bytes: u64) -> SceneLimit {
        SceneLimit {
            limit: Some(MemoryLimit {
                bytes,
                by: "memory_limit",
            }),
            is_asked: true,
        }
    }

    fn plan(of: SceneMemoryInputs, limit: SceneLimit) -> Result<SceneMemoryPlan> {
        match of.plan_within(limit, || PathBuf::from("/files"))? {
            (_, Some(refusal)) => Err(refusal),
            (forecast, None) => Ok(forecast),
        }
    }

    #[test]
    fn images_go_to_a_file_by_one_byte_and_are_refused_by_one_byte() {
        for workers in [0, 1, 4] {
            let whole = ingredients(workers).memory(false).unwrap().total_bytes;
            let found = plan(ingredients(workers), asked(whole)).unwrap();
            assert!(!found.store.in_file && found.store.folder.is_none());
            assert_eq!(found.memory.total_bytes, whole);
            let found = plan(ingredients(workers), asked(whole - 1)).unwrap();
            assert!(found.store.in_file && found.store.folder.is_some());
            assert!(found.store.why.contains("more than"), "{}", found.store.why);
            let least = found.memory.total_bytes;
            // Without the images, with a buffer for each worker.
            let lanes = u64::from(workers.max(1));
            assert_eq!(least, whole - 1000 * MIB + 10 * MIB * lanes);
            assert!(plan(ingredients(workers), asked(least)).is_ok());
            let refused = plan(ingredients(workers), asked(least - 1)).unwrap_err();
            let text = refused.to_string();
            let needs = format!("needs {} with", error::size_rounded_up(least));
            assert!(text.contains(&needs), "{text}");
            // No more than are needed to make it fit.
            assert_eq!(text.contains("3 workers,"), workers > 1, "{text}");
            assert!(workers == 0 || text.contains("depth 1"), "{text}");
        }
    }

    #[test]
    fn what_nobody_limited_is_the_trainer_s_too() {
        let whole = ingredients(2).memory(false).unwrap().total_bytes;
        let machine = |bytes| SceneLimit {
            is_asked: false,
            ..asked(bytes)
        };
        assert!(plan(ingredients(2), machine(whole)).unwrap().store.in_file);
        let found = plan(ingredients(2), machine(whole / 3 * 4 + 8)).unwrap();
        assert!(!found.store.in_file);
        let none = SceneLimit {
            limit: None,
            is_asked: false,
        };
        assert!(!plan(ingredients(2), none).unwrap().store.in_file);
    }

    #[test]
    fn masks_that_take_more_than_the_run_count() {
        let mut few = ingredients(4);
        few.store = (10 * MIB, 10 * MIB);
        few.masks = MaskMemoryInputs {
            masks: 1,
            bytes: MIB,
            worker_bytes: 40 * MIB,
            shape: Some(few.shape),
            ..MaskMemoryInputs::default()
        };
        let found = plan(few, asked(1 << 40)).unwrap().memory;
        assert!(found.reading_masks_bytes > found.running_bytes);
        assert_eq!(found.total_bytes, found.reading_masks_bytes);
    }

    #[test]
    fn each_part_is_in_the_total() {
        let total = |of: SceneMemoryInputs| of.memory(false).unwrap().total_bytes;
        let (before, more) = (total(ingredients(3)), 7 * MIB);
        let mut each: [SceneMemoryInputs; 9] = std::array::from_fn(|_| ingredients(3));
        each[0].store.0 += more;
        each[1].files.decode_bytes += more;
        each[2].files.alpha_bytes += more;
        each[3].files.depth_bytes += more;
        each[4].files.input_bytes += more;
        each[5].view_bytes += more;
        each[6].maps_bytes += more;
        each[7].table_bytes += more;
        each[8].masks.bytes += more;
        let times = [1, 3, 3, 3, 3, 3, 1, 1, 2];
        for (part, (of, times)) in each.into_iter().zip(times).enumerate() {
            assert_eq!(total(of) - before, times * more, "part {part}");
        }
    }
}
