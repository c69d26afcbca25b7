//! Masks of the images, as bits in sealed memory: the pixels that may be sampled.
//!
//! Made in the consumer, mapped by coordinator and workers. `scene::draw::mask_bits` defines the
//! order of bits in words.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::scene::draw::{MaskView, mask_words};
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::sys::sealed_bytes::SealedBytes;

/// The masks of all images that have one, in order and without gaps.
#[derive(Debug)]
pub(crate) struct SceneMasks {
    sealed: SealedBytes,
    /// End of each image's words. An image without a mask has no words.
    ends: Vec<u64>,
}

impl SceneMasks {
    /// Seals the words of the images that have a mask, in order.
    ///
    /// # Errors
    /// Words that do not fit these images.
    pub(crate) fn seal(frames: &StoredFrames, words: &[&[u64]]) -> Result<Self> {
        let parts: Vec<&[u8]> = words.iter().map(|w| bytemuck::cast_slice(w)).collect();
        Self::open(frames, SealedBytes::new("featherload-masks", &parts)?)
    }

    /// Opens masks that another process sealed.
    pub(crate) fn from_fd(frames: &StoredFrames, fd: OwnedFd) -> Result<Self> {
        Self::open(frames, SealedBytes::from_fd(fd)?)
    }

    fn open(frames: &StoredFrames, sealed: SealedBytes) -> Result<Self> {
        let mut end = 0;
        let ends: Vec<u64> = (0..)
            .zip(&frames.frames)
            .map(|(image, frame)| {
                let camera = frames.camera(image).filter(|_| frame.has_mask);
                end += camera.map_or(0, |c| mask_words(c.width, c.height));
                end
            })
            .collect();
        let found = sealed.bytes().len() as u64;
        match found == 8 * end {
            true => Ok(Self { sealed, ends }),
            false => Err(Error::protocol(format!(
                "the masks have {found} bytes, but their images need {}",
                8 * end
            ))),
        }
    }

    /// All words, and where those of each image begin.
    pub(crate) fn words(&self) -> (&[u8], impl Iterator<Item = u64> + '_) {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        (self.sealed.bytes(), begins.take(self.ends.len()))
    }

    /// The mask of an image; `None` if it has no mask.
    pub(crate) fn of(&self, frames: &StoredFrames, image: u32) -> Option<MaskView<'_>> {
        let image = image as usize;
        let end = *self.ends.get(image)?;
        let begin = match image {
            0 => 0,
            _ => *self.ends.get(image - 1)?,
        };
        // A mapping is page-aligned.
        let words: &[u64] = bytemuck::try_cast_slice(self.sealed.bytes()).ok()?;
        let words = words.get(begin as usize..end as usize)?;
        let camera = frames.camera(image).filter(|_| !words.is_empty())?;
        MaskView::new(words, camera.width, camera.height)
    }
}

impl AsFd for SceneMasks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}
