//! Whole images of a scene, step by step.
//!
//! In the consumer.

use std::time::Duration;

use crate::camera::Camera;
use crate::error::Result;
use crate::scene::jobs::views::view::View;
use crate::scene::run::SceneRun;
use crate::scene::run::views::kind::ViewKind;

/// Whole images of a scene: each step is one of them.
pub type Views = SceneRun<ViewKind>;

impl SceneRun<ViewKind> {
    /// The next view.
    ///
    /// # Errors
    /// An image that cannot be read ([`Error::Sample`](crate::Error::Sample), with its
    /// path: the next call tries it again); every view held for too long; what ends the
    /// pool.
    pub fn next_view(&mut self) -> Result<View> {
        loop {
            if let Some(view) = self.next_view_within(Duration::MAX)? {
                return Ok(view);
            }
        }
    }

    /// As [`Views::next_view`]; none when it is not there within `limit`.
    ///
    /// # Errors
    /// As [`Views::next_view`].
    pub fn next_view_within(&mut self, limit: Duration) -> Result<Option<View>> {
        self.next_within((), limit)
    }

    /// Steps of an epoch of this rank: step s is of epoch s / this.
    #[must_use]
    pub fn epoch_len(&self) -> u64 {
        self.kind.order.len()
    }

    /// The camera of each image as it is shown, as [`View::index`] numbers them.
    #[must_use]
    pub fn cameras(&self) -> &[Camera] {
        &self.kind.cameras
    }
}
