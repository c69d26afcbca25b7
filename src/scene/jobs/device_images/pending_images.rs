//! Images that workers have finished and that kernels cannot read yet, in the order of use.
//!
//! Runs in the consumer. Pure: no device.

use std::collections::VecDeque;

use crate::error::Error;

/// State of an image.
#[derive(Debug)]
pub(super) enum PendingState {
    /// The device decodes it.
    Decoding,
    /// Kernels may read it.
    Ready,
    /// The device flagged it: a worker must decode it.
    Flagged,
    Failed(Error),
}

/// An image and its size in bytes.
#[derive(Debug)]
pub(super) struct PendingImage {
    pub(super) number: u32,
    pub(super) bytes: usize,
    pub(super) state: PendingState,
}

/// Queue of images that are not ready yet.
#[derive(Debug, Default)]
pub(super) struct PendingImages(VecDeque<PendingImage>);

impl PendingImages {
    pub(super) fn push(&mut self, number: u32, bytes: usize, state: PendingState) {
        self.0.push_back(PendingImage {
            number,
            bytes,
            state,
        });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Marks the oldest images in decoding as decoded. `errors` holds one error word per image.
    pub(super) fn finish_decoding(&mut self, errors: &[u32]) {
        let decoding = |image: &&mut PendingImage| matches!(image.state, PendingState::Decoding);
        for (image, error) in self.0.iter_mut().filter(decoding).zip(errors) {
            image.state = match error {
                0 => PendingState::Ready,
                _ => PendingState::Flagged,
            };
        }
    }

    /// Removes and returns the first image, unless the device still decodes it.
    pub(super) fn take_first(&mut self) -> Option<PendingImage> {
        let first = self.0.front()?;
        match first.state {
            PendingState::Decoding => None,
            _ => self.0.pop_front(),
        }
    }

    /// Whether more images may follow. False if the first image is ready, or if the last one
    /// failed: then all images are requested again.
    pub(super) fn accepts_more(&self) -> bool {
        let is = |image: Option<&PendingImage>| match image.map(|image| &image.state) {
            None | Some(PendingState::Decoding) => true,
            Some(PendingState::Ready | PendingState::Flagged | PendingState::Failed(_)) => false,
        };
        let fails = |image: &PendingImage| {
            matches!(image.state, PendingState::Flagged | PendingState::Failed(_))
        };
        is(self.0.front()) && !self.0.iter().any(fails)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_come_in_their_order_once_the_device_has_decoded_them() {
        let mut images = PendingImages::default();
        assert!(images.accepts_more() && images.take_first().is_none());
        images.push(5, 50, PendingState::Decoding);
        images.push(2, 20, PendingState::Ready);
        images.push(9, 90, PendingState::Decoding);
        images.push(4, 40, PendingState::Decoding);
        assert!(images.accepts_more() && images.take_first().is_none());
        // A part of two.
        images.finish_decoding(&[0, 3]);
        assert!(!images.accepts_more());
        let mut first = |number: u32| {
            let image = images.take_first().unwrap();
            assert_eq!((image.number, image.bytes), (number, number as usize * 10));
            image.state
        };
        assert!(matches!(first(5), PendingState::Ready));
        assert!(matches!(first(2), PendingState::Ready));
        assert!(matches!(first(9), PendingState::Flagged));
        assert!(images.take_first().is_none() && images.len() == 1);
        images.finish_decoding(&[0]);
        assert!(matches!(
            images.take_first().unwrap().state,
            PendingState::Ready
        ));
        assert!(images.is_empty());
    }

    #[test]
    fn nothing_follows_a_failure() {
        let mut images = PendingImages::default();
        images.push(1, 1, PendingState::Decoding);
        images.push(2, 1, PendingState::Failed(Error::protocol("no image")));
        assert!(!images.accepts_more());
        images.finish_decoding(&[0]);
        assert_eq!(images.take_first().unwrap().number, 1);
        assert!(!images.accepts_more());
        images.take_first().unwrap();
        assert!(images.accepts_more());
    }
}
