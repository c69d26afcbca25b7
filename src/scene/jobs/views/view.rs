//! One image with its mask and depths.
//!
//! Runs in the consumer. Not here: its memory (`scene::jobs::shared`).

use std::ops::Range;

use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};
use crate::scene::jobs::views::fields::{ViewField, ViewLayout};

/// The image of one step, with its mask and depths.
pub type View = SceneBatch<StepImage>;

/// The arrays of a [`View`].
#[derive(Debug, Clone, Copy)]
pub struct StepImage {
    pub(crate) layout: ViewLayout,
    pub(crate) image: u64,
}

impl SceneArrays for StepImage {
    type Field = ViewField;

    const NAME: &'static str = "a view";

    fn has(&self, field: ViewField) -> bool {
        self.layout.has(field)
    }

    fn range(&self, field: ViewField) -> Range<usize> {
        self.layout.of(field)
    }
}

impl SceneBatch<StepImage> {
    /// Number of the image in the split: its index in
    /// [`SceneRun::images`](crate::scene::SceneRun::images).
    #[must_use]
    pub fn index(&self) -> u64 {
        self.arrays.image
    }

    /// Height in pixels.
    #[must_use]
    pub fn height(&self) -> usize {
        self.arrays.layout.height
    }

    /// Width in pixels.
    #[must_use]
    pub fn width(&self) -> usize {
        self.arrays.layout.width
    }

    /// Channels of the image: 3, or 4 with alpha.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.arrays.layout.channels
    }

    /// Whether the image is `f32` instead of `u8`.
    #[must_use]
    pub fn is_float(&self) -> bool {
        self.arrays.layout.float
    }
}
