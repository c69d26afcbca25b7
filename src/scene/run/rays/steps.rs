//! Rays of a scene, step by step.
//!
//! Runs in the consumer.

use std::time::Duration;

use crate::error::Result;
use crate::scene::jobs::rays::batch::RayBatch;
use crate::scene::run::SceneRun;
use crate::scene::run::rays::kind::RayKind;

/// Rays of a scene: each step is a batch of rays.
pub type Rays = SceneRun<RayKind>;

impl SceneRun<RayKind> {
    /// Returns the next step, with the number of rays that the builder set.
    ///
    /// # Errors
    /// An image that cannot be read ([`Error::Sample`](crate::Error::Sample), with its path; the
    /// next call retries the step); every batch held for too long; an error that ends the pool.
    pub fn next_batch(&mut self) -> Result<RayBatch> {
        self.next_rays(self.kind.rays)
    }

    /// Returns the next step with `rays` rays: the first ones of the step's sequence. So the rays
    /// of a step do not depend on their number.
    ///
    /// # Errors
    /// Like [`Rays::next_batch`]; more rays than
    /// [`RaysBuilder::most_rays`](crate::rays::RaysBuilder::most_rays).
    pub fn next_rays(&mut self, rays: u64) -> Result<RayBatch> {
        loop {
            if let Some(batch) = self.next_rays_within(rays, Duration::MAX)? {
                return Ok(batch);
            }
        }
    }

    /// Like [`Rays::next_rays`], but returns `None` if the step is not ready within `limit`.
    ///
    /// # Errors
    /// Like [`Rays::next_rays`].
    pub fn next_rays_within(&mut self, rays: u64, limit: Duration) -> Result<Option<RayBatch>> {
        self.next_within(rays, limit)
    }
}
