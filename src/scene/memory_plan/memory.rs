//! Memory plan of a run over a scene, computed before the run allocates anything. `build` decides
//! with it, and the command `plan` prints it.
//!
//! Runs in the consumer. Pure: works on numbers only. Not here: where the numbers come from, how a
//! folder for the store file is chosen, which kind of run it is.

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

/// PSS of a worker, without decoding and without frames: code and data of the executable, heap,
/// working memory of decoders.
const WORKER: u64 = 4 << 20;

/// Memory of one image's metadata in the consumer: frame, camera, pose and paths. Includes the copy
/// in sealed memory.
const FRAME: u64 = 2 << 10;

/// Memory of one image's metadata in each worker.
const FRAME_OF_WORKER: u64 = 512;

/// Two pinned buffers, for copies of images to the device.
const PINNED: u64 = 8 << 20;

/// Memory plan of a run over the images of a scene, and whether it fits the limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SceneMemoryPlan {
    /// Images of the split.
    pub images: u64,
    /// Images with a mask.
    pub masks: u64,
    /// Images with depths.
    pub depths: u64,
    pub memory: SceneMemory,
    pub store: ImageStorePlan,
    /// The lowest limit that applies. `build` rejects a run that does not fit it.
    pub limit: Option<MemoryLimit>,
    /// The image that needs the most memory to decode.
    pub largest: Option<LargestSample>,
    /// Memory on the device; `None` on the CPU.
    pub device: Option<SceneDeviceMemory>,
}

/// Host memory of a run over the images of a scene, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SceneMemory {
    pub workers: u32,
    /// Slots of the ring.
    pub depth: u32,
    /// Bytes of a batch of rays, or of the largest view.
    pub slot_bytes: u64,
    /// All decoded images and depths, shared by all processes. They are in memory or in a file:
    /// [`ImageStorePlan::in_file`].
    pub store_bytes: u64,
    /// Shared by all processes. Without workers: the batches themselves, at most two at a time.
    pub ring_bytes: u64,
    /// Masks as bits, counted twice: once more while they are sorted.
    pub masks_bytes: u64,
    /// Straightening maps of cameras, shared by all processes.
    pub maps_bytes: u64,
    /// Names, cameras, poses and sampling tables.
    pub tables_bytes: u64,
    /// Memory of each worker.
    pub worker: SceneWorkerMemory,
    /// Consumer and coordinator; on a device also the driver and pinned buffers.
    pub fixed_bytes: u64,
    /// Total while images are decoded.
    pub running_bytes: u64,
    /// Total while masks are read, which happens first; 0 without masks.
    pub reading_masks_bytes: u64,
    /// Device memory without the context, for [`Device::Cuda`](crate::Device::Cuda).
    pub device_bytes: u64,
    /// Maximum PSS of all processes together.
    pub total_bytes: u64,
}

/// Private memory of one worker, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SceneWorkerMemory {
    /// Pixels, and the working memory of decoders.
    pub decode_bytes: u64,
    /// Colours and alpha as separate arrays, before they are merged.
    pub alpha_bytes: u64,
    /// Depth values.
    pub depth_bytes: u64,
    /// Copies of an image for its view, to straighten it or to convert it to floats.
    pub view_bytes: u64,
    /// Buffer for writing a decoded image to the store file.
    pub file_buffer_bytes: u64,
    /// The largest file, mapped while it is decoded.
    pub input_bytes: u64,
    /// The process itself and the metadata of images.
    pub process_bytes: u64,
    /// Sum of the fields above.
    pub total_bytes: u64,
}

/// Where decoded images are kept, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImageStorePlan {
    pub bytes: u64,
    pub in_file: bool,
    /// Folder of the store file. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "lossy_option")]
    pub folder: Option<PathBuf>,
    /// Bytes that the run may use with its images in memory; `None` without a limit. If the user
    /// set no limit, a quarter of the available memory is left to the trainer.
    pub room_bytes: Option<u64>,
    /// Bytes that the run needs with its images in memory.
    pub needed_bytes: u64,
    /// The reason, as a sentence.
    pub why: String,
}

/// Device memory of a run without the context, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SceneDeviceMemory {
    /// Number of batches in device memory.
    pub batches: u32,
    /// Bytes of the batches, and what the driver allocates for the kernel.
    pub batch_bytes: u64,
    /// Cameras, masks and tables.
    pub scene_bytes: u64,
    /// Memory of the JPEG decoder; 0 if workers decode all images.
    pub decoder_bytes: u64,
    /// Bytes of images in device memory.
    pub image_bytes: u64,
    /// Bytes of the images that do not fit within `gpu_memory_limit`. The kernel reads them from
    /// host memory.
    pub host_image_bytes: u64,
    pub limit_bytes: Option<u64>,
    pub total_bytes: u64,
}

impl SceneDeviceMemory {
    /// Computes the total.
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

/// Sizes from which a memory plan is computed.
#[derive(Debug)]
pub(crate) struct SceneMemoryInputs {
    pub(crate) workers: u32,
    pub(crate) shape: RingShape,
    pub(crate) images: u64,
    pub(crate) depths: u64,
    /// Bytes of all images, and of the largest.
    pub(crate) store: (u64, u64),
    pub(crate) files: ImageDecodeBytes,
    pub(crate) masks: MaskMemoryInputs,
    /// For each worker: buffers to straighten images or convert them to floats.
    pub(crate) view_bytes: u64,
    pub(crate) maps_bytes: u64,
    /// File names and sampling tables.
    pub(crate) table_bytes: u64,
    pub(crate) device: Option<SceneDeviceMemory>,
    /// Pinned buffers of the device's JPEG decoder.
    pub(crate) pinned_bytes: u64,
}

/// Sizes of the masks of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MaskMemoryInputs {
    pub(crate) masks: u64,
    /// Bytes of all masks as bits.
    pub(crate) bytes: u64,
    pub(crate) files: MaskDecodeBytes,
    /// Pixels of a mask in a worker, without the decoder.
    pub(crate) worker_bytes: u64,
    /// The ring through which masks are read; `None` if no mask is read.
    pub(crate) shape: Option<RingShape>,
    /// Pixels in the consumer while crop discs are converted to masks.
    pub(crate) disc_bytes: u64,
}

/// Memory limit of a run, and whether the user set it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SceneLimit {
    pub(crate) limit: Option<MemoryLimit>,
    /// The user set the limit: the run may use all of it.
    pub(crate) is_requested: bool,
}

impl SceneLimit {
    /// The lower of the user's limit and the available memory.
    pub(crate) fn lowest(limit_of: Option<u64>) -> Self {
        Self {
            limit: MemoryLimit::lowest_of(limit_of),
            is_requested: limit_of.is_some(),
        }
    }

    /// Bytes that the run may use with its images in memory.
    fn room(self) -> Option<u64> {
        let bytes = self.limit?.bytes;
        // Without a user's limit, leave a share to the trainer, which may need more memory later.
        Some(match self.is_requested {
            true => bytes,
            false => bytes / 4 * 3,
        })
    }
}

impl SceneMemoryInputs {
    /// Decides whether images are kept in memory or in a file, and computes the plan. `folder`
    /// returns the folder of the file; it is called only if a file is needed.
    ///
    /// Also returns the error for a run that exceeds the limit even with images in a file. The
    /// error names the options to lower.
    ///
    /// # Errors
    /// Sizes that no ring can have.
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
                    "with images in memory the run needs {}, {fits} {}: {whose}{by}",
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
    /// Sizes that no ring can have.
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
                // Masks as they arrive, as they are sampled, and sealed.
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

/// Bytes of a ring. Without workers: the batches themselves, at most two at a time.
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

    fn limit_of(bytes: u64) -> SceneLimit {
        SceneLimit {
            limit: Some(MemoryLimit {
                bytes,
                by: "memory_limit",
            }),
            is_requested: true,
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
            let found = plan(ingredients(workers), limit_of(whole)).unwrap();
            assert!(!found.store.in_file && found.store.folder.is_none());
            assert_eq!(found.memory.total_bytes, whole);
            let found = plan(ingredients(workers), limit_of(whole - 1)).unwrap();
            assert!(found.store.in_file && found.store.folder.is_some());
            assert!(found.store.why.contains("more than"), "{}", found.store.why);
            let least = found.memory.total_bytes;
            // Without the images, with a buffer for each worker.
            let lanes = u64::from(workers.max(1));
            assert_eq!(least, whole - 1000 * MIB + 10 * MIB * lanes);
            assert!(plan(ingredients(workers), limit_of(least)).is_ok());
            let refused = plan(ingredients(workers), limit_of(least - 1)).unwrap_err();
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
            is_requested: false,
            ..limit_of(bytes)
        };
        assert!(plan(ingredients(2), machine(whole)).unwrap().store.in_file);
        let found = plan(ingredients(2), machine(whole / 3 * 4 + 8)).unwrap();
        assert!(!found.store.in_file);
        let none = SceneLimit {
            limit: None,
            is_requested: false,
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
        let found = plan(few, limit_of(1 << 40)).unwrap().memory;
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
