//! The builder of views: methods that rays do not have.
//!
//! Runs in the consumer. Not here: what the options do (`kind`).

use crate::order::Rank;
use crate::scene::run::SceneBuilder;
use crate::scene::run::views::kind::ViewKind;

/// Builds [`Views`](crate::views::Views).
pub type ViewsBuilder = SceneBuilder<ViewKind>;

impl SceneBuilder<ViewKind> {
    /// Whether each epoch has a new random order of the images. Otherwise it has the scene's order.
    /// Default true.
    pub fn shuffle(mut self, shuffled: bool) -> Self {
        self.kind.shuffles = shuffled;
        self
    }

    /// Rank of this process in the training group. Position p of an epoch belongs to rank p %
    /// world. Default: rank 0 of 1.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.kind.rank = rank;
        self
    }

    /// Whether images, masks and depths are straightened: as a pinhole camera sees them.
    /// [`Views::cameras`](crate::views::Views::cameras) has the parameters of that camera. Default
    /// false.
    pub fn undistort(mut self, straight: bool) -> Self {
        self.kind.undistort = straight;
        self
    }

    /// Whether images are `f32` from 0 to 1. Otherwise they are `u8`. Default false.
    pub fn float(mut self, float: bool) -> Self {
        self.kind.float = float;
        self
    }
}
