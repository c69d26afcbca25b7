//! The sampling table: data of a scene for drawing rays, in shared memory for all processes and
//! ranks.
//!
//! The consumer builds it (`table_builder`); workers map it read-only. It is sealed, so it cannot
//! change after the check. Not here: pixels and masks, draws.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(test)]
use twox_hash::XxHash3_128;

use super::random::StepKey;
use super::sampler::RaySampler;
use super::table_format::{self, RayTableHeader, TableSections};
use crate::error::{Error, Result};
use crate::sys::sealed_bytes::SealedBytes;

/// Sizes of images, their numbers of units, and the order in which they join.
///
/// 44 bytes an image. An image with a mask, a crop disc or a sphere also has 4 bytes a row, a
/// sphere 12. Images without a mask share them if size and shape are equal.
#[derive(Debug)]
pub(crate) struct RayTable {
    sealed: SealedBytes,
    header: RayTableHeader,
    sampler: RaySampler,
    /// Whether all images with a unit have the same number of units.
    pub(super) images_equal: bool,
    /// Columns and rows of each image with a unit, if all are whole and of equal size.
    pub(super) common_size: Option<(u32, u32)>,
}

/// One step of one rank, as `RayTable::pixel` needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RayStep {
    pub(super) key: StepKey,
    /// Number of images to draw from: the first ones of the order.
    pub(super) images: u32,
}

impl RayTable {
    /// Seals the sections of a table.
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

    /// Opens a table that another process sealed. Checks every value: takes time proportional to
    /// its length.
    ///
    /// # Errors
    ///
    /// `Protocol` for bytes that are not a table, or not sealed; `Io`.
    pub(crate) fn from_fd(fd: OwnedFd) -> Result<Self> {
        Self::open(SealedBytes::from_fd(fd)?)
    }

    fn open(sealed: SealedBytes) -> Result<Self> {
        let header = table_format::header(sealed.bytes()).ok_or_else(|| {
            Error::protocol(format!(
                "the received {} bytes are not a table of rays",
                sealed.bytes().len()
            ))
        })?;
        let parts = TableSections::split(&header, sealed.bytes());
        let sampler = table_format::check_table(&header, &parts)?;
        let first = parts.sums.first().copied().unwrap_or_default();
        // No overflow: the first is the smallest if all differences are positive.
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

    /// Fingerprint of the content in hexadecimal.
    #[cfg(test)]
    pub(crate) fn hash(&self) -> String {
        format!("{:032x}", XxHash3_128::oneshot(self.sealed.bytes()))
    }

    /// Bytes of the table.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.sealed.bytes().len() as u64
    }

    /// How rays are distributed.
    pub(crate) fn sampler(&self) -> RaySampler {
        self.sampler
    }

    /// Number of images, including those without a pixel to sample.
    pub(crate) fn images(&self) -> u32 {
        self.header.images
    }

    /// Width and height of an image; `None` if there is no such image.
    #[cfg(test)]
    pub(crate) fn size(&self, image: u32) -> Option<(u32, u32)> {
        self.parts()
            .images
            .get(image as usize)
            .map(table_format::ImageRecord::size)
    }

    /// Whether an image is sampled through a mask.
    #[cfg(test)]
    pub(crate) fn is_masked(&self, image: u32) -> bool {
        let image = self.parts().images.get(image as usize);
        image.is_some_and(table_format::ImageRecord::is_masked)
    }

    /// All images in the order in which they join. Those without a pixel to sample come last and
    /// never join.
    #[cfg(test)]
    pub(crate) fn order(&self) -> &[u32] {
        self.parts().order
    }

    /// The images with a pixel to sample, in the order in which they join.
    pub(crate) fn drawn_images(&self) -> &[u32] {
        let order = self.parts().order;
        order.get(..self.header.drawn as usize).unwrap_or_default()
    }

    /// Number of images with a pixel to sample. They come first in the order.
    #[cfg(test)]
    pub(crate) fn drawn(&self) -> u32 {
        self.header.drawn
    }

    /// Number of images to draw from at a step: the first ones of the order.
    pub(crate) fn images_at(&self, step: u64) -> u32 {
        let joined = match self.header.joining {
            0 => u64::MAX,
            joining => step.saturating_add(1).saturating_mul(u64::from(joining)),
        };
        joined.min(u64::from(self.header.drawn)) as u32
    }

    /// Number of units to draw from at a step: pixels, or positions of patches.
    #[cfg(test)]
    pub(crate) fn units_at(&self, step: u64) -> u64 {
        let last = (self.images_at(step) as usize).checked_sub(1);
        let sum = last.and_then(|last| self.parts().sums.get(last));
        sum.copied().unwrap_or_default()
    }

    /// Prepares the draws of one step of one rank.
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
        TableSections::split(&self.header, self.sealed.bytes())
    }
}

impl AsFd for RayTable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sealed.as_fd()
    }
}
