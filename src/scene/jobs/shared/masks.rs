//! Which pixels of each image may be sampled, as bits in sealed memory.
//!
//! Made in the consumer, mapped by coordinator and workers. How bits lie in words is
//! the business of `scene::draw::bits`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::scene::draw::{MaskView, mask_words};
use crate::scene::jobs::shared::frames::StoredFrames;
use crate::sys::sealed_bytes::SealedBytes;

/// The masks of all images that have one, one behind the other.
#[derive(Debug)]
pub(crate) struct SceneMasks {
    sealed: SealedBytes,
    /// Where the words of each image end; those of an image without a mask are none.
    ends: Vec<u64>,
}

impl SceneMasks {
    /// Seals the words of the images that have a mask, in order.
    ///
    /// # Errors
    /// Words that are no masks of these images.
    pub(crate) fn seal(frames: &StoredFrames, words: &[&[u64]]) -> Result<Self> {
        let parts: Vec<&[u8]> = words.iter().map(|w| bytemuck::cast_slice(w)).collect();
        Self::open(frames, SealedBytes::new("featherload-masks", &parts)?)
    }

    /// Out of another process.
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
                "the masks have {found} bytes, their images need {}",
                8 * end
            ))),
        }
    }

    /// All words, and where those of each image begin.
    pub(crate) fn words(&self) -> (&[u8], impl Iterator<Item = u64> + '_) {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        (self.sealed.bytes(), begins.take(self.ends.len()))
    }

    /// The mask of an image; none where it has none.
    pub(crate) fn of(&self, frames: &StoredFrames, image: u32) -> Option<MaskView<'_>> {
        let image = image as usize;
        let end = *self.ends.get(image)?;
        let begin = match image {
            0 => 0,
            _ => *self.ends.get(image - 1)?,
        };
        // A map begins on a page.
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
