//! What must be known of the images of a scene to make rays or views of them: cameras,
//! poses, sizes.
//!
//! Made in the consumer; read by the coordinator once, and had by workers by fork.
//! Never in here: pixels, and what is made of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::error::{Error, Result};
use crate::scene::data::{Pose, RollingShutter};
use crate::scene::draw::mask_words;
use crate::scene::image_store::StoreLayout;
use crate::sys::sealed_bytes::SealedBytes;

/// All images of a run, in the order in which they are counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredFrames {
    /// Of the pixels in the store: after downscaling.
    pub(crate) cameras: Vec<Camera>,
    pub(crate) frames: Vec<StoredFrame>,
    /// Whether pixels have alpha: 4 bytes each, and 3 otherwise.
    pub(crate) alpha: bool,
    /// Where each image lies: its pixels, and behind them its depths.
    pub(crate) places: StoreLayout,
}

/// One image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoredFrame {
    /// Which of the cameras.
    pub(crate) camera: u32,
    pub(crate) pose: Pose,
    pub(crate) time: f32,
    /// Where the pose is the one at its start.
    pub(crate) rolling_shutter: Option<RollingShutter>,
    /// Height and width that the file must have.
    pub(crate) file_size: (u32, u32),
    pub(crate) has_mask: bool,
    /// Pixels of the mask that are not zero are left out.
    pub(crate) mask_is_inverted: bool,
    pub(crate) has_depth: bool,
}

/// Depths begin at multiples of this.
const ALIGN: u64 = 8;

/// Bytes of a depth: an `f32`, of the machine's order.
pub(crate) const DEPTH_BYTES: u64 = size_of::<f32>() as u64;

impl StoredFrames {
    /// Sealed, for other processes.
    pub(crate) fn seal(&self) -> Result<SealedFrames> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::protocol(format!("write the frames of a scene: {e}")))?;
        SealedBytes::new("featherload-frames", &[&bytes]).map(SealedFrames)
    }

    /// Out of another process.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        let bytes = SealedBytes::from_fd(fd)?;
        let frames: Self = serde_json::from_slice(bytes.bytes())
            .map_err(|e| Error::protocol(format!("read the frames of a scene: {e}")))?;
        frames.check()?;
        Ok(frames)
    }

    /// That frames, cameras and places belong together.
    pub(crate) fn check(&self) -> Result<()> {
        let fits = self.places.len() == self.frames.len()
            && (0..).zip(&self.frames).all(|(number, frame)| {
                let bytes = self.bytes_of(frame);
                bytes == self.places.of(number).map(|range| range.end - range.start)
            });
        match fits {
            true => Ok(()),
            false => Err(Error::protocol(
                "the frames of a scene and their cameras or places do not belong together",
            )),
        }
    }

    /// Bytes of a pixel in the store.
    pub(crate) fn channels(&self) -> usize {
        if self.alpha { 4 } else { 3 }
    }

    /// Bytes of a frame in the store.
    pub(crate) fn bytes_of(&self, frame: &StoredFrame) -> Option<u64> {
        let camera = self.cameras.get(frame.camera as usize)?;
        let pixels = u64::from(camera.width) * u64::from(camera.height);
        let colors = self.channels() as u64 * pixels;
        Some(match frame.has_depth {
            false => colors,
            true => colors.next_multiple_of(ALIGN) + DEPTH_BYTES * pixels,
        })
    }

    /// Whether the store holds an image as its file has it: its colours alone, at its size. A
    /// device may decode such an image.
    pub(crate) fn is_as_in_file(&self, image: usize) -> bool {
        let (Some(frame), Some(camera)) = (self.frames.get(image), self.camera(image)) else {
            return false;
        };
        !self.alpha && !frame.has_depth && frame.file_size == (camera.height, camera.width)
    }

    /// Bytes of an image's pixels in the store, without its depths.
    pub(crate) fn color_bytes(&self, image: usize) -> Option<usize> {
        let camera = self.camera(image)?;
        Some(self.channels() * camera.width as usize * camera.height as usize)
    }

    /// Where an image's depths begin, from the beginning of its pixels on; none where it
    /// has none.
    pub(crate) fn depth_begin(&self, image: usize) -> Option<usize> {
        let end = self.color_bytes(image)?.next_multiple_of(ALIGN as usize);
        self.frames.get(image)?.has_depth.then_some(end)
    }

    /// The numbers of the files of depths in the index, behind those of images.
    pub(crate) fn depth_file(&self, image: usize) -> Option<u64> {
        self.frames.get(image).filter(|frame| frame.has_depth)?;
        let before = self.frames[..image].iter().filter(|frame| frame.has_depth);
        Some((self.frames.len() + before.count()) as u64)
    }

    /// Files that there are: images and depths.
    pub(crate) fn files(&self) -> u64 {
        let depths = self.frames.iter().filter(|frame| frame.has_depth);
        (self.frames.len() + depths.count()) as u64
    }

    /// Bytes of all masks, one bit a pixel.
    pub(crate) fn mask_bytes(&self) -> u64 {
        let masked = (self.frames.iter()).filter(|frame| frame.has_mask);
        let cameras = masked.filter_map(|frame| self.cameras.get(frame.camera as usize));
        8 * cameras.map(|c| mask_words(c.width, c.height)).sum::<u64>()
    }

    /// The camera of an image.
    pub(crate) fn camera(&self, image: usize) -> Option<&Camera> {
        self.cameras.get(self.frames.get(image)?.camera as usize)
    }
}

/// The frames in shared memory.
#[derive(Debug)]
pub(crate) struct SealedFrames(SealedBytes);

impl AsFd for SealedFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
