//! The frames of a split, their files, and the key of their decoded pixels.
//!
//! Runs in the consumer. Not here: processes, decoding, what a run does with the images.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use twox_hash::XxHash3_128;

use crate::camera::Camera;
use crate::data::index::Index;
use crate::error::{Error, Result};
use crate::picture::{BackgroundColor, PictureLimits};
use crate::recipe::{NumericProfile, Recipe, SampleProgram};
use crate::scene::data::{Frame, Scene, SceneSplit};
use crate::scene::image_store::StoreLayout;
use crate::scene::jobs::masks::spec::{MaskSize, MasksSpec};
use crate::scene::jobs::shared::frames::{StoredFrame, StoredFrames};
use crate::scene::jobs::shared::spec::StoreSpec;
use crate::sys::regular_file::FileStamp;

/// What a run uses of the images besides their colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageExtras {
    pub(crate) masks: bool,
    /// Same meaning as in [`Frame::depth_file`].
    pub(crate) depths: Option<bool>,
    pub(crate) alpha: bool,
}

/// The frames of a split and their files.
#[derive(Debug)]
pub(crate) struct SplitFrames {
    pub(crate) frames: StoredFrames,
    pub(crate) images: Vec<PathBuf>,
    /// Masks of the frames that have one, in frame order.
    pub(crate) masks: Vec<PathBuf>,
    /// Depths of the frames that have one, in frame order.
    depths: Vec<PathBuf>,
    /// Length of one depth unit, in the scene's units.
    pub(crate) depth_scale: f64,
    /// Crop radius of each frame, in pixels of the image store: only pixels within this distance of
    /// the image's middle are used.
    pub(crate) crop_radii: Vec<Option<f64>>,
    pub(crate) times: bool,
}

/// The inputs of a run, after masks were read and the image store was opened.
#[derive(Debug)]
pub(crate) struct SceneInputs {
    pub(crate) split: SplitFrames,
    /// Words of the masks of the frames that have one, in frame order.
    pub(crate) words: Vec<Vec<u64>>,
    pub(crate) store: StoreSpec,
    /// The scene's folder.
    pub(crate) root: PathBuf,
}

impl SplitFrames {
    /// Selects the frames of `split`, and divides their size by `downscale`.
    ///
    /// # Errors
    /// A split without frames; images that become smaller than a pixel.
    pub(crate) fn new(
        scene: &Scene,
        split: SceneSplit,
        downscale: u32,
        wanted: ImageExtras,
    ) -> Result<Self> {
        let chosen: Vec<&Frame> = scene
            .frames_of(split)
            .iter()
            .filter_map(|number| scene.frames.get(*number as usize))
            .collect();
        if chosen.is_empty() {
            return Err(Error::dataset(
                &scene.root,
                format!(
                    "the scene has no frames in the split {}: use another split",
                    split.name()
                ),
            ));
        }
        scene.check_depths(wanted.depths)?;
        let by = downscale.max(1);
        let smaller = |camera: &Camera| camera.scaled(camera.width / by, camera.height / by);
        let cameras: Vec<Camera> = scene.cameras.iter().map(smaller).collect();
        let mut found = Self {
            frames: StoredFrames {
                cameras,
                alpha: wanted.alpha,
                frames: Vec::with_capacity(chosen.len()),
                places: StoreLayout::default(),
            },
            images: Vec::with_capacity(chosen.len()),
            masks: Vec::new(),
            depths: Vec::new(),
            // Length of one depth unit, in the scene's units.
            depth_scale: scene.depth_scale(),
            crop_radii: Vec::with_capacity(chosen.len()),
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
                        "`downscale` is {by}, which leaves nothing of {} ({} x {} pixels): lower \
                         it",
                        frame.name, original.height, original.width
                    ),
                ));
            }
            let mask = frame.mask.as_ref().filter(|_| wanted.masks);
            let depth = frame.depth_file(wanted.depths);
            let radius = frame
                .fisheye_crop_radius
                .map(|radius| radius / f64::from(by));
            found.crop_radii.push(radius);
            found.frames.frames.push(StoredFrame {
                camera: frame.camera,
                pose: frame.pose,
                time: frame.time.unwrap_or(0.0) as f32,
                rolling_shutter: frame.rolling_shutter,
                file_size: (original.height, original.width),
                has_mask: mask.is_some(),
                mask_is_inverted: frame.mask_is_inverted,
                has_depth: depth.is_some(),
            });
            found.images.push(frame.image.clone());
            found.masks.extend(mask.cloned());
            found.depths.extend(depth.cloned());
        }
        let frames = &found.frames;
        let bytes = frames.frames.iter();
        let bytes = bytes.filter_map(|frame| frames.bytes_of(frame));
        let places = StoreLayout::new(bytes)?;
        found.frames.places = places;
        Ok(found)
    }

    /// The spec of the job that reads the masks.
    pub(crate) fn masks_spec(&self, limits: PictureLimits) -> MasksSpec {
        let masked = (0..).zip(&self.frames.frames);
        let masked = masked.filter(|(_, frame)| frame.has_mask);
        let masks = masked.filter_map(|(image, frame)| {
            let camera = self.frames.camera(image)?;
            Some(MaskSize {
                image: frame.file_size,
                bits: (camera.height, camera.width),
                is_inverted: frame.mask_is_inverted,
            })
        });
        MasksSpec {
            masks: masks.collect(),
            limits,
        }
    }

    /// Key that identifies the decoded pixels: the files as they are now, their size in the image
    /// store, and how they are decoded.
    ///
    /// # Errors
    /// An image that no longer exists.
    pub(crate) fn store_key(&self, background: BackgroundColor) -> Result<u128> {
        // With alpha, the background has no effect.
        let background = match self.frames.alpha {
            true => BackgroundColor::default(),
            false => background,
        };
        let profile = NumericProfile::of(&SampleProgram::compile(&Recipe::full())?);
        let mut hash = XxHash3_128::new();
        let of_all = format!(
            "{} {} {background:?} {}",
            profile.featherload, profile.decoder, self.frames.alpha
        );
        hash.write(of_all.as_bytes());
        let frames = self.frames.frames.iter().enumerate();
        let files = frames.clone().map(|(image, _)| image);
        let depths = frames.filter(|(_, frame)| frame.has_depth);
        let files = files.zip(&self.images);
        let depths = depths.map(|(image, _)| image).zip(&self.depths);
        for (image, path) in files.chain(depths) {
            let failed = |e| Error::io_at("look at", path, e);
            let found = std::fs::metadata(path).map_err(failed)?;
            let stamp = FileStamp::of_metadata(&found);
            // Unlike the modification time, the change time of an inode cannot be set back.
            let changed = (found.dev(), found.ctime(), found.ctime_nsec());
            let path = std::path::absolute(path).map_err(failed)?;
            let size = self.frames.camera(image).map(|c| (c.width, c.height));
            hash.write(path.as_os_str().as_bytes());
            let depth = self.frames.frames.get(image).map(|frame| frame.has_depth);
            hash.write(format!(" {stamp:?} {changed:?} {size:?} {depth:?}\n").as_bytes());
        }
        Ok(hash.finish_128())
    }

    /// An index of the image files, followed by the depth files.
    pub(crate) fn index(&self) -> Result<Index> {
        let files: Vec<PathBuf> = self.images.iter().chain(&self.depths).cloned().collect();
        Index::of_files(&files)
    }

    /// Whether any image has depths.
    pub(crate) fn has_depths(&self) -> bool {
        !self.depths.is_empty()
    }

    pub(crate) fn index_of_masks(&self) -> Result<Index> {
        Index::of_files(&self.masks)
    }
}
