//! A table and a step as plain numbers, for the device's kernel.
//!
//! Runs in the consumer. `table_format` and `draw` define the numbers. Not here: draws.

use super::sampler::RaySampler;
use super::table::{RayStep, RayTable};
use super::table_format::{RayTableHeader, encode_sampler};

/// Numbers that determine the draws of one step, in addition to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepNumbers {
    pub(crate) key: [u32; 2],
    /// Number of images to draw from: the first ones of the order.
    pub(crate) joined: u32,
    /// Number of images to draw from if all are equally likely, otherwise number of units.
    pub(crate) total: u64,
    /// Whether all images are equally likely.
    pub(crate) images_equal: bool,
    /// Width and height of every image, if all are whole and of equal size.
    pub(crate) common_size: Option<(u32, u32)>,
    /// The sampler's kind and numbers.
    pub(crate) sampler: [u32; 3],
    /// Distance of a unit's last row from its first.
    pub(crate) extent: u32,
}

impl RayTable {
    /// All bytes of the table, and the offsets of its sections: sums, weights, images, order,
    /// counts.
    pub(crate) fn layout(&self) -> (&[u8], [usize; 5]) {
        let bytes = self.sealed_bytes();
        let parts = self.parts();
        let sums = size_of::<RayTableHeader>();
        let weights = sums + size_of_val(parts.sums);
        let images = weights + size_of_val(parts.weights);
        let order = images + size_of_val(parts.images);
        let counts = order + size_of_val(parts.order);
        (bytes, [sums, weights, images, order, counts])
    }

    /// The numbers of a step.
    pub(crate) fn numbers(&self, step: &RayStep) -> StepNumbers {
        let last = (step.images as usize).checked_sub(1);
        let even = self.images_equal || self.sampler() == RaySampler::ByImage;
        let units = last.and_then(|last| self.parts().sums.get(last)).copied();
        // The first pixel of a patch or pair is drawn in the general way.
        let alike = match self.sampler() {
            RaySampler::Uniform | RaySampler::ByImage => self.common_size,
            RaySampler::Patches { .. } | RaySampler::Pairs { .. } => None,
        };
        StepNumbers {
            key: step.key.words_of_key(),
            joined: step.images,
            total: match even {
                true => u64::from(step.images),
                false => units.unwrap_or(0),
            },
            images_equal: even,
            common_size: alike,
            sampler: encode_sampler(self.sampler()),
            extent: self.sampler().extent(),
        }
    }
}
