//! What follows from a scene and options, before memory is taken.
//!
//! In the consumer. Never in here: processes, decoding.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use twox_hash::XxHash3_128;

use crate::camera::{Camera, Lens};
use crate::data::index::Index;
use crate::data::scenes::{Frame, Scene, Split};
use crate::error::{Error, Result};
use crate::jobs::masks::spec::{MaskSize, MasksSpec};
use crate::jobs::scene::frames::{StoredFrame, StoredFrames};
use crate::jobs::scene::masks::Masks;
use crate::picture::{Background, Limits};
use crate::plan::RaySampler;
use crate::plan::rays::{
    Disc, MaskBits, MaskView, RayTable, RayTableBuilder, Region, Shape, eroded,
};
use crate::recipe::{NumericProfile, Recipe, SampleProgram};
use crate::store::Places;
use crate::sys::regular::Stamp;

/// The frames of a split, and the files that they are made of.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) frames: StoredFrames,
    pub(super) images: Vec<PathBuf>,
    /// The masks of the frames that have one, in order.
    pub(super) masks: Vec<PathBuf>,
    shapes: Vec<Shape>,
    pub(super) times: bool,
}

impl Chosen {
    /// The frames of `split`, at a fraction of their size.
    ///
    /// # Errors
    /// No frames; images that become smaller than a pixel.
    pub(super) fn new(scene: &Scene, split: Split, downscale: u32, masks: bool) -> Result<Self> {
        let chosen: Vec<&Frame> = scene
            .frames_of(split)
            .iter()
            .filter_map(|number| scene.frames.get(*number as usize))
            .collect();
        if chosen.is_empty() {
            return Err(Error::dataset(
                &scene.root,
                format!(
                    "the scene has no frames in the split {}: choose another one",
                    split.name()
                ),
            ));
        }
        let by = downscale.max(1);
        let smaller = |camera: &Camera| camera.scaled(camera.width / by, camera.height / by);
        let cameras: Vec<Camera> = scene.cameras.iter().map(smaller).collect();
        let mut found = Self {
            frames: StoredFrames {
                cameras,
                frames: Vec::with_capacity(chosen.len()),
                places: Places::default(),
            },
            images: Vec::with_capacity(chosen.len()),
            masks: Vec::new(),
            shapes: Vec::with_capacity(chosen.len()),
            times: chosen.iter().any(|frame| frame.time.is_some()),
        };
        for frame in chosen {
            let (Some(original), Some(camera)) = (
                scene.cameras.get(frame.camera as usize),
                found.frames.cameras.get(frame.camera as usize),
            ) else {
                return Err(Error::protocol(format!("{} has no camera", frame.name)));
            };
            if camera.width == 0 || camera.height == 0 {
                return Err(Error::option(
                    "downscale",
                    format!(
                        "`downscale` of {by} leaves nothing of {}, which has {} x {} pixels: lower it",
                        frame.name, original.height, original.width
                    ),
                ));
            }
            let mask = frame.mask.as_ref().filter(|_| masks);
            found.shapes.push(shape_of(frame, camera, by)?);
            found.frames.frames.push(StoredFrame {
                camera: frame.camera,
                pose: frame.pose,
                time: frame.time.unwrap_or(0.0) as f32,
                rolling_shutter: frame.rolling_shutter,
                file_size: (original.height, original.width),
                has_mask: mask.is_some(),
            });
            found.images.push(frame.image.clone());
            found.masks.extend(mask.cloned());
        }
        let frames = &found.frames;
        let bytes = (0..frames.frames.len()).filter_map(|image| {
            let camera = frames.camera(image)?;
            Some(3 * u64::from(camera.width) * u64::from(camera.height))
        });
        let places = Places::new(bytes)?;
        found.frames.places = places;
        Ok(found)
    }

    /// What must be known to read the masks.
    pub(super) fn masks_spec(&self, limits: Limits) -> MasksSpec {
        let masked = (0..).zip(&self.frames.frames);
        let masked = masked.filter(|(_, frame)| frame.has_mask);
        let masks = masked.filter_map(|(image, frame)| {
            let camera = self.frames.camera(image)?;
            Some(MaskSize {
                file: frame.file_size,
                bits: (camera.height, camera.width),
            })
        });
        MasksSpec {
            masks: masks.collect(),
            limits,
        }
    }

    /// The table of the draws, and the masks as they go with it. `words` are those of the
    /// frames with a mask, in order.
    ///
    /// # Errors
    /// Nothing to sample anywhere; a sampler that cannot work.
    pub(super) fn table(
        &self,
        sampler: RaySampler,
        (seed, joining): (u64, u32),
        words: &[Vec<u64>],
    ) -> Result<(RayTable, Masks)> {
        let mut table = RayTableBuilder::new(sampler, seed, joining)?;
        let mut words = words.iter();
        let mut sealed: Vec<MaskBits> = Vec::new();
        for (image, frame) in self.frames.frames.iter().enumerate() {
            let camera = self.frames.camera(image);
            let (width, height) = camera.map_or((0, 0), |c| (c.width, c.height));
            let mut region = Region {
                shape: self.shapes[image],
                mask: None,
            };
            if frame.has_mask {
                let view = words.next().and_then(|w| MaskView::new(w, width, height));
                let view = view.ok_or_else(|| Error::protocol("a mask has another size"))?;
                let bits = match sampler {
                    RaySampler::Patches { size, dilation } => eroded(view, size, dilation),
                    _ => view.to_bits(),
                };
                sealed.push(bits);
                region.mask = sealed.last().map(|bits| bits.view());
            }
            table.add((width, height), &region)?;
        }
        let words: Vec<&[u64]> = sealed.iter().map(|bits| bits.words()).collect();
        Ok((table.finish()?, Masks::seal(&self.frames, &words)?))
    }

    /// Bytes of the pixels of the largest file, before it is made smaller.
    pub(super) fn largest_file(&self) -> u64 {
        let sizes = self.frames.frames.iter().map(|frame| frame.file_size);
        let bytes = sizes.map(|(height, width)| 3 * u64::from(height) * u64::from(width));
        bytes.max().unwrap_or(0)
    }

    /// By what the pixels of these images are told from all others: the files as they are
    /// now, their size in the store, and how they are decoded.
    ///
    /// # Errors
    /// An image that has gone.
    pub(super) fn store_key(&self, background: Background) -> Result<u128> {
        let profile = NumericProfile::of(&SampleProgram::compile(&Recipe::full())?);
        let mut hash = XxHash3_128::new();
        hash.write(
            format!("{} {} {background:?}", profile.featherload, profile.decoder).as_bytes(),
        );
        for (image, path) in self.images.iter().enumerate() {
            let failed = |e| Error::io_at("look at", path, e);
            let found = std::fs::metadata(path).map_err(failed)?;
            let stamp = Stamp::of_metadata(&found);
            // Nobody can put back the time of a change of the inode.
            let changed = (found.dev(), found.ctime(), found.ctime_nsec());
            let path = std::path::absolute(path).map_err(failed)?;
            let size = self.frames.camera(image).map(|c| (c.width, c.height));
            hash.write(path.as_os_str().as_bytes());
            hash.write(format!(" {stamp:?} {changed:?} {size:?}\n").as_bytes());
        }
        Ok(hash.finish_128())
    }

    /// The index of the files of images.
    pub(super) fn index(&self) -> Result<Index> {
        Index::of_files(&self.images)
    }

    pub(super) fn index_of_masks(&self) -> Result<Index> {
        Index::of_files(&self.masks)
    }
}

fn shape_of(frame: &Frame, camera: &Camera, by: u32) -> Result<Shape> {
    if camera.lens == Lens::Equirectangular {
        return Ok(Shape::Sphere);
    }
    match frame.fisheye_crop_radius {
        Some(radius) => Disc::new(radius / f64::from(by)).map(Shape::Disc),
        None => Ok(Shape::Whole),
    }
}
