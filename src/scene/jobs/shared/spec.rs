//! What a process must know to decode images of a scene into the image store.
//!
//! Plain data, used in every process. Also compiled without the decoders.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::error::SampleFault;
use crate::picture::{BackgroundColor, PictureLimits};
use crate::scene::image_store::{ImageStore, StoreBacking};
use crate::scene::jobs::shared::frames::SealedFrames;

/// The part of a job's spec about the image store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoreSpec {
    pub(crate) background: BackgroundColor,
    pub(crate) limits: PictureLimits,
    pub(crate) holding: StoreBacking,
    /// Key that identifies the image store.
    pub(crate) key: u128,
}

/// The image store with the metadata of its images.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreMemory<'a> {
    pub(crate) index: &'a Index,
    pub(crate) frames: &'a SealedFrames,
    pub(crate) store: &'a ImageStore,
}

/// Number of descriptors of [`StoreMemory`].
pub(crate) const DESCRIPTORS: usize = 4;

impl<'a> StoreMemory<'a> {
    /// The descriptors that workers map, in order.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'a>; DESCRIPTORS] {
        let [control, content] = self.store.descriptors();
        [self.index.as_fd(), self.frames.as_fd(), control, content]
    }
}

/// Adds the image's number, and the file's number in the index, to a fault. For rows with pixels of
/// many images.
pub(crate) fn tag_fault(image: u64, file: u64, fault: &SampleFault) -> SampleFault {
    let text = format!("image {image} file {file}: {}", fault.reason);
    SampleFault::new(fault.kind, text)
}

/// Splits off the image and the file that [`tag_fault`] added, and returns the original fault.
pub(crate) fn untag_fault(fault: &SampleFault) -> (Option<(u64, u64)>, SampleFault) {
    let named = || {
        let (named, reason) = fault.reason.strip_prefix("image ")?.split_once(": ")?;
        let (image, file) = named.split_once(" file ")?;
        Some(((image.parse().ok()?, file.parse().ok()?), reason))
    };
    match named() {
        Some((named, reason)) => (Some(named), SampleFault::new(fault.kind, reason)),
        None => (None, fault.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FaultKind;

    #[test]
    fn the_image_of_a_fault_is_found_again() {
        let fault = SampleFault::new(FaultKind::Corrupt, "no end: marker");
        let named = tag_fault(17, 40, &fault);
        assert_eq!(named.reason, "image 17 file 40: no end: marker");
        assert_eq!(untag_fault(&named), (Some((17, 40)), fault.clone()));
        assert_eq!(untag_fault(&fault), (None, fault));
    }
}
