//! The builder of views: the methods that rays do not have.
//!
//! In the consumer. Never in here: what is done with them (`kind`).

use crate::order::Rank;
use crate::scene::run::SceneBuilder;
use crate::scene::run::views::kind::ViewKind;

/// Builds [`Views`](crate::views::Views).
pub type ViewsBuilder = SceneBuilder<ViewKind>;

impl SceneBuilder<ViewKind> {
    /// Whether each epoch is a new random order of the images. Default true; otherwise it
    /// is always the scene's.
    pub fn shuffle(mut self, shuffled: bool) -> Self {
        self.kind.shuffles = shuffled;
        self
    }

    /// Place of this process among those that train together, which take turns: position
    /// p of an epoch is that of rank p % world. Default: alone.
    pub fn rank(mut self, rank: Rank) -> Self {
        self.kind.rank = rank;
        self
    }

    /// Whether images are straightened: shown as a pinhole camera sees them, with the
    /// numbers of [`Views::cameras`](crate::views::Views::cameras), and their masks and
    /// depths with them. Default false.
    pub fn undistort(mut self, straight: bool) -> Self {
        self.kind.undistort = straight;
        self
    }

    /// Whether images are `f32` from 0 to 1. Default false: `u8`.
    pub fn float(mut self, float: bool) -> Self {
        self.kind.float = float;
        self
    }
}
