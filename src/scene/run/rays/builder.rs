//! The builder of rays: methods that views do not have.
//!
//! Runs in the consumer. Not here: what the options do (`kind`).

use crate::order::Rank;
use crate::scene::draw::RaySampler;
use crate::scene::run::SceneBuilder;
use crate::scene::run::rays::kind::RayKind;
use crate::scene::run::rays::options::RayKindOptions;

/// Builds [`Rays`](crate::rays::Rays).
pub type RaysBuilder = SceneBuilder<RayKind>;

impl SceneBuilder<RayKind> {
    /// Default rays per step.
    pub const DEFAULT_RAYS: u64 = RayKindOptions::DEFAULT_RAYS;

    /// Default number of images that join at each step.
    pub const DEFAULT_JOINING: u32 = RayKindOptions::DEFAULT_JOINING;

    /// How rays are distributed over the images. Default [`RaySampler::Uniform`].
    pub fn sampler(mut self, sampler: RaySampler) -> Self {
        self.kind.sampler = sampler;
        self
    }

    /// Rank of this process in the training group. Each rank draws different rays. Default: rank 0
    /// of 1.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.kind.rank = rank;
        self
    }

    /// Images that join at each step. Step s draws from the first `images * (s + 1)` images of a
    /// random order, so training starts when a few are decoded. 0 draws from all images at once:
    /// the first step waits for every image that it draws from. Default
    /// [`RaysBuilder::DEFAULT_JOINING`].
    pub fn joining(mut self, images: u32) -> Self {
        self.kind.joining = images;
        self
    }

    /// Rays per step. Default [`RaysBuilder::DEFAULT_RAYS`].
    pub fn rays(mut self, rays: u64) -> Self {
        self.kind.rays = rays;
        self
    }

    /// The most rays that [`Rays::next_rays`](crate::rays::Rays::next_rays) may request. Default:
    /// the rays per step.
    pub fn most_rays(mut self, rays: u64) -> Self {
        self.kind.most_rays = Some(rays);
        self
    }
}
