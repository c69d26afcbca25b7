//! Rays of a scene, step by step.
//!
//! In the consumer.

use std::time::Duration;

use crate::error::Result;
use crate::scene::jobs::rays::batch::RayBatch;
use crate::scene::run::SceneRun;
use crate::scene::run::rays::kind::RayKind;

/// Rays of a scene: each step is a batch of them.
pub type Rays = SceneRun<RayKind>;

impl SceneRun<RayKind> {
    /// The next step, as many rays as the builder was told.
    ///
    /// # Errors
    /// An image that cannot be read ([`Error::Sample`](crate::Error::Sample), with its path: the
    /// next call tries the step again); every batch held for too long; what ends the pool.
    pub fn next_batch(&mut self) -> Result<RayBatch> {
        self.next_rays(self.kind.rays)
    }

    /// The next step with so many rays: the first ones of its sequence, so that a step's
    /// rays do not depend on how many are asked for.
    ///
    /// # Errors
    /// As [`Rays::next_batch`]; more rays than
    /// [`RaysBuilder::most_rays`](crate::rays::RaysBuilder::most_rays).
    pub fn next_rays(&mut self, rays: u64) -> Result<RayBatch> {
        loop {
            if let Some(batch) = self.next_rays_within(rays, Duration::MAX)? {
                return Ok(batch);
            }
        }
    }

    /// As [`Rays::next_rays`]; none when it is not there within `limit`.
    ///
    /// # Errors
    /// As [`Rays::next_rays`].
    pub fn next_rays_within(&mut self, rays: u64, limit: Duration) -> Result<Option<RayBatch>> {
        self.next_within(rays, limit)
    }
}
