//! The memory that decoding a scene's files needs, computed from the headers of the files.
//!
//! Runs in the consumer. Reads the header of every image, depth and mask, and no pixels.

use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crate::data::index::Index;
use crate::data::survey;
use crate::decode_plan::stored_picture::MAX_KEPT_BYTES;
use crate::error::Result;
use crate::memory_plan::run_memory::{LargestSample, ScratchSurvey};
use crate::picture::read_header::PictureHeader;
use crate::picture::{
    AlphaPolicy, BackgroundColor, FileFormat, OrientationMode, PictureLimits, depth,
};
use crate::recipe::SampleProgram;
use crate::recipe::steps::LargestStep;
use crate::scene::jobs::device_images::jpeg_decoding::LargestJpeg;
use crate::scene::jobs::masks::spec::MasksSpec;
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::scene::jobs::shared::program::{self, DecodeTarget};

/// Memory that a worker needs to decode the images and depths of a scene, in bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ImageDecodeBytes {
    /// Colours and alpha, decoded one after the other. No alpha if the run drops it.
    pub(crate) decode_bytes: u64,
    /// Colours and alpha of an image as separate arrays, before they are merged.
    pub(crate) alpha_bytes: u64,
    /// Depth values.
    pub(crate) depth_bytes: u64,
    /// Size of the largest file.
    pub(crate) input_bytes: u64,
    /// The image that needs the most memory to decode.
    pub(crate) largest: Option<LargestSample>,
    /// The largest of the JPEGs that a device may decode.
    pub(crate) jpegs: LargestJpeg,
}

/// Memory that a worker needs to decode masks, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MaskDecodeBytes {
    pub(crate) decode_bytes: u64,
    /// Pixels of one mask file.
    pub(crate) pixel_bytes: u64,
    pub(crate) input_bytes: u64,
}

/// The decoding programs of images: without a resize, and with one.
struct Programs([SampleProgram; 2]);

impl Programs {
    fn new(made: impl Fn(bool) -> DecodeTarget) -> Result<Self> {
        let [same, other] = [false, true].map(|resizes| program::image_program(made(resizes)));
        Ok(Self([same?, other?]))
    }

    fn of(&self, resizes: bool) -> &SampleProgram {
        &self.0[usize::from(resizes)]
    }
}

/// The largest needs of the headers read so far.
#[derive(Default)]
struct HeaderTotals {
    colors: ScratchSurvey,
    alpha: ScratchSurvey,
    input_bytes: u64,
    jpegs: LargestJpeg,
    steps: Vec<LargestStep>,
}

impl ImageDecodeBytes {
    /// Reads all headers. `index` holds the images of `frames`, then their depths.
    /// A file without a readable header counts as 0 bytes: it fails later, when it is decoded.
    pub(crate) fn of(
        index: &Index,
        frames: &StoredFrames,
        background: BackgroundColor,
        limits: &PictureLimits,
    ) -> Result<Self> {
        let colors = Programs::new(|resizes| match frames.alpha {
            true => DecodeTarget::separate_colors(resizes),
            false => DecodeTarget {
                transparency: AlphaPolicy::Composite(background),
                resizes,
            },
        })?;
        let alpha = Programs::new(DecodeTarget::separate_alpha)?;
        let found = Mutex::new(HeaderTotals::default());
        let images = frames.frames.len() as u64;
        let add = |id: u64, header: &PictureHeader, file_bytes: u64| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let found = &mut *found;
            found.input_bytes = found.input_bytes.max(file_bytes);
            let image = id as usize;
            let (Some(camera), Some(frame)) = (frames.camera(image), frames.frames.get(image))
            else {
                return;
            };
            let size = (camera.height, camera.width);
            let resizes = size != frame.file_size;
            if header.format == FileFormat::Jpeg && frames.is_as_in_file(image) {
                found.jpegs.add(header.stored_size, file_bytes);
            }
            let row = resizes.then_some(size);
            let file = (id, header, file_bytes);
            let (steps, with) = (&mut found.steps, colors.of(resizes));
            found.colors.add(file, (with, row), limits, steps);
            if frames.alpha && !program::is_opaque(header.format) {
                let with = alpha.of(resizes);
                found.alpha.add(file, (with, row), limits, steps);
            }
        };
        let go_on = |_| ControlFlow::Continue(());
        // Depths have headers of their own.
        let is_image = |id: u64| id < images;
        survey::each_header_of(
            index,
            limits,
            OrientationMode::Stored,
            &add,
            &go_on,
            &is_image,
        )?;
        let (depth_bytes, depth_input) = depth_bytes(index, images, limits);
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (colors, alpha) = (found.colors.scratch_bytes(), found.alpha.scratch_bytes());
        let stored = (0..frames.frames.len()).filter_map(|image| frames.camera(image));
        let pixels = stored.map(|c| u64::from(c.width) * u64::from(c.height));
        Ok(Self {
            // While one decoder works, the other keeps up to `MAX_KEPT_BYTES` bytes.
            decode_bytes: (colors + alpha.min(MAX_KEPT_BYTES))
                .max(alpha + colors.min(MAX_KEPT_BYTES)),
            alpha_bytes: match frames.alpha {
                true => 6 * pixels.max().unwrap_or(0),
                false => 0,
            },
            depth_bytes,
            input_bytes: found.input_bytes.max(depth_input),
            largest: found.colors.sample(index),
            jpegs: found.jpegs,
        })
    }
}

impl MaskDecodeBytes {
    /// Reads the headers of all masks.
    pub(crate) fn of(index: &Index, spec: &MasksSpec) -> Result<Self> {
        let program = program::mask_program()?;
        let found = Mutex::new((ScratchSurvey::default(), 0, Vec::new()));
        let add = |id: u64, header: &PictureHeader, file_bytes: u64| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let (worst, most, steps) = &mut *found;
            worst.add(
                (id, header, file_bytes),
                (&program, None),
                &spec.limits,
                steps,
            );
            *most = (*most).max(u64::from(header.stored_size.0) * u64::from(header.stored_size.1));
        };
        survey::each_header(index, &spec.limits, OrientationMode::Stored, &add, &|_| {
            ControlFlow::Continue(())
        })?;
        let (worst, most, _) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self {
            decode_bytes: worst.scratch_bytes(),
            // Three bytes a pixel; a 16-bit level needs four more, and its two bytes.
            pixel_bytes: (3 + 4 + 2) * most,
            input_bytes: worst.input_bytes,
        })
    }
}

/// Decoder and input bytes for reading depths: the maximum over all files.
fn depth_bytes(index: &Index, images: u64, limits: &PictureLimits) -> (u64, u64) {
    let mut most = (0, 0);
    for id in images..index.len() {
        let Ok(file) = File::open(index.path(id)) else {
            continue;
        };
        let len = file.metadata().map_or(0, |found| found.len());
        let needed = depth::needed_bytes(&mut BufReader::new(file), limits);
        most = (most.0.max(needed), most.1.max(len));
    }
    most
}
