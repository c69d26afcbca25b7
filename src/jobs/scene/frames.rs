//! What must be known of the images of a scene to make rays of them: cameras, poses,
//! sizes.
//!
//! Made in the consumer; read by the coordinator once, and had by workers by fork.
//! Never in here: pixels, and which rays are drawn.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::data::scenes::{Pose, RollingShutter};
use crate::error::{Error, Result};
use crate::store::Places;
use crate::sys::sealed::SealedBytes;

/// All images of a run, in the order in which they are counted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredFrames {
    /// Of the pixels in the store: after downscaling.
    pub(crate) cameras: Vec<Camera>,
    pub(crate) frames: Vec<StoredFrame>,
    /// Where the pixels of each image lie, 3 bytes a pixel.
    pub(crate) places: Places,
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
}

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
                let bytes = self
                    .cameras
                    .get(frame.camera as usize)
                    .map(|c| 3 * u64::from(c.width) * u64::from(c.height));
                bytes == self.places.of(number).map(|range| range.end - range.start)
            });
        match fits {
            true => Ok(()),
            false => Err(Error::protocol(
                "the frames of a scene and their cameras or places do not belong together",
            )),
        }
    }

    /// The camera of an image.
    pub(crate) fn camera(&self, image: usize) -> Option<&Camera> {
        self.cameras.get(self.frames.get(image)?.camera as usize)
    }
}

/// The frames in shared memory.
#[derive(Debug)]
pub(crate) struct SealedFrames(SealedBytes);

impl SealedFrames {
    /// The frames as text: the same frames give the same text.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl AsFd for SealedFrames {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
