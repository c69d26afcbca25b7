//! Metadata of the images of a scene: cameras, poses and sizes. Rays and views need them.
//!
//! Made in the consumer. The coordinator reads it once, and workers inherit it by fork. Not here:
//! pixels, rays, views.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::error::{Error, Result};
use crate::scene::data::{Pose, RollingShutter};
use crate::scene::draw::mask_words;
use crate::scene::image_store::StoreLayout;
use crate::sys::sealed_bytes::SealedBytes;

/// All images of a run, in the order of their numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredFrames {
    /// Cameras of the pixels in the image store, after downscaling.
    pub(crate) cameras: Vec<Camera>,
    pub(crate) frames: Vec<StoredFrame>,
    /// Whether pixels have alpha: 4 bytes a pixel, otherwise 3.
    pub(crate) alpha: bool,
    /// Range of each image in the image store: its pixels, then its depths.
    pub(crate) places: StoreLayout,
}

/// One image.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoredFrame {
    /// Index of the camera.
    pub(crate) camera: u32,
    pub(crate) pose: Pose,
    pub(crate) time: f32,
    /// With a rolling shutter, `pose` is the pose at its start.
    pub(crate) rolling_shutter: Option<RollingShutter>,
    /// Required height and width of the file.
    pub(crate) file_size: (u32, u32),
    pub(crate) has_mask: bool,
    /// Whether nonzero pixels of the mask are masked out.
    pub(crate) mask_is_inverted: bool,
    pub(crate) has_depth: bool,
}

/// Alignment of depths.
const ALIGN: u64 = 8;

/// Bytes of a depth, an `f32` in native byte order.
pub(crate) const DEPTH_BYTES: u64 = size_of::<f32>() as u64;

impl StoredFrames {
    /// Seals the frames in shared memory, for other processes.
    pub(crate) fn seal(&self) -> Result<SealedFrames> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::protocol(format!("serialise the frames of a scene: {e}")))?;
        SealedBytes::new("featherload-frames", &[&bytes]).map(SealedFrames)
    }

    /// Reads frames that another process sealed.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        let bytes = SealedBytes::from_fd(fd)?;
        let frames: Self = serde_json::from_slice(bytes.bytes())
            .map_err(|e| Error::protocol(format!("read the frames of a scene: {e}")))?;
        frames.check()?;
        Ok(frames)
    }

    /// Checks that frames, cameras and ranges belong together.
    pub(crate) fn check(&self) -> Result<()> {
        let fits = self.places.len() == self.frames.len()
            && (0..).zip(&self.frames).all(|(number, frame)| {
                let bytes = self.bytes_of(frame);
                bytes == self.places.of(number).map(|range| range.end - range.start)
            });
        match fits {
            true => Ok(()),
            false => Err(Error::protocol(
                "the frames of a scene do not match their cameras or ranges",
            )),
        }
    }

    /// Bytes of a pixel in the image store.
    pub(crate) fn channels(&self) -> usize {
        if self.alpha { 4 } else { 3 }
    }

    /// Bytes of a frame in the image store.
    pub(crate) fn bytes_of(&self, frame: &StoredFrame) -> Option<u64> {
        let camera = self.cameras.get(frame.camera as usize)?;
        let pixels = u64::from(camera.width) * u64::from(camera.height);
        let colors = self.channels() as u64 * pixels;
        Some(match frame.has_depth {
            false => colors,
            true => colors.next_multiple_of(ALIGN) + DEPTH_BYTES * pixels,
        })
    }

    /// Whether the image store holds exactly the pixels of the file: colours only, at the file's
    /// size. A device may decode such an image.
    pub(crate) fn is_as_in_file(&self, image: usize) -> bool {
        let (Some(frame), Some(camera)) = (self.frames.get(image), self.camera(image)) else {
            return false;
        };
        !self.alpha && !frame.has_depth && frame.file_size == (camera.height, camera.width)
    }

    /// Bytes of an image's pixels in the image store, without its depths.
    pub(crate) fn color_bytes(&self, image: usize) -> Option<usize> {
        let camera = self.camera(image)?;
        Some(self.channels() * camera.width as usize * camera.height as usize)
    }

    /// Offset of an image's depths from the start of its pixels; `None` if it has no depths.
    pub(crate) fn depth_begin(&self, image: usize) -> Option<usize> {
        let end = self.color_bytes(image)?.next_multiple_of(ALIGN as usize);
        self.frames.get(image)?.has_depth.then_some(end)
    }

    /// Number of an image's depth file in the index. Depth files follow image files.
    pub(crate) fn depth_file(&self, image: usize) -> Option<u64> {
        self.frames.get(image).filter(|frame| frame.has_depth)?;
        let before = self.frames[..image].iter().filter(|frame| frame.has_depth);
        Some((self.frames.len() + before.count()) as u64)
    }

    /// Number of files: images and depths.
    pub(crate) fn files(&self) -> u64 {
        let depths = self.frames.iter().filter(|frame| frame.has_depth);
        (self.frames.len() + depths.count()) as u64
    }

    /// Bytes of all masks, with one bit a pixel.
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

/// The frames in sealed shared memory.
#[derive(Debug)]
pub(crate) struct SealedFrames(SealedBytes);

impl AsFd for SealedFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
