//! A batch of rays.
//!
//! Runs in the consumer. Not here: its memory (`scene::jobs::shared`).

use std::ops::Range;

use crate::error::{Error, Result};
use crate::scene::jobs::rays::fields::{RayField, RayLayout};
use crate::scene::jobs::shared::batch::{SceneArrays, SceneBatch};

/// The rays of one step. Each array has one entry per ray.
pub type RayBatch = SceneBatch<StepRays>;

/// The arrays of a [`RayBatch`].
#[derive(Debug, Clone, Copy)]
pub struct StepRays {
    pub(crate) layout: RayLayout,
    /// Number of rays requested. The memory may hold more.
    pub(crate) rays: usize,
}

impl SceneArrays for StepRays {
    type Field = RayField;

    const NAME: &'static str = "a batch of rays";

    fn has(&self, field: RayField) -> bool {
        self.layout.has(field)
    }

    fn range(&self, field: RayField) -> Range<usize> {
        let begin = self.layout.of(field).start;
        let len = match self.has(field) {
            true => self.rays * self.layout.width(field) * field.number_bytes(),
            false => 0,
        };
        begin..begin + len
    }
}

impl SceneBatch<StepRays> {
    /// Number of rays.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arrays.rays
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of an `f32` field, ray by ray; empty if the scene has no such field.
    ///
    /// # Errors
    /// A field of another type; a forked copy of the process.
    pub fn floats(&self, field: RayField) -> Result<&[f32]> {
        self.numbers(field)
    }

    /// Image, row and column of each ray.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn indices(&self) -> Result<&[[i64; 3]]> {
        let all: &[i64] = self.numbers(RayField::Indices)?;
        Ok(bytemuck::cast_slice(all))
    }

    /// For each ray, 1 if its lens defines the ray's direction, else 0.
    ///
    /// # Errors
    /// A forked copy of the process.
    pub fn valid(&self) -> Result<&[u8]> {
        self.bytes(RayField::Valid)
    }

    /// Values per ray: 1, 3 or 4.
    #[must_use]
    pub fn width(&self, field: RayField) -> usize {
        self.arrays.layout.width(field)
    }

    fn numbers<T: bytemuck::Pod>(&self, field: RayField) -> Result<&[T]> {
        if field.number_bytes() != size_of::<T>() {
            return Err(Error::config(format!(
                "{} has values of another type",
                field.name()
            )));
        }
        bytemuck::try_cast_slice(self.bytes(field)?)
            .map_err(|e| Error::protocol(format!("an array of rays: {e}")))
    }
}
