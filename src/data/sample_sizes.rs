//! The upright size of every sample: 8 bytes each, shared by all processes.
//!
//! A header scan in the consumer makes it. The coordinator and the workers map it read-only.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytes;

/// Height and width of each sample in pixels, from its header. A sample has no size if its header
/// could not be read or was over a limit. Immutable.
#[derive(Debug)]
pub(crate) struct SampleSizes {
    sealed: SealedBytes,
}

impl SampleSizes {
    /// Seals the heights and widths of all samples, in their order. 0 x 0 means no size.
    pub(crate) fn seal(sizes: &[[u32; 2]]) -> Result<Self> {
        Ok(Self {
            sealed: SealedBytes::new("featherload-sizes", &[bytemuck::cast_slice(sizes)])?,
        })
    }

    /// Maps the sizes of `samples` samples, received from another process.
    pub(crate) fn from_fd(fd: OwnedFd, samples: u64) -> Result<Self> {
        let sealed = SealedBytes::from_fd(fd)?;
        let bytes = sealed.bytes().len() as u64;
        if Some(bytes) != samples.checked_mul(size_of::<[u32; 2]>() as u64) {
            return Err(Error::protocol(format!(
                "the received sizes have {bytes} bytes, {samples} samples need 8 each"
            )));
        }
        Ok(Self { sealed })
    }

    /// Another handle on the same shared memory.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let fd = self
            .as_fd()
            .try_clone_to_owned()
            .map_err(|e| Error::io("duplicate the descriptor of the sizes", e))?;
        Self::from_fd(fd, self.len())
    }

    fn all(&self) -> &[[u32; 2]] {
        // A map starts at a page boundary, and its length was checked. It is empty if there are no
        // samples.
        bytemuck::try_cast_slice(self.sealed.bytes()).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> u64 {
        self.all().len() as u64
    }

    /// Height and width of a sample. `None` if its header could not be read.
    pub(crate) fn get(&self, id: u64) -> Option<(u32, u32)> {
        let &[height, width] = self.all().get(usize::try_from(id).ok()?)?;
        (height != 0 && width != 0).then_some((height, width))
    }

    /// Like [`SampleSizes::get`], for every sample in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Option<(u32, u32)>> {
        self.all()
            .iter()
            .map(|&[height, width]| (height != 0 && width != 0).then_some((height, width)))
    }
}

impl AsFd for SampleSizes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_sees_the_same_sizes() {
        let sizes = SampleSizes::seal(&[[3, 4], [0, 0], [65_535, 1]]).unwrap();
        let fd = || sizes.as_fd().try_clone_to_owned().unwrap();
        let other = SampleSizes::from_fd(fd(), 3).unwrap();
        assert_eq!(other.get(0), Some((3, 4)));
        assert_eq!(other.get(1), None);
        assert_eq!(other.get(2), Some((65_535, 1)));
        for id in [3, u64::MAX] {
            assert_eq!(other.get(id), None);
        }
        assert_eq!(other.iter().flatten().count(), 2);
        for samples in [0, 2, 4, u64::MAX] {
            assert!(SampleSizes::from_fd(fd(), samples).is_err());
        }
    }

    #[test]
    fn no_samples_are_no_sizes() {
        assert_eq!(SampleSizes::seal(&[]).unwrap().len(), 0);
    }
}
