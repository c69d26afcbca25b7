//! What the draws of rays need to know of a scene, in shared memory: once for all
//! processes and ranks.
//!
//! Made in the consumer (`build`), mapped read-only by workers. Sealed, so it is what it
//! was when it was checked. Never in here: pixels and masks; which ray falls where.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(test)]
use twox_hash::XxHash3_128;

use super::random::StepKey;
use super::sampler::RaySampler;
use super::table_format::{self, RayTableHeader, TableSections};
use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytes;

/// Sizes of images, how many units each has, and the order in which they join.
///
/// 44 bytes an image. An image with a mask, of a fisheye's disc or of a sphere has 4 bytes
/// a row besides, of a sphere 12; those that have no mask share them by size and shape.
#[derive(Debug)]
pub(crate) struct RayTable {
    sealed: SealedBytes,
    header: RayTableHeader,
    sampler: RaySampler,
    /// Units of each image that has one, where all have as many.
    pub(super) images_equal: bool,
    /// Room of each image that has a unit, where all are whole and alike.
    pub(super) common_size: Option<(u32, u32)>,
}

/// One step of one rank: what [`RayTable::pixel`] needs to know of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RayStep {
    pub(super) key: StepKey,
    /// Images that are drawn from: the first so many of the order.
    pub(super) images: u32,
}

impl RayTable {
    /// Seals the parts of a table, one behind the other.
    pub(super) fn seal(header: &RayTableHeader, parts: &TableSections<'_>) -> Result<Self> {
        let parts = [
            bytemuck::bytes_of(header),
            bytemuck::cast_slice(parts.sums),
            bytemuck::cast_slice(parts.weights),
            bytemuck::cast_slice(parts.images),
            bytemuck::cast_slice(parts.order),
            bytemuck::cast_slice(parts.counts),
        ];
        Self::open(SealedBytes::new("featherload-rays", &parts)?)
    }

    /// A table out of another process. Looks at all of it: time by its length.
    ///
    /// # Errors
    ///
    /// `Protocol` for bytes that are no table, or not sealed; `Io`.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        Self::open(SealedBytes::from_fd(fd)?)
    }

    fn open(sealed: SealedBytes) -> Result<Self> {
        let header = table_format::header(sealed.bytes()).ok_or_else(|| {
            Error::protocol(format!(
                "the received {} bytes are no table of rays",
                sealed.bytes().len()
            ))
        })?;
        let parts = TableSections::cut(&header, sealed.bytes());
        let sampler = table_format::check_table(&header, &parts)?;
        let first = parts.sums.first().copied().unwrap_or_default();
        // No overflow: the first is the smallest where all differences are above 0.
        let even = (1u64..)
            .zip(parts.sums)
            .all(|(n, sum)| n.checked_mul(first) == Some(*sum));
        let mut rooms = (parts.order.iter().zip(parts.sums))
            .filter_map(|(&image, _)| parts.images.get(image as usize))
            .map(|image| image.is_whole().then(|| image.room(sampler.extent())));
        let room = rooms.next().flatten();
        let alike = room.filter(|_| rooms.all(|other| other == room));
        Ok(Self {
            sealed,
            header,
            sampler,
            images_equal: even,
            common_size: alike,
        })
    }

    /// Fingerprint of the content, as hexadecimal digits.
    #[cfg(test)]
    pub(crate) fn hash(&self) -> String {
        format!("{:032x}", XxHash3_128::oneshot(self.sealed.bytes()))
    }

    /// Bytes of the table.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.sealed.bytes().len() as u64
    }

    /// How rays are spread.
    pub(crate) fn sampler(&self) -> RaySampler {
        self.sampler
    }

    /// Number of images, those with nothing to sample included.
    pub(crate) fn images(&self) -> u32 {
        self.header.images
    }

    /// Width and height of an image; None when there is no such image.
    #[cfg(test)]
    pub(crate) fn size(&self, image: u32) -> Option<(u32, u32)> {
        self.parts()
            .images
            .get(image as usize)
            .map(table_format::ImageRecord::size)
    }

    /// True for an image that is drawn from through its mask.
    #[cfg(test)]
    pub(crate) fn is_masked(&self, image: u32) -> bool {
        let image = self.parts().images.get(image as usize);
        image.is_some_and(table_format::ImageRecord::is_masked)
    }

    /// All images, in the order in which they join. Those with nothing to sample stand
    /// last, and never join.
    #[cfg(test)]
    pub(crate) fn order(&self) -> &[u32] {
        self.parts().order
    }

    /// The images that have something to sample, in the order in which they join.
    pub(crate) fn drawn_images(&self) -> &[u32] {
        let order = self.parts().order;
        order.get(..self.header.drawn as usize).unwrap_or_default()
    }

    /// How many images have something to sample: the first so many of the order.
    #[cfg(test)]
    pub(crate) fn drawn(&self) -> u32 {
        self.header.drawn
    }

    /// How many images are drawn from at a step: the first so many of the order.
    pub(crate) fn images_at(&self, step: u64) -> u32 {
        let joined = match self.header.joining {
            0 => u64::MAX,
            joining => step.saturating_add(1).saturating_mul(u64::from(joining)),
        };
        joined.min(u64::from(self.header.drawn)) as u32
    }

    /// Units that are drawn from at a step: pixels, or places of patches.
    #[cfg(test)]
    pub(crate) fn units_at(&self, step: u64) -> u64 {
        let last = (self.images_at(step) as usize).checked_sub(1);
        let sum = last.and_then(|last| self.parts().sums.get(last));
        sum.copied().unwrap_or_default()
    }

    /// What the rays of one step of one rank are drawn with.
    pub(crate) fn step(&self, step: u64, rank: u32) -> RayStep {
        RayStep {
            key: StepKey::new(self.header.seed, step, rank),
            images: self.images_at(step),
        }
    }

    pub(super) fn sealed_bytes(&self) -> &[u8] {
        self.sealed.bytes()
    }

    pub(super) fn parts(&self) -> TableSections<'_> {
        TableSections::cut(&self.header, self.sealed.bytes())
    }
}

impl AsFd for RayTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}
