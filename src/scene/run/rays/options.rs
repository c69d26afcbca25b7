//! Options that only rays have.
//!
//! Runs in the consumer.

use crate::error::{Error, Result};
use crate::order::Rank;
use crate::scene::draw::RaySampler;

/// Options that only rays have.
#[derive(Debug)]
pub struct RayKindOptions {
    pub(super) sampler: RaySampler,
    pub(super) rank: Rank,
    pub(super) joining: u32,
    pub(super) rays: u64,
    pub(super) most_rays: Option<u64>,
}

impl RayKindOptions {
    pub(super) const DEFAULT_RAYS: u64 = 4096;
    pub(super) const DEFAULT_JOINING: u32 = 4;

    /// Rays that a batch has space for.
    ///
    /// # Errors
    /// Invalid numbers of rays.
    pub(super) fn checked_rays(&self) -> Result<u64> {
        let most = self.most_rays.unwrap_or(self.rays);
        let per_unit = u64::from(self.sampler.rays_per_unit());
        if self.rays == 0 || self.sampler.whole_rays(self.rays) != self.rays {
            return Err(Error::option(
                "rays",
                format!(
                    "`rays` is {}, and a unit has {per_unit} rays: use {}",
                    self.rays,
                    self.sampler.whole_rays(self.rays).max(per_unit)
                ),
            ));
        }
        if most < self.rays {
            return Err(Error::option(
                "most_rays",
                format!(
                    "most_rays is {most}, and `rays` is {}: raise most_rays",
                    self.rays
                ),
            ));
        }
        // Some places count a row's length in 32 bits, and no trainer needs more rays.
        if most > 1 << 24 {
            return Err(Error::option(
                "most_rays",
                format!("most_rays is {most}: use at most {}", 1 << 24),
            ));
        }
        Ok(most)
    }
}

impl Default for RayKindOptions {
    fn default() -> Self {
        Self {
            sampler: RaySampler::default(),
            rank: Rank::default(),
            joining: Self::DEFAULT_JOINING,
            rays: Self::DEFAULT_RAYS,
            most_rays: None,
        }
    }
}
