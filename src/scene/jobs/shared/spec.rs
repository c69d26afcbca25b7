//! What must be known to decode the images of a scene into their store.
//!
//! Plain data, used in every process; compiled without the decoders too.

use std::os::fd::{AsFd, BorrowedFd};

use serde::{Deserialize, Serialize};

use crate::data::index::Index;
use crate::error::SampleFault;
use crate::picture::{BackgroundColor, PictureLimits};
use crate::scene::image_store::{ImageStore, StoreBacking};
use crate::scene::jobs::shared::frames::SealedFrames;

/// A part of the spec of each job that works on a store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct StoreSpec {
    pub(crate) background: BackgroundColor,
    pub(crate) limits: PictureLimits,
    pub(crate) holding: StoreBacking,
    /// By which the store is known.
    pub(crate) key: u128,
}

/// The store and what is known of its images.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreMemory<'a> {
    pub(crate) index: &'a Index,
    pub(crate) frames: &'a SealedFrames,
    pub(crate) store: &'a ImageStore,
}

/// Descriptors of [`StoreMemory`].
pub(crate) const DESCRIPTORS: usize = 4;

impl<'a> StoreMemory<'a> {
    /// What workers map, in order.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'a>; DESCRIPTORS] {
        let [control, content] = self.store.descriptors();
        [self.index.as_fd(), self.frames.as_fd(), control, content]
    }
}

/// Says which image a fault is of, where a row has pixels of many; and which of its files,
/// by their numbers in the index.
pub(crate) fn tag_fault(image: u64, file: u64, fault: &SampleFault) -> SampleFault {
    let text = format!("image {image} file {file}: {}", fault.reason);
    SampleFault::new(fault.kind, text)
}

/// The image and the file that [`name_image`] named, and the fault as it was.
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
