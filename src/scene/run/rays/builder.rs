//! The builder of rays: the methods that views do not have.
//!
//! In the consumer. Never in here: what is done with them (`kind`).

use crate::order::Rank;
use crate::scene::draw::RaySampler;
use crate::scene::run::SceneBuilder;
use crate::scene::run::rays::kind::RayKind;
use crate::scene::run::rays::options::RayKindOptions;

/// Builds [`Rays`](crate::rays::Rays).
pub type RaysBuilder = SceneBuilder<RayKind>;

impl SceneBuilder<RayKind> {
    /// Rays of a step, when nobody says another number.
    pub const DEFAULT_RAYS: u64 = RayKindOptions::DEFAULT_RAYS;

    /// Images that join at each step, when nobody says another number.
    pub const DEFAULT_JOINING: u32 = RayKindOptions::DEFAULT_JOINING;

    /// How rays are spread over the images. Default [`RaySampler::UniformSource`].
    pub fn sampler(mut self, sampler: RaySampler) -> Self {
        self.kind.sampler = sampler;
        self
    }

    /// Number of this process among those that train together: each draws rays of its
    /// own. Default 0 of 1.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.kind.rank = rank;
        self
    }

    /// Images that join at each step: step s draws from the first `images * (s + 1)` of a
    /// random order, so that training begins when a few are decoded. 0 draws from all at
    /// once, and the first step waits for every image that it draws from. Default
    /// [`RaysBuilder::DEFAULT_JOINING`].
    pub fn joining(mut self, images: u32) -> Self {
        self.kind.joining = images;
        self
    }

    /// Rays of a step. Default [`RaysBuilder::DEFAULT_RAYS`].
    pub fn rays(mut self, rays: u64) -> Self {
        self.kind.rays = rays;
        self
    }

    /// The most rays that [`Rays::next_rays`](crate::rays::Rays::next_rays) may ask for.
    /// Default: those of a step.
    pub fn most_rays(mut self, rays: u64) -> Self {
        self.kind.most_rays = Some(rays);
        self
    }
}
