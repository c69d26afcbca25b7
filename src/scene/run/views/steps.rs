//! Whole images of a scene, step by step.
//!
//! Runs in the consumer.

use std::time::Duration;

use crate::camera::Camera;
use crate::error::Result;
use crate::scene::jobs::views::view::View;
use crate::scene::run::SceneRun;
use crate::scene::run::views::kind::ViewKind;

/// Whole images of a scene: each step is one image.
pub type Views = SceneRun<ViewKind>;

impl SceneRun<ViewKind> {
    /// Returns the next view.
    ///
    /// # Errors
    /// An image that cannot be read ([`Error::Sample`](crate::Error::Sample), with its path; the
    /// next call retries it); every view held for too long; an error that ends the pool.
    pub fn next_view(&mut self) -> Result<View> {
        loop {
            if let Some(view) = self.next_view_within(Duration::MAX)? {
                return Ok(view);
            }
        }
    }

    /// Like [`Views::next_view`], but returns `None` if the view is not ready within `limit`.
    ///
    /// # Errors
    /// Like [`Views::next_view`].
    pub fn next_view_within(&mut self, limit: Duration) -> Result<Option<View>> {
        self.next_within((), limit)
    }

    /// Steps of an epoch of this rank: step s belongs to epoch `s / epoch_len`.
    #[must_use]
    pub fn epoch_len(&self) -> u64 {
        self.kind.order.len()
    }

    /// Output camera of each image, in the order of [`View::index`].
    #[must_use]
    pub fn cameras(&self) -> &[Camera] {
        &self.kind.cameras
    }
}
